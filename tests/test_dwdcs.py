"""Key concepts, their network and their index, against values worked by hand and a search of all documents."""

from __future__ import annotations

import gzip
import json
import math
import random
from importlib import resources
from importlib.metadata import PackageNotFoundError
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import test_fingerprints
from helpers import Entry, python
from tiers import some

from scrapy_neardup.detectors import build_detectors
from scrapy_neardup.document import Document
from scrapy_neardup.fingerprints.hashes import hash_text
from scrapy_neardup.papers import dwdcs
from scrapy_neardup.papers.dwdcs import (
    OCCURRENCES,
    THRESHOLD,
    ConceptIndex,
    Concepts,
    Graph,
    builtin,
    co_occurrence,
    cosine,
    id_of,
    key_nodes,
    main_part,
    merge,
    pack,
    path_sums,
    rel,
    span,
    spread,
    unpack,
)
from scrapy_neardup.settings import Config

# Concepts


def test_rel_is_the_overlap_over_the_mean_size() -> None:  # formula 7
    assert rel(2, 2, 2) == 1  # 2 / ((2 + 2) / 2)
    assert rel(2, 3, 5) == 0.5  # 2 / ((3 + 5) / 2) = 2/4
    assert rel(0, 3, 5) == 0


def test_terms_of_the_same_groups_are_one_concept() -> None:  # formula 5
    # Con(lack) = Con(deficiency) = Con(want) = {deficiency, lack, want}: Rel of any two is 3/3; Con(pier) = Con(jetty).
    groups = [frozenset({"lack", "deficiency", "want"}), frozenset({"pier", "jetty"})]
    assert merge(groups, 0.5) == {"lack": "deficiency", "want": "deficiency", "pier": "jetty"}


def test_a_term_of_several_meanings_is_merged_only_above_the_threshold() -> None:
    # Con(bank) = {bank, shore, strand, lender}, Con(shore) = {bank, shore, strand} = Con(strand),
    # Con(lender) = {bank, lender}: Rel is 3/3.5 of bank and shore, 2/3 of bank and lender, 1/2.5 of lender and shore.
    groups = [frozenset({"bank", "shore", "strand"}), frozenset({"bank", "lender"})]
    assert merge(groups, 0.5) == {"shore": "bank", "strand": "bank", "lender": "bank"}
    assert merge(groups, 0.7) == {"shore": "bank", "strand": "bank"}
    # Not above 3/3.5 is bank; what is left are shore and strand, with Rel 1.
    assert merge(groups, 3 / 3.5) == {"strand": "shore"}


def test_no_chain_of_meanings_makes_one_concept() -> None:
    # Rel of neighbours is 2/2.5 at the ends and 2/3 in the middle, of a and c 1/2.5, of a and d 0.
    groups = [frozenset(pair) for pair in ("ab", "bc", "cd")]
    assert merge(groups, 0.5) == {"b": "a", "d": "c"}


PLAIN = "# words of the same meaning\npier\tjetty\tlanding stage\n渡口\t码头\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_file_of_synonyms(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "synonyms"
    path.write_bytes(PLAIN.encode(encoding))
    # Terms are stems, and one word each.
    assert DWDCS([str(path)]).concepts == {"pier": "jetti", max("码头", "渡口"): min("码头", "渡口")}


def test_id_depends_on_the_mapping_alone(tmp_path: Path) -> None:
    for name, lines in zip("01", PLAIN.split("\n渡"), strict=True):
        (tmp_path / name).write_text(lines if name == "0" else f"渡{lines}", encoding="utf8")
    ids = {id_of(DWDCS([str(tmp_path / name) for name in names]).concepts) for names in ("01", "10", "101")}
    assert len(ids) == 1
    assert id_of({}) == "none"
    assert id_of({"b": "a"}) != id_of({"c": "a"})


@pytest.mark.parametrize("content", [b"", b"a sentence of prose\n", b"# nothing\n", b"\xff\xff\xff", None])
def test_file_that_holds_no_synonyms(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "odd.txt").write_bytes(content)
    with pytest.raises(OSError if content is None else ValueError, match=r"odd\.txt"):
        DWDCS([str(tmp_path / "odd.txt")])


def shipped(language: str) -> bytes:
    return resources.files("scrapy_neardup.papers").joinpath("synonyms", f"{language}.txt.gz").read_bytes()


def shipped_groups(language: str) -> list[list[str]]:
    return [line.split("\t") for line in gzip.decompress(shipped(language)).decode().splitlines()]


