"""Cluster a batch by shingles: compare documents that share a super-shingle, and join the copies.

Broder et al. 1997, sections 3 and 4. Where the paper counts the shingles that two documents share to get at their
resemblance, we have the shingles of both at hand and compare only what super-shingles propose.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..document import Document
from ..fingerprints.hashes import Hashes, hash_bytes
from ..fingerprints.minhash import super_shingles
from ..fingerprints.sketch import Sketch
from ..index.unions import Unions
from ..text.urls import canonical_url
from .evidence import Rule, compare

BANDS, ROWS = 32, 2  # of documents that resemble each other by .4, 99.6 % share a key
NEWEST = 16  # documents of one key that a later one is compared with


class Text(NamedTuple):
    """What is kept of a document: its shingles, and what else the rule asks for."""

    shingles: Hashes
    sketch: Sketch
    digest: int
    """Of all tokens: equal for equal texts."""
    url: str

    @classmethod
    def of(cls, document: Document) -> Text:
        url = canonical_url(document.url) if document.url else ""
        return cls(document.shingles, document.sketch, hash_bytes(document.lines), url)


def shingle_clusters(documents: Iterable[Document], rule: Rule) -> list[list[int]]:
    """Return the clusters of two documents or more, as their numbers from 0 in the order in which they came.

    A document is compared with the last 16 that came before it for each of its 32 keys, so the work grows with the
    number of documents, whatever they have in common. Where more than 16 share a key, a copy further back is found by
    way of another key, or of those in between if they are copies too; else it is missed. Two that are not accepted may
    share a cluster by way of others. Documents without text are in no cluster.
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
            held = newest.setdefault(key, [])  # most have one: a deque would take eight times as much
            held.append(number)
            del held[:-NEWEST]
    return unions.clusters()


def repeats(a: Text, b: Text, rule: Rule) -> bool:
    """Return whether the rule accepts two texts, by their exact resemblance."""
    same_text = a.digest == b.digest
    shared = resemblance(a.shingles, b.shingles)
    # Most of what is proposed ends here, so what costs more comes later.
    if not same_text and shared < rule.required_resemblance(min(a.sketch.tokens, b.sketch.tokens)):
        return False
    found = compare(a.sketch, b.sketch)._replace(resemblance=shared)
    return rule.accepts(found, same_text=same_text, same_url=bool(a.url) and a.url == b.url)


def resemblance(a: Hashes, b: Hashes) -> float:
    """Return the share of the shingles of either that both have, given distinct ones; 1.0 where neither has any.

    Broder et al. 1997, section 2: r(A, B) = |A ∩ B| / |A ∪ B|.
    """
    shared = len(np.intersect1d(a, b, assume_unique=True))
    either = len(a) + len(b) - shared
    return shared / either if either else 1.0
