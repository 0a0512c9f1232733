"""DWDCS and DWSWN, detectors for texts with similar key concepts at similar places.

曹玉娟 et al. 2011, 基于概念和语义网络的近似网页检测算法. Sections and formulas are numbered as in the paper.

The terms of a text are its stemmed words without stop words. Terms of one meaning are one concept, named after one of
them. Concepts that stand close together in a sentence are neighbours in a network, which is a small world. The key
concepts are those whose removal lengthens the paths between other concepts most. Their positions are the fingerprints
of a text, and an inverted index finds texts with similar fingerprints. synonyms/NOTICE.en and synonyms/NOTICE.zh
describe the origin and the licences of the built-in synonyms.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib import resources
from importlib.metadata import version
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..document import Document
from ..fingerprints.hashes import hash_text
from ..text.tokens import SCHEME as TOKENS
from ..text.tokens import normalize, tokenize
from . import InvertedIndex

LANGUAGES = ("en", "zh")
THRESHOLD = 0.5  # Rel_thr: the paper leaves it to the user; docs/algorithms/dwdcs.md explains this value
LARGEST = 64  # the maximum number of words in a group; larger groups are lists (cities, plants), not synonyms
REACH = 2  # the maximum distance between joined terms
CANDIDATES, KEY_CONCEPTS = 30, 20  # l and p of the paper
MIN_CONCEPTS = 20  # concepts in the main part of the network; with fewer, all of them would be key concepts
POSITION_BITS = 24
OCCURRENCES = 16  # only the first 16 occurrences of a concept count; each becomes a fingerprint
COSINE = 0.9  # Sim_thr of the paper
SPREAD = 0.1  # S_thr as a share of the words: the best of several values that were tried; the paper gives none

# Only an empty line ends a paragraph, since the end of a line may be within a sentence.
_END = re.compile(r"[。！？!?；;…]+|\.(?=\s|$)|\n\s*\n")
_LAST = (1 << POSITION_BITS) - 1

T = TypeVar("T")
Concepts: TypeAlias = Mapping[str, str]
"""The name of each term's concept. A term that is itself the name is left out."""
Graph: TypeAlias = dict[str, set[str]]
"""The neighbours of each node: ξ in section 3.2.2, step 3, is 1 for these."""
Vector: TypeAlias = Mapping[int, Sequence[int]]
"""The ascending positions of each concept: the rows of formula 8."""
Places: TypeAlias = npt.NDArray[np.intp]


def sentences(text: str) -> Iterator[list[tuple[str, int]]]:
    """Yield the terms of each sentence, each with its position: the number of words before it in the text.

    Stop words and figures are no terms, since they name no concept, but positions count them. Section 3.1. The paper
    uses phrases too. Here only single words are used, since phrases need a tagger for each language.
    """
    dropped, begin = stop_words(), 0
    for sentence in _END.split(text):
        words = tokenize(sentence)
        kept = [(place, word) for place, word in enumerate(words) if word not in dropped and not word[0].isdigit()]
        yield [(stem(word), begin + place) for place, word in kept]
        begin += len(words)


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word of the letters a to z, by Porter's second algorithm. Return other words unchanged."""
    if not (word.isascii() and word.isalpha()):
        return word
    from snowballstemmer.english_stemmer import EnglishStemmer

    # A new stemmer for each call, since a stemmer holds the current word and is not thread-safe.
    return str(EnglishStemmer().stemWord(word))


@cache
def stop_words() -> frozenset[str]:
    from stopwordsiso import stopwords

    return frozenset(map(normalize, stopwords(LANGUAGES)))


def id_of(concepts: Concepts) -> str:
    """Return 16 hexadecimal digits of the SHA-1 of the sorted concepts; `none` if there are none."""
    lines = "\n".join(f"{term}\t{name}" for term, name in sorted(concepts.items()))
    return hashlib.sha1(lines.encode(), usedforsecurity=False).hexdigest()[:16] if lines else "none"