def test_what_is_no_synonym_is_not_merged_by_the_built_in_ones() -> None:
    words = ["lighthous", "boat", "council", "灯塔", "政府", "医生", "迅速"]
    assert len({builtin().get(word, word) for word in words}) == len(words)
    # With another id users need a new store: the changelog has to say so.
    assert id_of(builtin()) == "3dd63e2f272b27a7"
    assert builtin() is builtin()


@pytest.mark.parametrize(("language", "terms", "concepts"), [("en", 27_046, 10_214), ("zh", 40_407, 12_543)])
def test_shipped_file_is_sorted_and_has_each_term_once(language: str, terms: int, concepts: int) -> None:
    groups = shipped_groups(language)
    held = [term for group in groups for term in group]
    assert (len(set(held)), len(held), len(groups)) == (terms, terms, concepts)
    assert all(one < other for group in [[group[0] for group in groups], *groups] for one, other in pairwise(group))
    assert all(len(group) > 1 for group in groups)
    assert {term.isascii() for term in held} == {language == "en"}
    assert shipped(language)[4:8] == bytes(4)  # no time of making: the same terms are the same bytes


@pytest.mark.slow
def test_merging_the_shipped_concepts_once_more_changes_nothing() -> None:
    groups = [frozenset(group) for language in ("en", "zh") for group in shipped_groups(language)]
    assert merge(groups, THRESHOLD) == builtin()


# The network


def graph_of(*edges: str) -> Graph:
    """Return the graph of edges written as two letters."""
    graph: Graph = {}
    for one, other in edges:
        graph.setdefault(one, set()).add(other)
        graph.setdefault(other, set()).add(one)
    return graph


# Two triangles that share c, and e hanging on d:  a─b, a─c, b─c, c─d, c─f, d─f, d─e
KITE = graph_of("ab", "ac", "bc", "cd", "cf", "df", "de")


def test_terms_at_most_two_places_apart_are_joined() -> None:  # section 3.2.2, step 2
    assert co_occurrence([["a", "b", "c", "d"]]) == graph_of("ab", "ac", "bc", "bd", "cd")
    assert co_occurrence([["a", "b"], ["c", "a"]]) == graph_of("ab", "ac")  # not across sentences
    assert co_occurrence([["a", "a", "b", "a"]]) == graph_of("ab")
    assert co_occurrence([["a"], []]) == {"a": set()}
    assert co_occurrence([]) == {}


def test_main_part_is_the_largest_connected_part() -> None:  # section 3.2.2, step 4
    assert main_part({**graph_of("xy"), **KITE, "z": set()}) == KITE
    assert main_part(graph_of("ab", "cd")) == graph_of("ab")
    assert main_part({}) == {}


def test_path_sums_without_a_node_worked_by_hand() -> (
    None
):  # formulas 3 and 4, and section 3.3, CB, before the division by the number of pairs
    assert path_sums(graph_of("ab"), ["a"]) == path_sums({"a": set()}, ["a"]) == [0]
    assert path_sums({}, []) == []
    # Without a: b c d e f are at 1 2 2 3, 1 1 1 2, 1 1 1 2, 1 2 2 3, 1 1 2 2: 32 over 20 ordered pairs.
    # Without c, {a b} and {d e f} are parted: 2 + 6 + 2 · 6 pairs, of which 12 count as the longest path left, 2:
    # a─b 1 twice; d─e, d─f 1 and e─f 2 twice.
    # Without d, e is parted from a b c f: those have 1 1 2, 1 1 2, 1 1 1, 1 2 2 = 16, and 8 pairs count 2.
    assert path_sums(KITE, ["a", "c", "d"]) == [8 + 5 + 5 + 8 + 6, 2 + 8 + 12 * 2, 16 + 8 * 2]


def test_key_nodes_are_those_whose_removal_lengthens_paths_most(monkeypatch: pytest.MonkeyPatch) -> None:
    ones = dict.fromkeys(KITE, 1)
    # Degrees: c 4, d 3, a b f 2, e 1. Sums without: a b 32, c 34, d 32; without f the others keep theirs: 34.
    assert path_sums(KITE, list("bf")) == [32, 34]
    for candidates, wanted, counts, nodes in (
        (2, 2, ones, ["c", "d"]),
        (5, 3, ones, ["c", "f", "d"]),  # 34 34 32: of equal ones the higher degree first
        (3, 9, {**ones, "f": 2}, ["c", "f", "d"]),  # f tried before a and b, for its count
    ):
        monkeypatch.setattr(dwdcs, "CANDIDATES", candidates)
        monkeypatch.setattr(dwdcs, "KEY_CONCEPTS", wanted)
        assert key_nodes(KITE, counts) == nodes
    assert key_nodes({}, {}) == []


