"""The standard detectors, for equal text, equal sets of lexicon terms, near SimHashes and shared shingles.

Their fingerprints are made in one go for many documents (`fingerprints/record.py`).
"""

from __future__ import annotations

from ..document import Document
from ..fingerprints.hashes import hash_tokens
from ..fingerprints.imatch import Terms
from ..fingerprints.record import BANDS, EXACT, IMATCH, ROWS, SHINGLE, SIMHASH, Head, Wanted, fingerprints_in, make
from ..index.kinds import Equal, Near
from ..text.lexicon import Lexicon


class _Standard:
    part: Wanted
    """What the detector adds to a record."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        [record] = make([document.source], self.part)
        return next(iter(fingerprints_in(record, Head.of(record)).values()), ())

    def index(self) -> Equal:
        return Equal()


class Exact(_Standard):
    """Proposes documents with equal normalized text: the same tokens in the same order.

    Its first fingerprint is that of the text. If the document has facts, its last one is that of the whole record, so
    that a record is found among however many records with its text.
    """

    name = EXACT
    scheme = "exact/3"
    part = Wanted(exact=True)


class IMatch(_Standard):
    """Proposes documents with an equal I-Match digest. Abstains from short texts and foreign languages.

    Chowdhury et al. 2002; Kołcz et al. 2004.
    """

    name = IMATCH

    def __init__(self, lexicon: Lexicon, lexicons: int) -> None:
        self.scheme = f"imatch/2 {lexicon.id} {lexicons}"
        self.part = Wanted(digests=1 + lexicons, terms=Terms(hash_tokens(list(lexicon.terms))[:, 0]))


class SimHash(_Standard):
    """Proposes documents with a SimHash at a Hamming distance of at most `distance` (Manku et al. 2007)."""

    name = SIMHASH
    scheme = "simhash/1"
    part = Wanted(simhash=True)

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def index(self) -> Near:  # type: ignore[override]
        return Near(self.distance)


class Shingle(_Standard):
    """Proposes documents that share a super-shingle (Broder et al. 1997). Recall rises steeply with resemblance."""

    name = SHINGLE
    scheme = f"shingle/1 {BANDS}x{ROWS}"
    part = Wanted(shingle=True)


STANDARD = (Exact, IMatch, SimHash, Shingle)
