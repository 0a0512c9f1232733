"""What is decided of a document. Plain records."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .signature import Evidence, Signature


@dataclass(frozen=True)
class Verdict:
    """What was decided of a document, and on what evidence; None where there was nothing to compare with."""

    status: str
    """`unique`, `duplicate` or `revisit` (the same URL again)."""
    duplicate_of: str | None = None
    detector: str | None = None
    """The first one that proposed the document held."""
    hamming: int | None = None
    resemblance: float | None = None
    containment: float | None = None
    length_ratio: float | None = None
    kind: str | None = None
    mirrors: int = 0
    """Mirror degree: how many other URLs have the content of the canonical."""

    def __str__(self) -> str:
        if self.status == "unique":
            return self.status
        return (
            f"{self.status} of {self.duplicate_of} ({self.detector}, resemblance {self.resemblance},"
            f" length ratio {self.length_ratio}, Hamming distance {self.hamming})"
        )

    def tag(self) -> dict[str, Any]:
        """Return the verdict as the item's tag."""
        return asdict(self)


@dataclass(frozen=True)
class Match:
    """A document held that passed verification."""

    signature: Signature
    evidence: Evidence
