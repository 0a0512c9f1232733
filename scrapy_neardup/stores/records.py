"""Signatures and links as columns of fixed width, and what has no fixed width as bytes one after another. No I/O.

Of the fingerprints only those that decisions look at are kept as such: `exact` and `simhash`. Others that must be equal
are in the table of keys, which is all that finding needs. Those of detectors with indexes of their own are kept whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgpack
import numpy as np
import numpy.typing as npt

from ..detectors import Exact, SimHash
from ..fingerprints.sketch import BINS, Sketch
from ..index.packed import Array
from ..signature import Evidence, Link, Signature

KEPT = (Exact.name, SimHash.name)
_ERRORS = "surrogatepass"  # a URL or title may hold what is no character
DOCUMENT = np.dtype(
    [
        ("codes", f"V{BINS}"),
        ("layout", "<u8"),
        ("identity", "<u8"),
        ("exact", "<u8"),
        ("first_seen", "<f8"),
        ("tokens", "<u4"),
        ("shingles", "<u4"),
        ("figures", "<u4"),
        ("segment", "<u4"),  # in which it was written, as place in the part's list
        ("place", "<u2"),  # in that segment
        ("has", "u1"),  # bits, of KEPT
    ]
)
LINK = np.dtype(
    [
        ("url", "<u8"),  # hash of its canonical form
        ("seen", "<f8"),
        ("document", "<u4"),
        ("size", "<u4"),
        ("segment", "<u4"),
        ("resemblance", "<u2"),  # in ten-thousandths, as evidence is rounded
        ("containment", "<u2"),
        ("length_ratio", "<f4"),
        ("detector", "u1"),  # and kind, as places in a list of names; 0 for none
        ("kind", "u1"),
        ("hamming", "u1"),
        ("flags", "u1"),
    ]
)
SEGMENT = np.dtype([("run", "<u4"), ("number", "<u4")])  # the run as place in the part's list
CHANGED = np.dtype([("document", "<u4"), ("repeats", "<u4")])
NOWHERE, VOID = 2**32 - 1, 2**32 - 2
"""In place of a document: the URL gave what is held nowhere; nothing is known of it any more."""
_MIRROR, _FIRM, _EVIDENCE, _OWN = 1, 2, 4, 8  # own: the URL is the document's, and is not kept twice
_NO_HAMMING = 255


def narrowed(ends: npt.NDArray[np.int64]) -> Array:
    """Return offsets in half of the bytes, where that is enough."""
    return ends.astype(np.uint32) if ends[-1] < 2**32 else ends


def strings(texts: Iterable[bytes]) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Return where each begins (and the last ends), and all of them joined."""
    parts = list(texts)
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return narrowed(ends), np.frombuffer(b"".join(parts), np.uint8)


def encode_text(text: str) -> bytes:
    return text.encode("utf8", _ERRORS)


def decode_text(stored: bytes) -> str:
    return stored.decode("utf8", _ERRORS)


def encode_url(url: str | None) -> bytes:
    return encode_text(url or "")


def decode_url(stored: bytes) -> str | None:
    return decode_text(stored) or None


def document_rows(signatures: Sequence[tuple[Signature, int, Mapping[str, Sequence[int]]]]) -> dict[str, Array]:
    """Return the columns of documents, each given with the place of its segment and the fingerprints to keep whole."""
    rows = np.zeros(len(signatures), DOCUMENT)
    simhashes = np.zeros(len(signatures), np.uint64)
    for number, (row, (each, segment, _)) in enumerate(zip(rows, signatures, strict=True)):
        exact, simhash = (each.fingerprints.get(name, ()) for name in KEPT)
        sketch = each.sketch
        row["codes"] = np.void(sketch.codes)
        row["layout"], row["identity"], row["first_seen"] = each.layout, each.identity, each.first_seen
        row["tokens"] = sketch.tokens
        row["shingles"], row["figures"] = sketch.shingles, sketch.figures
        row["exact"], row["has"] = sum(exact[:1]), bool(exact) + 2 * bool(simhash)
        row["segment"], row["place"] = segment, each.key[2] if each.key else 0
        simhashes[number] = sum(simhash[:1])
    url_ends, urls = strings(encode_url(each.url) for each, _, _ in signatures)
    title_ends, titles = strings(encode_text(each.title) for each, _, _ in signatures)
    figure_ends, figures = strings(each.sketch.figure_sample for each, _, _ in signatures)
    whole_ends, wholes = strings(msgpack.packb(whole) if whole else b"" for _, _, whole in signatures)
    return {
        "documents": rows, "simhashes": simhashes,
        "repeats": np.array([each.repeats for each, _, _ in signatures], np.uint32),
        "url_ends": url_ends, "urls": urls, "title_ends": title_ends, "titles": titles,
        "figure_ends": figure_ends, "figures": figures, "whole_ends": whole_ends, "wholes": wholes,
    }  # fmt: skip