@cache
def builtin() -> Concepts:
    """Return the built-in concepts, English and simplified Chinese. They are stored merged at the default threshold."""
    folder = resources.files(__package__).joinpath("synonyms")
    names: dict[str, str] = {}
    for language in LANGUAGES:  # no term is in both
        for line in gzip.decompress(folder.joinpath(f"{language}.txt.gz").read_bytes()).decode().splitlines():
            name, *others = line.split("\t")
            names.update(dict.fromkeys(others, name))
    return names


def read_groups(path: str | os.PathLike[str]) -> list[frozenset[str]]:
    """Return the groups of synonyms in a file. A group is a line of words, separated by tabs; `# ` begins a comment.

    Raise OSError for an unreadable file, and ValueError for a file that is not text in UTF-8 or has no group.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: the file is not text in UTF-8") from error
    # A term is one word, so phrases and affixes are left out.
    terms = (stems(line.split("\t")) for line in lines if not line.startswith("# "))
    groups = [group for group in terms if 1 < len(group) <= LARGEST]
    if not groups:
        raise ValueError(f"{path}: the file has no group of synonyms")
    return groups


def stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(stem(normalize(word)) for word in words if word.isalnum())


def merge(groups: Iterable[frozenset[str]], threshold: float = THRESHOLD) -> dict[str, str]:
    """Return, for each term that is merged into another term, the name of its concept.

    The meaning of a term t is Con(t), all terms of the groups that contain t (formula 5; for single words, formula 6 is
    the same). Two terms have the same meaning if their Rel (formula 7) is above the threshold, Rel_thr. Terms are taken
    in the order of code points. Each term that has no concept yet becomes the name of a new one. All other terms with
    the meaning of the name join the new concept, if they have none yet. So a chain of close meanings does not become
    one concept, and names depend on the groups alone. Section 3.2.1.
    """
    con: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        for term in group:
            con[term] |= group  # formula 5
    names: dict[str, str] = {}
    for term in sorted(con):
        if term not in names:
            # Con is symmetric: the intersection of Con(t) and Con(u) has the terms whose Con has both t and u.
            overlaps = Counter(other for between in con[term] for other in con[between] if other not in names)
            related = (o for o, overlap in overlaps.items() if rel(overlap, len(con[term]), len(con[o])) > threshold)
            names |= dict.fromkeys(related, term)
    return {term: name for term, name in names.items() if term != name}


def rel(overlap: int, a: int, b: int) -> float:
    """Return Rel (formula 7), of two terms, from the sizes of their Con sets and of the intersection."""
    return overlap / ((a + b) / 2)


def co_occurrence(sentences: Iterable[Sequence[str]]) -> Graph:
    """Return the network of terms or concepts. Two at most `REACH` places apart in a sentence are neighbours.
    Section 3.2.2, steps 1 to 3, with f_thr = 0: a term with one occurrence is a node too."""
    graph: Graph = {}
    for terms in sentences:
        for term in terms:
            graph.setdefault(term, set())
        for distance in range(1, REACH + 1):
            for one, other in zip(terms, terms[distance:], strict=False):
                if one != other:
                    graph[one].add(other)
                    graph[other].add(one)
    return graph


def main_part(graph: Graph) -> Graph:
    """Return the largest connected part of a graph, in a tie the first; {} for no nodes. Section 3.2.2, step 4."""
    parts: list[set[str]] = [set()]
    for node in graph:
        if not any(node in part for part in parts):
            parts.append(_reachable(graph, node))
    largest = max(parts, key=len)
    return {node: others for node, others in graph.items() if node in largest}


def _reachable(graph: Graph, node: str) -> set[str]:
    found, new = {node}, {node}
    while new:
        new = set().union(*map(graph.__getitem__, new)) - found
        found |= new
    return found


def key_nodes(graph: Graph, counts: Mapping[str, int]) -> list[str]:
    """Return the key concepts of a connected graph. First comes the one whose removal lengthens the mean path most.

    Only the `CANDIDATES` nodes with the most neighbours are tried. A tie is decided by most neighbours, then most
    occurrences in the text (`counts`), then the name. Section 3.3.
    """
    hubs = sorted(graph, key=lambda node: (-len(graph[node]), -counts[node], node))[:CANDIDATES]
    # CB = d without the node - d. The number of pairs and d are equal for all nodes, so path sums give the same order.
    sums = dict(zip(hubs, path_sums(graph, hubs), strict=True))
    return sorted(hubs, key=lambda hub: (-sums[hub], -len(graph[hub]), -counts[hub], hub))[:KEY_CONCEPTS]


def path_sums(graph: Graph, removed: Sequence[str]) -> list[int]:
    """Return, for each node in `removed`, the total length of all shortest paths without this node.

    Each pair counts twice, once from either end. A pair without a path counts as much as the longest remaining path.
    """
    places = {node: place for place, node in enumerate(graph)}
    # Each node is its own neighbour, so that reached nodes stay reached.
    neighbours = [[places[node], *sorted(map(places.__getitem__, graph[node]))] for node in graph]
    flat = np.fromiter(chain.from_iterable(neighbours), np.intp)
    starts = np.cumsum([0, *map(len, neighbours[:-1])])
    return [_path_sum(flat, starts, places[node]) for node in removed]


def _path_sum(neighbours: Places, starts: Places, removed: int) -> int:
    place = np.arange(len(starts))
    within = np.zeros((len(starts), -(-len(starts) // 64)), np.uint64)  # row i: the nodes within a distance of node i
    within[place, place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
    within[removed] = 0
    nodes = len(starts) - 1
    total, reached, before = 0, nodes, 0
    while reached > before:
        # A pair at distance d is out of reach at each of the distances 0 … d - 1.
        total += nodes * nodes - reached
        within = np.bitwise_or.reduceat(within[neighbours], starts, axis=0)
        within[removed] = 0
        before, reached = reached, int(np.bitwise_count(within).sum(dtype=np.int64))
    return total - (nodes * nodes - reached)  # the last step reached no further node


def pack(positions: Mapping[str, Sequence[int]]) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a concept: 40 bits of the concept's hash, then 24 of the position.

    `positions` has the ascending positions of each concept. Only the first `OCCURRENCES` of a concept are used.
    A position of more than 24 bits becomes the largest one of 24 bits. Formula 8.
    """
    return tuple(
        hash_text(concept) & ~_LAST | min(position, _LAST)
        for concept, places in positions.items()
        for position in places[:OCCURRENCES]
    )


