"""Values of the commands' options, and global options, which count before the verb as well as after it."""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from cli import neardup, refused, succeeded, told
from helpers import text, write_rows
from tiers import slow

from scrapy_neardup import Config, Deduplicator, Document
from scrapy_neardup.commands.options import share, whole, with_fields
from scrapy_neardup.feeds import Warc
from scrapy_neardup.items import item_document

PROJECT = {
    "scrapy.cfg": "[settings]\ndefault = shop.settings\n",
    "shop/__init__.py": "",
    "shop/settings.py": "BOT_NAME = 'shop'\nNEARDUP_STORE = 'held.sqlite'\nNEARDUP_MIN_TOKENS = 5\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a feed of three rows, a store of them, and a project whose store it is."""
    urls = [f"http://a.example/{n}" for n in range(3)]
    write_rows(tmp_path / "in.jsonl", [{"url": url, "text": text(n)} for n, url in enumerate(urls)])
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for n, url in enumerate(urls):
            dedup.claim(Document(url, text(n))).commit()
    for name, content in PROJECT.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        "forget --host a.example",
        "doctor",
        *slow("stats", "stats --check", "dedupe in.jsonl -o out.jsonl", "import in.jsonl"),
    ],
)
@pytest.mark.parametrize("store", ["", *slow(" ")])
def test_an_empty_store_is_not_that_of_the_project(folder: Path, arguments: str, store: str) -> None:
    verb, *rest = arguments.split()
    wanted = f"scrapy neardup {verb}: argument --store: {store!r} is not allowed; allowed is a path, or redis://…\n"
    assert refused(folder, verb, *rest, "--store", store) == wanted
    assert told(folder, "stats")["documents"] == 3


# Global options


def test_settings_before_the_verb_count(tmp_path: Path, folder: Path) -> None:
    store = f"NEARDUP_STORE={folder / 'held.sqlite'}"
    for arguments in (("-s", store, "stats"), ("stats", "-s", store), ("-s", "NEARDUP_STORE=x", "stats", "-s", store)):
        assert told(folder, *arguments)["documents"] == 3
    assert "NEARDUP_NOSUCH is not a setting" in refused(folder, "-s", "NEARDUP_NOSUCH=1", "stats")


def test_settings_before_and_after_the_verb_add_up(folder: Path) -> None:
    wrong = ("-s", "NEARDUP_MIN_TOKENS=many")
    assert "NEARDUP_MIN_TOKENS" in refused(folder, *wrong, "stats", "-s", "NEARDUP_RESEMBLANCE=0.5")
    assert "NEARDUP_MIN_TOKENS" in refused(folder, "-s", "NEARDUP_RESEMBLANCE=0.5", "stats", *wrong)


@pytest.mark.parametrize("before", [True, False])
def test_other_global_options_count_before_and_after_the_verb(folder: Path, before: bool) -> None:
    given, verb = ["--pidfile", "pid", "--profile", "profile", "--logfile", "log", "-L", "INFO"], ["stats", "--json"]
    succeeded(folder, *(given + verb if before else verb + given))
    assert (folder / "pid").read_text().strip().isdigit()
    assert (folder / "profile").stat().st_size
    assert neardup(folder, *(["--pdb", "--nolog", *verb] if before else [*verb, "--pdb", "--nolog"])).returncode == 0


# Numbers


@pytest.mark.parametrize(
    ("read", "allowed", "given"),
    [
        *((whole, "a whole number from 0 up", each) for each in ("-1", "1.5", "nan", "inf", "", "9" * 5000)),
        *((share, "a number from 0 to 1", each) for each in ("-0.1", "1.01", "nan", "inf", "-inf", "", "1e400")),
    ],
)
def test_numbers_out_of_bounds(read: Callable[[str], float], allowed: str, given: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"allowed is {allowed}$"):
        read(given)


def test_numbers_within_bounds() -> None:
    assert [whole(given) for given in ("0", "7", "9" * 15)] == [0, 7, int("9" * 15)]
    assert [share(given) for given in ("0", "0.5", "1e-3", "1")] == [0, 0.5, 0.001, 1]


# Rows


@pytest.mark.parametrize("id_field", [None, "id", "sku", "number"])
def test_the_field_that_names_a_row_tells_no_rows_apart(id_field: str | None) -> None:
    config = with_fields(Config(), Namespace(text_field=None, url_field=None, id_field=id_field))
    items = [item_document({id_field or "id": number, "text": text(1)}, config) for number in (1, 2)]
    assert len({each.facts for each in items if each}) == (1 if id_field else 2)


def test_the_id_of_a_warc_record_tells_no_pages_apart() -> None:
    opts = Namespace(text_field=None, url_field=None, id_field=None)
    config = with_fields(Config(), opts, Warc)
    pages = [
        {"id": f"<urn:uuid:{n}>", "url": "http://a.example/", "date": f"2024-01-0{n}T09:00:00Z", "text": text(1)}
        for n in (1, 2)
    ]
    assert [each.facts for page in pages if (each := item_document(page, config))] == [b"", b""]
