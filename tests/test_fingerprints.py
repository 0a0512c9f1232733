"""Fingerprints against values worked by hand, and golden values that no change may alter by accident.

If a golden value has to change, change the `scheme` of its detector (or of the sketch) too: stores hold the old values.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import mmh3
import numpy as np
import pytest
from helpers import hashes, sketch, sketch_of, words

from scrapy_neardup.detectors import Detector, Exact, IMatch, Shingle, SimHash
from scrapy_neardup.document import Document
from scrapy_neardup.fingerprints.hashes import (
    MULTIPLIER,
    chain,
    hamming,
    hash_text,
    hash_tokens,
    imatch,
    minima,
    shingle_hashes,
    simhash,
    super_shingles,
)
from scrapy_neardup.fingerprints.lexicon import Lexicon, builtin
from scrapy_neardup.fingerprints.record import BINS, SKETCH, Sketch, containment, missing_figures, resemblance, salt
from scrapy_neardup.items import item_document
from scrapy_neardup.settings import Config

MASK = 2**64 - 1


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def mixed(value: int) -> int:
    """Return what `mix` should give, in Python's own integers."""
    value = (value ^ value >> 32) * 0xD6E8FEB86659FD93 & MASK
    return value ^ value >> 32


# Hashing


def test_hash_of_a_token_is_murmurhash3_in_two_halves() -> None:
    tokens = ["crane", "鹤", ""]
    expected = [list(mmh3.hash64(token, signed=False)) for token in tokens]
    assert hash_tokens(tokens).tolist() == expected
    assert hash_tokens(["crane"])[0, 0] == hash_text("crane")
    assert hash_tokens([]).shape == (0, 2)


def test_chain_depends_on_order() -> None:
    first, second = array(1, 7), array(2, 9)
    expected = [mixed((mixed(a) * int(MULTIPLIER) + b) & MASK) for a, b in ((1, 2), (7, 9))]
    assert chain([first, second]).tolist() == expected
    assert not set(chain([second, first]).tolist()) & set(expected)


def test_shingles_are_the_runs_of_so_many_tokens() -> None:
    tokens = hash_tokens(["a", "rose", "is", "a", "rose", "is", "a", "rose"])[:, 0]
    runs = shingle_hashes(tokens, 3)
    # a rose is | rose is a | is a rose, twice each.
    assert len(runs) == 6
    assert runs[:3].tolist() == runs[3:].tolist()
    assert len(set(runs.tolist())) == 3
    assert runs[0] == chain([tokens[0:1], tokens[1:2], tokens[2:3]])[0]


def test_text_shorter_than_a_shingle_is_one_shingle() -> None:
    assert shingle_hashes(array(5, 6), 3).tolist() == chain([array(5), array(6)]).tolist()
    assert shingle_hashes(array(5), 3).tolist() == [mixed(5)]
    assert shingle_hashes(array(), 3).tolist() == []


# SimHash


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([], 0),
        ([0xF0F0], 0xF0F0),
        ([0b0001, 0b0011, 0b0111], 0b0011),
        ([0b01, 0b10], 0b00),  # no majority: the bit stays 0
        ([2**63, 2**63 | 1, 1], 2**63 | 1),
        ([MASK, MASK - 1, 1], MASK),
        ([0b01] * 2 + [0b10], 0b01),  # weights 2 and 1
        ([0b01] * 2 + [0b10, 0b110], 0b00),  # 2 of 4 each
        ([0b01] * 3 + [0b10, 0b110], 0b00),  # three times weighs as much as twice: 2 of 4
        ([0b01] * 4 + [0b10, 0b110], 0b01),  # 3 of 5
        ([0b01] * 7 + [0b10, 0b110, 0b1010], 0b00),  # 3 of 6
        ([0b01] * 8 + [0b10, 0b110, 0b1010], 0b01),  # 4 of 7
        ([0b01] * 1000 + list(range(2, 24, 2)), 0b00),  # 10 of 21, however often; no other bit has a majority
    ],
)
def test_simhash_is_the_majority_of_each_bit_by_weight(features: list[int], expected: int) -> None:
    rows = array(*features).reshape(-1, 1)
    assert simhash(rows) == simhash(rows[::-1]) == expected


