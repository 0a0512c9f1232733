"""Represent a document that another process or machine has parsed and fingerprinted (`Signed`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ..document import Document
from ..fingerprints.sketch import Sketch


class Signed(Document):
    """A document with fingerprints and a sketch from another process. Its text is read only when it is needed."""

    def __init__(
        self,
        url: str | None,
        fingerprints: dict[str, tuple[int, ...]],
        sketch: Sketch,
        layout: int,
        title: str,
        facts: bytes,
        thin: bool,
        *,
        text: Callable[[], str],
    ) -> None:
        # Set all fields and cached properties in one update, since single assignments take several times as long.
        self.__dict__.update(
            url=url,
            ready=fingerprints,
            layout=layout,
            sketch=sketch,
            title=title,
            facts=facts,
            thin=thin,
            _read=text,
        )

    @cached_property
    def text(self) -> str:
        made: str = self.__dict__["_read"]()
        return made
