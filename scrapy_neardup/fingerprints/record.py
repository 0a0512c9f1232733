"""The record of a document: all that is kept of its text and facts for comparison, in one flat struct.

The same bytes are kept in memory, in the row of the document and on a server, and sent between processes. They are
little-endian, and begin with a head. The head has the sizes of the parts that follow it:

1. `digests` keys of the detector `imatch`, then `bands` keys of `shingle`, 64 bits each. A key of 0 is none;
2. the packed facts (`facts.pack`), `facts` bytes;
3. a map from the names of other detectors to their fingerprints, in MessagePack, `own` bytes.

A key finds documents with an equal fingerprint. It is the fingerprint, changed by the name of its detector, since all
keys share one index.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from struct import Struct, pack, unpack, unpack_from
from typing import NamedTuple, TypeAlias

import msgpack
import numpy as np
import numpy.typing as npt

from .. import native
from . import hashes
from .hashes import MULTIPLIER, NO_TERMS, Hashes, Terms

EXACT, IMATCH, SIMHASH, SHINGLE = "exact", "imatch", "simhash", "shingle"
BANDS, ROWS = 12, 2  # half of the pairs with a resemblance of 0.24 share one of 12 keys, 99.9 % of those with 0.66
MIN_TERMS = 8  # distinct lexicon terms: with fewer, different texts often have the same ones
WORDS_A_TERM = 20  # distinct words for each term of the lexicon: with more, the lexicon is of another language
SKETCH = "sketch/2"  # the scheme of sketches
WIDTH = 3  # tokens in a shingle
BINS = 512
FIGURES = 16
CODES = 255
_CHANCE = 1 / CODES  # the probability that two different minima have equal codes
HEAD = Struct(f"<3I4B2I4Q{2 * FIGURES}s{BINS}s")

_ALL, _MULTIPLIER = (1 << 64) - 1, int(MULTIPLIER)
Codes: TypeAlias = npt.NDArray[np.uint8]


class Sketch(NamedTuple):
    """Counts and samples of the tokens of a document, about 570 bytes."""

    tokens: int
    shingles: int  # distinct shingles
    figures: int  # distinct figures
    codes: bytes  # a byte for each of 512 bins, made of its smallest shingle hash; 0 for an empty bin
    figure_sample: bytes  # the 16 smallest hashes of distinct figures, ascending, 16 bits for each hash


class Source(NamedTuple):
    """The parts that a record is made of."""

    text: bytes  # the tokens in UTF-8, one a line; the compiled part also takes what `tokens.spaced` returns
    home: bytes = b""  # the host; b"" if it is unknown
    facts: bytes = b""
    layout: int = 0


class Wanted(NamedTuple):
    """The standard detectors whose fingerprints a record gets."""

    exact: bool = False
    simhash: bool = False
    shingle: bool = False
    digests: int = 0  # the number of I-Match digests; 0 for none
    terms: Terms | None = None  # the terms of the I-Match lexicon


class Head(NamedTuple):
    """The beginning of a record. See the module's docstring for `digests`, `bands`, `facts` and `own`."""

    tokens: int
    shingles: int  # distinct shingles
    figures: int  # distinct figures
    sampled: int  # figures in `sample`
    has_simhash: int
    digests: int
    bands: int
    facts: int
    own: int
    digest: int  # the key of the text for the detector `exact`, equal for equal texts; 0 if there is none
    identity: int  # the key of the host, the facts and the text together; 0 without facts or host
    simhash: int
    layout: int
    sample: bytes
    codes: bytes


