"""Build, load and save the lexicons of I-Match, and return the built-in lexicon.

The digest of I-Match is in `fingerprints`. Callers count the document frequencies.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from itertools import takewhile, zip_longest
from pathlib import Path

from ..atomic import replacing

MAGIC = "scrapy-neardup lexicon 1"
BAND = (0.5, 0.7)  # the normalized IDF of kept terms, the best of seven bands


@dataclass(frozen=True)
class Lexicon:
    """The terms that I-Match keeps. Two lexicons with equal terms are equal.

    `terms` are tokens as `tokenize` returns them; there may be none. `about` describes their origin, in the order of
    the header lines of the file. `about` affects neither comparisons nor `id`.
    """

    terms: frozenset[str]
    about: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def id(self) -> str:
        """Return the first 16 hexadecimal digits of the SHA-1 of the sorted terms, joined by newlines, in UTF-8."""
        return hashlib.sha1("\n".join(sorted(self.terms)).encode(), usedforsecurity=False).hexdigest()[:16]

    @classmethod
    def from_frequencies(
        cls, frequencies: Mapping[str, int], documents: int, low: float, high: float, least: int = 2, source: str = ""
    ) -> Lexicon:
        """Return the lexicon of the terms with a normalized IDF in [low, high].

        `frequencies` maps each term to its number of documents, out of `documents`. Terms in fewer than `least`
        documents are left out, since most are misprints. Raise ValueError for an impossible band or frequency.

        Chowdhury, Frieder, Grossman, McCabe 2002, Collection statistics for fast duplicate document detection; Kołcz,
        Chowdhury, Alspector 2004, Improved robustness of signature-based near-replica detection via lexicon
        randomization.
        """
        if not 0 <= low <= high <= 1:
            raise ValueError(f"a band of normalized IDF needs 0 <= low <= high <= 1, not {low} and {high}")
        frequent = ((term, count) for term, count in frequencies.items() if count >= least)
        terms = frozenset(term for term, count in frequent if low <= normalized_idf(count, documents) <= high)
        return cls(terms, {"documents": str(documents), "source": source, "band": f"{low} {high}"})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Lexicon:
        """Return the lexicon in a file that `save` wrote. Raise ValueError for any other file, OSError without one."""
        lines = _lines(Path(path).read_bytes(), str(path))
        lexicon = _parse(lines)
        for number, (found, expected) in enumerate(zip_longest(lines, lexicon._lines(), fillvalue=""), 1):
            if found != expected:
                raise ValueError(f"{path}, line {number}: expected {expected!r}, found {found[:80]!r}")
        return lexicon

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the lexicon to a file, gzipped if its name ends in .gz. Equal lexicons give equal bytes.

        The file is UTF-8: a line with `MAGIC`, a line `# key: value` for each entry of `about` and for `terms` (their
        number), then the terms, one a line, in the order of code points.
        """
        data = "".join(f"{line}\n" for line in self._lines()).encode()
        with replacing(path) as part:
            Path(part).write_bytes(gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)

    def _lines(self) -> list[str]:
        about = {**self.about, "terms": str(len(self.terms))}
        header = [f"# {key}: {' '.join(value.split())}" for key, value in about.items() if value]
        return [MAGIC, *header, *sorted(self.terms)]


def normalized_idf(count: int, documents: int) -> float:
    """Return ln(N / n) / ln N for a term in n = `count` of N = `documents` documents: from 0 in all to 1 in one.

    Chowdhury et al. 2002: the IDF by which I-Match chooses terms, as a share of its maximum.
    """
    if not 1 <= count <= documents or documents < 2:
        raise ValueError(f"a term can't be in {count} of {documents} documents (at least 2 documents are needed)")
    # Rounded, since the last digits of a logarithm differ between machines, but lexicons must not.
    return round(math.log(documents / count) / math.log(documents), 9)


@cache
def builtin() -> Lexicon:
    """Return the built-in lexicon: English and Chinese terms, of which lexicons/NOTICE.* describe the origin."""
    names = "lexicons/en.txt.gz", "lexicons/zh.txt.gz"
    # Not checked here, but by a test, since each crawl waits for them at its start.
    files = (_lines(resources.files(__package__).joinpath(name).read_bytes(), name) for name in names)
    return Lexicon(frozenset().union(*(_parse(lines).terms for lines in files)))


def _parse(lines: list[str]) -> Lexicon:
    head = list(takewhile(lambda line: line.startswith("# "), lines[1:]))
    about = {key: value for key, _, value in (line[2:].partition(": ") for line in head) if key != "terms"}
    return Lexicon(frozenset(lines[1 + len(head) :]), about)


def _lines(data: bytes, name: str) -> list[str]:
    expected = "gzipped UTF-8 text" if name.endswith(".gz") else "UTF-8 text"
    try:
        return (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{name}, line 1: expected {expected}, found other bytes ({error})") from error