def test_hamming_counts_the_bits_that_differ() -> None:
    assert [hamming(0, 0), hamming(0b1010, 0b0110), hamming(0, MASK), hamming(1, 2**63)] == [0, 2, 64, 2]


# I-Match


def digest(names: list[int]) -> int:
    """Return the sum of the mixed hashes, as the docstring says it."""
    return sum(mixed(name * int(MULTIPLIER) & MASK) for name in names) & MASK


def test_first_digest_is_the_sum_of_the_terms_and_each_further_one_lacks_what_its_lexicon_lacks() -> None:
    terms = hash_tokens(words(40, seed=3))
    first, *further = imatch(terms, 8)
    assert first == digest(terms[:, 0].tolist())
    for number, value in enumerate(further, 1):
        salt = number * int(MULTIPLIER) & MASK
        kept = [int(name) for name, bits in terms.tolist() if mixed(bits ^ salt) >> 60 >= 5]
        assert value == digest(kept)
        assert 15 < len(kept) < 38  # 11 of 16 terms, on the average


LEXICON = Lexicon(frozenset(f"term{n}" for n in range(40)))


def imatch_of(terms: int, others: int = 0, extra: str = "", lexicons: int = 10) -> tuple[int, ...]:
    text = " ".join([*(f"term{n}" for n in range(terms)), *(f"other{n}" for n in range(others)), extra])
    return IMatch(LEXICON, lexicons).fingerprints(Document(text=text))


def test_change_outside_the_lexicon_and_a_repeated_term_leave_all_digests() -> None:
    assert imatch_of(20, 30, "changed") == imatch_of(20, 30)
    assert imatch_of(20, extra="term1 term1 term2") == imatch_of(20)


@pytest.mark.parametrize(
    ("terms", "others", "abstains"), [(0, 9, True), (7, 0, True), (8, 0, False), (10, 190, False), (10, 191, True)]
)
def test_imatch_abstains_with_fewer_than_eight_terms(terms: int, others: int, abstains: bool) -> None:
    """It also abstains where they are less than a twentieth of all terms."""
    assert (imatch_of(terms, others) == ()) is abstains


# MinHash


def binned(place: int, low: int = 1) -> int:
    """Return a hash that lies in the given one of four bins."""
    return place << 62 | low


@pytest.mark.parametrize("bins", [24, BINS])
def test_minima_against_sorting_into_bins(bins: int) -> None:
    values = hashes(300, seed=6)
    expected = [0] * bins
    for value in reversed(values.tolist()):
        expected[(value >> 32) * bins >> 32] = value
    assert minima(values, bins).tolist() == expected


def test_empty_bins_borrow_from_the_next_full_one() -> None:
    second, fourth = binned(1), binned(3)
    # Bin 0 borrows from 1, and 2 from 3, each one step on.
    rows = [[mixed(second + int(MULTIPLIER) & MASK), second], [mixed(fourth + int(MULTIPLIER) & MASK), fourth]]
    expected = chain([array(0, 1), array(rows[0][0], rows[1][0]), array(rows[0][1], rows[1][1])])
    assert super_shingles(array(second, fourth), bands=2, rows=2) == tuple(expected.tolist())


def test_share_of_equal_super_shingles_is_the_resemblance_to_the_power_of_rows() -> None:
    a, b = pair(shared=800, each=100, seed=7)  # resemblance .8
    equal = sum(x == y for x, y in zip(super_shingles(a, 400, 2), super_shingles(b, 400, 2), strict=True))
    assert equal / 400 == pytest.approx(0.64, abs=0.1)


# Sketch


