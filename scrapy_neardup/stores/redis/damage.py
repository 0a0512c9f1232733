"""What reading the bytes of a server may come upon."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..base import StoreError
from ..damage import DAMAGE


@contextmanager
def sound(name: str) -> Iterator[None]:
    """Raise StoreError in place of what damaged bytes raise; `name`: of the store."""
    try:
        yield
    except DAMAGE as error:
        why = " ".join(str(error).split())
        raise StoreError(
            f"store {name!r} is damaged: {why}; `scrapy neardup verify` says where, and what to do"
        ) from error
