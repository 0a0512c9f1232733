"""A document that was read elsewhere: on another machine, or in another process."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from .document import Document
from .fingerprints.hashing import Hashes
from .fingerprints.sketch import Sketch


class Signed(Document):
    """A document of which the fingerprints and the sketch are made already, and the text is read where it is needed."""

    def __init__(
        self,
        url: str | None,
        fingerprints: dict[str, tuple[int, ...]],
        sketch: Sketch,
        layout: int,
        *,
        text: Callable[[], str],
        line_hashes: Hashes | None = None,
    ) -> None:
        """`line_hashes`: None where they are to be made of the text."""
        super().__init__(url=url, layout=layout, ready=fingerprints)
        made = self.__dict__  # where the cached properties look first
        del made["text"]
        made["sketch"] = sketch
        made["_read"] = text
        if line_hashes is not None:
            made["line_hashes"] = line_hashes

    @cached_property
    def text(self) -> str:
        made: str = self.__dict__["_read"]()
        return made
