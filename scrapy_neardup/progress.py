"""Report the progress of long work to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
Show: TypeAlias = Callable[[Iterable[Any], str, int | None], Iterable[Any]]
"""Passes things on and shows how far it is; given are also what they are called and how many there are, if known."""

_show: ContextVar[Show | None] = ContextVar("neardup_show", default=None)


def watched(things: Iterable[T], unit: str, total: int | None = None) -> Iterable[T]:
    """Return things as they are; where somebody watches, he is shown how many have been taken, of `total`."""
    show = _show.get()
    return show(things, unit, total) if show else things


@contextmanager
def watching(show: Show) -> Iterator[None]:
    """Report progress to `show` inside this context."""
    token = _show.set(show)
    try:
        yield
    finally:
        _show.reset(token)
