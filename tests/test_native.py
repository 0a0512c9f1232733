"""The compiled part and its equivalents in Python: equal results for any input, and no reads beyond its end."""

from __future__ import annotations

import random
import shutil
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scrapy_neardup import native
from scrapy_neardup.document import Document
from scrapy_neardup.fingerprints.hashes import Terms, hash_tokens
from scrapy_neardup.fingerprints.record import Decoded, Source, Wanted, make, overlap
from scrapy_neardup.text.tokens import _RUNS, _foreign, tokenize, word_lines

compiled = native.compiled
COMPILER = (sysconfig.get_config_var("CC") or "").partition(" ")[0]
CAN_BE_BUILT = shutil.which(COMPILER) and Path(sysconfig.get_path("include"), "Python.h").exists()
pytestmark = pytest.mark.skipif(not (compiled or CAN_BE_BUILT), reason="there is no compiler")

SPACES = "".join(c for c in map(chr, range(1 << 16)) if c.isspace())
TEXTS = st.text(st.sampled_from(f"{SPACES} \n.!?。！？aZ09:_\0\x7f¡éÉßσΣİ汉字㐀\u180e\u200b\ud800👍") | st.characters())
MANY = "one two 3 two. Three! " * 50_000  # about 1 MB


def test_compiled_part_was_built() -> None:
    assert compiled, "python setup.py build_ext --inplace says what went wrong"


def both(make: Callable[..., Any], *given: Any) -> tuple[Any, Any]:
    """Return what a function gives with the compiled part and without it."""
    assert compiled
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", None)
        slow = make(*given)
    return make(*given), slow


def assert_equal(make: Callable[..., Any], *given: Any) -> Any:
    """Assert that a function gives the same with and without the compiled part, types and shapes included."""
    fast, slow = both(make, *given)
    for one, other in zip(fast, slow, strict=True) if isinstance(fast, tuple) else [(fast, slow)]:
        if isinstance(one, np.ndarray):
            assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
        else:
            assert one == other
            assert type(one) is type(other)
    return fast


def lexicon_of(document: Document) -> Terms:
    """Return a lexicon with half of the words of a text, and words that it has not."""
    return Terms(np.concatenate([document.hashes[::2, 0], hash_tokens(["other", "words"])[:, 0]]))


def values_of(text: str, facts: bytes = b"fact", layout: int = 2**64 - 1) -> tuple[object, ...]:
    """Return all that is made of a text."""
    document = Document("http://site.example/", text, facts=facts, layout=layout)
    terms = lexicon_of(document)
    wanted = [
        Wanted(),
        Wanted(exact=True),
        Wanted(simhash=True, digests=1, terms=terms),
        Wanted(shingle=True, digests=1),
        Wanted(exact=True, simhash=True, shingle=True, digests=65, terms=terms),
    ]
    sources = [document.source, Source(document.lines), document.source._replace(home=b"")]
    return (document.lines, document.hashes, *(record for each in wanted for record in make(sources, each)))


@settings(max_examples=25, deadline=None)
@given(TEXTS)
@example("Don't pay €3.14")
@example("我用Python3写代码")
@example("ÉCOLE\u2028№ 5")
@example("")
@example("one")
@example("the the the the")
@example("\ud800 \0 a\0b")
@example("a" * 200)
@example("Ａ１ Ⅷ ½ ²")
@example(" ".join(f"word{n}" for n in range(60)))  # enough terms for I-Match
def test_compiled_and_python_values_of_any_text_are_equal(text: str) -> None:
    assert_equal(values_of, text)


@pytest.mark.parametrize(
    "first", [0x80, 0x300, 0x600, 0x1000, 0x1800, 0x2000, 0x3000, 0xF900, 0xFE00, 0x1F300, 0xE0000]
)
def test_each_character_among_chinese(first: int) -> None:
    for character in map(chr, range(first, first + 0x200)):
        assert_equal(tokenize, f"汉{character}字 {character}a")
        assert_equal(tokenize, f"b{character}a")


@settings(deadline=None)
@given(TEXTS)
@example("汉字 é 字")
def test_compiled_and_python_part_find_the_same_foreign_characters(text: str) -> None:
    fast, slow = both(_foreign, text)
    assert [len(fast), *sorted(fast - set(_RUNS.findall("".join(fast))))] == [len(slow), *sorted(slow - {"一"})]


@settings(deadline=None)
@given(st.binary())
def test_text_with_any_separators_is_split_into_its_words(data: bytes) -> None:
    wanted = Wanted(exact=True, simhash=True)
    assert make([Source(data)], wanted) == make([Source(word_lines(data))], wanted)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.binary(max_size=40)), st.binary(max_size=30), st.integers(0, 2**64 - 1))
def test_records_of_any_bytes(texts: list[bytes], facts: bytes, layout: int) -> None:
    wanted = Wanted(exact=True, simhash=True, shingle=True, digests=3, terms=Terms(hash_tokens(["a", "b"])[:, 0]))
    assert_equal(make, [Source(word_lines(text), b"site", facts, layout) for text in texts], wanted)


def test_words_that_come_often_and_texts_of_any_length() -> None:
    source = random.Random(1)
    texts = [" ".join(source.choices("abcdefgh0123", k=size)) for size in (*range(30), 255, 256, 257, 70_000)]
    assert_equal(
        make, [Source(word_lines(text.encode())) for text in texts], Wanted(exact=True, simhash=True, shingle=True)
    )


