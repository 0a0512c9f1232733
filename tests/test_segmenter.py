"""The compiled part splits Chinese text into the same words as jieba, which is used without the compiled part."""

from __future__ import annotations

import marshal
import os
import random
import re
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiers import slow

from scrapy_neardup import native
from scrapy_neardup.text import tokens
from scrapy_neardup.text.tokens import FIRST, LAST, Segmenter, by_jieba, load_tables, segmenter, tokenize, word_lines

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its source holds escapes that newer Pythons warn of
    import jieba

jieba.setLogLevel("WARNING")
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
ALL = [chr(number) for number in range(FIRST, LAST + 1)]
NAMES = [surname + name for surname in "张王李赵欧阳" for name in ("伟强", "晓梅", "璟雯", "鑫", "淼垚")]


@cache
def dictionary() -> list[str]:
    """Return the words of jieba, and what they begin with."""
    jieba.initialize()
    known = {*ALL}
    return [word for word in jieba.dt.FREQ if known.issuperset(word)]


def parts_of_runs() -> st.SearchStrategy[str]:
    return (
        st.sampled_from(dictionary())
        | st.sampled_from(NAMES)
        | st.sampled_from(ALL)
        | st.sampled_from("".join(CHINESE))
    )


RUNS = st.lists(st.deferred(parts_of_runs), min_size=1, max_size=40).map(
    lambda parts: re.sub(f"[^{ALL[0]}-{ALL[-1]}]", "", "".join(parts)) or "一"
)


def made(name: str) -> Segmenter:
    """Return one of the segmenters, each of which a test is to be run with."""
    if name == "jieba":
        return by_jieba()
    if native.compiled is None:
        pytest.skip("the compiled part was not built")
    return segmenter()


each = pytest.mark.parametrize("name", ["compiled", "jieba"])


def words_of(name: str, run: str) -> list[str]:
    return word_lines(made(name)(run.encode())).decode().split("\n")


@pytest.mark.parametrize(
    ("name", "examples"), [("compiled", 10), *slow(("jieba", 25), ("compiled", 500), ("jieba", 500))]
)
def test_a_run_is_cut_as_jieba_cuts_it(name: str, examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(RUNS)
    @example("一")
    @example("一一")
    @example("龥鿕")
    @example("江" * 5)  # two ways to cut it are equally likely
    @example("囧" * 1000)
    @example("的" * 1000)
    @example("中华人民共和国" * 300)
    def try_one(run: str) -> None:
        assert words_of(name, run) == jieba.lcut(run)

    try_one()


@pytest.mark.parametrize("name", ["compiled", *slow("jieba")])
@pytest.mark.parametrize("step", [20, *slow(1)])
def test_each_character_and_each_word_of_the_dictionary(name: str, step: int) -> None:
    source = random.Random(5)
    mixed = [*dictionary()[::7], *ALL, *ALL]
    source.shuffle(mixed)
    for parts in (ALL, mixed):
        for at in range(0, len(parts), 50 * step):
            run = "".join(parts[at : at + 50])
            assert words_of(name, run) == jieba.lcut(run)


@pytest.mark.slow
@each
@pytest.mark.parametrize("count", [12_000, *slow(120_000)])
def test_a_very_long_run(name: str, count: int) -> None:
    """The run has up to a megabyte."""
    run = "".join(random.Random(6).choices([word for word in dictionary() if len(word) > 1], k=count))
    assert words_of(name, run) == jieba.lcut(run)


@pytest.mark.parametrize("examples", [10, *slow(300)])
def test_any_text_has_the_same_words_with_each_segmenter(examples: int) -> None:
    parts = RUNS | st.characters() | st.sampled_from(CHINESE) | st.sampled_from("\u200b一，。 豈㈠")

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(parts).map("".join))
    @example("")
    @example("。".join(CHINESE * 8 * examples))
    def try_one(text: str) -> None:
        found = tokenize(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tokens, "segmenter", lambda: made("jieba"))
            assert tokenize(text) == found

    try_one()


def test_the_quickest_that_is_there_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    if native.compiled:
        assert segmenter() is not by_jieba()
    monkeypatch.setattr(native, "compiled", None)
    assert segmenter() is by_jieba()


def run(code: str, folder: Path) -> str:
    """Run a program in a new process, without the compiled part, and with this folder for temporary files."""
    code = f"from scrapy_neardup import native; native.compiled = None\n{code}"
    jieba_warns = "ignore:pkg_resources is deprecated"  # with some versions of setuptools
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONWARNINGS": jieba_warns}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


USE = "from scrapy_neardup.text.tokens import tokenize; print(*tokenize('乒乓球拍卖完了，Python写的'))"
WORDS_OF_USE = "乒乓球 拍卖 完 了 python 写 的\n"


@pytest.mark.slow
def test_jieba_is_quiet_and_leaves_no_file(tmp_path: Path) -> None:
    assert run(f"import logging; logging.basicConfig(level=0)\n{USE}", tmp_path) == WORDS_OF_USE
    assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_the_cache_and_the_words_of_others_change_nothing(tmp_path: Path) -> None:
    with (tmp_path / "jieba.cache").open("wb") as file:
        marshal.dump(({"乒乓": 9, "球拍": 9}, 18), file)
    added = "import jieba; jieba.setLogLevel(50); jieba.add_word('拍卖完'); jieba.add_word('乒乓球拍卖')"
    assert run(f"{added}\n{USE}", tmp_path) == WORDS_OF_USE


@pytest.mark.slow
def test_threads_that_cut_first_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = 8  # each of them loads the dictionary
    by_jieba.cache_clear()
    monkeypatch.setattr(native, "compiled", None)
    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(tokenize, ["".join(CHINESE)] * 4 * threads))
    monkeypatch.undo()
    assert found == [tokenize("".join(CHINESE))] * 4 * threads


@pytest.mark.slow
@pytest.mark.skipif(native.compiled is None, reason="the compiled part was not built")
def test_the_dictionary_holds_each_word_of_jieba_with_its_score() -> None:
    assert native.compiled
    words, table, _ = load_tables(native.compiled)
    says = np.frombuffer(words, np.uint64) & np.uint64((1 << 24) - 1)
    scores = Counter(np.frombuffer(table)[says[says > 1]].tolist())
    assert scores == Counter(
        log(jieba.dt.FREQ[word]) - log(jieba.dt.total) for word in dictionary() if jieba.dt.FREQ[word]
    )
    assert np.count_nonzero(says == 1) == sum(not jieba.dt.FREQ[word] for word in dictionary())
