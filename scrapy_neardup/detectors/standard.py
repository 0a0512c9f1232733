"""The standard detectors, for equal text, equal sets of lexicon terms, near SimHashes and shared shingles.

`Signer` makes the records of many documents in one go, with the fingerprints of these and of other detectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..document import Document
from ..fingerprints import record
from ..fingerprints.hashes import hash_tokens
from ..fingerprints.imatch import Terms
from ..fingerprints.record import BANDS, ROWS, Wanted
from ..index.kinds import Equal, Near
from ..text.lexicon import Lexicon
from .detector import Detector, checked


class _Standard:
    part: Wanted
    """The part of a record that the detector adds."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        [made] = record.make([document.source], self.part)
        return next(iter(record.fingerprints_in(made, record.Head.of(made)).values()), ())

    def index(self) -> Equal:
        return Equal()


class Exact(_Standard):
    """Proposes documents with equal normalized text: the same tokens in the same order.

    Its first fingerprint is that of the text. If the document has facts, its last one is that of the whole record, so
    that a record is found among however many records with its text.
    """

    name = record.EXACT
    scheme = "exact/3"
    part = Wanted(exact=True)


class IMatch(_Standard):
    """Proposes documents with an equal I-Match digest. Abstains from short texts and foreign languages.

    Chowdhury et al. 2002; Kołcz et al. 2004.
    """

    name = record.IMATCH

    def __init__(self, lexicon: Lexicon, lexicons: int) -> None:
        self.scheme = f"imatch/2 {lexicon.id} {lexicons}"
        self.part = Wanted(digests=1 + lexicons, terms=Terms(hash_tokens(list(lexicon.terms))[:, 0]))


class SimHash(_Standard):
    """Proposes documents with a SimHash at a Hamming distance of at most `distance` (Manku et al. 2007)."""

    name = record.SIMHASH
    scheme = "simhash/1"
    part = Wanted(simhash=True)

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def index(self) -> Near:  # type: ignore[override]
        return Near(self.distance)


class Shingle(_Standard):
    """Proposes documents that share a super-shingle (Broder et al. 1997). Recall rises steeply with resemblance."""

    name = record.SHINGLE
    scheme = f"shingle/1 {BANDS}x{ROWS}"
    part = Wanted(shingle=True)


STANDARD = (Exact, IMatch, SimHash, Shingle)


class Signer:
    """Makes the records of documents."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        detectors = list(detectors)
        parts = [each.part for each in detectors if isinstance(each, STANDARD) and type(each) in STANDARD]
        chosen: dict[str, Any] = {n: value for part in parts for n, value in part._asdict().items() if value}
        self._wanted = Wanted(**chosen)
        self._others = [each for each in detectors if type(each) not in STANDARD]

    def records(self, documents: Sequence[Document]) -> list[bytes]:
        """Return the records of documents. Raise TypeError or ValueError for an invalid fingerprint."""
        return self.finish(documents, self.begin(documents))

    def begin(self, documents: Iterable[Document]) -> list[bytes]:
        """Return the records with the fingerprints of the standard detectors only. This may be done in any thread."""
        return record.make([document.source for document in documents], self._wanted)

    def finish(self, documents: Iterable[Document], records: list[bytes]) -> list[bytes]:
        """Return records with the fingerprints of all other detectors added. Raise what such a detector raises."""
        if not self._others:
            return records
        return [record.extended(made, self._made(each)) for each, made in zip(documents, records, strict=True)]

    def _made(self, document: Document) -> dict[str, tuple[int, ...]]:
        ready = document.ready
        return {
            d.name: checked(d.name, ready[d.name] if d.name in ready else d.fingerprints(document))
            for d in self._others
        }