def pair(shared: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two ascending sets that share so many hashes, with so many more in each."""
    values = np.random.default_rng(seed).permutation(hashes(shared + 2 * each, seed))
    both, a, b = values[:shared], values[shared : shared + each], values[shared + each :]
    return np.sort(np.concatenate([both, a])), np.sort(np.concatenate([both, b]))


def test_sketch_of_a_document_counts_its_tokens_shingles_and_figures() -> None:
    made = sketch_of("In 2024 the 2 boats of 2024 made 31st place; in 2024 the 2 boats won 3rd")
    # 17 tokens, 15 runs of which "in 2024 the", "2024 the 2" and "the 2 boats" come twice; 2024, 2, 31st, 3rd.
    assert (made.tokens, made.shingles, made.figures) == (17, 12, 4)
    assert sketch_of("") == sketch(tokens=0) == (0, 0, 0, *sketch(tokens=0)[3:])


def with_codes(*codes: int) -> Sketch:
    """Return a sketch with these codes in its first bins, and nothing in the others."""
    return Sketch(100, 100, 0, bytes(codes).ljust(BINS, b"\0"), b"")


def test_resemblance_by_hand() -> None:
    # Li, König 2010, section 2, with c = 1/255. Of six bins five are full in either; four in both, of which three are
    # equal and one differs: (3 − 1 · 1/255 / (254/255)) / 5 = (3 − 1/254) / 5.
    found = resemblance(with_codes(1, 2, 3, 1, 2, 0), with_codes(1, 2, 3, 255, 0, 0))
    assert found == pytest.approx((3 - 1 / 254) / 5)
    # One of 255 equal, as chance has it: 1 − 254 / 254 = 0. None equal: less than nothing is nothing.
    assert resemblance(with_codes(*range(1, 256)), with_codes(1, *range(3, 256), 2)) == pytest.approx(0)
    assert resemblance(with_codes(1, 2, 3), with_codes(2, 3, 1)) == 0


@pytest.mark.parametrize("count", [0, 1, 5, 60, 400, 5000])
def test_resemblance_of_equal_sets_is_one(count: int) -> None:
    made = sketch(shingles=hashes(count, seed=count))
    assert resemblance(made, made) == 1.0
    assert resemblance(made, sketch()) == (count == 0)


@pytest.mark.parametrize(
    ("shared", "each"), [(0, 500), (100, 450), (400, 300), (500, 250), (800, 100), (980, 10), (60, 30), (4000, 2000)]
)
def test_resemblance_is_near_the_truth(shared: int, each: int) -> None:
    truth = shared / (shared + 2 * each)
    errors = []
    for seed in range(20):
        a, b = (sketch(shingles=shingles) for shingles in pair(shared, each, seed))
        assert resemblance(a, b) == resemblance(b, a)
        errors.append(resemblance(a, b) - truth)
    # Of a share p of equal codes the variance is p (1 - p) / bins; p = r + (1 - r) / 255.
    equal = truth + (1 - truth) / 255
    standard_error = (equal * (1 - equal) / min(BINS, shared + 2 * each)) ** 0.5 + 0.003
    assert max(map(abs, errors)) < 4 * standard_error
    assert abs(float(np.mean(errors))) < 4 * standard_error / 20**0.5 + 0.015 * (truth == 0)


@pytest.mark.parametrize(
    ("a", "b", "shared", "expected"),
    [
        (100, 100, 1.0, 1.0),
        (100, 100, 0.5, 2 / 3),  # 67 of 100: 66.7 shared of 133.3
        (100, 50, 0.5, 1.0),  # all 50 of the smaller one
        (50, 150, 0.25, 0.8),  # 40 shared of 160
        (100, 100, 0.0, 0.0),
        (100, 10, 0.5, 1.0),  # more than can be: an estimate
        (0, 100, 0.0, 1.0),
    ],
)
def test_containment_of_the_smaller_text(a: int, b: int, shared: float, expected: float) -> None:
    one, two = (Sketch(9, shingles, 0, b"", b"") for shingles in (a, b))
    assert containment(one, two, shared) == containment(two, one, shared) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([], [], 0.0),
        ([], [1, 2], 0.0),
        ([1, 2, 3], [1, 2, 3], 0.0),
        ([1, 2, 3], [1, 2, 4], 1.0),
        ([1, 2, 3], [4, 5], 2.0),
        ([1, 2, 3, 4], [2, 3], 0.0),  # all of the smaller one are there
        ([0xFFFF], [0xFFFF], 0.0),
        (range(1, 17), range(2, 18), 1.0),  # samples are whole: 16 each
    ],
)
def test_missing_figures_of_whole_samples(a: list[int], b: list[int], expected: float) -> None:
    one, two = sketch(figures=a), sketch(figures=b)
    assert missing_figures(one, two) == missing_figures(two, one) == expected


def test_missing_figures_of_more_than_a_sample_are_extrapolated() -> None:
    # Of a (1 … 32) 1 … 16 are kept; b lacks every fourth and has 40 … 47 instead, so up to 21 are kept.
    a, b = sketch(figures=range(1, 33)), sketch(figures=[n for n in range(1, 33) if n % 4] + list(range(40, 48)))
    assert (a.figures, b.figures) == (32, 32)
    # Up to 16 there are 16 of a and 12 of b, all of which a has: of the fewer none is missing.
    assert missing_figures(a, b) == 0.0
    # c has other figures in place of 2, 4, … 16 (between them there is no room, so all are doubled).
    a = sketch(figures=range(2, 66, 2))
    c = sketch(figures=[n + n % 4 // 2 for n in range(2, 66, 2)])
    # Kept of a: 2 … 32; of c: 3, 4, 7, 8 … 31, 32. Half of 16 differ, so half of 32 do.
    assert missing_figures(a, c) == 16.0


def test_missing_figures_are_compared_where_both_samples_reach() -> None:
    few, many = sketch(figures=[10, 20, 30, 900]), sketch(figures=range(10, 1010, 10))
    # Of `many` only 10 … 160 are kept, so 900 can't be compared; the three that can are there.
    assert missing_figures(few, many) == missing_figures(many, few) == 0.0
    # 15 is missing: one of three that can be compared, of four in all.
    assert missing_figures(sketch(figures=[10, 15, 30, 900]), many) == pytest.approx(4 / 3)
    assert missing_figures(sketch(figures=[5000]), many) == 0.0  # there is nothing to compare


# Golden values

ENGLISH = """The council of the harbour town decided on Monday to repair the old lighthouse before winter. The tower,
built in 1874, lost its lamp in a storm 12 years ago; since then the fishing boats have found their way by radio.
The insurance paid 45,000 crowns, and the museum gave the rest. Visitors will climb the 212 steps again from 3 May,
a Saturday, when the brass band of the fire brigade plays on the pier and the hotel serves free soup to children."""
CHINESE = """县政府上周宣布,拆除河边的旧仓库,改建一座面积8600平方米的湿地公园。工程预计投资2300万元,明年5月动工。
附近居民对此表示欢迎,但也担心施工期间的噪音和交通拥堵。环境保护部门的专家认为,芦苇和水生植物能够净化水质,
还会吸引白鹭等候鸟前来越冬。公园建成后免费开放,旅游局将开通3条公共汽车线路,并在入口处设立自行车租赁点。"""
GOLDEN: dict[str, dict[str, Any]] = {
    "english": {
        "exact": "25b440eb29876dde",
        "imatch": "dfb7efbf042e3d17 294dfec79f04f3cf bc6e627e638ef2f4 ce17290e3d742af6",
        "simhash": "ea89708528487ca8",
        "shingle": (
            "c43bf3d2d5b81248 5d188762336add92 a5cee90ff9c64452 b7e61c32a7e987dc e917d9c20947d184 9483f61e712cf1e2 "
            "b5a525c179bceb57 93349889b53981c2 6359f6b749425793 f169576e8cb9bd16 e2f497de442e08a8 0a25349bcceae39b"
        ),
        "counts": [85, 83, 6],
        "codes": "516c6cf6219829d6f0ca04b40bc2c9a2993a70c1",
        "figures": "4a538a3fa0cbaa71fd53fdd7",
    },
    "chinese": {
        "exact": "c88315f4c62e8eba",
        "imatch": "3d8322961cf53f2c de55c66c264ff6c3 7aac3af3e86c6291 cbe805f54245e963",
        "simhash": "8c02f69673426f36",
        "shingle": (
            "f0d1ff7e8111ebde 69005eec859e28c9 160418f97779d987 b2aa8e3754576524 a97a752a39bd145a 0f8fa05d950fb6c8 "
            "be9195447257dbfc 3d34650478652578 decc82da0410851a 717c566760e5c712 d45a40bba5512eb5 c3d42ce06786abef"
        ),
        "counts": [76, 74, 4],
        "codes": "8a0f4c061d4e2e3ebc1505e3f659412fb69a1222",
        "figures": "0d4b59e79c10fdd7",
    },
}


def values(text: str) -> dict[str, Any]:
    """Return everything that is stored of a text's content."""
    document = Document(text=text)
    made = sketch_of(text)
    detectors = [Exact(), IMatch(builtin(), 3), SimHash(3), Shingle()]
    return {
        **{detector.name: told(detector, document) for detector in detectors},
        "counts": [made.tokens, made.shingles, made.figures],
        "codes": hashlib.sha1(made.codes).hexdigest(),
        "figures": made.figure_sample.hex(),
    }


def told(detector: Detector, document: Document) -> list[str]:
    """Return the fingerprints of a document that are stored, for an index as keys: without what made them keys."""
    made = detector.fingerprints(document)
    if detector.name != "simhash":
        made = tuple(value * pow(int(MULTIPLIER), -1, 1 << 64) & MASK ^ salt(detector.name) for value in made)
    return [f"{value:016x}" for value in made]


def golden(language: str) -> dict[str, Any]:
    """Return the expected outcome of `values`, with a list for each detector."""
    names = ("exact", "imatch", "simhash", "shingle")
    return {name: each.split() if name in names else each for name, each in GOLDEN[language].items()}


RECORD = {
    "url": "http://town.example/lighthouse", "title": "The lighthouse", "text": ENGLISH, "day": "3 May", "steps": 212,
    "price": 12.50, "isbn": "978-3-16", "place": {"town": "Harbour"}, "tags": ["tower", "lamp"], "map": "/map?zoom=1",
}  # fmt: skip


def test_golden_record() -> None:
    """Its facts and the fingerprint of the whole record are stored too."""
    document = item_document(RECORD, Config())
    assert document
    assert document.facts.hex(" ", 5) == "02a148c20d 2eb9af35fd 5140531efe 591d440de6 649990f95b a9e344416b d2daedfd65"
    assert told(Exact(), document) == [GOLDEN["english"]["exact"], "1343285601dc2f11"]


def test_golden_schemes() -> None:
    """They change together with the golden values, and only then."""
    schemes = [SKETCH, Exact.scheme, SimHash.scheme, Shingle.scheme, IMatch(builtin(), 3).scheme]
    assert schemes == ["sketch/2", "exact/4", "simhash/1", "shingle/1 12x2", f"imatch/2 {builtin().id} 3"]
    assert builtin().id == "53772140b0ad8282"


@pytest.mark.parametrize(("language", "text"), [("english", ENGLISH), ("chinese", CHINESE)], ids=["english", "chinese"])
def test_golden_values(language: str, text: str) -> None:
    assert values(text) == golden(language)


def made_texts() -> Iterator[str]:
    """Yield texts of all lengths and scripts, with words that come often, figures, what is invisible."""
    source = random.Random(7)
    parts = [*ENGLISH.split(), *re.split("(?<=[,。])", CHINESE), "“naïve”", "don’t", "…", "½", "ＡＢＣ１２", "Привет,"]
    parts += ["\u200b", "湿\u200b地", "e\u0301", "ΣΟΦΟΣ", "ポスター", "ภาษา", "👍🏽", "\t", "\n", "\u3000", "㈠"]
    parts += ["7.5%", "a_b", "豈", "\x00"]
    for size in (*range(40), *range(50, 2000, 130), 60_000):
        yield source.choice(["", " "]).join(source.choices(parts, [1 / (1 + n) for n in range(len(parts))], k=size))
        yield " ".join(source.choices(parts, k=size))


def test_golden_values_of_many_texts() -> None:
    found = json.dumps([values(text) for text in made_texts()])
    assert hashlib.sha1(found.encode()).hexdigest() == "3c378438697f09dc30a83841fa05993ff8e1ab8e"
