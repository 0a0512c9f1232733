"""Siblings, pages of one form with a subject of their own, are kept; copies of them are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from helpers import edited, named, python, text, words
from store_kinds import Place

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.facts import Kind, pack
from scrapy_neardup.fingerprints.hashes import hash_text
from scrapy_neardup.items import item_document
from scrapy_neardup.matching import siblings
from scrapy_neardup.matching.siblings import Siblings, differing_words, required_own, title_words
from scrapy_neardup.settings import Config

A, B = "http://a.example", "http://b.example"
SUBJECT = "lacks the subject of the title"
THIN = "the text is thin"
NAME = "differ in a name"
OWN = "rare on its site"
PASSAGE = "has a passage that the other lacks"


def claimed(dedup: Deduplicator, *documents: Document) -> list[str]:
    """Claim and commit one after another; return the statuses."""
    statuses = []
    for document in documents:
        claim = dedup.claim(document)
        claim.commit()
        statuses.append(claim.verdict.status)
    return statuses


def verdict(earlier: Document, later: Document, site: Iterable[Document] = ()) -> str:
    """Claim an earlier document, those of a site and a later one; return why the last is kept, or `copy`."""
    dedup = Deduplicator.open()
    first = dedup.claim(earlier)
    claimed(dedup, *site)
    why = dedup.matcher.why_siblings(later, dedup.sign(later), first.signature)
    last = dedup.claim(later).verdict
    assert (last.status, last.duplicate_of) == (("unique", None) if why else ("duplicate", earlier.url))
    return why or "copy"


def form_page(number: int, host: str = A, title: str | None = None) -> Document:
    """Make a page of a form: 150 words, a name of four words in fifteen places, a word in each."""
    name = words(4, 1000 + number)
    parts = words(150, 7)
    for place in range(15):
        parts[5 + 10 * place] = name[place % 4]
    return Document(f"{host}/{number}", " ".join(parts), " ".join(name) + " - Library" if title is None else title)


# Evidence: a subject that the earlier text lacks


def subject_text(count: int) -> str:
    """Return 400 words; the word that only the later title has stands in so many of twenty places."""
    parts = words(400, 1)
    for place in range(20):
        parts[10 + 19 * place] = "zeppelin" if place < count else f"balloon{place}"
    return " ".join(parts)


@pytest.mark.parametrize(
    ("there", "titles", "expected"),
    [
        (0, ("Balloons", "Zeppelin"), SUBJECT),
        (8, ("Balloons", "Zeppelin"), SUBJECT),
        (9, ("Balloons", "Zeppelin"), "copy"),
        (20, ("Balloons", "Zeppelin"), "copy"),
        (0, ("The Zeppelin of balloons", "Zeppelin"), "copy"),
        (0, ("", "Zeppelin"), "copy"),
        (0, ("Balloons", ""), "copy"),
        (0, ("Balloons", "Kites"), "copy"),  # its text says nothing of kites either
    ],
)
def test_subject_of_the_title_that_the_earlier_text_lacks(there: int, titles: tuple[str, str], expected: str) -> None:
    earlier = Document(f"{A}/1", subject_text(there), titles[0])
    assert expected in verdict(earlier, Document(f"{B}/1", subject_text(20), titles[1]))


@pytest.mark.parametrize(("place", "expected"), [(0, "copy"), (1, SUBJECT)])
def test_subject_that_one_shingle_is_known_of_shows_nothing(place: int, expected: str) -> None:
    later = text(1).split()
    later[place] = "zeppelin"
    copy = Document(f"{B}/1", " ".join(later), "Zeppelin")
    assert expected in verdict(Document(f"{A}/1", text(1), "Balloons"), copy)


# Evidence: titles of one form that differ in a name


@pytest.mark.parametrize(
    ("titles", "host", "expected"),
    [
        (("Red boots - Shop", "Blue boots - Shop"), A, NAME),
        (("Red boots - Shop", "Blue boots - Shop"), B, "copy"),
        (("Very dark red - Shop", "Blue - Shop"), A, NAME),
        (("Very very dark red - Shop", "Blue - Shop"), A, "copy"),
        (("Red - Shop", "Blue - Store"), A, "copy"),  # not of one form
        (("Boots - Shop", "Blue boots - Shop"), A, "copy"),
        (("Red boots - Shop", "Red boots - Shop"), A, "copy"),
        (("operator== - Shop", "operator!= - Shop"), A, NAME),
        (("", "Blue boots - Shop"), A, "copy"),
    ],
)
def test_titles_that_name_what_is_not_in_the_text(titles: tuple[str, str], host: str, expected: str) -> None:
    earlier, later = Document(f"{A}/1", text(1), titles[0]), Document(f"{host}/2", text(1), titles[1])
    assert expected in verdict(earlier, later)


@pytest.mark.parametrize(
    ("names", "named"),
    [
        (("red", "blue"), "red"),
        (("red", "blue"), "blue"),
        (("set_size", "get_size"), "get_size"),
        (("湖泊", "工厂"), "他们参观了工厂"),
    ],
)
def test_titles_that_name_what_is_in_the_text(names: tuple[str, str], named: str) -> None:
    earlier, later = (
        Document(f"{A}/{number}", f"{text(1)} {named}", f"{name} - Shop") for number, name in enumerate(names)
    )
    assert verdict(earlier, later) == "copy"


# Evidence: thin text under another title


@pytest.mark.parametrize(
    ("titles", "host", "thin", "expected"),
    [
        (("Boats", "Kites"), A, True, THIN),
        (("Boats", "Kites"), A, False, "copy"),
        (("Boats", "Kites"), B, True, "copy"),
        (("Boats", "BOATS"), A, True, "copy"),
        (("Boats", ""), A, True, "copy"),
        (("", "Kites"), A, True, "copy"),
    ],
)
def test_thin_text_under_another_title(titles: tuple[str, str], host: str, thin: bool, expected: str) -> None:
    later = Document(f"{host}/2", text(1), titles[1], thin=thin)
    assert expected in verdict(Document(f"{A}/1", text(1), titles[0]), later)


# Evidence: what is rare on the site

FORM = text(3, 100)


def own_page(number: int, host: str = B, title: str = "", changed: int = 0) -> Document:
    """Make a page of 100 words that are on every page of its site and 100 of its own, some of these changed."""
    return Document(f"{host}/{number}", f"{FORM} {edited(text(50 + number, 100), *range(1, 100, 4)[:changed])}", title)


@pytest.mark.parametrize(
    ("changed", "titles", "known", "expected"),
    [
        (0, ("", ""), 3, "copy"),
        (14, ("", ""), 3, "copy"),
        (20, ("", ""), 3, OWN),
        (20, ("Boats", "Boats"), 3, OWN),
        (20, ("", ""), 2, OWN),
        (20, ("", ""), 1, "copy"),  # one other page does not tell what is rare
        (14, ("Boats", "Boats"), 3, "copy"),
        (14, ("Boats", ""), 3, "copy"),
        (14, ("Boats", "Kites"), 3, OWN),
        (6, ("Boats", "Kites"), 3, OWN),
        (1, ("Boats", "Kites"), 3, "copy"),
        (0, ("Boats", "Kites"), 3, "copy"),
    ],
)
def test_rare_shingles_that_the_earlier_text_lacks(
    changed: int, titles: tuple[str, str], known: int, expected: str
) -> None:
    site = [own_page(number) for number in range(1, known + 1)]
    later = own_page(0, title=titles[1], changed=changed)
    assert expected in verdict(own_page(0, A, titles[0]), later, site)


@pytest.mark.parametrize(
    ("third", "title", "expected"), [("Members", "Members", OWN), ("Kites", "Members", "copy"), ("", "", "copy")]
)
def test_a_title_that_a_third_page_has_too_tells_nothing(third: str, title: str, expected: str) -> None:
    site = [own_page(1, title=third), own_page(2), own_page(3)]
    assert expected in verdict(own_page(0, A, title), own_page(0, title=title, changed=6), site)


def test_what_is_rare_is_counted_on_pages_other_than_the_earlier_one() -> None:
    quoting = Document(f"{B}/quoting", f"{text(80, 160)} {text(50, 100)}")  # has all that is the earlier page's own
    site = [quoting, own_page(1), own_page(2)]
    copy = Document(f"{B}/copy", own_page(0, changed=3).text, "Kites")
    assert verdict(own_page(0, title="Boats"), copy, site) == "copy"


@pytest.mark.parametrize(
    ("form", "doubted", "required"),
    [(0.0, True, 0.5), (0.1, True, 0.7), (0.2, True, 0.9), (1.0, True, 0.9), (0.2, False, 0.5), (1.0, False, 0.5)],
)
def test_more_is_required_of_a_form_of_doubtful_titles(form: float, doubted: bool, required: float) -> None:
    assert required_own(form, is_doubted=doubted) == pytest.approx(required)


# Evidence: a passage each, where little is known of the site


def with_passage(count: int, passage: int, lost: int | None = None) -> str:
    """Return so many words with a passage of other words in place of as many, or of `lost` ones."""
    parts = words(count, 1)
    parts[60 : 60 + (passage if lost is None else lost)] = words(passage, 100)
    return " ".join(parts)


@pytest.mark.parametrize(
    ("count", "passage", "lost", "host", "expected"),
    [
        (200, 18, None, A, "copy"),
        (200, 30, None, A, PASSAGE),
        (200, 30, None, B, "copy"),
        (600, 36, None, A, "copy"),  # as much as there must be of a short text
        (600, 60, None, A, PASSAGE),
        (200, 30, 0, A, "copy"),  # added
        (200, 0, 30, A, "copy"),  # left out
    ],
)
def test_passages(count: int, passage: int, lost: int | None, host: str, expected: str) -> None:
    later = Document(f"{host}/2", with_passage(count, passage, lost))
    assert expected in verdict(Document(f"{A}/1", text(1, count)), later)


def test_words_that_are_repeated_are_no_passage() -> None:
    # "so so so" is no shingle that the sketch samples: nothing is known of these hundred words.
    repeated = " ".join(["so"] * 50)
    ends = f"{repeated} boat {repeated}", f"{repeated} kite {repeated}"
    earlier = Document(f"{A}/1", f"{text(1, 150)} {ends[0]}")
    later = Document(f"{A}/2", f"{edited(text(1, 150), *range(5, 150, 18))} {ends[1]}")
    assert verdict(earlier, later) == "copy"


# Copies that must be found


@pytest.fixture(params=["alone", "site"])
def dedup(request: pytest.FixtureRequest) -> Deduplicator:
    """Return one that knows nothing, or thirty pages of a form on each of two hosts."""
    made = Deduplicator.open()
    if request.param == "site":
        claimed(made, *(form_page(number, host) for host in (A, B) for number in range(30)))
    return made


EVERY_33RD = range(3, 400, 33)
ORIGINAL = text(1, 400)
PARTS = [" ".join(ORIGINAL.split()[start : start + 80]) for start in range(0, 400, 80)]
HEADLINE = " ".join(ORIGINAL.split()[20:26])


@pytest.mark.parametrize(
    ("content", "title"),
    [
        (ORIGINAL, "Six boats on the lake - News"),
        (edited(ORIGINAL, *EVERY_33RD), "Six boats on the lake - News"),
        (edited(ORIGINAL, *EVERY_33RD), ""),
        (ORIGINAL, "A morning with seven sailors and no wind - News"),
        (ORIGINAL, HEADLINE),
        (" ".join(PARTS[place] for place in (3, 0, 4, 2, 1)), "Six boats on the lake - News"),
    ],
    ids=["same", "changed", "untitled", "retitled", "words of the text", "moved"],
)
@pytest.mark.parametrize("host", [A, B])
def test_copy_is_found(dedup: Deduplicator, host: str, content: str, title: str) -> None:
    original = Document(f"{A}/original", ORIGINAL, "Six boats on the lake - News")
    assert claimed(dedup, original, Document(f"{host}/copy", content, title)) == ["unique", "duplicate"]


@pytest.mark.parametrize("title", ["", "Six boats"])
def test_one_text_many_times_on_one_host_is_one_document(dedup: Deduplicator, title: str) -> None:
    copies = [Document(f"{A}/copy{number}", ORIGINAL, title) for number in range(9)]
    assert claimed(dedup, *copies) == ["unique"] + ["duplicate"] * 8


def test_copy_on_every_host_is_found(dedup: Deduplicator) -> None:
    copies = [Document(f"http://{number}.example/", ORIGINAL, f"Boats - Site {number}") for number in range(9)]
    assert claimed(dedup, *copies) == ["unique"] + ["duplicate"] * 8


def test_title_that_is_too_long_to_be_stored_whole_is_the_same_title(dedup: Deduplicator) -> None:
    title = " ".join(words(60, 2))[:197] + " balloon"  # of which "ba" is stored
    copies = [Document(f"{A}/copy{number}", ORIGINAL, title) for number in range(3)]
    assert claimed(dedup, *copies) == ["unique", "duplicate", "duplicate"]


# Pages of a form


@pytest.mark.parametrize("hosts", [(A,), (A, B)])
def test_pages_of_a_form_are_all_kept(hosts: tuple[str, ...]) -> None:
    pages = [form_page(number, hosts[number % len(hosts)]) for number in range(30)]
    assert claimed(Deduplicator.open(), *pages) == ["unique"] * 30


def test_pages_of_a_form_are_kept_where_the_first_one_is_on_another_host() -> None:
    own = [f"{text(3, 200)} {text(50 + number, 60)}" for number in range(30)]
    pages = [Document(f"{B if number else A}/{number}", own[number]) for number in range(30)]
    assert claimed(Deduplicator.open(), *pages).count("duplicate") <= 3  # until the form is known


def test_pages_of_a_form_without_titles_are_kept_once_the_form_is_known() -> None:
    statuses = claimed(Deduplicator.open(), *(form_page(number, title="") for number in range(30)))
    assert statuses[3:] == ["unique"] * 27


def test_one_page_under_many_urls_is_no_form() -> None:
    original = [Document(f"{A}/1?utm_source={number}", ORIGINAL) for number in range(4)]
    copy = Document(f"{A}/2", ORIGINAL)
    assert claimed(Deduplicator.open(), *original, copy) == ["unique", *["revisit"] * 3, "duplicate"]


@pytest.mark.parametrize("hosts", [(A,), (A, B)])
@pytest.mark.parametrize("title", [None, ""])
def test_the_next_process_knows_the_form(tmp_path: Path, hosts: tuple[str, ...], title: str | None) -> None:
    pages = [form_page(number, hosts[number % len(hosts)], title) for number in range(30)]
    for first in (0, 15):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            statuses = claimed(dedup, *pages[first : first + 15])
    assert statuses == ["unique"] * 15


def framed(number: int, own: list[str]) -> Document:
    """Make a page without a title: a form of 60 words in six places, and words of its own after these."""
    form = words(60, 7)
    parts = (form[10 * n : 10 * n + 10] + own[7 * n : 7 * n + 7] for n in range(6))
    return Document(f"{A}/{number}", " ".join(word for part in parts for word in part))


@pytest.mark.parametrize("seed", [905, 908, 911])
def test_the_next_process_decides_as_one_long_process_does(place: Place, seed: int) -> None:
    pair = [framed(5, words(40, seed)), framed(6, words(18, seed) + words(22, seed + 50))]
    site = [framed(number, words(40, 300 + number)) for number in range(5)]
    assert claimed(Deduplicator.open(), *pair) == ["unique", "duplicate"]
    assert claimed(Deduplicator.open(), *site, *pair) == ["unique"] * 7
    for some in (site, pair):
        with place.dedup() as dedup:
            assert claimed(dedup, *some) == ["unique"] * len(some)


def test_the_next_process_knows_the_titles(tmp_path: Path) -> None:
    for name, expected in (("Red", "unique"), ("Blue", "unique"), ("Blue", "duplicate")):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            page = Document(f"{A}/{name}-{len(dedup)}", text(1), f"{name} boots - Shop")
            assert claimed(dedup, page) == [expected]


# What is not asked of siblings


def test_documents_without_url_are_never_siblings() -> None:
    pages = [form_page(number) for number in range(9)]
    nowhere = [Document(None, page.text, page.title) for page in pages]
    assert claimed(Deduplicator.open(), *nowhere) == ["unique"] + ["duplicate"] * 8
    assert claimed(Deduplicator.open(), pages[0], nowhere[1]) == ["unique", "duplicate"]
    assert claimed(Deduplicator.open(), nowhere[0], pages[1]) == ["unique", "duplicate"]


def test_page_under_its_own_url_is_a_revisit_whatever_it_is_about() -> None:
    pages = [Document(f"{A}/1", text(1), f"{name} - Shop") for name in ("Red", "Blue")]
    assert claimed(Deduplicator.open(), *pages) == ["unique", "revisit"]


# Facts


def strong(number: str) -> bytes:
    """Return the facts of a record that has a number which is the same on all sites."""
    return pack({"sku": (Kind.STRONG, hash_text(number))})


@pytest.mark.parametrize("url", [f"{A}/2", f"{A}/1"])
@pytest.mark.parametrize("of", [named, strong])
def test_on_one_site_all_facts_decide(url: str, of: Callable[[str], bytes]) -> None:
    same = "revisit" if url == f"{A}/1" else "duplicate"
    for earlier, later, expected in (
        (of("Red"), of("Blue"), "unique"),
        (of("Red"), of("Red"), same),
        (b"", of("Red"), "unique"),
        (of("Red"), b"", "unique"),
        (b"", b"", same),
    ):
        documents = [Document(f"{A}/1", text(1), facts=earlier), Document(url, text(1), facts=later)]
        assert claimed(Deduplicator.open(), *documents) == ["unique", expected]


@pytest.mark.parametrize("url", [f"{B}/2", None])
@pytest.mark.parametrize(("of", "others"), [(named, "duplicate"), (strong, "unique")])
def test_between_sites_only_strong_facts_decide(url: str | None, of: Callable[[str], bytes], others: str) -> None:
    for earlier, later, expected in (
        (of("Red"), of("Blue"), others),
        (of("Red"), of("Red"), "duplicate"),
        (b"", of("Red"), "duplicate"),
        (of("Red"), b"", "duplicate"),
    ):
        documents = [Document(f"{A}/1", text(1), facts=earlier), Document(url, text(1), facts=later)]
        assert claimed(Deduplicator.open(), *documents) == ["unique", expected]


def test_a_fact_that_tells_the_records_of_another_site_apart_chooses_among_them() -> None:
    dedup = Deduplicator.open()
    branches = [Document(f"{A}/{place}", text(1), facts=named(place)) for place in ("Ulm", "Bonn", "Kiel")]
    assert claimed(dedup, *branches) == ["unique"] * 3
    copy = dedup.claim(Document(f"{B}/1", text(1), facts=named("Bonn")))
    assert (copy.verdict.status, copy.verdict.duplicate_of) == ("duplicate", f"{A}/Bonn")
    copy.commit()
    assert claimed(dedup, Document(f"{B}/2", text(1), facts=named("Trier"))) == ["unique"]
    assert claimed(dedup, Document("http://c.example/", text(1))) == ["duplicate"]  # says nothing of a place


def test_what_strong_facts_show_to_be_one_record_is_no_sibling() -> None:
    documents = [
        Document(f"{A}/{name}", text(1), f"{name} boots - Shop", facts=strong("1")) for name in ("Red", "Dark")
    ]
    assert claimed(Deduplicator.open(), *documents) == ["unique", "duplicate"]
    apart = [Document(each.url, each.text, each.title) for each in documents]
    assert claimed(Deduplicator.open(), *apart) == ["unique", "unique"]


def test_short_texts_of_one_site_are_one_record_if_they_have_equal_facts() -> None:
    thanks = [
        Document(f"{A}/{n}", "Thanks, that did it!", facts=named(who)) for n, who in enumerate(("Ann", "Bo", "Ann"))
    ]
    assert claimed(Deduplicator.open(), *thanks) == ["unique", "unique", "duplicate"]
    bare = [Document(f"{A}/{n}", "Thanks, that did it!") for n in range(2)]
    assert claimed(Deduplicator.open(), *bare) == ["unique", "unique"]
    elsewhere = Document(f"{B}/1", "Thanks, that did it!", facts=named("Ann"))
    assert claimed(Deduplicator.open(), thanks[0], elsewhere) == ["unique", "unique"]


def test_records_of_one_url_stay_apart_in_later_runs_too(tmp_path: Path) -> None:
    records = [Document(f"{A}/list", text(1), facts=named(each)) for each in ("1", "2", "3")]
    for expected in ("unique", "revisit", "revisit"):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            assert claimed(dedup, *records) == [expected] * 3


def item_documents(**settings: Any) -> list[Document]:
    config = Config(**settings)
    items = [{"url": f"{A}/{n}", "description": text(1), "sku": sku} for n, sku in enumerate(["s1", "s2", "S1"])]
    return [document for item in items if (document := item_document(item, config))]


def test_facts_of_items() -> None:
    assert claimed(Deduplicator.open(), *item_documents()) == ["unique", "unique", "duplicate"]
    assert claimed(Deduplicator.open(), *item_documents(ignore_fields=("sku",))) == ["unique", "duplicate", "duplicate"]


# Titles


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("", []),
        ("Red Boots - Shop", ["red", "boots", "-", "shop"]),
        ("operator== (const T&)", ["operator", "==", "const", "t", "&"]),
        ("a<=b", ["a", "<=", "b"]),
        ("湖上的鹤", ["湖", "上", "的", "鹤"]),
        ("かな", ["か", "な"]),
        ("ＡＢＣ　１２", ["abc", "12"]),
        ("ﾃｽﾄ", ["テ", "ス", "ト"]),
        ("my_name", ["my_name"]),
        ("型号A7", ["型", "号", "a7"]),
        ("A7型号", ["a7", "型", "号"]),
    ],
)
def test_title_words(title: str, expected: list[str]) -> None:
    assert title_words(title) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("Red - Shop", "Blue - Shop", (["red"], ["blue"])),
        ("operator== - Lib", "operator!= - Lib", (["=="], ["!="])),
        ("第一章", "第二章", (["一"], ["二"])),
        ("Shop: red", "Shop: light blue", (["red"], ["light", "blue"])),
        ("Ａ - Shop", "b - Shop", (["a"], ["b"])),
        ("one red two", "one blue two", (["red"], ["blue"])),
        ("हिन्दी - दुकान", "हिन्दू - दुकान", (["हिन्दी"], ["हिन्दू"])),
        ("Red - Shop", "Red - Shop", None),
        ("Red - Shop", "RED - ＳＨＯＰ", None),
        ("Red", "Blue", None),
        ("Shop", "Red Shop", None),
        ("a b c d Shop", "e Shop", None),
        ("a b c Shop", "e Shop", (["a", "b", "c"], ["e"])),
        ("red red", "red", None),
        ("", "", None),
        ("", "Shop", None),
    ],
)
def test_differing_words(a: str, b: str, expected: tuple[list[str], list[str]] | None) -> None:
    assert differing_words(title_words(a), title_words(b)) == expected
    assert differing_words(title_words(b), title_words(a)) == (expected and expected[::-1])


# The same in every process, in bounded memory

VERDICTS = """
from test_siblings import verdicts
print(verdicts())
"""


def verdicts() -> list[str]:
    """Return what is decided of pages of a form, with and without titles, on two hosts, and of copies of them."""
    pages = [form_page(number, (A, B)[number % 2], title) for title in ("", None) for number in range(12)]
    documents = [Document(f"{page.url}/{place}", page.text, page.title) for place, page in enumerate(pages + pages)]
    return claimed(Deduplicator.open(), *documents)


def test_the_same_documents_give_the_same_verdicts_in_every_process() -> None:
    expected = verdicts()
    assert set(expected) == {"unique", "duplicate"}
    assert python(VERDICTS, PYTHONHASHSEED="1").stdout == f"{expected}\n" == f"{verdicts()}\n"


def learned(known: Siblings, *documents: Document) -> None:
    dedup = Deduplicator.open()
    for document in documents:
        signature = dedup.sign(document)
        known.learn(signature)


def form_of(known: Siblings, document: Document) -> float | None:
    """Return how much of a document is known to be form; None where too few pages are known."""
    signature = Deduplicator.open().sign(document)
    own = known.page(document, signature, ()).own(signature)
    return None if own is None else round(own.form, 1)


def test_hosts_longest_not_seen_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "HOSTS", 3)
    known = Siblings(lambda host: ())
    learned(known, *(own_page(number, host) for host in (A, B) for number in range(3)))
    learned(known, own_page(9, "http://c.example"), own_page(4, A), own_page(9, "http://d.example"))
    assert (form_of(known, own_page(7, A)), form_of(known, own_page(7, B))) == (0.5, None)


def test_last_pages_of_a_host_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "PAGES", 4)
    known = Siblings(lambda host: ())
    learned(known, *(own_page(number) for number in range(3)))
    others = [Document(f"{B}/other{number}", text(70 + number)) for number in range(3)]
    learned(known, others[0])
    assert form_of(known, own_page(7)) == 0.5
    learned(known, *others[1:])
    assert form_of(known, own_page(7)) == 0.0