def paths_by_trying(graph: Graph, removed: str) -> int:
    """Return what `path_sums` should give, by Floyd's and Warshall's algorithm."""
    nodes = [node for node in graph if node != removed]
    ways = np.array([[0 if a == b else 1 if b in graph[a] else math.inf for b in nodes] for a in nodes])
    for middle in range(len(nodes)):
        ways = np.minimum(ways, ways[:, [middle]] + ways[[middle]])
    longest = ways[np.isfinite(ways)].max(initial=0)
    return int(np.minimum(ways, longest).sum())


@pytest.mark.parametrize("seed", range(12))
def test_path_sums_are_those_of_another_algorithm(seed: int) -> None:
    rng = random.Random(seed)
    nodes = [str(number) for number in range(rng.choice([2, 30, 64, 65, 70]))]
    edges = [rng.choices(nodes, k=2) for _ in range(rng.choice([1, 2]) * len(nodes))]
    graph = main_part(co_occurrence(edges))
    removed = list(graph)[:4]
    assert path_sums(graph, removed) == [paths_by_trying(graph, node) for node in removed]


# Fingerprints


def test_a_fingerprint_for_each_occurrence() -> None:  # formula 8
    packed = pack({"pier": [3, 70], "码头": [5]})
    assert packed == (key("pier") << 24 | 3, key("pier") << 24 | 70, key("码头") << 24 | 5)
    assert unpack(packed) == {key("pier"): [3, 70], key("码头"): [5]}
    assert unpack(reversed(packed)) == unpack(packed)
    assert pack({}) == ()
    assert unpack(()) == {}


def test_of_a_concept_that_stands_everywhere_the_first_places_are_kept() -> None:
    assert unpack(pack({"pier": range(1000)})) == {key("pier"): list(range(OCCURRENCES))}
    assert unpack(pack({"pier": [2**24 + 7]})) == {key("pier"): [2**24 - 1]}
    assert all(0 <= value < 2**64 for value in pack({"pier": [2**30]}))


def key(concept: str) -> int:
    return hash_text(concept) >> 24


def test_cosine_of_counts_formula_9() -> None:  # formula 9
    # (2, 1, 0) and (1, 1, 2): 2·1 + 1·1 + 0·2 = 3, 2² + 1² = 5, 1² + 1² + 2² = 6; 3 / √5 √6
    a, b = {1: [4, 9], 2: [7]}, {1: [1], 2: [2], 3: [3, 5]}
    assert cosine(a, b) == cosine(b, a) == 3 / math.sqrt(30)
    assert cosine(a, a) == 1
    assert cosine(a, {3: [1]}) == cosine({}, a) == 0


def test_spread_of_shifts_formulas_10_to_13() -> None:  # formulas 10 to 13
    a = {1: [10, 20, 40], 2: [5], 3: [9]}
    # Formula 10: concept 1 moved by 10 - 12, 20 - 20, 40 - 44 = -2, 0, -4. Formula 11: the mean is -6/3 = -2. Formula
    # 12: the deviation is √((0² + 2² + 2²)/3) = √(8/3). Concept 2 moved by -3 alone: 0. 3 and 4 are in one text only.
    # Formula 13: the mean of both is (√(8/3) + 0)/2.
    b = {1: [12, 20, 44], 2: [8], 4: [9]}
    assert spread(a, b) == pytest.approx(math.sqrt(8 / 3) / 2)
    assert spread(b, a) == spread(a, b)
    # What moved as a whole moved evenly, whichever comes first; occurrences that one text lacks do not count.
    assert spread({1: [1, 5, 9]}, {1: [11, 15]}) == spread({1: [11, 15]}, {1: [1, 5, 9]}) == 0
    assert spread({1: [1]}, {2: [1]}) == spread({}, {}) == 0


# The index


def found(index: ConceptIndex[Any], fingerprints: tuple[int, ...]) -> list[str]:
    return sorted(entry.name for entry in index.find(fingerprints))


