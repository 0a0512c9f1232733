"""The order in which people are shown documents that are repeated."""

from __future__ import annotations

from ..signature import Signature
from .store import Store


def repeated(store: Store) -> list[Signature]:
    """Return the documents that are repeated: most mirrors first, those of as many by their URL."""
    found = [signature for signature in store.signatures() if signature.repeats]
    return sorted(found, key=lambda signature: (-signature.repeats, signature.url or ""))
