"""Which documents of a store are repeated elsewhere, in the order in which people are shown them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..signature import Signature


class Holding(Protocol):
    """What has documents."""

    def signatures(self) -> Iterable[Signature]: ...


def repeated(store: Holding) -> list[Signature]:
    """Return the documents that are repeated: most mirrors first, those of as many by their URL."""
    found = [signature for signature in store.signatures() if signature.repeats]
    return sorted(found, key=lambda signature: (-signature.repeats, signature.url or ""))