class Decoded:
    """The parts of a record, decoded on access. Access to a record that is too short raises struct.error."""

    __slots__ = ("__dict__", "__weakref__")  # for decoded values, and for weak references to signatures
    record: bytes

    def __init__(self, record: bytes) -> None:
        self.record = record

    @cached_property
    def head(self) -> Head:
        return Head._make(HEAD.unpack_from(self.record))

    @cached_property
    def sketch(self) -> Sketch:
        head = self.head
        return Sketch(head.tokens, head.shingles, head.figures, head.codes, head.sample[: 2 * head.sampled])

    @property
    def simhash(self) -> int | None:
        return self.head.simhash if self.head.has_simhash else None

    @cached_property
    def facts(self) -> bytes:
        """The packed facts (`facts.pack`); b"" without any."""
        start = HEAD.size + 8 * (self.head.digests + self.head.bands)
        return self.record[start : start + self.head.facts]

    @cached_property
    def keys(self) -> dict[str, tuple[int, ...]]:
        """The keys by detector. A detector that abstained, or that finds documents by distance, has none."""
        head, values = self.head, self._stored_keys()
        digests, bands = values[: head.digests], values[head.digests :]
        exact = tuple(filter(None, (head.digest, head.identity)))
        found = {EXACT: exact, IMATCH: digests if any(digests) else (), SHINGLE: bands if any(bands) else ()}
        if head.own:
            found |= {name: tuple(keys_of(name, values)) for name, values in self.own.items()}
        return found

    @cached_property
    def index_keys(self) -> array[int]:
        """The keys of all detectors, each once."""
        head = self.head
        own = [key for name, values in self.own.items() for key in keys_of(name, values)] if head.own else ()
        keys = dict.fromkeys((head.digest, head.identity, *self._stored_keys(), *own))
        keys.pop(0, None)  # of a detector that abstained
        return array("Q", pack(f"={len(keys)}Q", *keys))  # in a tenth of the time of array("Q", keys)

    @property
    def own(self) -> dict[str, tuple[int, ...]]:
        """The fingerprints of all but the standard detectors, by detector; () for a detector that abstained."""
        size = self.head.own
        found: dict[str, tuple[int, ...]] = msgpack.unpackb(self.record[-size:], use_list=False) if size else {}
        return found

    def _stored_keys(self) -> tuple[int, ...]:
        return unpack_from(f"<{self.head.digests + self.head.bands}Q", self.record, HEAD.size)

    def check(self) -> None:
        """Raise ValueError, TypeError or the like unless the parts have the stated sizes, and can be decoded."""
        head = self.head
        size = HEAD.size + 8 * (head.digests + head.bands) + head.facts + head.own
        if len(self.record) != size:
            raise ValueError(f"its record has {len(self.record)} bytes; allowed are {size}")
        if head.sampled > FIGURES:
            raise ValueError("its record has more figures than a sample has")
        for name, values in self.own.items():
            keys_of(name, array("Q", values))


def make(sources: Sequence[Source], wanted: Wanted) -> list[bytes]:
    """Return the records of documents, with the standard fingerprints only. The C code lets other threads run."""
    if native.compiled:
        terms, parts = wanted.terms or NO_TERMS, wanted.exact | wanted.simhash << 1 | wanted.shingle << 2
        return native.compiled.sign(list(sources), terms.hashes, terms.starts, wanted.digests, parts)
    return [_made(source, wanted) for source in sources]


def _made(source: Source, wanted: Wanted) -> bytes:
    lines = source.text
    tokens = lines.split()
    rows = hashes.hash_tokens(tokens)
    words, _ = hashes.counted(rows)
    names, terms = hashes.shingles(rows, WIDTH), (wanted.terms or NO_TERMS).among(words)
    digest = hashes.hash_bytes(lines) if lines else 0
    parts = [hashes.hash_bytes(source.home), hashes.hash_bytes(source.facts), digest]
    identity = hashes.chain([np.array([each], np.uint64) for each in parts])[0]
    is_enough = len(terms) >= MIN_TERMS and WORDS_A_TERM * len(terms) >= len(words)
    found = {
        EXACT: (digest if lines else salt(EXACT), int(identity) if source.home and source.facts else salt(EXACT)),
        IMATCH: hashes.imatch(terms, wanted.digests - 1) if is_enough else (salt(IMATCH),) * wanted.digests,
        SIMHASH: (hashes.simhash(rows),) if lines else (),
        SHINGLE: hashes.super_shingles(names, BANDS, ROWS) or (salt(SHINGLE),) * BANDS,
    }  # a fingerprint that is the salt has the key 0, which means none
    is_wanted = {EXACT: wanted.exact, IMATCH: wanted.digests, SIMHASH: wanted.simhash, SHINGLE: wanted.shingle}
    figures = rows[[token[:1].isdigit() for token in tokens], 0] if tokens else rows[:, 0]
    sketch = make_sketch(len(rows), names, figures)
    return encode({n: values for n, values in found.items() if is_wanted[n]}, sketch, source.layout, source.facts)


def make_sketch(tokens: int, shingles: Hashes, figures: Hashes) -> Sketch:
    """Return a sketch. `shingles` are the distinct hashes of shingles, ascending; `figures` the hashes of figures."""
    smallest, sample = hashes.minima(shingles, BINS), hashes.distinct(figures >> np.uint64(48)).astype(">u2")
    codes = ((smallest % np.uint64(CODES)).astype(np.uint8) + np.uint8(1)) * (smallest > 0)
    return Sketch(tokens, len(shingles), len(sample), codes.tobytes(), sample[:FIGURES].tobytes())


