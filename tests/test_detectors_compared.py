"""Detectors beside each other, on copies of the kinds that their papers tell of; unverified, proposals are taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scrapy_neardup.document import Document
from scrapy_neardup.quality import Outcome, decide
from scrapy_neardup.settings import Config
from scrapy_neardup.text.tokens import tokenize


class Story(NamedTuple):
    """A text made for this test, and words in it that another word can stand for."""

    paragraphs: list[str]
    synonyms: dict[str, str]

    @property
    def text(self) -> str:
        return "\n\n".join(self.paragraphs)


ENGLISH = Story(
    [
        """The ferry across the estuary stopped at midnight on Sunday, after a hundred and forty years in which it had
failed only twice. About two hundred villagers stood on the quay with lanterns to see the last boat come in. The
captain, who had steered it since he was a young man, blew the whistle three times and handed the rope to his
granddaughter. The villagers sang until the lamps on the far shore went out.""",
        """From this week all traffic takes the new bridge, two miles upstream. The bridge has four lanes, a path for
bicycles and a toll that the county wants to abolish when the debt is paid. Engineers spent six winters on its pillars,
because the bottom of the estuary is mud to a depth that no drill had reached before. In the third winter ice carried
away the scaffold, and a crane lies under the water to this day.""",
        """Fishermen doubt that the bridge will do them any good. Their market stands beside the old quay, and the
customers who bought herring and crabs while they waited for the boat now drive past without stopping. The fishermen
have asked for a bus that leaves the road at the market, and for a sign that can be read at the speed at which people
drive. The county has promised the sign.""",
        """The captain has another plan. He wants to keep the boat as a museum, with the engine in working order, the
kitchen as a small restaurant, and lessons for children in how to read a chart, tie a knot and find the north by the
stars. A foundation in the capital offered to pay for the new paint if the villagers raise the money for a licence.
So far they have collected about half of it, mostly in coins, in a milk can that stands in the bakery.""",
        """Whether the museum will open next spring depends on the insurance. The company wants a second exit from the
engine room, which would have to be cut through a bulkhead of riveted steel. A retired welder who lives behind the
church has looked at the bulkhead and says that he can do it in a month, given dry weather and a helper who does not
talk. The granddaughter of the captain has offered to hold the lamp.""",
    ],
    {
        "villagers": "townsfolk",
        "boat": "vessel",
        "bridge": "viaduct",
        "captain": "skipper",
        "museum": "gallery",
        "fishermen": "trawlermen",
        "market": "bazaar",
        "lamp": "lantern",
    },
)
CHINESE = Story(
    [
        """南塘镇的旧书市场上周末重新开门,三十多家书店把箱子搬进了运河边的长廊。去年夏天的大水淹没了原来的仓库,
近四万册图书泡在泥里,只有放在阁楼上的线装书幸免于难。镇政府腾出废弃的粮站,请木匠做了新的书架,
读者这才有了可以坐下来翻书的地方。开门那天下着小雨,排队的读者一直站到了石桥对面。""",
        """市场里年纪最大的老板今年八十一岁,他从十六岁起就在船上卖书,沿着运河一个码头一个码头地走。
他说,那时候的农民用鸡蛋和大米换历书,教师用旧课本换小说。后来公路修通了,书船没有了生意,
老板们才上岸租房子。水灾以后,他把泡坏的图书一页一页晾干,三个月只救回来两百多册,其中有一部手抄的药方。""",
        """年轻的店主想的是另外的事情。他们在仓库的二楼搭了舞台,每个星期六请作家来朗读,晚上还放老电影。
学生凭证件可以把图书借回家,看完再还,不收押金。有人担心图书会丢,店主们却算过账:
半年里借出去一千多册,没有还回来的不到二十册,而且借书的学生里有不少人后来成了顾客。""",
        """问题在于租金。粮站的合同只有三年,期满以后,开发商打算在这里盖一座宾馆。镇长表示,市场可以搬到火车站旁边的
