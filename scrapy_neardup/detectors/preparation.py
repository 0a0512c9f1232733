"""Make the fingerprints and the sketch of a document before its verdict."""

from __future__ import annotations

from collections.abc import Iterable

from ..document import Document
from .detector import Detector, checked


def prepare(document: Document, detectors: Iterable[Detector]) -> None:
    """Make the fingerprints and the sketch of a document, so that the verdict takes less time.

    Raise TypeError or ValueError for an invalid fingerprint.
    """
    for detector in detectors:
        if detector.name not in document.ready:
            document.ready[detector.name] = checked(detector.name, detector.fingerprints(document))
    document.sketch  # noqa: B018 - made on being asked for
