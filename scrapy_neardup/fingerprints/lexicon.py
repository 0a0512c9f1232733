"""Build, read and write lexicons of I-Match: sets of terms. The digest of a text is made of its terms in a lexicon.

Chowdhury, Frieder, Grossman, McCabe 2002, Collection statistics for fast duplicate document detection.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from ..files import writing
from .hashes import Terms, hash_tokens

MAGIC, COUNT = "scrapy-neardup lexicon 1", "# terms: "
BAND = (0.5, 0.7)  # the normalized IDF of kept terms, the best of seven bands
LEAST_DOCUMENTS = 2  # the minimum number of documents with a term, since most rarer terms are misprints


@dataclass(frozen=True)
class Lexicon:
    """The terms that I-Match keeps: tokens as `tokenize` returns them. The set may be empty."""

    terms: frozenset[str]

    @cached_property
    def id(self) -> str:
        """The first 16 hexadecimal digits of the SHA-1 of the sorted terms, joined by newlines, in UTF-8."""
        return hashlib.sha1("\n".join(sorted(self.terms)).encode(), usedforsecurity=False).hexdigest()[:16]

    @cached_property
    def hashed(self) -> Terms:
        return Terms(hash_tokens([*self.terms])[:, 0])

    @classmethod
    def from_frequencies(cls, frequencies: Mapping[str, int], documents: int, low: float, high: float) -> Lexicon:
        """Return the lexicon of the terms in at least `LEAST_DOCUMENTS` documents with a normalized IDF in [low, high].

        `frequencies` maps each term to the number of documents that have it, out of `documents`. Raise ValueError for
        an impossible band or frequency.
        """
        if not 0 <= low <= high <= 1:
            raise ValueError(f"a band of normalized IDF needs 0 <= low <= high <= 1, not {low} and {high}")
        frequent = ((term, count) for term, count in frequencies.items() if count >= LEAST_DOCUMENTS)
        return cls(frozenset(term for term, count in frequent if low <= normalized_idf(count, documents) <= high))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Lexicon:
        """Read a file that `save` wrote. Raise ValueError for any other file, OSError if there is none."""
        return cls(_terms(Path(path).read_bytes(), str(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the lexicon to a file, gzipped if its name ends in .gz. Equal lexicons give equal bytes."""
        with writing(os.fspath(path)) as file:
            file.write(self.encoded())

    def encoded(self) -> bytes:
        """Return the content of a file: UTF-8, lines with `MAGIC`, the number of terms, and the terms in order."""
        lines = [MAGIC, f"{COUNT}{len(self.terms)}", *sorted(self.terms)]
        return "".join(f"{line}\n" for line in lines).encode()


def normalized_idf(count: int, documents: int) -> float:
    """Return ln(N / n) / ln N for a term in n = `count` of N = `documents` documents: 0 for all of them, 1 for one.

    Raise ValueError for impossible numbers. Chowdhury et al. 2002: the IDF of I-Match, as a share of its maximum.
    """
    if not 1 <= count <= documents or documents < 2:
        raise ValueError(f"a term can't be in {count} of {documents} documents (at least 2 documents are needed)")
    # Rounded, since the last digits of a logarithm differ between machines, but lexicons must not.
    return round(math.log(documents / count) / math.log(documents), 9)


@cache
def builtin() -> Lexicon:
    """Return the built-in lexicon of English and Chinese terms. lexicons/NOTICE.* say where they come from."""
    files = [resources.files(__package__).joinpath("lexicons", name) for name in ("en.txt.gz", "zh.txt.gz")]
    return Lexicon(frozenset().union(*(_terms(file.read_bytes(), file.name) for file in files)))


def _terms(data: bytes, name: str) -> frozenset[str]:
    """Return the terms in a file. Lines that begin with `# ` are comments. Raise ValueError for no valid lexicon."""
    try:
        first, *lines = (gzip.decompress(data) if name.endswith(".gz") else data).decode().splitlines()
        if first != MAGIC:
            raise ValueError(f"its first line is {first[:80]!r}")
        terms = frozenset(line for line in lines if not line.startswith("# "))
        if wrong := [line for line in lines if line.startswith(COUNT) and line != f"{COUNT}{len(terms)}"]:
            raise ValueError(f"it has {len(terms)} terms, but says {wrong[0]!r}; it was cut or edited")
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise ValueError(f"{name}: no lexicon, which is UTF-8 text that begins with {MAGIC!r}: {error}") from error
    return terms
