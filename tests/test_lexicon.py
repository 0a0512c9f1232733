"""Tests of fingerprints/lexicon.py: choosing terms, the id, the file format, and what the built-in lexicon covers."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from test_fingerprints import CHINESE, ENGLISH
from test_html_causes import JAPANESE
from test_subjects import EMPLOYER

from scrapy_neardup.fingerprints import lexicon as lexicon_module
from scrapy_neardup.fingerprints.lexicon import MAGIC, Lexicon, builtin, normalized_idf
from scrapy_neardup.text.tokens import tokenize

# Of 10,000 documents: normalized IDF 0, 0.25, 0.5, 0.75 and 1, as each tenth part of the documents is a quarter more.
FREQUENCIES = {"always": 10_000, "often": 1_000, "middle": 100, "rare": 10, "once": 1}
SMALL = Lexicon(frozenset({"银行", "bank", "market"}))
# The rule that the figures of the built-in lexicon were measured with.
MIN_TERMS, MIN_SHARE = 8, 0.05

FOREIGN = {"German": EMPLOYER, "Japanese": JAPANESE}


def found(text: str) -> tuple[int, float]:
    """Return how many distinct terms of the built-in lexicon a text has, and their share of its distinct tokens."""
    distinct = set(tokenize(text))
    terms = distinct & builtin().terms
    return len(terms), len(terms) / max(1, len(distinct))


@pytest.mark.parametrize(("count", "documents"), [(0, 10), (-1, 10), (11, 10), (1, 1), (1, 0)])
def test_normalized_idf_refuses_impossible_counts(count: int, documents: int) -> None:
    with pytest.raises(ValueError, match=f"{count} of {documents} documents"):
        normalized_idf(count, documents)


@pytest.mark.parametrize(
    ("low", "high", "terms"),
    [
        (0.25, 0.75, {"often", "middle", "rare"}),
        (0.26, 0.74, {"middle"}),
        (0, 1, {"always", "often", "middle", "rare"}),  # "once" is in too few documents
        (0.9, 1, set()),
    ],
)
def test_band_keeps_its_edges(low: float, high: float, terms: set[str]) -> None:
    assert Lexicon.from_frequencies(FREQUENCIES, 10_000, low, high).terms == terms
    assert Lexicon.from_frequencies({}, 0, low, high).terms == frozenset()


def test_id_is_of_the_terms_only() -> None:
    assert SMALL.id == "6b70d280579db9e6"  # printf 'bank\nmarket\n银行' | sha1sum
    assert Lexicon(SMALL.terms) == SMALL
    assert Lexicon(frozenset()).id == "da39a3ee5e6b4b0d"


def test_file_is_as_documented(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "small.txt")
    assert (tmp_path / "small.txt").read_bytes() == f"{MAGIC}\n# terms: 3\nbank\nmarket\n银行\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["small.txt"]


@pytest.mark.parametrize("name", ["lexicon.txt", "lexicon.txt.gz"])
@pytest.mark.parametrize("lexicon", [SMALL, Lexicon(frozenset()), Lexicon.from_frequencies(FREQUENCIES, 10_000, 0, 1)])
def test_a_saved_lexicon_loads_as_it_was(tmp_path: Path, name: str, lexicon: Lexicon) -> None:
    lexicon.save(str(tmp_path / name))
    loaded = Lexicon.load(str(tmp_path / name))
    assert (loaded, loaded.id) == (lexicon, lexicon.id)


def test_gzip_is_reproducible_and_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "small.gz"
    path.write_text("something else")
    SMALL.save(path)
    assert path.read_bytes()[4:8] == bytes(4)  # the time stamp
    assert gzip.decompress(path.read_bytes()).startswith(MAGIC.encode())


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", b""),
        ("a.txt", b"bank\nmarket\n"),
        ("a.txt", f"{MAGIC}0\nbank\n".encode()),
        ("a.txt", b"\xff\xfe"),
        ("a.txt", f"{MAGIC}\n# terms: 3\nbank\nmarket\n".encode()),
        ("a.txt", f"{MAGIC}\n# source: bank\n# terms: 2\n\nbank\nmarket\n".encode()),
        ("a.gz", b"bank"),
        ("b.gz", gzip.compress(MAGIC.encode(), mtime=0)[:-9]),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"{name}: no lexicon, which is UTF-8 text that begins with '{MAGIC}'"):
        Lexicon.load(tmp_path / name)


def test_builtin_has_the_middle_of_both_languages() -> None:
    expected = {"hospital", "railway", "currency", "insurance", "外交部", "医疗机构", "公共汽车", "礼品"}
    assert expected <= builtin().terms
    assert builtin().terms.isdisjoint({"the", "with", "government", "的", "我们", "公司", "发展"})
    assert builtin() is builtin()


def test_shipped_files_are_valid_and_english_is_the_list_that_stores_were_made_with() -> None:
    folder = Path(lexicon_module.__file__).parent / "lexicons"
    english, chinese = (Lexicon.load(folder / name) for name in ("en.txt.gz", "zh.txt.gz"))
    assert english.terms | chinese.terms == builtin().terms  # `builtin` does not check the files
    assert english.id == "281538257e7af175"
    assert (folder / "NOTICE.en").read_text("utf-8").count("Princeton University") > 1


def test_builtin_terms_are_tokens() -> None:
    han = {term for term in builtin().terms if not term.isascii()}
    assert all(len(term) > 1 for term in han)
    assert all(tokenize(term) == [term] for term in builtin().terms - han)
    assert 10_000 < len(han) < 20_000


@pytest.mark.parametrize("text", [ENGLISH, CHINESE])
def test_builtin_lexicon_covers_news(text: str) -> None:
    terms, share = found(text)
    assert terms >= MIN_TERMS
    assert share >= 2 * MIN_SHARE


@pytest.mark.parametrize("language", FOREIGN)
def test_share_tells_other_languages(language: str) -> None:
    _, share = found(FOREIGN[language])
    assert share < MIN_SHARE
