"""Text to tokens, script by script; the same ones whichever segmenter of Chinese is installed."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrapy_neardup.text.segmenter import build_segmenter, segmenter
from scrapy_neardup.text.tokens import _HAN, _KNOWN, _MARKS, _UNSPACED, normalize, tokenize

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its source holds escapes that newer Pythons warn of
    import jieba

CHINESE = [
    "渔村的老人每天清晨都到码头上看船，雨天也不例外。",
    "图书馆新买了三千册图书，其中一半是给孩子们看的！",
    "他用手机拍下了整座城市的夜景，然后发给了远方的朋友",
    "研究生命起源的科学家认为，最早的细胞出现在深海的热泉附近。",
    "张伟强和李晓梅去年在哈尔滨结婚，婚礼只请了十几位亲友。",
    "乒乓球拍卖完了，店主说下周二才会有货。",
    "本市气象台于六月三日上午九时发布暴雨蓝色预警信号",
    "鬱鬱蔥蔥的樹林裡，傳來了一陣陣鳥鳴聲。",
    "囧囧有神，喵星人又双叒叕上头条了。",
]


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
        ("ｶﾞｷﾞｸﾞ", "ガギ ギグ"),
        ("我用Python3写代码", "我用 python3 写 代码"),
        ("Zürich苏黎世Цюрих", "zürich 苏黎世 цюрих"),
    ],
    ids=lambda value: value.split()[0][:8],
)
def test_words_of_each_script(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


@pytest.mark.parametrize("text", ["", " \n\t", "!?… —", "。，！", "_ __", "😀 👍🏽"])
def test_no_words(text: str) -> None:
    assert tokenize(text) == []


def test_one_or_two_characters_of_a_script_without_spaces_are_one_word() -> None:
    assert tokenize("の かな かなも") == ["の", "かな", "かな", "なも"]


def test_composed_and_decomposed_letters_are_one_word() -> None:
    assert tokenize("cafe\u0301 が") == tokenize("caf\u00e9 か\u3099") == ["café", "が"]


def test_ascii_words_are_the_same_beside_other_scripts() -> None:
    text = "It's 10:30, a_b c-d (e.g. x/y) #tag @me 50% [z]"
    assert tokenize(text + " é") == [*tokenize(text), "é"]


def test_line_breaks_and_layout_make_no_difference() -> None:
    assert tokenize("one two\r\n  three\u00a0four\u3000五六") == tokenize("one two three four 五六")


def test_normalize() -> None:
    assert normalize("ＡＢＣ Straße ﬁ ① Ω") == "abc straße fi 1 ω"
    assert normalize("ABC") == "abc"


def test_tokens_are_already_normal() -> None:
    tokens = [token for text in [*CHINESE, "ＡＢＣ Ünï İ ﬀ"] for token in tokenize(text)]
    assert [token for token in tokens if normalize(token) != token or not token.strip()] == []


def one_by_one(text: str) -> list[str]:
    """Return the words of a text that is made normal as a whole and cut run by run."""
    found: list[str] = []
    for run in re.findall(f"[{_HAN}]+|[{_UNSPACED}]+|(?:(?![_{_HAN}{_UNSPACED}])[\\w{_MARKS}])+", normalize(text)):
        if re.match(f"[{_HAN}]", run):
            for part in re.findall(f"[{_KNOWN}]+|.", run):
                found += segmenter()(part)
        elif re.match(f"[{_UNSPACED}]", run) and len(run) > 2:
            found += map("".join, pairwise(run))
        else:
            found.append(run)
    return found


def test_each_character_beside_letters_and_han_characters() -> None:
    for start in (*range(0, 0x3_2400, 64), *range(0xE_0000, 0xE_0200, 64)):  # none of the others is assigned
        characters = "".join(map(chr, range(start, start + 64)))
        for text in (" ".join(f"a{c}B" for c in characters), " ".join(f"汉{c}字{c}" for c in characters)):
            if tokenize(text) != one_by_one(text):
                assert [c for c in characters if tokenize(f"汉{c}字a{c}B") != one_by_one(f"汉{c}字a{c}B")] == []


jieba.setLogLevel("WARNING")
cut = build_segmenter()
SOME = "中国人民图书馆的了 \n，。“’…§½ab1Ａ_.Ωé㐀\u9ffe\u200b\u00ad\u0301\u3099\uf900ｶﾞΣσがの㈠각\u1161👍\ufe0f\ud800"


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from(SOME) | st.characters()))
def test_cutting_all_at_once_gives_the_words_of_each_run(text: str) -> None:
    assert tokenize(text) == one_by_one(text)


@pytest.mark.parametrize("text", CHINESE)
def test_jieba_and_rjieba_give_the_same_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rjieba = pytest.importorskip("rjieba")
    assert segmenter() is rjieba.cut
    with_rjieba = tokenize(text)
    monkeypatch.setattr("scrapy_neardup.text.tokens.segmenter", build_segmenter)
    assert tokenize(text) == with_rjieba
    assert len(with_rjieba) > 3


def test_each_han_character_that_jieba_does_not_know_is_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokenize("中国㐀㐁人民𠀀𠀁鿖") == ["中国", "㐀", "㐁", "人民", "𠀀", "𠀁", "鿖"]
    rjieba = pytest.importorskip("rjieba")
    han = [c for c in map(chr, range(0x3400, 0x4_0000)) if re.match(f"[{_HAN}]", c)]
    assert len(han) > 150_000
    texts = ["。".join(f"中国{c}人民{c}{c}x{c}的" for c in han[at : at + 64]) for at in range(0, len(han), 64)]
    found = []
    for segment in (rjieba.cut, cut):
        monkeypatch.setattr("scrapy_neardup.text.tokens.segmenter", lambda segment=segment: segment)
        found.append(list(map(tokenize, texts)))
    assert found[0] == found[1]


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.sampled_from("".join(CHINESE))
        | st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5)
        | st.sampled_from(" \n㐀")
    ).map("".join)
)
def test_cut_by_the_data_of_jieba_as_jieba_does(text: str) -> None:
    assert cut(text) == jieba.lcut(text)