def unpack(fingerprints: Iterable[int]) -> dict[int, list[int]]:
    """Return the positions of each concept, by 40 bits of the concept's hash. This is the inverse of `pack`."""
    groups = groupby(sorted(fingerprints), key=lambda value: value >> POSITION_BITS)
    return {concept: [value & _LAST for value in values] for concept, values in groups}


def cosine(a: Vector, b: Vector) -> float:
    """Return the cosine of two vectors; 0.0 if one is empty. The weight of a concept is its number of occurrences.
    Formula 9; its left half in the paper lacks the square root."""
    return _dot(a, b) / math.sqrt(_dot(a, a) * _dot(b, b)) if a and b else 0.0


def _dot(a: Vector, b: Vector) -> int:
    return sum(len(positions) * len(b[concept]) for concept, positions in a.items() if concept in b)


def spread(a: Vector, b: Vector) -> float:
    """Return the mean standard deviation of the shifts of the common concepts, in words; 0.0 if none is common.

    The shifts of a concept are the distances between its n-th occurrences in the two texts. Formula 13.
    """
    shared = a.keys() & b.keys()
    return math.fsum(_spread(a[concept], b[concept]) for concept in shared) / len(shared) if shared else 0.0


def span(a: Vector, b: Vector) -> int:
    """Return one more than the highest position in two vectors; 0 if both are empty."""
    return max((positions[-1] + 1 for vector in (a, b) for positions in vector.values()), default=0)


def _spread(a: Sequence[int], b: Sequence[int]) -> float:
    """Return the spread of the shifts of one concept, a standard deviation, by formulas 10 to 12.

    The paper uses absolute distances for the mean (formula 11) and signed distances for the deviation (formula 12). If
    one text has an additional passage at its beginning, the result then depends on the order of the texts. Here both
    formulas use signed distances.
    """
    distances = [one - other for one, other in zip(a, b, strict=False)]  # formula 10: δP
    mean = math.fsum(distances) / len(distances)  # formula 11: AVG
    return math.sqrt(math.fsum((distance - mean) ** 2 for distance in distances) / len(distances))  # formula 12: S