def test_index_holds_exactly_what_is_above_the_cosine_and_below_the_spread() -> None:
    # (3, 4) and (4, 3): 24/25. One step of two: concept a moved by 0, 0, 2, deviation √(8/9); b by 0: half of it,
    # of 10 words.
    a, b = pack({"a": [1, 3, 5], "b": [2, 4, 6, 8]}), pack({"a": [1, 3, 7, 9], "b": [2, 4, 6]})
    for least, most, expected in ((0.95, 0.05, ["a"]), (24 / 25, 0.05, []), (0.95, math.sqrt(8 / 9) / 2 / 10, [])):
        index: ConceptIndex[Entry] = ConceptIndex(least, most)
        index.add(a, Entry("a"))
        index.add((), Entry("abstains"))
        assert found(index, b) == expected
        assert found(index, ()) == []


class Trial:
    """An index that tries all it holds."""

    def __init__(self, least_cosine: float, most_spread: float) -> None:
        self.thresholds = least_cosine, most_spread
        self.held: list[tuple[tuple[int, ...], Entry]] = []

    def find(self, fingerprints: tuple[int, ...]) -> list[str]:
        return sorted(entry.name for values, entry in self.held if self.near(unpack(values), unpack(fingerprints)))

    def near(self, a: dict[int, list[int]], b: dict[int, list[int]]) -> bool:
        return cosine(a, b) > self.thresholds[0] and spread(a, b) / span(a, b) < self.thresholds[1]


@pytest.mark.parametrize("thresholds", some([(0.9, 0.1), (0.9, 0.02), (0.5, 0.2), (0.0, math.inf)], (0.9, 0.02)))
def test_whatever_comes_and_goes_it_finds_what_trying_all_finds(thresholds: tuple[float, float]) -> None:
    rng = random.Random(7)
    index: ConceptIndex[Entry] = ConceptIndex(*thresholds)
    trial = Trial(*thresholds)
    texts = [{f"{text} {n // 2}": rng.sample(range(99), rng.randint(1, 9)) for n in range(9)} for text in range(4)]

    def fingerprints() -> tuple[int, ...]:
        """Return those of a text, perhaps with a concept less, a place moved, or another text's concept."""
        made = {concept: sorted(places) for concept, places in rng.choice(texts).items()}
        for _ in range(rng.randrange(3)):
            changed = rng.choice(list(made))
            made[changed] = [place + rng.randrange(9) for place in made[changed]]
            made.update(rng.sample(list(made.items()), 1) if rng.random() < 0.5 else [("0 1", [rng.randrange(99)])])
        return pack({concept: sorted(set(places)) for concept, places in made.items()})

    hits = 0
    for step in range(250):
        if trial.held and rng.random() < 0.4:
            values, entry = trial.held.pop(rng.randrange(len(trial.held)))
            index.remove(values, entry)
        else:
            trial.held.append((fingerprints(), Entry(str(step))))
            index.add(*trial.held[-1])
        wanted = fingerprints()
        expected = trial.find(wanted)
        assert found(index, wanted) == expected
        hits += len(expected)
    assert hits > 60
    while trial.held:
        index.remove(*trial.held.pop())
    assert not index._entries
    assert not index._holders


# The detectors: from here on with the packages of the extra

pytest.importorskip("snowballstemmer")
pytest.importorskip("stopwordsiso")

from scrapy_neardup.papers.dwdcs import DWDCS, DWSWN, concept_fingerprints, sentences  # noqa: E402

ENGLISH = f"""{test_fingerprints.ENGLISH} The
storm that broke the lamp sank 3 boats at the pier. The council of the town wants the tower to be a museum of storms,
boats and the harbour. The insurance of the boats paid the lamp; the lighthouse pays for itself with visitors."""
CHINESE = f"""{test_fingerprints.CHINESE}
公园的湿地与河边的芦苇是白鹭越冬的地方,政府的工程保护湿地的植物与水质,居民担心的是交通与施工的噪音。"""
SYNONYMS = {"boat": "ship", "vessel": "ship", "lamp": "light", "wharf": "pier"}
SYNONYMS |= {"沼泽": "湿地", "苇子": "芦苇", "园林": "公园"}


def test_terms_are_stems_without_stop_words_and_figures() -> None:
    text = "The boats sank at 3.5 knots in 1874. Boats sank! 白鹭在湿地越冬。\n\nBrücke"
    assert [terms for terms in sentences(text) if terms] == [
        [("boat", 1), ("sank", 2), ("knot", 6)],
        [("boat", 9), ("sank", 10)],
        [("白鹭", 11), ("湿地", 13), ("越冬", 14)],
        [("brücke", 15)],
    ]
    assert [term for sentence in sentences("") for term in sentence] == []


def test_a_line_that_ends_within_a_sentence_joins() -> None:
    assert [len(terms) for terms in sentences("lighthouse\nlamp\n\nharbour")] == [2, 1]


