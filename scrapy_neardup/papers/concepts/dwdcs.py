"""The detectors DWDCS and DWSWN, for texts with similar key concepts at similar places."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ...document import Document
from .concept_index import ConceptIndex
from .network import co_occurrence, key_nodes, main_part
from .positions import pack
from .terms import scheme, sentences
from .thesaurus import Concepts

CANDIDATES, KEY_CONCEPTS = 30, 20  # l and p of the paper
MIN_CONCEPTS = 20  # concepts in the main part of the network; with fewer, all of them would be key concepts
COSINE = 0.9  # Sim_thr of the paper
SPREAD = 0.1  # S_thr as a share of the words, see docs/algorithms/dwdcs.md; the paper gives no value


def concept_fingerprints(
    text: str, concepts: Concepts, candidates: int = CANDIDATES, key_concepts: int = KEY_CONCEPTS
) -> tuple[int, ...]:
    """Return a fingerprint for each occurrence of a key concept; () for a text with too few concepts.

    曹玉娟 et al. 2011, sections 3.2 to 3.4.
    """
    named = [[(concepts.of(term.name), term.position) for term in sentence] for sentence in sentences(text)]
    graph = main_part(co_occurrence([concept for concept, _ in sentence] for sentence in named))
    if len(graph) < MIN_CONCEPTS:
        return ()
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for sentence in named:
        for concept, position in sentence:
            positions[concept].append(position)
    counts = {concept: len(places) for concept, places in positions.items()}
    return pack({node: positions[node] for node in key_nodes(graph, candidates, key_concepts, counts)})


class DWDCS:
    """Proposes documents with similar key concepts at similar places. Abstains from texts with few concepts.

    曹玉娟 et al. 2011. Without the packages of the extra `dwdcs`, the constructor raises ModuleNotFoundError.
    """

    name = "dwdcs"
    heavy = True

    def __init__(self, concepts: Concepts, candidates: int = CANDIDATES, key_concepts: int = KEY_CONCEPTS) -> None:
        self.concepts = concepts
        self.candidates = candidates
        self.key_concepts = key_concepts
        made_of = " ".join(f"{name} {value}" for name, value in scheme().items())
        self.scheme = f"{self.name}/1 l {candidates} p {key_concepts} concepts {concepts.id} {made_of}"

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        return concept_fingerprints(document.text, self.concepts, self.candidates, self.key_concepts)

    def index(self) -> ConceptIndex[Any]:
        return ConceptIndex(COSINE, SPREAD)


class DWSWN(DWDCS):
    """Works as DWDCS does, but on words instead of concepts: synonyms are not merged."""

    name = "dwswn"

    def __init__(self, candidates: int = CANDIDATES, key_concepts: int = KEY_CONCEPTS) -> None:
        super().__init__(Concepts(), candidates, key_concepts)
