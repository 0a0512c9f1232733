"""Report the progress of long work to a function that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Show: TypeAlias = Callable[[Iterable[Any], str, int | None], Iterable[Any]]
"""Yields the items of an iterable, and shows their progress, given their unit and, if known, their number."""

_show: ContextVar[Show | None] = ContextVar("neardup_show", default=None)


def watched(things: Iterable[T], unit: str, total: int | None = None) -> Iterable[T]:
    """Return an iterable of these things. Inside a `watching` block, their progress is shown."""
    show = _show.get()
    return show(things, unit, total) if show else things


@contextmanager
def watching(show: Show) -> Iterator[None]:
    """Show the progress of `watched` items with `show` in this block."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)
