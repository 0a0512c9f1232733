"""Text to tokens, script by script; the same ones whichever segmenter of Chinese is installed."""

from __future__ import annotations

import warnings

import pytest

from scrapy_neardup.text.tokens import normalize, segmenter, tokenize

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


@pytest.mark.parametrize("text", CHINESE)
def test_jieba_and_rjieba_give_the_same_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rjieba = pytest.importorskip("rjieba")
    cut = segmenter()
    assert cut is rjieba.cut
    with_rjieba = tokenize(text)
    jieba.setLogLevel("WARNING")
    monkeypatch.setattr("scrapy_neardup.text.tokens.segmenter", lambda: jieba.lcut)
    assert tokenize(text) == with_rjieba
    assert len(with_rjieba) > 3
