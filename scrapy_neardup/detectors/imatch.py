"""The detector for texts with equal sets of lexicon terms."""

from __future__ import annotations

from ..document import Document
from ..fingerprints.hashes import HashSet, hash_tokens
from ..fingerprints.imatch import imatch
from ..index.kinds import Equal
from ..text.lexicon import Lexicon

MIN_TERMS = 8  # distinct lexicon terms: with fewer, different texts agree too easily
MIN_SHARE = 0.05  # of the distinct tokens: with less, the lexicon is of another language


class IMatch:
    """Proposes documents of which any I-Match digest is equal; abstains from short texts and foreign languages.

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
