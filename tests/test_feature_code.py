"""Feature codes against values worked by hand and the cases of Peng et al., the index against a search of all codes."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from helpers import Entry

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.detectors import Detector, IMatch
from scrapy_neardup.fingerprints.lexicon import builtin
from scrapy_neardup.papers.feature_code import CodeIndex, FeatureCode, common_subsequence, feature_code, pack, unpack
from scrapy_neardup.row_index import Equal, Near
from scrapy_neardup.text.tokens import tokenize

# Codes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("县政府拆除旧仓库。改建湿地公园。", "拆除旧仓库改建湿地公"),  # the second has nothing behind it
        ("县政府拆除“旧仓库”。\n\n 改建,湿地公园", "拆除旧仓库改建湿地公"),  # punctuation and spaces are passed over
        ("仓库。县政府拆除旧仓库。改建湿地公园", "拆除旧仓库改建湿地公"),  # too little before the first
        ("拆除旧仓库。改建。湿地公园", "拆除旧仓库改建湿地公"),  # over a further stop
        ("投资2300万。5月3日动工了", "2300万5月3日动"),  # figures count
        ("拆除旧仓库!真的吗?改建湿地。公园很美丽", "吗改建湿地公园很美丽"),  # no full stops but the last
        ("拆除旧仓库...改建湿地公。园很美丽啊", "改建湿地公园很美丽啊"),  # three points are none
        ("拆除旧仓库.改建湿地公园", "拆除旧仓库改建湿地公"),  # a full-width point is that once normalized
        ("拆除旧𠀀𠀁库。改建湿地公园", "除旧𠀀𠀁库改建湿地公"),  # beyond the 16-bit plane
        ("古い倉庫をこわす。公園をつくります", "庫をこわす公園をつく"),
        # Of a script with spaces fifteen letters: three for one Han character.
        ("the council repairs the old tower. it was built long ago", "airstheoldtower" + "itwasbuiltlonga"),
        ('he called it "the old harbour tower." (it was built long ago)', "oldharbourtower" + "itwasbuiltlonga"),
        ("version 3.11 of example.com costs 4.50 crowns. it was built long ago", "mcosts450crowns" + "itwasbuiltlonga"),
        ("the old harbour tower... it was built in 1874. then it lost its lamp", "twasbuiltin1874" + "thenitlostitsla"),
        ("the council met mr. smith of the harbour office", "thecouncilmetmr" + "smithoftheharbo"),
    ],
)
def test_code_is_what_stands_around_the_first_full_stop(text: str, code: str) -> None:
    assert feature_code(text) == code


@pytest.mark.parametrize(
    "text",
    ["", "。", "没有句号的文章", "拆除旧仓。改建湿地公园", "拆除旧仓库。改建湿地",
     "no stop", "Too little. on either side", "。" * 9],
)  # fmt: skip
def test_no_code_without_a_stop_that_has_enough_on_both_sides(text: str) -> None:
    assert feature_code(text) == ""
    assert FeatureCode().fingerprints(Document(text=text)) == ()


def test_length_is_that_of_a_side() -> None:
    assert feature_code("拆除旧仓库。改建湿地公园", 2) == "仓库改建"
    assert feature_code("the old tower. it was built", 2) == "dtoweritwasb"


# Common subsequences


def test_common_subsequence_is_the_longest_that_trying_all_finds() -> None:
    rng = random.Random(1)
    for _ in range(100):
        a, b = ("".join(rng.choices("abc", k=rng.randrange(8))) for _ in range(2))
        shared = (set(combinations(a, k)) & set(combinations(b, k)) for k in range(8))
        assert common_subsequence(a, b) == max(k for k, found in enumerate(shared) if found)


# Packing


def test_two_code_points_in_an_integer() -> None:
    assert pack("abcd") == (0x61 << 32 | 0x62, 0x63 << 32 | 0x64)
    assert pack("\U0010ffff" * 2) == (0x10FFFF << 32 | 0x10FFFF,)


@pytest.mark.parametrize("code", ["", "ab", "𠀀仓", "仓库改建", "\uffee𠀀", "a𠀀库\U0010ffff", "拆除旧仓库改建湿地公"])
def test_packed_codes_are_unpacked_again(code: str) -> None:
    assert unpack(pack(code)) == code


def test_a_damaged_code_is_unpacked_to_another() -> None:
    assert unpack([2**64 - 1, 0x61]) == "\ufffd" * 2 + "\0a"


# The index


def found(index: CodeIndex[Entry], code: str) -> list[str]:
    return sorted(entry.name for entry in index.find(pack(code)))


@pytest.mark.parametrize("tolerance", range(4))
@pytest.mark.parametrize("alphabet", ["ab", "abcdef", "旧仓库改建湿地公园𠀀𠀁abc"])
def test_whatever_comes_and_goes_index_finds_what_trying_all_finds(tolerance: int, alphabet: str) -> None:
    rng = random.Random(f"{tolerance}{alphabet}")
    index: CodeIndex[Entry] = CodeIndex(tolerance)
    held: list[tuple[str, Entry]] = []
    centres = ["".join(rng.choices(alphabet, k=length)) for length in (10, 10, 10, 12, 8)]

    def near(code: str) -> str:
        """Lose some characters and put in others, as many."""
        characters = list(code)
        for _ in range(rng.randrange(tolerance + 2)):
            characters.pop(rng.randrange(len(characters)))
            characters.insert(rng.randint(0, len(characters)), rng.choice(alphabet))
        return "".join(characters)

    def trying_all(code: str) -> list[str]:
        alike = ((each, entry) for each, entry in held if len(each) == len(code))
        return sorted(entry.name for each, entry in alike if common_subsequence(code, each) >= len(code) - tolerance)

    for step in range(150):
        if held and rng.random() < 0.4:
            code, entry = held.pop(rng.randrange(len(held)))
            index.remove(pack(code), entry)
        else:
            held.append((near(rng.choice(centres)), Entry(str(step))))
            index.add(pack(held[-1][0]), held[-1][1])
        wanted = near(rng.choice(centres))
        assert found(index, wanted) == trying_all(wanted)


# The detector, and the cases of Peng et al.

PARAGRAPHS = [
    "县政府上周宣布,拆除河边的旧仓库,改建一座湿地公园。工程预计投资两千万元,明年五月动工,后年秋天完工。",
    "附近居民对此表示欢迎,但也担心施工期间的噪音和交通拥堵。环境保护部门的专家认为,芦苇和水生植物能够净化水质。",
    "公园建成后免费开放,旅游局将开通公共汽车线路,并在入口处设立自行车租赁点。学校可以组织学生前来观察候鸟。",
    "仓库建于上世纪五十年代,曾经存放粮食和棉花,铁路改道以后一直空置。部分老墙将作为纪念保留下来,供游客参观。",
]
CHINESE = "\n".join(PARAGRAPHS)
ENGLISH = """The council of the harbour town decided on Monday to repair the old lighthouse before winter. The tower
lost its lamp in a storm; since then the fishing boats have found their way by radio. The insurance paid most of it,
and the museum gave the rest. Visitors will climb the steps again from May, when the brass band plays on the pier."""


def agree(detector: Detector, one: str, two: str) -> bool:
    """Return whether a detector that holds a text proposes it for another."""
    held, asked = (detector.fingerprints(Document(text=text)) for text in (one, two))
    index = detector.index()
    if isinstance(index, Equal):
        return bool({*held} & {*asked})
    assert not isinstance(index, Near)
    index.add(held, one)
    return list(index.find(asked)) == [one]


def status(one: str, two: str, length_ratio: float) -> str:
    """Return what becomes of the second text, if a common code and the length ratio decide."""
    detectors = [FeatureCode()]
    with Deduplicator.open(detectors=detectors, length_ratio=length_ratio, resemblance=0, min_tokens=0) as dedup:
        dedup.claim(Document(text=one)).commit()
        return dedup.claim(Document(text=two)).verdict.status


def test_golden_fingerprints() -> None:
    """They change together with the scheme, and only then."""
    detector = FeatureCode()
    assert isinstance(detector, Detector)
    assert (detector.name, detector.scheme) == ("feature_code", "feature_code/3 5x3")
    assert detector.fingerprints(Document(text=CHINESE)) == pack("座湿地公园工程预计投")
    assert detector.fingerprints(Document(text=ENGLISH)) == pack("usebeforewinter" + "thetowerlostits")
    assert len(FeatureCode(length=4).fingerprints(Document(text=CHINESE))) == 4


def test_fingerprints_are_those_of_the_normalized_text() -> None:
    full_width = ENGLISH.replace("M", "\uff2d").replace(".", "\uff0e").upper()
    detector = FeatureCode()
    assert detector.fingerprints(Document(text=full_width)) == detector.fingerprints(Document(text=ENGLISH))
    assert detector.fingerprints(Document(text=CHINESE.replace("。", "\uff61"))) == pack("座湿地公园工程预计投")


@pytest.mark.parametrize("text", [CHINESE, ENGLISH])
def test_cut_copy_has_the_same_code_and_is_told_apart_by_its_length(text: str) -> None:
    """Section 3.1.1."""
    cut, nearly_all = text[: len(text) * 3 // 4], text[: len(text) * 97 // 100]
    assert agree(FeatureCode(), text, cut)
    assert status(text, cut, 2.5) == "duplicate"
    assert status(text, cut, 1.10) == "unique"
    assert status(text, nearly_all, 1.10) == "duplicate"


@pytest.mark.parametrize(("tokens", "expected"), [(100, "duplicate"), (110, "duplicate"), (111, "unique")])
def test_length_ratio_by_hand(tokens: int, expected: str) -> None:
    """Section 3.2: of L = 100 tokens and a = 1.10 may differ S = L (a − 1) = 10."""
    count = len(tokenize(ENGLISH))
    one, two = (f"{ENGLISH} {' '.join(f'more{n}' for n in range(size - count))}" for size in (100, tokens))
    assert status(one, two, 1.10) == status(two, one, 1.10) == expected


def test_copy_with_its_paragraphs_moved_has_another_code() -> None:
    """Section 3.1.2; a set of words is the same in any order."""
    moved = "\n".join([*PARAGRAPHS[2:], *PARAGRAPHS[:2]])
    assert not agree(FeatureCode(), CHINESE, moved)
    assert status(CHINESE, moved, 1.10) == "unique"
    assert agree(IMatch(builtin(), 3), CHINESE, moved)


@pytest.mark.parametrize(
    ("text", "before", "after", "tolerance"),
    [
        (CHINESE, "湿地公园。", "湿地公园。", 0),
        (CHINESE, "湿地公园。", "湿地公圆。", 1),  # a wrong character
        (CHINESE, "湿地公园。", "湿地园。", 1),  # one left out
        (CHINESE, "湿地公园。", "湿地的公园。", 1),  # one put in
        (CHINESE, "园。工程", "圆。工成", 2),
        (CHINESE, "园。工程", "。程", 2),
        (CHINESE, "公园。工程", "花圆。工成", 3),
        (CHINESE, "湿地公园。", "湿地公园,", 4),  # the stop was lost
        (ENGLISH, "winter. The", "wintre. Teh", 2),
        (ENGLISH, "winter. The tower", "summer. A light", 4),
    ],
)
def test_typing_errors_near_the_stop_are_tolerated(text: str, before: str, after: str, tolerance: int) -> None:
    copy = text.replace(before, after, 1)
    assert [agree(FeatureCode(tolerance=t), text, copy) for t in range(4)] == [t >= tolerance for t in range(4)]


@pytest.mark.parametrize("wrong", [{"length": 0}, {"tolerance": -1}])
def test_parameters_out_of_range_are_an_error(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        FeatureCode(**wrong)
