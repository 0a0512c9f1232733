"""Cluster a batch by shingles, comparing only documents that share a super-shingle.

Broder et al. 1997, sections 3 and 4. The paper estimates resemblance from the number of shared shingles. Here the
shingles of both documents are in memory, so their resemblance is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..document import Document
from ..fingerprints.hashes import Hashes, hash_bytes
from ..fingerprints.shingles import Sketch, super_shingles
from ..index.kinds import Unions
from ..matching.matcher import Rule, compare
from ..text.urls import canonical_url

BANDS, ROWS = 32, 2  # 99.6 % of the pairs with a resemblance of 0.4 share a key
NEWEST = 16  # for each key, a document is compared with at most this many earlier documents, the last ones


class Text(NamedTuple):
    """The data of a document that stays in memory: its shingles, and the values that the rule needs."""

    shingles: Hashes
    sketch: Sketch
    digest: int
    """A hash of all tokens. Equal texts have equal digests."""
    url: str

    @classmethod
    def of(cls, document: Document) -> Text:
        url = canonical_url(document.url) if document.url else ""
        return cls(document.shingles, document.sketch, hash_bytes(document.lines), url)


def shingle_clusters(documents: Iterable[Document], rule: Rule) -> list[list[int]]:
    """Return the clusters of two or more documents, as positions in the order of arrival, from 0.

    For each of its 32 keys, a document is compared with the last 16 earlier documents that have the key. So the work is
    linear in the number of documents. If more than 16 documents share a key, a copy before the last 16 is found only by
    another key or through a later copy. Two documents that the rule rejects may share a cluster through other
    documents. Documents without text are in no cluster.
    """
    unions: Unions[int] = Unions()
    texts: list[Text] = []
    newest: dict[int, list[int]] = {}
    for number, text in enumerate(map(Text.of, documents)):
        unions.top(number)
        texts.append(text)
        keys = super_shingles(text.shingles, BANDS, ROWS)
        proposed = {earlier for key in keys for earlier in newest.get(key, ())}
        for earlier in sorted(proposed, reverse=True):
            if unions.top(earlier) != unions.top(number) and repeats(text, texts[earlier], rule):
                unions.join(earlier, number)
        for key in keys:
            held = newest.setdefault(key, [])  # most keys have one document: a deque would take eight times the memory
            held.append(number)
            del held[:-NEWEST]
    return unions.clusters()


def repeats(a: Text, b: Text, rule: Rule) -> bool:
    """Return whether the rule accepts two texts as copies, given their exact resemblance."""
    same_text = a.digest == b.digest
    shared = resemblance(a.shingles, b.shingles)
    # Most pairs end here, so expensive checks come later.
    if not same_text and shared < rule.required_resemblance(min(a.sketch.tokens, b.sketch.tokens)):
        return False
    found = compare(a.sketch, b.sketch)._replace(resemblance=shared)
    return rule.accepts(found, same_text=same_text, same_record=bool(a.url) and a.url == b.url)


def resemblance(a: Hashes, b: Hashes) -> float:
    """Return the resemblance of two sets of distinct shingles; 1.0 for two empty sets.

    Broder et al. 1997, section 2: r(A, B) = |A ∩ B| / |A ∪ B|.
    """
    shared = len(np.intersect1d(a, b, assume_unique=True))
    either = len(a) + len(b) - shared
    return shared / either if either else 1.0