def document(columns: Mapping[str, Array], place: int) -> Signature:
    """Return the document at a place; of its fingerprints those that are kept."""
    row = columns["documents"][place]
    codes, layout, identity, exact, first_seen, tokens, shingles, figures, _, _, has = row.item()
    fingerprints: dict[str, tuple[int, ...]] = {
        name: (value,)
        for name, value, bit in ((KEPT[0], exact, 1), (KEPT[1], int(columns["simhashes"][place]), 2))
        if has & bit
    }
    if len(columns["wholes"]) and (whole := text_at(columns, "whole", place)):
        fingerprints |= msgpack.unpackb(whole, use_list=False)
    sketch = Sketch(tokens, shingles, figures, codes, text_at(columns, "figure", place))
    url, title = (decode_text(text_at(columns, name, place)) for name in ("url", "title"))
    return Signature(url or None, fingerprints, sketch, first_seen, layout, title=title, identity=identity)


def text_at(columns: Mapping[str, Array], name: str, place: int) -> bytes:
    """Return the bytes of a document or link that have no fixed width: `url`, `title`, `figure` or `link`."""
    start, end = columns[f"{name}_ends"][place : place + 2].tolist()
    return columns[f"{name}s"][start:end].tobytes()


def link_rows(links: Sequence[tuple[Link, int, int, int]], names: Sequence[str]) -> dict[str, Array]:
    """Return the columns of links, each given with the hash of its URL, its document's number, its segment's place."""
    rows = np.zeros(len(links), LINK)
    for row, (link, url, number, segment) in zip(rows, links, strict=True):
        found = link.evidence
        row["url"], row["document"], row["seen"], row["size"] = url, number, link.seen, min(link.size, NOWHERE)
        row["segment"] = segment
        row["flags"] = (
            link.mirror * _MIRROR + link.firm * _FIRM + (found is not None) * _EVIDENCE + _is_own(link) * _OWN
        )
        if found:
            row["resemblance"] = round(found.resemblance * 10_000)
            row["containment"] = round(found.containment * 10_000)
            row["length_ratio"] = found.length_ratio
            row["hamming"] = _NO_HAMMING if found.hamming is None else found.hamming
            row["detector"], row["kind"] = names.index(found.detector) + 1, names.index(found.kind or "") + 1
    link_ends, urls = strings(b"" if _is_own(link) else encode_url(link.url) for link, *_ in links)
    return {"link_rows": rows, "link_ends": link_ends, "links": urls}


def link(columns: Mapping[str, Array], place: int, signature: Signature | None, names: Sequence[str]) -> Link:
    """Return the link at a place, given its document."""
    row = columns["link_rows"][place]
    _, seen, document, size, _, resemblance, containment, ratio, detector, kind, hamming, flags = row.item()
    evidence = None
    if flags & _EVIDENCE:
        distance = None if hamming == _NO_HAMMING else hamming
        near, within = resemblance / 10_000, containment / 10_000
        evidence = Evidence(names[detector - 1], distance, near, within, round(ratio, 4), names[kind - 1] or None)
    url = signature.url if flags & _OWN and signature else decode_url(text_at(columns, "link", place))
    mirror, firm = bool(flags & _MIRROR), bool(flags & _FIRM)
    return Link(url or "", signature, mirror, seen, size, evidence, firm, int(row["url"]), document == VOID)


def _is_own(link: Link) -> bool:
    return link.signature is not None and link.url == link.signature.url


def among(values: Array, wanted: Array) -> Array:
    """Say which values are among those wanted, as np.isin does, in less time where few are."""
    ordered = np.sort(wanted)
    if not len(ordered):
        return np.zeros(len(values), bool)
    places = np.searchsorted(ordered, values)
    places[places == len(ordered)] = 0
    found: Array = ordered[places] == values
    return found


def leads_on(numbers: Array, held: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Say which links lead to a document that is held, or to what is held nowhere, given what they lead to."""
    known = numbers < len(held)
    found: npt.NDArray[np.bool_] = numbers == NOWHERE
    found[known] = held[numbers[known]]
    return found


def picked(ends: Array, joined: Array, places: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Return, of strings that lie one after another, those at some places, in the same form."""
    starts = ends[:-1].astype(np.int64)[places]
    sizes: npt.NDArray[np.int64] = ends[1:].astype(np.int64)[places] - starts
    new_ends = np.concatenate([np.zeros(1, np.int64), sizes.cumsum()])
    result = np.empty(new_ends[-1], np.uint8)
    for some in np.array_split(np.arange(len(places)), len(places) // 1_000_000 + 1):  # an index of 8 bytes for each
        if len(some):
            base, end = int(new_ends[some[0]]), int(new_ends[some[-1] + 1])
            shifts = np.repeat(starts[some] - new_ends[some], sizes[some])
            result[base:end] = joined[np.arange(base, end) + shifts]
    return narrowed(new_ends), result