def encode(fingerprints: Mapping[str, Sequence[int]], sketch: Sketch, layout: int = 0, facts: bytes = b"") -> bytes:
    """Return the record with these fingerprints of standard detectors. `exact` has up to two: digest, then identity."""
    exact, digests, bands = (keys_of(name, fingerprints.get(name, ())) for name in (EXACT, IMATCH, SHINGLE))
    simhash = fingerprints.get(SIMHASH, ())
    tokens, names, figures, codes, sample = sketch
    digest, identity = [*exact, 0, 0][:2]
    head = HEAD.pack(
        tokens, names, figures, len(sample) // 2, bool(simhash), len(digests), len(bands), len(facts), 0,
        digest, identity, [*simhash, 0][0], layout, sample, codes,
    )  # fmt: skip
    return head + pack(f"<{len(digests) + len(bands)}Q", *digests, *bands) + facts


def extended(record: bytes, fingerprints: Mapping[str, Sequence[int]]) -> bytes:
    """Return a record that has only standard fingerprints with those of other detectors added."""
    own: bytes = msgpack.packb(fingerprints)
    return HEAD.pack(*Decoded(record).head._replace(own=len(own))) + record[HEAD.size :] + own


@cache
def salt(name: str) -> int:
    """Return a number that makes keys of one kind, such as those of a detector, unlike all others in the index."""
    return hashes.hash_text(name)


def spread(key: int) -> int:
    """Return a 64-bit key with its bits well mixed."""
    return key * _MULTIPLIER & _ALL


def keys_of(name: str, fingerprints: Sequence[int]) -> list[int]:
    """Return the keys of the fingerprints of the detector `name`."""
    mixed = salt(name)
    return [(value ^ mixed) * _MULTIPLIER & _ALL for value in fingerprints]


# Sketches are compared in place of texts: the probability of equal minima in a bin is the resemblance of the texts


class Overlap(NamedTuple):
    """The result of comparing the codes of two sketches, as numbers of bins."""

    first: int  # bins that have a code in the first sketch
    any: int  # bins that have a code in at least one sketch
    both: int  # bins that have a code in both sketches
    equal: int  # bins that have equal codes in both sketches

    @property
    def shared(self) -> float:
        """The estimated number of bins with equal minima: bins with equal codes, less those equal by chance."""
        return max(0.0, self.equal - (self.both - self.equal) * _CHANCE / (1 - _CHANCE))


def overlap(a: bytes, b: bytes, others: bytes = b"") -> Overlap:
    """Compare the `codes` of two sketches. Leave out codes that a third sketch has in the same bin.

    `others` has the codes of third sketches, joined. A third sketch that is equal to `b` does not count. Raise
    ValueError unless each sketch has `BINS` codes.
    """
    if native.compiled:
        return Overlap(*native.compiled.overlap(a, b, others))
    x, y = (np.frombuffer(each, np.uint8) for each in (a, b))
    form = np.frombuffer(others, np.uint8).reshape(-1, BINS)
    form = form[(form != y).any(axis=1)]
    x, y = (codes * (form != codes).all(axis=0) for codes in (x, y))
    both = (x > 0) & (y > 0)
    return Overlap(*(int(np.count_nonzero(each)) for each in (x, x | y, both, both & (x == y))))


def resemblance(a: Sketch, b: Sketch) -> float:
    """Estimate the resemblance of two documents; 1.0 if neither has shingles.

    With 512 bins the standard error is about 0.02 at a resemblance of 0.5.
    Li, Owen, Zhang 2012, section 3; Li, König 2010 (b-bit minwise hashing), section 2.
    """
    found = overlap(a.codes, b.codes)
    return found.shared / found.any if found.any else 1.0


def common_shingles(a: Sketch, b: Sketch, shared: float) -> float:
    """Return the number of shingles that both documents have. `shared` is their resemblance.

    Broder et al. 1997, section 2: |A ∩ B| = r (|A| + |B|) / (1 + r).
    """
    return shared * (a.shingles + b.shingles) / (1 + shared)


def containment(a: Sketch, b: Sketch, shared: float) -> float:
    """Return the share of the smaller document's shingles that the other has; 1.0 without any."""
    smaller = min(a.shingles, b.shingles)
    return min(1.0, common_shingles(a, b, shared) / smaller) if smaller else 1.0


def missing_figures(a: Sketch, b: Sketch) -> float:
    """Estimate how many figures of the document with fewer figures the other document lacks.

    Only hashes in the range that both samples cover are compared. If a document has no figures, return 0.0.
    """
    sample_a, sample_b = _sample(a), _sample(b)
    if not sample_a or not sample_b:
        return 0.0
    covered = min(s[-1] if len(s) < f else 0xFFFF for s, f in ((sample_a, a.figures), (sample_b, b.figures)))
    compared = min(bisect_right(sample_a, covered), bisect_right(sample_b, covered))
    shared = len(set(sample_a).intersection(sample_b))  # a value in both samples is in the covered range
    return (compared - shared) / compared * min(a.figures, b.figures) if compared else 0.0


def _sample(sketch: Sketch) -> tuple[int, ...]:
    return unpack(f">{len(sketch.figure_sample) // 2}H", sketch.figure_sample)
