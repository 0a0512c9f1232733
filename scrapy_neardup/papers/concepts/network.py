"""Find the key terms of a text in its network of co-occurring terms, which is a small world.

Key terms are the terms that, if removed, lengthen the paths between the other terms most. Paths are counted from all
nodes at once, with sets of nodes stored as bits. This is exact, and several times as fast as graph libraries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

REACH = 2  # the maximum distance between joined terms

Graph: TypeAlias = dict[str, set[str]]
"""The neighbours of each node: ξ in section 3.2.2, step 3, is 1 for these."""
_Bits: TypeAlias = npt.NDArray[np.uint64]


def co_occurrence(sentences: Iterable[Sequence[str]]) -> Graph:
    """Return the network of terms. Terms at most `REACH` places apart in a sentence are neighbours. {} for no terms.

    曹玉娟 et al. 2011, section 3.2.2, steps 1 to 3, with f_thr = 0: a term with one occurrence is a node too.
    """
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
    """Return the largest connected part of a graph, in a tie the first; {} for no nodes.

    曹玉娟 et al. 2011, section 3.2.2, step 4.
    """
    best: set[str] = set()
    seen: set[str] = set()
    for start in graph:
        if start not in seen:
            part = _reached(graph, start)
            seen |= part
            best = max(best, part, key=len)
    return {node: graph[node] for node in graph if node in best}


def _reached(graph: Graph, start: str) -> set[str]:
    reached, edge = {start}, [start]
    while edge:
        edge = list({other for node in edge for other in graph[node]} - reached)
        reached.update(edge)
    return reached


def key_nodes(graph: Graph, candidates: int, wanted: int, counts: Mapping[str, int]) -> list[str]:
    """Return up to `wanted` nodes of a connected graph. Nodes that lengthen the mean path most if removed come first.

    Only the `candidates` nodes with the most neighbours are tried. Ties are ordered by degree, then by `counts`
    (occurrences in the text), highest first, then by name. Return [] for no nodes.

    曹玉娟 et al. 2011, section 3.3.
    """
    hubs = sorted(graph, key=lambda node: (-len(graph[node]), -counts[node], node))[:candidates]
    # CB = d without the node - d. The number of pairs and d are equal for all nodes, so path sums give the same order.
    sums = dict(zip(hubs, path_sums(graph, hubs), strict=True))
    return sorted(hubs, key=lambda hub: (-sums[hub], -len(graph[hub]), -counts[hub], hub))[:wanted]


def contributions(graph: Graph, nodes: Sequence[str]) -> list[float]:
    """Return, for each node, the growth of the mean path of a connected graph when the node is removed.

    曹玉娟 et al. 2011, section 3.3: CB = d without the node - d.
    """
    pairs = (len(graph) - 1) * (len(graph) - 2)
    return [total / pairs - mean_path(graph) if pairs else 0.0 for total in path_sums(graph, nodes)]


def mean_path(graph: Graph) -> float:
    """Return the mean length of the shortest paths between all pairs of nodes; 0.0 without a pair.

    曹玉娟 et al. 2011, formulas 3 and 4.
    """
    pairs = len(graph) * (len(graph) - 1)
    return path_sums(graph, [None])[0] / pairs if pairs else 0.0


def path_sums(graph: Graph, removed: Sequence[str | None]) -> list[int]:
    """Return, for each node in `removed`, the sum of all shortest paths without this node; for None, with all nodes.

    Each pair counts twice, once from either end. A pair without a path counts as much as the longest remaining path. If
    only one part of the graph has edges, this is the rule of Matsuo et al. 2001 (KeyWorld), on which the paper builds.
    """
    if not graph:
        return [0] * len(removed)
    places = {node: place for place, node in enumerate(graph)}
    # Each node is its own neighbour, so that reached nodes stay reached.
    neighbours = [[places[node], *sorted(map(places.__getitem__, graph[node]))] for node in graph]
    flat = np.fromiter(chain.from_iterable(neighbours), np.intp)
    starts = np.cumsum([0, *map(len, neighbours[:-1])])
    return [_path_sum(flat, starts, None if node is None else places[node]) for node in removed]


def _path_sum(neighbours: npt.NDArray[np.intp], starts: npt.NDArray[np.intp], removed: int | None) -> int:
    within = _identity(len(starts))  # row i: the nodes within a distance of node i, at first 0
    nodes = len(starts) - (removed is not None)
    total, reached, before = 0, nodes, 0
    if removed is not None:
        within[removed] = 0
    while reached > before:
        # A pair at distance d is out of reach at each of the distances 0 … d - 1.
        total += nodes * nodes - reached
        within = np.bitwise_or.reduceat(within[neighbours], starts, axis=0)
        if removed is not None:
            within[removed] = 0
        before, reached = reached, int(np.bitwise_count(within).sum(dtype=np.int64))
    return total - (nodes * nodes - reached)  # the last step reached no further node


def _identity(size: int) -> _Bits:
    rows = np.zeros((size, -(-size // 64)), np.uint64)
    place = np.arange(size)
    rows[place, place // 64] = np.uint64(1) << (place % 64).astype(np.uint64)
    return rows
