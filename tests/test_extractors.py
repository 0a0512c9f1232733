"""The readers of pages: the built-in one, trafilatura, and a user's function."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from scrapy.settings import Settings

from scrapy_neardup import Document
from scrapy_neardup.settings import Config, ConfigError
from scrapy_neardup.text import html as extractors
from scrapy_neardup.text.html import html_to_page, read_page

SENTENCE = "The harbour master counted eleven boats that morning and wrote them down in a green book. "
PARAGRAPHS = [f"{number}. {SENTENCE * 3}".strip() for number in range(1, 6)]
ARTICLE = "".join(f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS)
TABLE = "<table><tr><th>Boat</th><th>Length</th></tr><tr><td>Marigold</td><td>12 m</td></tr></table>"
HTML = (
    "<!DOCTYPE html><html><head><title>Boats</title></head><body><nav><a href=/>Home</a></nav>"
    f"<article><h1>Boats</h1>{ARTICLE}{TABLE}</article><footer>All rights reserved.</footer></body></html>"
)


def own(html: str) -> str:
    return f"{len(html)} characters"


class Own:
    """A callable that can't be hashed."""

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, html: str) -> str:
        return own(html)


def test_builtin_is_the_default() -> None:
    assert read_page(HTML, "builtin") == html_to_page(HTML)
    assert Config().extractor == "builtin"
    assert Document.from_field(HTML).text == html_to_page(HTML).text


@pytest.mark.parametrize("extractor", [own, Own(), f"{__name__}.own"], ids=["function", "object", "import path"])
def test_own_extractor_gives_the_text_and_the_title_is_ours(extractor: object) -> None:
    config = Config(extractor=extractor)
    assert read_page(HTML, config.extractor)[:2] == ("Boats", f"{len(HTML)} characters")
    document = Document.from_field(HTML, url="http://a.example/", extractor=config.extractor)
    assert (document.title, document.text) == ("Boats", f"{len(HTML)} characters")


def test_own_extractor_is_not_asked_about_plain_text() -> None:
    assert Document.from_field("plain text", extractor=own).text == "plain text"


@pytest.mark.parametrize("nothing", [None, ""])
def test_own_extractor_that_finds_nothing_has_the_last_word(nothing: str | None) -> None:
    assert read_page(HTML, lambda html: nothing)[:2] == ("Boats", "")


def test_trafilatura_keeps_paragraphs_and_tables() -> None:
    pytest.importorskip("trafilatura")
    title, text = read_page(HTML, "trafilatura")[:2]
    assert title == "Boats"
    assert all(paragraph in text for paragraph in PARAGRAPHS)
    assert "Marigold" in text
    assert "All rights reserved" not in text


@pytest.mark.parametrize("html", ["", "<p>x", "<html><body></body></html>", "\ud800<p>text</p>", "<p>a\0b</p>"])
def test_builtin_reads_what_trafilatura_finds_nothing_in(html: str) -> None:
    pytest.importorskip("trafilatura")
    page = read_page(html, "trafilatura")
    assert page.title == html_to_page(html).title == ""
    assert bool(page.text) is bool(html_to_page(html).text)


def test_without_trafilatura_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    with pytest.raises(ConfigError, match=r"NEARDUP_EXTRACTOR = 'trafilatura' .* pip install 'scrapy-neardup\[traf"):
        Config.from_settings(Settings({"NEARDUP_EXTRACTOR": "trafilatura"}))


@pytest.mark.parametrize("bad", [Own, "tests.no_such.read", f"{__name__}.HTML", "builtin.", object()])
def test_bad_value_is_refused_at_start(bad: object) -> None:
    with pytest.raises(ConfigError, match=r"NEARDUP_EXTRACTOR = .* allowed is 'builtin', 'trafilatura'"):
        Config(extractor=bad)


@pytest.mark.parametrize("code", ["def read(html)", "raise RuntimeError('broken')", "import no_such_library"])
def test_a_module_that_is_broken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    (tmp_path / "broken_module.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match=r"NEARDUP_EXTRACTOR = 'broken_module\.read'"):
        Config(extractor="broken_module.read")


def test_own_extractor_that_fails_is_named() -> None:
    def bad(html: str) -> str:
        raise KeyError("section")

    with pytest.raises(extractors.ExtractorError, match=r"bad failed on a page: KeyError\('section'\)"):
        read_page(HTML, bad)
    with pytest.raises(extractors.ExtractorError, match="returned int; allowed is str or None"):
        read_page(HTML, len)  # type: ignore[arg-type]