新商场去,可是老板们不愿意离开运河。他们找来律师,又请大学的建筑专家给粮站的木梁拍照、测量,
希望把这座房子列入保护名单。专家认为,屋顶的结构在附近几个县里都找不到第二座。""",
        """眼下最忙的是修补古籍的工作室。两位姑娘从省图书馆学成归来,每天戴着口罩,用毛笔和糨糊对付虫洞。
她们估计,光是水灾中抢救出来的县志和家谱就要修补五年。工作室的门总是开着,孩子们趴在窗台上看,
有时候也帮忙裁纸。其中一个男孩说,他长大以后不想当老板,想当给图书治病的医生。""",
    ],
    {
        "读者": "看客",
        "老板": "掌柜",
        "图书": "书籍",
        "仓库": "库房",
        "学生": "学子",
        "运河": "河道",
        "店主": "店家",
        "市场": "集市",
        "水灾": "洪灾",
    },
)
STORIES = pytest.mark.parametrize("story", [ENGLISH, CHINESE], ids=["english", "chinese"])


def decided(one: str, two: str, *, verified: bool = False, **settings: Any) -> Outcome:
    """Decide of two documents, one after the other."""
    documents = [Document(text=text) for text in (one, two)]
    return decide(enumerate(documents), Config(**settings), verified=verified)


def same(one: str, two: str, *, verified: bool = False, **settings: Any) -> bool:
    """Return whether the second text is called a duplicate of the first."""
    return len(decided(one, two, verified=verified, **settings).clusters) == 1


@STORIES
def test_stories_are_of_some_length(story: Story) -> None:
    assert 300 <= len(tokenize(story.text)) <= 600


@STORIES
@pytest.mark.parametrize("first", [1, 2, 3, 4])
def test_moved_paragraphs_are_found_by_imatch_and_not_by_feature_code(story: Story, first: int) -> None:
    """彭渊 et al., section 3.1.2: the first stop has another neighbourhood now, while the set of terms is the same."""
    moved = "\n\n".join(story.paragraphs[first:] + story.paragraphs[:first])
    assert same(story.text, story.text, detectors=["feature_code"])  # it does not abstain
    for one, two in ((story.text, moved), (moved, story.text)):
        assert same(one, two, detectors=["imatch"])
        assert not same(one, two, detectors=["feature_code"])
        assert decided(one, two, detectors=["feature_code"]).candidates == 0


@STORIES
def test_cut_copy_is_told_apart_by_its_length_only(story: Story) -> None:
    """彭渊 et al., sections 3.1.1 and 3.2: what is cut off lies behind the code; the lengths are 5 : 4 or so."""
    cut = "\n\n".join(story.paragraphs[:4])
    assert same(story.text, cut, detectors=["feature_code"])
    assert len(tokenize(story.text)) > 1.10 * len(tokenize(cut))
    for ratio, expected in ((1.10, False), (float("inf"), True)):
        settings = {"detectors": ["feature_code"], "length_ratio": ratio}
        assert same(story.text, cut, verified=True, **settings) is expected
        assert same(cut, story.text, verified=True, **settings) is expected


@STORIES
def test_copy_with_a_line_less_is_the_same_at_a_ratio_of_1_10(story: Story) -> None:
    settings = {"detectors": ["feature_code"], "length_ratio": 1.10}
    assert same(story.text, story.text[:-30], verified=True, **settings)


@STORIES
def test_replaced_synonyms_are_found_by_dwdcs_and_not_by_dwswn(story: Story, tmp_path: Path) -> None:
    """曹玉娟 et al. 2011, section 3.2.1: words are other words in the copy, concepts are the same."""
    pytest.importorskip("snowballstemmer")
    pytest.importorskip("stopwordsiso")
    path = tmp_path / "synonyms.tsv"
    path.write_text("".join(f"{word}\t{other}\n" for word, other in story.synonyms.items()), encoding="utf-8")
    rewritten = story.text
    for word, other in story.synonyms.items():
        rewritten = rewritten.replace(word, other)
    for one, two in ((story.text, rewritten), (rewritten, story.text)):
        assert same(one, two, detectors=[{"name": "dwdcs", "synonyms": [str(path)]}])
        assert not same(one, two, detectors=["dwswn"])
        assert same(one, one, detectors=["dwswn"])  # it does not abstain