class ConceptIndex(InvertedIndex[Vector, T]):
    """Finds documents with similar key concepts at similar places.

    Concepts are similar if the cosine of their counts is above `least_cosine`, Sim_thr. Places are similar if the
    spread of their shifts, divided by the number of words that the texts span, is below `most_spread`. The paper's
    S_thr is a number of words, not a share; but in a long text one more occurrence of a concept shifts the later ones
    farther. Section 3.5.
    """

    def __init__(self, least_cosine: float, most_spread: float) -> None:
        super().__init__()
        self._least_cosine = least_cosine
        self._most_spread = most_spread

    def read(self, fingerprints: Sequence[int]) -> Vector:
        return unpack(fingerprints)

    def sought(self, decoded: Vector) -> Iterator[int]:
        """Yield concepts, the rarest first, until no document that has none of them can be similar.

        The paper, in step 3, looks up the first n dimensions by rank. If a document has none of the concepts that were
        yielded, its cosine is at most the length of the rest of the vector, divided by the length of the whole vector.
        When this bound falls to the least cosine, no more lookups are needed.
        """
        rest = _dot(decoded, decoded)
        enough = self._least_cosine**2 * rest * (1 - 1e-9)
        for concept in sorted(decoded, key=lambda concept: (len(self.holders(concept)), concept)):
            if rest <= enough:
                return
            yield concept
            rest -= len(decoded[concept]) ** 2

    def is_near(self, decoded: Vector, held: Vector) -> bool:
        """Return whether the cosine and the spread both pass: steps 6 to 9."""
        if cosine(decoded, held) <= self._least_cosine:
            return False
        return spread(decoded, held) / span(decoded, held) < self._most_spread


def concept_fingerprints(text: str, concepts: Concepts) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a key concept; () for too few concepts. Sections 3.2 to 3.4."""
    named = [[(concepts.get(term, term), position) for term, position in sentence] for sentence in sentences(text)]
    graph = main_part(co_occurrence([concept for concept, _ in sentence] for sentence in named))
    if len(graph) < MIN_CONCEPTS:
        return ()
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for concept, position in chain.from_iterable(named):
        positions[concept].append(position)
    counts = {concept: len(places) for concept, places in positions.items()}
    return pack({node: positions[node] for node in key_nodes(graph, counts)})


class DWDCS:
    """Proposes documents with similar key concepts at similar places. Abstains from texts with few concepts.

    Without the packages of the extra `dwdcs`, the constructor raises ModuleNotFoundError.
    """

    name = "dwdcs"
    heavy = True

    def __init__(self, synonyms: Concepts | Sequence[str] = ()) -> None:
        """`synonyms`: concepts, or paths of files with synonyms; () for the built-in ones."""
        try:
            packages = " ".join(f"{name} {version(name)}" for name in ("snowballstemmer", "stopwordsiso"))
        except ModuleNotFoundError as error:
            message = "the detectors dwdcs and dwswn need more packages: pip install 'scrapy-neardup[dwdcs]'"
            raise ModuleNotFoundError(message, name=error.name) from error
        if not isinstance(synonyms, Mapping):
            synonyms = merge(group for path in synonyms for group in read_groups(path)) if synonyms else builtin()
        self.concepts = synonyms
        made_of = f"concepts {id_of(self.concepts)} terms 1, {TOKENS} {packages}"
        self.scheme = f"{self.name}/1 l {CANDIDATES} p {KEY_CONCEPTS} {made_of}"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return concept_fingerprints(document.text, self.concepts)

    def index(self) -> ConceptIndex[Any]:
        return ConceptIndex(COSINE, SPREAD)


class DWSWN(DWDCS):
    """Works as DWDCS does, but on words instead of concepts: synonyms are not merged."""

    name = "dwswn"

    def __init__(self) -> None:
        super().__init__({})
