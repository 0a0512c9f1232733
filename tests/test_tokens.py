"""Text to tokens in each script. The tokens do not depend on the segmenter of Chinese that is installed."""

from __future__ import annotations

import re
from itertools import pairwise
from unicodedata import decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_segmenter import CHINESE
from tiers import slow

from scrapy_neardup.text.tokens import _HAN, _KNOWN, _UNSPACED, by_jieba, marks, normalize, segmenter, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The fox, the FOX; the well-known fox!", "the fox the fox the well known fox"),
        ("Don't pay €3.14", "don t pay 3 14"),
        ("snake_case and CamelCase", "snake case and camelcase"),
        ("naïve Café", "naïve café"),
        ("我们去公园散步。", "我们 去 公园 散步"),
        ("2024年1月5日", "2024 年 1 月 5 日"),
        ("東京タワーへ行きました", "東京 タワ ワー ーへ 行 きま まし した"),
        ("ภาษาไทย", "ภา าษ ษา าไ ไท ทย"),
        ("हिन्दी में लिखा है।", "हिन्दी में लिखा है"),
        ("한국어로 쓴 문장입니다.", "한국어로 쓴 문장입니다"),
        ("Привет, мир!", "привет мир"),
        ("مرحبا بالعالم، كيف الحال؟", "مرحبا بالعالم كيف الحال"),
        ("ＡＢＣ１２３　ｄｅｆ！", "abc123 def"),
        ("ارتفاع ۱۲۰ سانتی، ٣٫٥", "ارتفاع 120 سانتی 3 5"),
        ("१२ दिन รถ๑๒คัน", "12 दिन รถ 12 คั ัน"),
        ("ｶﾞｷﾞｸﾞ", "ガギ ギグ"),
        ("我用Python3写代码", "我用 python3 写 代码"),
        ("Zürich苏黎世Цюрих", "zürich 苏黎世 цюрих"),
        ("の かな かなも", "の かな かな なも"),
        ("cafe\u0301 か\u3099", "café が"),
        ("東京ﾀﾜｰ ﾊﾟﾝ", "東京 タワ ワー パン"),
        ("ｅ\u0301 Ａ中国１", "é a 中国 1"),
        ("ﾵￂ", "사"),
        ("one two\r\n  three\u00a0four\u3000五六", "one two three four 五六"),
        *((text, "") for text in ("", " \n\t", "!?… —", "。，！", "_ __", "😀 👍🏽")),
    ],
)
def test_words_of_each_script(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


def test_ascii_words_are_the_same_beside_other_scripts() -> None:
    text = "It's 10:30, a_b c-d (e.g. x/y) #tag @me 50% [z]"
    assert tokenize(text + " é") == [*tokenize(text), "é"]


def test_normalize_folds_width_case_and_ligatures() -> None:
    assert normalize("ＡＢＣ Straße ﬁ ① Ω") == "abc straße fi 1 ω"


def test_tokens_are_already_normal() -> None:
    tokens = [token for text in [*CHINESE, "ＡＢＣ Ünï İ ﬀ"] for token in tokenize(text)]
    assert [token for token in tokens if normalize(token) != token or not token.strip()] == []


INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180e\u180f\u200b\u200e\u200f\u202a\u202e\u2060\u2063\u2066\u2069\u206f"
    "\u3164\ufe00\ufe0e\ufe0f\ufeff\uffa0\ufff0\U0001bca0\U0001d173\U000e0001\U000e0061\U000e0100\U000e01ef"
)


@pytest.mark.parametrize(
    "text", ["word", "湿地", "a湿地。公园b", "مرحبا", "cafe\u0301", "ΣΟΦΟΣ", "かなも", "\u1112\u1161\u11ab"]
)
def test_invisible_characters_are_no_part_of_words(text: str) -> None:
    words = tokenize(text)
    assert [c for c in INVISIBLE if tokenize(c.join(["", *text, ""])) != words] == []


@pytest.mark.parametrize(
    ("written", "base"),
    [
        ("مـــرحبـا", "مرحبا"),  # with tatweel
        ("ﻣﺮﺣﺒﺎ", "مرحبا"),
        ("مـَرّ", "مَرّ"),
        ("مﹷرﹽ", "مَرّ"),  # vowel signs on tatweel
        ("ﻻ", "لا"),
        ("ﷴ", "محمد"),
    ],
)
def test_each_way_to_write_an_arabic_word(written: str, base: str) -> None:
    for around in ("", " ", "中国", "é"):
        assert tokenize(f"{around}{written}{around}") == tokenize(f"{around}{base}{around}")


def test_an_emoji_is_no_word_whichever_way_it_is_shown() -> None:
    assert tokenize("one ❤️ two 1️⃣ 👩‍💻") == tokenize("one ❤ two 1⃣ 👩💻")


ALL = pytest.mark.parametrize("all_of_them", [False, *slow(True)])


def one_by_one(text: str) -> list[str]:
    """Return the words of a text that is made normal as a whole and cut run by run."""
    found: list[str] = []
    normal = "".join(str(decimal(each)) if each.isdecimal() else each for each in normalize(text))
    for run in re.findall(f"[{_HAN}]+|[{_UNSPACED}]+|(?:(?![_{_HAN}{_UNSPACED}])[\\w{marks()}])+", normal):
        if re.match(f"[{_HAN}]", run):
            for part in re.findall(f"[{_KNOWN}]+|.", run):
                found += segmenter()(part.encode()).decode().split()
        elif re.match(f"[{_UNSPACED}]", run) and len(run) > 2:
            found += map("".join, pairwise(run))
        else:
            found.append(run)
    return found


SOME = "中国人民图书馆的了 \n，。“’…§½ab1Ａ_.Ωé㐀\u9ffe\u200b\u00ad\u0301\u3099\uf900ｶﾞΣσがの㈠각\u1161👍\ufe0f\ud800"
SOME += "๑٣م\u034f\u0640\ufe77"


@pytest.mark.parametrize("examples", [150, *slow(1000)])
def test_cutting_all_at_once_gives_the_words_of_each_run(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(st.text(st.sampled_from(SOME) | st.characters()))
    def try_one(text: str) -> None:
        assert tokenize(text) == one_by_one(text)

    try_one()


@pytest.mark.slow
@ALL
def test_each_han_character_that_jieba_does_not_know_is_a_word(
    monkeypatch: pytest.MonkeyPatch, all_of_them: bool
) -> None:
    assert tokenize("中国㐀㐁人民𠀀𠀁鿖") == ["中国", "㐀", "㐁", "人民", "𠀀", "𠀁", "鿖"]
    han = [c for c in map(chr, range(0x3400, 0x4_0000)) if re.match(f"[{_HAN}]", c)]
    assert len(han) > 150_000
    texts = ["。".join(f"中国{c}人民{c}{c}x{c}的" for c in han[at : at + 64]) for at in range(0, len(han), 64)]
    texts = texts[:: 1 if all_of_them else 20]
    found = []
    for segment in (segmenter(), by_jieba()):
        monkeypatch.setattr("scrapy_neardup.text.tokens.segmenter", lambda segment=segment: segment)
        found.append(list(map(tokenize, texts)))
    assert found[0] == found[1]
