"""The detector for equal texts."""

from __future__ import annotations

from ..document import Document
from ..fingerprints.hashes import hash_bytes
from ..index.kinds import Equal


class Exact:
    """Proposes documents of equal normalized text: the same tokens in the same order."""

    name = "exact"
    scheme = "exact/1"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return (hash_bytes(document.lines),) if document.lines else ()

    def index(self) -> Equal:
        return Equal()
