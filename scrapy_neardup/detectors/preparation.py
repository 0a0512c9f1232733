"""Compute the fingerprints, the sketch and the signature of a document."""

from __future__ import annotations

from collections.abc import Iterable

from ..document import Document
from ..signature import TITLE, Signature
from .detector import Detector, checked


def sign(document: Document, detectors: Iterable[Detector], now: float) -> Signature:
    """Return the signature of a document that is seen `now`, in seconds since the epoch.

    Raise TypeError or ValueError for an invalid fingerprint.
    """
    ready = document.ready
    fingerprints = {
        d.name: ready[d.name] if d.name in ready else checked(d.name, d.fingerprints(document)) for d in detectors
    }
    return Signature(
        document.url, fingerprints, document.sketch, now, document.layout,
        title=document.title[:TITLE], facts=document.facts, label=document.label,
    )  # fmt: skip


def prepare(document: Document, detectors: Iterable[Detector]) -> None:
    """Compute the fingerprints and the sketch of a document in advance, so that its claim takes less time.

    Raise TypeError or ValueError for an invalid fingerprint.
    """
    for detector in detectors:
        if detector.name not in document.ready:
            document.ready[detector.name] = checked(detector.name, detector.fingerprints(document))
    document.sketch  # noqa: B018 - computed on access
