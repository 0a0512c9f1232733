"""Report the progress of long work to a function that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Show: TypeAlias = Callable[[Iterable[Any], str, int | None], Iterable[Any]]
"""Takes an iterable, the unit of its items and their number, if known. Yields the items and shows their progress."""

_show: ContextVar[Show | None] = ContextVar("neardup_show", default=None)


def watched(things: Iterable[T], unit: str, total: int | None = None) -> Iterable[T]:
    """Return the items unchanged. Inside a `watching` block, their progress is shown."""
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
