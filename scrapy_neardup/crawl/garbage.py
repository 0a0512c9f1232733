"""Spend less time on garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 50_000  # new objects between two collections


@contextmanager
def collecting_rarely() -> Iterator[None]:
    """Collect garbage less often in this block, in which few objects refer to each other in a circle.

    `dedupe` holds ever more objects, and takes a tenth more time with the usual threshold.
    """
    before = gc.get_threshold()
    gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def frozen() -> Iterator[None]:
    """Exclude all objects that exist at the start of this block from garbage collection until its end.

    Each collection would visit all objects of all imported modules, which takes a tenth of the time of a crawl. Do
    nothing if the calling program, or another crawl, has frozen its objects.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
