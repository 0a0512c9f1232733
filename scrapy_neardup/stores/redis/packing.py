"""Documents and links as the bytes that a server holds. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from struct import Struct, calcsize

import msgpack
import numpy as np

from ...detectors import Exact, SimHash
from ...fingerprints.hashing import MULTIPLIER, Hashes
from ...fingerprints.sketch import Sketch
from ...index.packed import HASH_BITS
from ...signature import Evidence, Link, Signature
from ..records import NOWHERE, VOID, decode_text, decode_url, encode_text, encode_url

# Codes, layout, identity, exact, SimHash, first seen, tokens, shingles, figures; run, segment, place; a bit for exact
# and one for SimHash, if it is there; how long the sample of figures, the URL and the title are. Then these three, and
# the fingerprints to be kept whole. write.lua knows where SimHash, run and the bits lie.
DOCUMENT = Struct("<512sQQQQdIIIIIHBBIH")
# Hash of the URL, document, seen, size, flags, run, segment; then the evidence if there is any, and the URL.
LINK = Struct("<QIdIBII")
EVIDENCE = Struct("<HHfBBB")  # resemblance and containment in ten-thousandths; lengths of two names
_MIRROR, _FIRM, _EVIDENCE, _OWN = 1, 2, 4, 8
_NO_HAMMING = 255
_LOW = np.uint64((1 << 12) - 1)
_HIGH = np.uint64((1 << 40) - (1 << 16))
_SHIFT = np.uint64(64 - HASH_BITS)
_PLACE, _PLACE_AT = Struct("<IIH"), calcsize("<512sQQQQdIII")
Place = tuple[int, int, int]
"""The number of a run, of its segment, and the place in it."""


def pack_document(signature: Signature, place: Place, own: Collection[str]) -> bytes:
    """Return the record of a document; `own`: whose fingerprints are kept whole."""
    exact, simhash = (signature.fingerprints.get(name, ()) for name in (Exact.name, SimHash.name))
    sketch, url, title = signature.sketch, encode_url(signature.url), encode_text(signature.title)
    whole = {name: values for name, values in signature.fingerprints.items() if name in own and values}
    fixed = DOCUMENT.pack(
        sketch.codes, signature.layout, signature.identity, sum(exact[:1]), sum(simhash[:1]), signature.first_seen,
        *sketch[:3], *place, bool(exact) + 2 * bool(simhash), len(sketch.figure_sample), len(url), len(title),
    )  # fmt: skip
    return fixed + sketch.figure_sample + url + title + (msgpack.packb(whole) if whole else b"")


def unpack_document(record: bytes) -> tuple[Signature, Place]:
    """Return the document of a record, and where it was written."""
    codes, layout, identity, exact, simhash, seen, tokens, shingles, figures, *rest = DOCUMENT.unpack_from(record)
    run, segment, number, has, *lengths = rest
    fingerprints: dict[str, tuple[int, ...]] = {Exact.name: (exact,)} if has & 1 else {}
    if has & 2:
        fingerprints[SimHash.name] = (simhash,)
    sample, url, title, whole = _split(record[DOCUMENT.size :], lengths)
    if whole:
        fingerprints |= msgpack.unpackb(whole, use_list=False)
    sketch = Sketch(tokens, shingles, figures, codes, sample)
    signature = Signature(
        decode_url(url), fingerprints, sketch, seen, layout, title=decode_text(title), identity=identity
    )
    return signature, (run, segment, number)


def _split(joined: bytes, lengths: Sequence[int]) -> list[bytes]:
    """Return the strings of some lengths that lie one after another, and what follows them."""
    ends = [0, *accumulate(lengths), len(joined)]
    return [joined[start:end] for start, end in pairwise(ends)]


def pack_link(link: Link, number: int | None, run: int, segment: int) -> bytes:
    """Return the record of a link to the document of that number, None for nowhere."""
    found, is_own = link.evidence, link.signature is not None and link.url == link.signature.url
    flags = link.mirror * _MIRROR + link.firm * _FIRM + (found is not None) * _EVIDENCE + is_own * _OWN
    document = VOID if link.void else NOWHERE if number is None else number
    fixed = LINK.pack(link.digest, document, link.seen, min(link.size, NOWHERE), flags, run, segment)
    return fixed + (_pack_evidence(found) if found else b"") + (b"" if is_own else encode_url(link.url))


def _pack_evidence(found: Evidence) -> bytes:
    names = found.detector.encode(), (found.kind or "").encode()
    hamming = _NO_HAMMING if found.hamming is None else found.hamming
    shares = (round(share * 10_000) for share in (found.resemblance, found.containment))
    return EVIDENCE.pack(*shares, found.length_ratio, hamming, *map(len, names)) + b"".join(names)


def document_of(link: bytes) -> int | None:
    """Return the number of the document that a packed link leads to; None for nowhere."""
    number: int = LINK.unpack_from(link)[1]
    return None if number >= VOID else number


def is_void(link: bytes) -> bool:
    """Say whether a packed link says that nothing is known of the URL any more."""
    return bool(LINK.unpack_from(link)[1] == VOID)


def seen_of(link: bytes) -> float:
    """Return when a packed link was seen."""
    seen: float = LINK.unpack_from(link)[2]
    return seen


def origin_of(link: bytes) -> tuple[int, int]:
    """Return the number of the run that a packed link is of, and of its segment."""
    run, segment = LINK.unpack_from(link)[5:]
    return run, segment


def unpack_link(record: bytes, signature: Signature | None) -> Link:
    """Return the link of a record, given its document."""
    digest, _, seen, size, flags, _, _ = LINK.unpack_from(record)
    at, evidence = LINK.size, None
    if flags & _EVIDENCE:
        near, within, ratio, hamming, *lengths = EVIDENCE.unpack_from(record, at)
        at += EVIDENCE.size
        detector, kind = (record[at : at + lengths[0]], record[at + lengths[0] : at + sum(lengths)])
        at += sum(lengths)
        distance = None if hamming == _NO_HAMMING else hamming
        evidence = Evidence(
            detector.decode(), distance, near / 10_000, within / 10_000, round(ratio, 4), kind.decode() or None
        )
    url = signature.url if flags & _OWN and signature else decode_url(record[at:])
    return Link(url or "", signature, bool(flags & _MIRROR), seen, size, evidence, bool(flags & _FIRM), digest)


def hash_rows(hashes: Hashes) -> bytes:
    """Return hashes of 36 bits as scripts take them: the upper bits, then the lower 12, in five bytes each."""
    rows = hashes << np.uint64(4) & _HIGH | hashes & _LOW
    return rows.astype(">u8").view(np.uint8).reshape(-1, 8)[:, 3:].tobytes()


def hashed(keys: Sequence[int]) -> Hashes:
    """Return the hashes that find a document by keys: fingerprints that must be equal, salted by their detectors."""
    return np.array(keys, np.uint64) * MULTIPLIER >> _SHIFT


def place_of(record: bytes) -> Place:
    """Return where a document was written, be it forgotten."""
    place: Place = _PLACE.unpack_from(record, 0 if len(record) == _PLACE.size else _PLACE_AT)
    return place