def test_figures_are_sampled_by_value() -> None:
    for count in (1, 15, 16, 17, 5000):
        [record] = assert_equal(make, [Source("\n".join(map(str, range(count))).encode())], Wanted())
        head = Decoded(record).head
        assert head.figures == len({hash_tokens([str(n)])[0, 0] >> np.uint64(48) for n in range(count)})
        assert head.sampled == min(head.figures, 16)


@settings(deadline=None)
@given(st.lists(st.binary(max_size=512), min_size=2, max_size=5), st.integers(0, 512))
def test_overlap_of_any_codes(some: list[bytes], shared: int) -> None:
    """The first `shared` codes of all but the second sketch are equal, so they are form."""
    one, other, *others = (each.ljust(512, b"\0") for each in some)
    joined = b"".join(one[:shared] + each[shared:] for each in others)
    assert_equal(overlap, one, other, joined)
    assert assert_equal(overlap, one, other, joined + other) == overlap(one, other, joined)  # a twin is no form


def test_other_threads_run_while_records_are_made() -> None:
    """A thread counts on while a long text is signed, however short the turns of a thread."""
    counted: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make, [Source(MANY.encode())] * 20, Wanted(shingle=True))
        while not made.done():
            counted.append(1)
    assert len(counted) > 1000


@settings(deadline=None)
@given(st.binary() | TEXTS.map(lambda text: text.encode(errors="replace")), st.integers(0, 2**32))
def test_no_tables_lead_beyond_their_ends(text: bytes, seed: int) -> None:
    """All characters stay, in their order, whatever bytes come as the tables; of a full one too an end is found."""
    assert compiled
    source = np.random.default_rng(seed)
    words, model = (source.integers(0, 2**64, len(table) // 8, np.uint64) for table in (WORDS, MODEL))
    words[::2] &= np.uint64(2**24 + 3)
    text += "一二三四五六七八九十".encode() * 9
    with np.errstate(all="ignore"):
        made = compiled.cut(text, words.tobytes(), model[:100].tobytes(), model.tobytes())
    assert made.replace(b"\n", b"") == text.replace(b"\n", b"")


def test_memory_that_is_not_aligned() -> None:
    assert compiled
    terms = Terms(hash_tokens(["one", "two"])[:, 0])
    shifted = [memoryview(b"x" + each.tobytes())[1:] for each in (terms.hashes, terms.starts)]
    sources = [Source(b"one two three four five six seven eight nine")]
    assert compiled.sign(sources, *shifted, 1, 7) == compiled.sign(sources, terms.hashes, terms.starts, 1, 7)


def test_starts_that_lead_beyond_the_terms_are_no_harm() -> None:
    assert compiled
    sources = [Source(MANY.encode())]
    expected = compiled.sign(sources, b"", bytes(4 * (2**15 + 1)), 1, 7)
    assert compiled.sign(sources, b"", bytes([0, 0, 0, 0]) + b"\xff" * 4 * 2**15, 1, 7) == expected


ROWS, STARTS = bytes(32), bytes(4 * (2**15 + 1))
HAN = 0x9FD5 - 0x4E00 + 1
WORDS = bytes(8 * (HAN + 2**9))
MODEL = bytes(8 * (4 + 16 + 4 * HAN))
BAD: list[tuple[str, tuple[Any, ...]]] = [
    ("overlap", (bytes(512), ROWS, b"")),
    ("overlap", (ROWS, bytes(512), b"")),
    ("overlap", (bytes(512), bytes(512), ROWS)),
    ("find", (ROWS, ROWS, [[b"", 1, None, 0]], 1)),
    ("sign", ([], ROWS[:-1], STARTS, 0, 0)),
    ("sign", ([], ROWS, STARTS[:-4], 0, 0)),
    ("sign", ([], ROWS, STARTS + bytes(1), 0, 0)),
    ("sign", ([], ROWS, b"", 0, 0)),
    ("sign", ([], ROWS, bytes(4), 0, 0)),
    ("sign", ([], ROWS, STARTS, 66, 0)),
    ("sign", ([], ROWS, STARTS, -1, 0)),
    ("cut", (b"", ROWS, ROWS, ROWS)),
    ("cut", (b"", WORDS[:-8], ROWS, MODEL)),
    ("cut", (b"", WORDS + ROWS, ROWS, MODEL)),
    ("cut", (b"", WORDS[:-1], ROWS, MODEL)),
    ("cut", (b"", WORDS, ROWS[:8], MODEL)),
    ("cut", (b"", WORDS, ROWS, MODEL[:-8])),
    ("dictionary", (b"", 0)),
    ("dictionary", (b"", 25)),
    ("dictionary", (b"\n", 9)),
    ("dictionary", ("一二".encode(), 9)),
    ("dictionary", ("一二 -1 n".encode(), 9)),
    ("dictionary", ("一二 16777216".encode(), 9)),
    ("dictionary", ("一二三四 1".encode(), 1)),
]


@pytest.mark.parametrize(("name", "given"), BAD, ids=[name for name, _ in BAD])
def test_what_does_not_fit_is_refused(name: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"."):
        getattr(compiled, name)(*given)


@pytest.mark.parametrize("given", ["text", None, 3])
def test_what_is_no_memory_is_refused(given: Any) -> None:
    with pytest.raises(TypeError):
        compiled.overlap(given, given, b"")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "given", [(), [()], [5], [(b"", b"", b"")], [("", b"", b"", 0)], [(b"", b"", b"", "0")], [(b"", b"", b"", 0, 0)]]
)
def test_what_is_no_source_is_refused(given: Any) -> None:
    with pytest.raises(TypeError):
        compiled.sign(given, b"", STARTS, 0, 0)  # type: ignore[union-attr]
