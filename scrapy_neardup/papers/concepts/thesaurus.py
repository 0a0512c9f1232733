"""Concepts: words of one meaning, from the built-in synonyms or the user's files.

What the built-in ones are made from, and under which licences: see synonyms/NOTICE.en and synonyms/NOTICE.zh.
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

THRESHOLD = 0.5  # Rel_thr: the paper leaves it to the user; the node counts behind ours are in docs/algorithms/dwdcs.md
LARGEST = 64  # words of a group: longer ones are lists (cities, plants), not synonyms

_CILIN = re.compile(r"[A-L][a-z]\d\d[A-Z]\d\d[=#@] ?")
_OMW = re.compile(r"(\d{8}-[a-z])\t(\S+)\t")
_WORDNET = re.compile(r"\d{8} \d\d [nvasr] [0-9a-f]{2} ")


@dataclass(frozen=True)
class Concepts:
    """Map a term to the name of its concept, which is one of its terms; equal where the mappings are."""

    names: Mapping[str, str] = field(default_factory=dict)
    """Only terms whose concept has another name: `of` is what to ask."""

    @cached_property
    def id(self) -> str:
        """Return 16 hexadecimal digits of the SHA-1 of the sorted mapping; of no mapping `none`."""
        lines = "\n".join(f"{term}\t{self.names[term]}" for term in sorted(self.names))
        return hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:16] if lines else "none"

    def of(self, term: str) -> str:
        """Return the name of a term's concept: the term itself where no other means the same."""
        return self.names.get(term, term)

    @classmethod
    def load(cls, *paths: str | os.PathLike[str], threshold: float = THRESHOLD) -> Concepts:
        """Return the concepts of files of synonyms, whatever the order of these; read once by a process.

        A line holds a group of synonyms: words between tabs; or it is a line of 同义词词林 (a code that ends in `=`,
        words between blanks; groups marked `#` or `@` are no synonyms and are left out), of an Open Multilingual
        Wordnet .tab file, or of a data file of Princeton's WordNet. Lines that begin with `# ` or two blanks are
        comments. OSError: a file can't be read. ValueError: it is not text in UTF-8 or GB 18030, or no line of it is a
        group of synonyms.
        """
        return _load(tuple(sorted({os.fspath(path) for path in paths})), threshold)


@cache
def builtin() -> Concepts:
    """Return the built-in concepts: English and simplified Chinese ones.

    They are merged already, at the default threshold: that takes longer than a process should wait for.
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
    """Return the groups of synonyms in a file, each of two terms at least."""
    numbered: dict[str, set[str]] = defaultdict(set)
    for number, line in enumerate(_text(path).splitlines()):
        for key, word in _entries(line, str(number)):
            if word.isalnum():  # neither phrase nor affix: a term is one word
                numbered[key].add(stem(normalize(word)))
    groups = [frozenset(group) for group in numbered.values() if 1 < len(group) <= LARGEST]
    if not groups:
        raise ValueError(f"{path}: no line of it is a group of synonyms")
    return groups


def _text(path: str) -> str:
    data = Path(path).read_bytes()
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    raise ValueError(f"{path}: neither UTF-8 nor GB 18030")


def _entries(line: str, number: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a line with what tells its group from others."""
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
    """Return for each term that is merged with another one the name of their concept.

    Con(t), the terms of all groups that t is in (formula 5; of phrases of one word formula 6 says the same), stands for
    the meaning of t; two terms mean the same where Rel of theirs (formula 7) is above the threshold, Rel_thr. Term
    after term, in the order of their code points, becomes the name of a concept and takes in all terms left that mean
    the same as it does. So no chain of meanings close to each other makes one concept, and a name depends on the groups
    alone.

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
    # Con is mutual: what Con(t) and Con(u) have in common are the terms in whose Con both are.
    overlaps = Counter(other for between in con[term] for other in con[between])
    for other, overlap in overlaps.items():
        if rel(overlap, len(con[term]), len(con[other])) > threshold:
            yield other


def rel(overlap: int, a: int, b: int) -> float:
    """Return how alike two concepts are, given how many terms they have in common and each of them has.

    曹玉娟 et al. 2011, formula 7.
    """
    return overlap / ((a + b) / 2)
