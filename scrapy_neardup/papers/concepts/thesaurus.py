"""Merge words of one meaning into concepts, from the built-in synonyms or the user's files.

synonyms/NOTICE.en and synonyms/NOTICE.zh describe the origin and the licences of the built-in synonyms.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path

from ...text.tokens import normalize
from .terms import stem

THRESHOLD = 0.5  # Rel_thr: the paper leaves it to the user; docs/algorithms/dwdcs.md explains this value
LARGEST = 64  # the maximum number of words in a group; larger groups are lists (cities, plants), not synonyms

_CILIN = re.compile(r"[A-L][a-z]\d\d[A-Z]\d\d[=#@] ?")
_OMW = re.compile(r"(\d{8}-[a-z])\t(\S+)\t")
_WORDNET = re.compile(r"\d{8} \d\d [nvasr] [0-9a-f]{2} ")


@dataclass(frozen=True)
class Concepts:
    """A map from terms to the names of their concepts. A concept is named after one of its terms."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Has only terms with a concept that is named after another term. Use `of` for lookups."""

    @cached_property
    def id(self) -> str:
        """Return 16 hexadecimal digits of the SHA-1 of the sorted map; `none` for an empty map."""
        lines = "\n".join(f"{term}\t{self.names[term]}" for term in sorted(self.names))
        return hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:16] if lines else "none"

    def of(self, term: str) -> str:
        """Return the name of the concept of a term; the term itself if it has no synonyms."""
        return self.names.get(term, term)

    @classmethod
    def load(cls, *paths: str | os.PathLike[str], threshold: float = THRESHOLD) -> Concepts:
        """Return the concepts in files of synonyms. The order of the files does not matter. A process reads them once.

        A line has one of these forms:

        - words between tabs, as a group of synonyms
        - a line of 同义词词林: a code that ends in `=`, then words between blanks; groups marked `#` or `@` are not
          synonyms and are left out
        - a line of an Open Multilingual Wordnet .tab file
        - a line of a data file of Princeton's WordNet

        Lines that begin with `# ` or two blanks are comments. Raise OSError if a file can't be read, ValueError if it
        is not text in UTF-8 or GB 18030 or has no group of synonyms.
        """
        return _load(tuple(sorted({os.fspath(path) for path in paths})), threshold)


@cache
def builtin() -> Concepts:
    """Return the built-in concepts, English and simplified Chinese.

    They were merged at the default threshold before they were stored, since merging takes long.
    """
    folder = resources.files(__package__).joinpath("synonyms")
    names: dict[str, str] = {}
    for language in ("en", "zh"):  # no term is in both
        for line in gzip.decompress(folder.joinpath(f"{language}.txt.gz").read_bytes()).decode().splitlines():
            name, *others = line.split("\t")
            names.update(dict.fromkeys(others, name))
    return Concepts(names)


@cache
def _load(paths: tuple[str, ...], threshold: float) -> Concepts:
    groups = [group for path in paths for group in read_groups(path)]
    return Concepts(merge(groups, threshold))


def read_groups(path: str) -> list[frozenset[str]]:
    """Return the groups of synonyms in a file, each with two or more terms. Raise OSError or ValueError."""
    numbered: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_text(path).splitlines()):
        for key, word in _entries(line, str(number)):
            if word.isalnum():  # neither phrase nor affix: a term is one word
                numbered[key].add(stem(normalize(word)))
    groups = [frozenset(group) for group in numbered.values() if 1 < len(group) <= LARGEST]
    if not groups:
        raise ValueError(f"{path}: the file has no group of synonyms")
    return groups


def _text(path: str) -> str:
    data = Path(path).read_bytes()
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{path}: the file is not text in UTF-8 or GB 18030")


def _entries(line: str, number: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a line with the key of its group."""
    if match := _CILIN.match(line):
        yield from ((number, word) for word in line[match.end() :].split() if "=" in match[0])
    elif match := _OMW.match(line):
        if match[2].split(":")[-1] == "lemma":  # definitions and examples have lines too
            yield match[1], line[match.end() :]
    elif match := _WORDNET.match(line):
        words = line.split(" ")
        count = int(words[3], 16)
        yield from ((number, word) for word in words[4 : 4 + 2 * count : 2])
    elif not line.startswith(("# ", "  ")):
        yield from ((number, word) for word in line.split("\t"))


def merge(groups: Iterable[frozenset[str]], threshold: float) -> dict[str, str]:
    """Return, for each term that is merged into another term, the name of its concept.

    The meaning of a term t is Con(t), all terms of the groups that contain t (formula 5; for single words, formula 6 is
    the same). Two terms have the same meaning if their Rel (formula 7) is above the threshold, Rel_thr. Terms are taken
    in the order of code points. A term without a concept becomes the name of a new concept, which contains all other
    terms with the same meaning that have no concept yet. So a chain of close meanings does not become one concept, and
    names depend on the groups alone.

    曹玉娟 et al. 2011, section 3.2.1.
    """
    con: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for term in group:
            con[term] |= group  # formula 5
    names: dict[str, str] = {}
    for term in sorted(con):
        if term not in names:
            same = {other for other in _related(term, con, threshold) if other not in names}
            names.update(dict.fromkeys(same, term))
    return {term: name for term, name in names.items() if term != name}


def _related(term: str, con: Mapping[str, set[str]], threshold: float) -> Iterator[str]:
    # Con is symmetric: the intersection of Con(t) and Con(u) are the terms whose Con has both.
    overlaps = Counter(other for between in con[term] for other in con[between])
    for other, overlap in overlaps.items():
        if rel(overlap, len(con[term]), len(con[other])) > threshold:
            yield other


def rel(overlap: int, a: int, b: int) -> float:
    """Return Rel, the similarity of two terms, given the sizes of their Con sets and of the overlap of these sets.

    曹玉娟 et al. 2011, formula 7.
    """
    return overlap / ((a + b) / 2)
