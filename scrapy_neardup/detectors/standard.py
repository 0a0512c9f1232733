"""The standard detectors, for equal text, equal sets of lexicon terms, near SimHashes and shared shingles."""

from __future__ import annotations

from ..document import Document
from ..fingerprints.hashes import HashSet, hash_bytes, hash_tokens
from ..fingerprints.imatch import imatch
from ..fingerprints.minhash import super_shingles
from ..fingerprints.simhash import simhash_counted
from ..index.kinds import Equal, Near
from ..signature import SIMHASH
from ..text.lexicon import Lexicon

MIN_TERMS = 8  # distinct lexicon terms: with fewer, different texts often have the same ones
MIN_SHARE = 0.05  # share of the lexicon among the distinct tokens: with less, the lexicon is of another language
BANDS, ROWS = 12, 2  # a key is shared by half of the pairs with a resemblance of 0.24, by 99.9 % of those with 0.66


class Exact:
    """Proposes documents with equal normalized text: the same tokens in the same order.

    Its first fingerprint is that of the text. If the document has facts, its last one is that of the whole record, so
    that a record is found among however many records with its text.
    """

    name = "exact"
    scheme = "exact/2"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        text = (hash_bytes(document.lines),) if document.lines else ()
        return (*text, document.record) if document.record else text

    def index(self) -> Equal:
        return Equal()


class IMatch:
    """Proposes documents with an equal I-Match digest. Abstains from short texts and foreign languages.

    Chowdhury et al. 2002; Kołcz et al. 2004.
    """

    name = "imatch"

    def __init__(self, lexicon: Lexicon, lexicons: int) -> None:
        self.lexicon = lexicon
        self.lexicons = lexicons
        self._terms = HashSet(hash_tokens(list(lexicon.terms))[:, 0])
        self.scheme = f"imatch/1 {lexicon.id} {lexicons}"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        words, _ = document.counted
        terms = self._terms.among(words)
        if len(terms) < max(MIN_TERMS, MIN_SHARE * len(words)):
            return ()
        return imatch(terms, self.lexicons)

    def index(self) -> Equal:
        return Equal()


class SimHash:
    """Proposes documents with a SimHash at a Hamming distance of at most `distance` (Manku et al. 2007)."""

    name = SIMHASH
    scheme = "simhash/1"

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        words, counts = document.counted
        return (simhash_counted(words, counts),) if len(words) else ()

    def index(self) -> Near:
        return Near(self.distance)


class Shingle:
    """Proposes documents that share a super-shingle (Broder et al. 1997). Recall rises steeply with resemblance."""

    name = "shingle"
    scheme = f"shingle/1 {BANDS}x{ROWS}"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return super_shingles(document.shingles, BANDS, ROWS)

    def index(self) -> Equal:
        return Equal()