@pytest.mark.parametrize(
    ("text", "changes", "concepts"),
    [
        (ENGLISH, {"boats": "vessels", "pier": "wharf"}, SYNONYMS),
        (CHINESE, {"湿地": "沼泽", "芦苇": "苇子", "公园": "园林"}, SYNONYMS),
        (ENGLISH, {"boats": "yachts", "pier": "dock", "town": "township", "lighthouse": "pharos"}, builtin()),
        (CHINESE, {"政府": "官方", "工程": "项目", "居民": "居住者", "担心": "焦虑", "噪音": "杂音"}, builtin()),
    ],
    ids=["english", "chinese", "english, built in", "chinese, built in"],
)
def test_replaced_synonyms_are_found_by_dwdcs_and_missed_by_dwswn(
    text: str, changes: dict[str, str], concepts: Concepts
) -> None:
    rewritten = text
    for old, new in changes.items():
        rewritten = rewritten.replace(old, new)
    assert rewritten != text
    for detector, expected in ((DWDCS(concepts), ["held"]), (DWSWN(), [])):
        index = detector.index()
        index.add(detector.fingerprints(Document(text=text)), "held")
        assert list(index.find(detector.fingerprints(Document(text=rewritten)))) == expected


def test_fingerprints_of_a_text_worked_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:  # sections 3.2 to 3.4
    # "vessel bkqz. boat blqz. …": boat and vessel are one concept, ship, a star with 24 leaves. As the node of highest
    # degree it is the only candidate. It stands at 0, 2, 4, …, 46, of which the first 16 are kept.
    leaves = [f"{a}{b}qz" for a in "bcdfg" for b in "klmpr"][:24]
    text = " ".join(f"{'boat' if place % 2 else 'vessel'} {leaf}." for place, leaf in enumerate(leaves))
    monkeypatch.setattr(dwdcs, "CANDIDATES", 1)
    assert concept_fingerprints(text, SYNONYMS) == pack({"ship": range(0, 32, 2)})
    # Unmerged there are two stars of 13 nodes, too few.
    assert concept_fingerprints(text, {}) == ()


def test_the_same_concepts_in_other_places_are_not_found() -> None:
    detector = DWSWN()
    index = detector.index()
    index.add(detector.fingerprints(Document(text=f"{ENGLISH} {ENGLISH}")), "twice as a whole")
    each_twice = ". ".join(part for sentence in ENGLISH.split(". ") for part in (sentence, sentence))
    assert list(index.find(detector.fingerprints(Document(text=each_twice)))) == []


@pytest.mark.parametrize("text", ["", "灯塔", "The old lighthouse.", " ".join(f"word{n}. " for n in range(99))])
def test_short_and_loose_texts_abstain(text: str) -> None:
    assert concept_fingerprints(text, {}) == ()
    assert DWSWN().fingerprints(Document(text=text)) == ()


def test_built_in_synonyms_are_used_where_no_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "synonyms.tsv").write_text(PLAIN, encoding="utf8")
    named = [str(tmp_path / "synonyms.tsv")]
    for part, concepts in (("dwdcs", builtin()), ({"name": "dwdcs", "synonyms": named}, DWDCS(named).concepts)):
        (detector,) = build_detectors(Config(detectors=[part]))
        assert detector.scheme == DWDCS(concepts).scheme


def test_scheme_tells_what_fingerprints_depend_on() -> None:
    schemes = {detector.scheme for detector in (DWSWN(), DWDCS({}), DWDCS(SYNONYMS))}
    assert len(schemes) == 3
    assert id_of(SYNONYMS) in DWDCS(SYNONYMS).scheme


def values() -> list[list[str]]:
    """Return all fingerprints of both texts."""
    documents = [Document(text=text) for text in (ENGLISH, CHINESE)]
    made = [detector.fingerprints(document) for detector in (DWDCS(SYNONYMS), DWSWN()) for document in documents]
    return [[f"{value:016x}" for value in values] for values in made]


@pytest.mark.slow
def test_the_same_in_every_process() -> None:
    made = python("import json; from test_dwdcs import *; print(json.dumps(values()))", PYTHONHASHSEED="12345")
    assert json.loads(made.stdout) == values(), made.stderr


@pytest.mark.parametrize("package", ["snowballstemmer", "stopwordsiso"])
def test_without_the_packages_it_says_what_to_install(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(dwdcs, "version", version)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'scrapy-neardup\[dwdcs\]'"):
        DWDCS()
