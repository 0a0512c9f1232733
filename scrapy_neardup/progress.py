"""Show the progress of long work in commands."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_is_shown = ContextVar("neardup_progress", default=False)


def show_progress() -> None:
    """Show the progress of `watched` things from now on."""
    _is_shown.set(True)


def watched(things: Iterable[T], unit: str, total: int | None = None) -> Iterable[T]:
    """Return an iterable of these things. In a command on a terminal, a bar shows how far it is."""
    if not _is_shown.get():
        return things
    from tqdm import tqdm

    return tqdm(things, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True, leave=False)
