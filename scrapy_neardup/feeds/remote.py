"""A document that was read by another process or machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from ..document import Document
from ..fingerprints.sketch import Sketch


class Signed(Document):
    """A document whose fingerprints and sketch exist. Its text is read when needed."""

    def __init__(
        self,
        url: str | None,
        fingerprints: dict[str, tuple[int, ...]],
        sketch: Sketch,
        layout: int,
        title: str,
        identity: int,
        thin: bool,
        *,
        text: Callable[[], str],
    ) -> None:
        # One update sets all fields and cached properties. Single assignments take several times as long.
        self.__dict__.update(
            url=url,
            ready=fingerprints,
            layout=layout,
            sketch=sketch,
            title=title,
            identity=identity,
            thin=thin,
            _read=text,
        )

    @cached_property
    def text(self) -> str:
        made: str = self.__dict__["_read"]()
        return made
