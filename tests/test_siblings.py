"""Siblings (pages of one form, each with a subject of its own) are kept. Copies of them are dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest
from helpers import claimed, edited, named, text, words
from store_kinds import Place
from tiers import some

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.facts import Kind, pack
from scrapy_neardup.fingerprints.hashes import hash_text
from scrapy_neardup.fingerprints.record import resemblance
from scrapy_neardup.matching import siblings
from scrapy_neardup.matching.siblings import JudgedPage, Pair, Siblings
from scrapy_neardup.signature import Signature

A, B = "http://a.example", "http://b.example"
SUBJECT = "lacks the subject of the title"
THIN = "the text is thin"
NAME = "differ in a name"
NUMBER = "differ in a number"
OWN = "the texts without form have a resemblance of"
FIGURE = "each text has a figure that the other lacks"
PASSAGES = "each text has passages that the other lacks"
VALUE = "the texts seem to differ in a value"
LONG = "words that the earlier text lacks"


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


def subject_text(count: int, second: str = "") -> str:
    """Return 400 words; "zeppelin" stands in so many of twenty places, and a second word once."""
    parts = words(400, 1)
    for place in range(20):
        parts[10 + 19 * place] = "zeppelin" if place < count else f"balloon{place}"
    parts[200] = second or parts[200]
    return " ".join(parts)


@pytest.mark.parametrize(
    ("there", "titles", "expected"),
    [
        (0, ("Balloons", "Zeppelin"), SUBJECT),
        (9, ("Balloons", "Zeppelin"), SUBJECT),
        (10, ("Balloons", "Zeppelin"), "copy"),
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


@pytest.mark.parametrize(
    ("there", "second", "host", "expected"),
    [
        (16, "rowboat", A, SUBJECT),  # most of the one, nothing of the other
        (17, "rowboat", A, "copy"),
        (20, "rowboat", A, "copy"),  # one of the two words
        (0, "airship", A, OWN),  # the other one, which stands there once
        (20, "rowboat", B, "copy"),
        (10, "rowboat", B, "copy"),
        (9, "rowboat", B, SUBJECT),
        (0, "airship", B, SUBJECT),  # what stands there once is little beside twenty places
    ],
)
def test_on_one_host_each_word_of_a_subject_counts_as_much(there: int, second: str, host: str, expected: str) -> None:
    later = Document(f"{host}/2", subject_text(20, "airship"), "Zeppelin airship")
    assert expected in verdict(Document(f"{A}/1", subject_text(there, second), "Balloons"), later)


@pytest.mark.parametrize(
    ("count", "edits", "host", "expected"),
    [
        (200, (60, 120), A, SUBJECT),  # the sketch samples the only shingle with the word
        (200, (60, 120), B, SUBJECT),
        (514, (60, 120), A, SUBJECT),  # the sketch does not sample it
        (514, (60, 120), B, SUBJECT),
        (514, (), B, SUBJECT),  # equal sketches of texts that are not equal
        (520, (), A, SUBJECT),
        (520, (), B, "copy"),  # of a long text, many shingles are not sampled
    ],
)
def test_a_subject_without_a_sampled_shingle(count: int, edits: tuple[int, ...], host: str, expected: str) -> None:
    later = edited(text(1, count), *edits).split()
    later[0] = "zeppelin"
    copy = Document(f"{host}/2", " ".join(later), "Zeppelin")
    earlier = Document(f"{A}/1", text(1, count), "Balloons")
    equal = Deduplicator.open().sign(copy).sketch == Deduplicator.open().sign(earlier).sketch
    assert equal is not bool(edits)
    assert expected in verdict(earlier, copy)


@pytest.mark.parametrize(("word", "expected"), [("zeppelin", SUBJECT), ("airship", "copy")])
@pytest.mark.parametrize("host", [A, B])
def test_practically_equal_texts_need_the_subject_too(host: str, word: str, expected: str) -> None:
    later = text(1).split()
    later[50] = word  # three of two hundred shingles
    copy = Document(f"{host}/2", " ".join(later), "Zeppelin")
    assert expected in verdict(Document(f"{A}/1", text(1), "Balloons"), copy)


# Evidence: titles that differ in a name


@pytest.mark.parametrize(
    ("titles", "host", "edits", "expected"),
    [
        (("Red boots - Shop", "Blue boots - Shop"), A, (), NAME),
        (("Red boots - Shop", "Blue boots - Shop"), B, (), "copy"),
        (("Boots of red", "Blue boots"), A, (), NAME),  # in whatever order
        (("Very dark red - Shop", "Blue - Shop"), A, (), NAME),
        (("Very pale dark red - Shop", "Blue - Shop"), A, (), "copy"),
        (("Blue - Shop", "Very pale dark red - Shop"), A, (), "copy"),
        (("手机壳 樱花粉红", "手机壳 薄荷翠绿"), A, (), NAME),
        (("スマホケース ブラック", "スマホケース エメラルド"), A, (), NAME),
        (("เคสโทรศัพท์สีแดง", "เคสโทรศัพท์สีเขียว"), A, (), NAME),
        (("哪种茶水最易致癌", "怎样喝茶能防癌"), A, (), "copy"),
        (("Red", "Blue"), A, (), "copy"),  # nothing in common
        (("Boots - Shop", "Blue boots - Shop"), A, (), "copy"),  # the one has no name
        (("Red boots - Shop", "Red boots - Shop"), A, (), "copy"),
        (("", "Blue boots - Shop"), A, (), "copy"),
        (("Terms of use 1.0", "Terms of use 1.1"), B, (100,), NUMBER),
        (("Terms of use 1.1 - Mill", "Terms of use 1.0 | Ferry"), B, (100,), NUMBER),
        (("第12条 座位", "第9条 座位"), B, (100,), NUMBER),
        (("Terms of use 1.0", "Terms of use 1.1"), B, (), "copy"),  # nothing gets lost
        (("Terms of use", "Terms of use 2"), B, (100,), "copy"),
        (("Storm: 3 boats sink", "Ferry capsizes, 4 rescued"), B, (100,), "copy"),
    ],
)
def test_titles_that_name_or_number_what_is_not_in_the_text(
    titles: tuple[str, str], host: str, edits: tuple[int, ...], expected: str
) -> None:
    later = Document(f"{host}/2", edited(text(1), *edits), titles[1])
    assert expected in verdict(Document(f"{A}/1", text(1), titles[0]), later)


@pytest.mark.parametrize(
    ("titles", "said", "on_one_host", "on_two"),
    [
        (("Blue boots", "Boots"), "boots", NAME, "copy"),  # another site writes no "Video" into its titles
        (("Blue boots", "Boots"), "boots blue", "copy", "copy"),
        (("Boots", "Blue boots"), "boots", "copy", "copy"),  # the earlier text lacks nothing
        (("Red boots", "Blue boots"), "blue", "copy", "copy"),
        (("Red boots", "Blue boots"), "blue red", NAME, NAME),
        (("Red boots", "Blue boots"), "", NAME, "copy"),
        (("set_blue", "get_blue"), "set_blue get_blue", NAME, NAME),  # nothing in common, but the text says both
        (("set_blue", "get_blue"), "", "copy", "copy"),
        (("Blue: boots", "Boots"), "boots", "copy", "copy"),  # "Blue" may be the name of the site
        (("Boots | Blue", "Blue - Boots"), "boots", "copy", "copy"),
    ],
)
def test_titles_that_differ_in_a_name(titles: tuple[str, str], said: str, on_one_host: str, on_two: str) -> None:
    """Both texts say the same of their names, and differ in one word."""
    parts = words(200, 1)
    parts[20:181:20] = [f"{each} {said}" for each in parts[20:181:20]]
    earlier, changed = " ".join(parts), " ".join([*parts[:50], "other", *parts[50:]])
    for host, expected in ((A, on_one_host), (B, on_two)):
        later = Document(f"{host}/2", changed, titles[1])
        assert expected in verdict(Document(f"{A}/1", earlier, titles[0]), later)


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
    content = f"{text(1, 100)} {named} {text(2, 100)}"
    earlier, later = (
        Document(f"{A}/1", content, f"{names[0]} sale"),
        Document(f"{A}/2", content, f"Sale: {names[1]}"),
    )
    assert verdict(earlier, later) == "copy"


# Evidence: thin text under another title


@pytest.mark.parametrize(
    ("titles", "host", "edits", "thin", "expected"),
    [
        (("Boats", "Kites"), A, (), True, THIN),
        (("Boats", "Kites"), A, (), False, "copy"),
        (("Boats", "Kites"), B, (), True, THIN),
        (("Boats - Alpha News", "Boats - Beta Daily"), B, (), True, "copy"),
        (("Boats", "Boats - Club"), B, (), True, "copy"),
        (("Boats", "BOATS"), A, (), True, "copy"),
        (("Boats", ""), A, (), True, "copy"),
        (("", "Kites"), A, (), True, "copy"),
        (("Boats", "Boats"), A, (100,), True, THIN),  # on one host, they must be equal
        (("Boats", "Kites"), B, (100,), True, THIN),
        (("Boats", "Kites"), B, (100,), False, "copy"),
        (("Boats", "Boats - Club"), B, (100,), True, "copy"),
    ],
)
def test_thin_text_under_another_title_or_that_differs(
    titles: tuple[str, str], host: str, edits: tuple[int, ...], thin: bool, expected: str
) -> None:
    later = Document(f"{host}/2", edited(text(1), *edits), titles[1], thin=thin)
    assert expected in verdict(Document(f"{A}/1", text(1), titles[0]), later)


# Evidence: own text, without what other pages have

FORM = 100


def own_page(number: int, host: str = B, title: str = "", changed: int = 0, form: int = FORM) -> Document:
    """Make a page of 200 words, of which so many are on every page of its site; some of its own are changed."""
    own = edited(text(50 + number, 200 - form), *range(1, 200 - form, 4)[:changed])
    return Document(f"{host}/{number}", f"{text(3, form)} {own}".strip(), title)


def own_verdict(changed: int, titles: tuple[str, str], host: str, site: Iterable[Document], form: int = FORM) -> str:
    """Return why a page is kept whose own text is partly that of an earlier one on a host, or `copy`."""
    later = own_page(0, title=titles[1], changed=changed, form=form)
    return verdict(own_page(0, host, titles[0], form=form), Document(f"{B}/later", later.text, later.title), site)


SITE = [own_page(number) for number in (1, 2, 3)]
EQUAL, DIFFERENT, UNKNOWN, HALF = ("Boats", "Boats"), ("Boats", "Kites"), ("", ""), ("Boats", "")


@pytest.mark.parametrize(
    ("titles", "host", "changed", "expected"),
    [
        (EQUAL, B, 14, "copy"),
        (EQUAL, B, 18, PASSAGES),  # of the own text nothing is required
        (DIFFERENT, B, 1, "copy"),
        (DIFFERENT, B, 2, "needed 0.90"),
        (UNKNOWN, B, 7, "copy"),
        (UNKNOWN, B, 8, "needed 0.66"),
        (HALF, B, 7, "copy"),
        (HALF, B, 8, "needed 0.66"),
        (EQUAL, A, 14, "copy"),
        (EQUAL, A, 15, "needed 0.40"),
        (("Boats - News", "Boats | Mail"), A, 14, "copy"),
        (("Boats - News", "Boats | Mail"), A, 15, "needed 0.40"),
        (DIFFERENT, A, 7, "copy"),
        (DIFFERENT, A, 8, "needed 0.66"),
        (UNKNOWN, A, 14, "copy"),
        (UNKNOWN, A, 15, "needed 0.40"),
        (HALF, A, 14, "copy"),
        (HALF, A, 15, "needed 0.40"),
    ],
)
def test_own_text_that_differs(titles: tuple[str, str], host: str, changed: int, expected: str) -> None:
    assert expected in own_verdict(changed, titles, host, SITE)


@pytest.mark.parametrize(
    ("form", "changed", "expected"),
    [
        (0, 14, "copy"),
        (40, 14, "copy"),
        (100, 7, "copy"),
        (100, 8, "needed 0.66"),
        (140, 2, "copy"),
        (140, 3, "needed 0.76"),
    ],
)
def test_between_hosts_more_is_required_the_more_is_form(form: int, changed: int, expected: str) -> None:
    site = [own_page(number, form=form) for number in (1, 2, 3)]
    assert expected in own_verdict(changed, DIFFERENT, A, site, form)


@pytest.mark.parametrize(
    ("titles", "known", "expected"),
    [
        (UNKNOWN, 0, "copy"),
        (UNKNOWN, 1, OWN),
        (HALF, 0, "copy"),
        (HALF, 1, OWN),
        (DIFFERENT, 0, OWN),  # then all is own text
        (EQUAL, 2, "copy"),
    ],
)
def test_pages_that_tell_what_is_form(titles: tuple[str, str], known: int, expected: str) -> None:
    assert expected in own_verdict(10, titles, B, SITE[:known])


@pytest.mark.parametrize(
    ("titles", "third", "host", "expected"),
    [
        (("Members", "Members"), "Kites", B, "copy"),
        (("Members", "Members"), "", B, "copy"),
        (("Members", "Members"), "Members", A, "copy"),
        (("Boats", "Members"), "Boats", B, "needed 0.90"),
    ],
)
def test_a_third_page_with_the_title_of_the_later_page_leaves_the_subject_unknown(
    titles: tuple[str, str], third: str, host: str, expected: str
) -> None:
    assert expected in own_verdict(6, titles, host, [own_page(1, title=third), *SITE[1:]])


SHOP = ("Red - Shop", "Blue - Shop", "Green - Shop")
RIGS = ("Boats: rigs: beam", "Boats: rigs: mast", "Boats: rigs: keel")
COATS = ("Long winter coat - red", "Long winter coat - blue")
HATS = ("Long winter coats: red hat", "Long winter coats: blue hat")


@pytest.mark.parametrize(
    ("titles", "site", "host", "expected"),
    [
        (("Boats - Shop", "Boats - Shop"), SHOP, B, "copy"),
        (("Shop", "Shop"), SHOP, B, OWN),  # what all titles share
        (("Boats - Shop", "Kites - Shop"), SHOP, B, NAME),
        (("Boats - Shop", "Boats"), SHOP, B, "copy"),
        (("Boats", "Boats - Shop"), SHOP, B, "copy"),
        (("Boats: length", "Boats: rigs: length"), RIGS, B, OWN),  # two sections are no frame around one subject
        (("Boats: rigs: length", "Boats: rigs: length"), RIGS, B, "copy"),
        (COATS, ("", "", ""), A, "copy"),
        (COATS, ("Hat", "Scarf", "Glove"), A, "needed 0.65"),  # other pages of the site lack its end
        (COATS, ("Hat - blue", "Scarf - blue", "Glove - blue"), A, "copy"),  # it may be the name of the site
        (HATS, ("Long winter coats: old hat", "Long winter coats: new hat"), A, "needed 0.65"),  # all end in one word
    ],
)
def test_what_all_titles_of_a_site_share_is_no_subject(
    titles: tuple[str, str], site: Sequence[str], host: str, expected: str
) -> None:
    known = [own_page(number, title=title) for number, title in enumerate(site, 1)]
    assert expected in own_verdict(10, titles, host, known)


@pytest.mark.parametrize(
    ("title", "site", "expected"),
    [
        ("Oak | Harbour", [], SUBJECT),
        ("Oak | Harbour", ["Elm | Harbour", "Fir | Harbour"], "copy"),
        ("Harbour", ["Harbour", "Harbour"], "copy"),  # all pages of the site have one title
        ("Harbour", ["Mill", "Ferry"], SUBJECT),
    ],
)
def test_the_name_of_another_site_is_no_subject(title: str, site: Sequence[str], expected: str) -> None:
    known = [Document(f"{B}/{number}", text(40 + number), each) for number, each in enumerate(site)]
    later = Document(f"{B}/later", f"{text(1)} All news of Harbour", title)
    assert expected in verdict(Document(f"{A}/1", text(1), "Oak - The Book of Trees"), later, known)


def known_page(document: Document, *known: Signature) -> JudgedPage:
    """Return the page of a document, for comparison with known pages."""
    return Siblings(lambda host: ()).page(document, Deduplicator.open().sign(document), known)


def test_few_shingles_that_are_no_form_are_compared_with_the_whole_texts() -> None:
    """Of 60 words, each page has two species, and each of these stands on another page too, apart from the stork."""

    def bird(number: int, often: str, once: str) -> Document:
        parts = words(60, 5)
        parts[10:50:10], parts[55] = [often] * 4, once
        return Document(f"{A}/{number}", " ".join(parts), f"Bird {number}")

    dedup, later = Deduplicator.open(), bird(4, "tern", "stork")
    held = [dedup.sign(bird(*each)) for each in ((1, "gull", "stork"), (2, "gull", "heron"), (3, "tern", "heron"))]
    pair = Pair(known_page(later, *held), held[0])
    assert pair.own_resemblance == resemblance(held[0].sketch, dedup.sign(later).sketch) < 0.7


@pytest.mark.parametrize(
    ("titles", "expected"), [(EQUAL, "copy"), (UNKNOWN, "copy"), (("Red boats", "Boats"), "copy"), (DIFFERENT, OWN)]
)
def test_an_equal_text_of_another_host_that_is_all_form_is_none_of_another_subject(
    titles: tuple[str, str], expected: str
) -> None:
    site = [Document(f"{B}/{number}", f"{text(1)} {text(40 + number, 10)}", f"Page {number}") for number in range(3)]
    assert expected in verdict(Document(f"{A}/1", text(1), titles[0]), Document(f"{B}/2", text(1), titles[1]), site)


def test_what_is_form_is_counted_on_pages_other_than_the_earlier_one() -> None:
    quoting = Document(f"{B}/quoting", f"{text(80, 160)} {text(50, 100)}")  # has all that is the earlier page's own
    assert own_verdict(1, DIFFERENT, B, SITE[:2]) == "copy"
    assert "needed 0.90" in own_verdict(1, DIFFERENT, B, [quoting, *SITE[:2]])


def test_a_title_of_three_pages_of_one_host_does_not_show_that_two_are_of_one_subject() -> None:
    later = Document(f"{A}/2", edited(text(1), 50, 90, 130), "Kites")
    earlier, other, mirror, third = (
        Deduplicator.open().sign(Document(*each))
        for each in (
            (f"{A}/1", text(1), "Kites"),
            (f"{A}/1", text(1), "Boats"),
            (f"{B}/2", later.text, "Kites"),
            (f"{A}/3", text(9), "KITES"),
        )
    )
    assert Pair(known_page(later, earlier, mirror), earlier).differ_in_subject is False
    assert Pair(known_page(later, earlier, third), earlier).differ_in_subject is None
    assert Pair(known_page(later, other, third), other).differ_in_subject is None
    fourth = Deduplicator.open().sign(Document(f"{A}/4", text(8), "Boats"))
    assert Pair(known_page(later, other, third, fourth), other).differ_in_subject is True


def test_print_versions_under_one_title_are_copies() -> None:
    pages = [
        [Document(f"{A}/{n}", text(n), f"Story {n}"), Document(f"{A}/print/{n}", text(n), "Print")] for n in range(6)
    ]
    assert claimed(Deduplicator.open(), *(page for story in pages for page in story))[5::2] == ["duplicate"] * 4


# Evidence: passages


def with_passage(count: int, passage: int, lost: int | None = None) -> str:
    """Return so many words with a passage of other words in place of as many, or of `lost` ones."""
    parts = words(count, 1)
    parts[60 : 60 + (passage if lost is None else lost)] = words(passage, 100)
    return " ".join(parts)


LENGTHS = [
    (200, 28, None, "copy"),
    (200, 44, None, PASSAGES),  # more than a fifth of both
    (200, 50, 0, "copy"),  # added
    (200, 0, 50, "copy"),  # left out
    (3000, 370, None, "copy"),
    (3000, 430, None, LONG),
    (3000, 370, 0, "copy"),
    (3000, 430, 0, LONG),  # whether or not the earlier text has as much
    (20000, 500, 0, "copy"),  # little of so long a text
    (20000, 700, 0, LONG),
]
MOST_TITLES = [(UNKNOWN, A), (EQUAL, B), (DIFFERENT, B)]


@pytest.mark.parametrize(
    ("count", "passage", "lost", "titles", "host", "expected"),
    [
        *((*length[:3], titles, host, length[3]) for length in LENGTHS for titles, host in MOST_TITLES),
        # Under one title of one host:
        (200, 5, None, EQUAL, A, "copy"),  # too few shingles in a row
        (200, 10, None, EQUAL, A, PASSAGES),
        (200, 10, 0, EQUAL, A, "copy"),  # added
        (200, 0, 10, EQUAL, A, "copy"),  # left out
        (200, 10, None, ("Boats: red", "BOATS: Red"), A, PASSAGES),
        (200, 30, None, UNKNOWN, A, "copy"),
        (200, 30, None, HALF, A, "copy"),
        (200, 30, None, EQUAL, B, "copy"),
        (400, 10, None, EQUAL, A, "copy"),  # less than .03
        (400, 16, None, EQUAL, A, PASSAGES),
        (400, 16, None, DIFFERENT, A, "copy"),
    ],
)
def test_a_copy_may_have_a_passage_of_its_own_up_to_a_length(
    count: int, passage: int, lost: int | None, titles: tuple[str, str], host: str, expected: str
) -> None:
    later = Document(f"{host}/2", with_passage(count, passage, lost), titles[1])
    assert expected in verdict(Document(f"{A}/1", text(1, count), titles[0]), later)


@pytest.mark.parametrize(("places", "length", "expected"), [((20, 80, 140), 16, "copy"), ((40, 120), 24, PASSAGES)])
def test_only_passages_of_some_length_count_on_any_host(places: Iterable[int], length: int, expected: str) -> None:
    changed = [place + n for place in places for n in range(length)]
    later = Document(f"{B}/2", edited(text(1), *changed))
    assert expected in verdict(Document(f"{A}/1", text(1)), later)


def test_words_that_are_repeated_are_no_passage() -> None:
    # "so so so" is no shingle that the sketch samples: nothing is known of these hundred words.
    repeated = " ".join(["so"] * 50)
    ends = f"{repeated} boat {repeated}", f"{repeated} kite {repeated}"
    earlier = Document(f"{A}/1", f"{text(1, 150)} {ends[0]}")
    later = Document(f"{A}/2", f"{edited(text(1, 150), *range(5, 150, 18))} {ends[1]}")
    assert verdict(earlier, later) == "copy"


# Frames, which become form


@pytest.mark.parametrize("title", ["", "Story {}"])
@pytest.mark.parametrize(
    ("frame", "kept"),
    [
        (60, []),
        (80, []),
        (100, [0]),
        (140, [0, 2]),  # no detector proposes the story of the third
        (160, range(8)),
        (200, range(8)),
    ],
)
def test_copies_in_a_frame_are_found_once_the_frame_is_known(frame: int, kept: Sequence[int], title: str) -> None:
    stories = [Document(f"{A}/{number}", text(50 + number, 100), title.format(number)) for number in range(8)]
    framed = [Document(f"{B}/{n}", f"{text(3, frame)} {story.text}", story.title) for n, story in enumerate(stories)]
    statuses = claimed(Deduplicator.open(), *stories, *framed)[8:]
    assert statuses == ["unique" if n in kept else "duplicate" for n in range(8)]


# Copies that are known pages


@pytest.mark.parametrize(
    ("own", "titled", "copies"),
    [
        (20, True, 1),  # the first is remembered, since its title is another
        (60, False, 0),
    ],
)
def test_pages_of_a_form_are_kept_once_copies_have_shown_it(own: int, titled: bool, copies: int) -> None:
    pages = [
        Document(
            f"{B if number else A}/{number}",
            f"{text(3, 200 - own)} {text(60 + number, own)}",
            " ".join(words(3, 900 + number)) if titled else "",
        )
        for number in range(8)
    ]
    assert claimed(Deduplicator.open(), *pages) == ["unique", *["duplicate"] * copies, *["unique"] * (7 - copies)]


# Copies that must be found


@pytest.fixture(params=["alone", "site"])
def dedup(request: pytest.FixtureRequest) -> Deduplicator:
    """Return one that knows nothing, or five pages of a form on each of two hosts."""
    made = Deduplicator.open()
    if request.param == "site":
        claimed(made, *(form_page(number, host) for host in (A, B) for number in range(5)))
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
        (edited(ORIGINAL, 50, 200, 350), ""),
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


@pytest.mark.parametrize(
    ("content", "known", "expected"),
    [
        (edited(ORIGINAL, *EVERY_33RD), 1, "duplicate"),
        (edited(ORIGINAL, *range(60, 70)), 1, "duplicate"),  # less than .03
        (edited(ORIGINAL, *range(60, 76)), 0, "duplicate"),  # no other page tells what is form
        (edited(ORIGINAL, *range(60, 76)), 1, "unique"),
    ],
)
@pytest.mark.parametrize("title", ["", "Six boats on the lake - News"])
def test_copy_without_title_with_a_passage_is_kept_on_one_host_where_form_is_known(
    title: str, content: str, known: int, expected: str
) -> None:
    pages = [form_page(number) for number in range(known)]
    original, copy = Document(f"{A}/original", ORIGINAL, title), Document(f"{A}/copy", content)
    assert claimed(Deduplicator.open(), *pages, original, copy)[-1] == expected


@pytest.mark.parametrize(
    ("url", "title"),
    [
        (f"{A}/{{}}", ""),
        (f"{A}/{{}}", "Six boats"),
        (f"{A}/{{}}", " ".join(words(60, 2))[:197] + " balloon"),  # of which "ba" is stored
        ("http://{}.example/", "Boats - Site {}"),
    ],
    ids=["untitled", "titled", "with a title that is too long to be stored whole", "of many hosts"],
)
def test_one_text_many_times_is_one_document(dedup: Deduplicator, url: str, title: str) -> None:
    copies = [Document(url.format(number), ORIGINAL, title.format(number)) for number in range(9)]
    assert claimed(dedup, *copies) == ["unique"] + ["duplicate"] * 8


# Pages of a form


def test_pages_of_a_form_are_kept_where_the_first_one_is_on_another_host() -> None:
    own = [f"{text(3, 200)} {text(50 + number, 60)}" for number in range(30)]
    pages = [Document(f"{B if number else A}/{number}", own[number]) for number in range(30)]
    assert claimed(Deduplicator.open(), *pages).count("duplicate") <= 3  # until the form is known


def test_one_page_under_many_urls_is_no_form() -> None:
    original = [Document(f"{A}/1?utm_source={number}", ORIGINAL) for number in range(4)]
    copy = Document(f"{A}/2", ORIGINAL)
    assert claimed(Deduplicator.open(), *original, copy) == ["unique", *["revisit"] * 3, "duplicate"]


@pytest.mark.parametrize("hosts", some([(A,), (A, B)], (A, B)))
@pytest.mark.parametrize(("title", "until_known"), [(None, 0), ("", 3)], ids=["titled", "untitled"])
def test_pages_of_a_form_are_kept_once_it_is_known_and_the_next_process_knows_it(
    tmp_path: Path, hosts: tuple[str, ...], title: str | None, until_known: int
) -> None:
    pages, statuses = [form_page(number, hosts[number % len(hosts)], title) for number in range(30)], []
    for first in (0, 15):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            statuses += claimed(dedup, *pages[first : first + 15])
    assert statuses[until_known:] == ["unique"] * (30 - until_known)


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
    for documents in (site, pair):
        with place.dedup() as dedup:
            assert claimed(dedup, *documents) == ["unique"] * len(documents)


def test_pages_with_one_text_and_two_titles_are_stored_once_however_often_they_are_seen(tmp_path: Path) -> None:
    pages = [("d", 1, "Boot blue"), ("b", 1, "Boot red"), ("e", 2, "Boot red")]
    for status in ("unique", "revisit", "revisit"):
        with Deduplicator.open(tmp_path / "store.sqlite", revisit="drop") as dedup:
            for name, part, title in pages:
                claim = dedup.claim(Document(f"{A}/{name}", text(part), title))
                claim.commit()
                assert (claim.verdict.status, claim.verdict.changed) == (status, False)


SIGNS = [
    ("C# clerk", "C clerk"),
    ("C clerk", "C# clerk"),
    (".NET clerk", "NET clerk"),
    ("5 € a day", "5 $ a day"),
    ("Inn ★★★", "Inn ★★"),
    ("On 🙂", "On 🙁"),
    ("York to Ulm", "Ulm to York"),
    ("§ 1 Roofs", "§ 3 Boards"),
]


@pytest.mark.parametrize("titles", SIGNS)
def test_titles_that_differ_in_a_sign_or_the_order_of_words_are_different(titles: tuple[str, str]) -> None:
    pages = [Document(f"{A}/{number}", text(1), title) for number, title in enumerate(titles)]
    assert claimed(Deduplicator.open(), *pages) == ["unique"] * 2


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("in red and blue", ["unique"] * 2),
        ("in all colours", ["unique"] * 2),
        ("in red", ["unique", "duplicate"]),
        ("in blue", ["unique", "duplicate"]),
    ],
)
def test_one_text_under_two_titles_is_of_neither_if_it_says_both_names_or_none(said: str, expected: list[str]) -> None:
    titles = "Red boots for sale", "Boots for sale, blue"  # names in two places, as if a headline had been edited
    boots = [Document(f"{A}/{number}", f"{text(1)} {said}", title) for number, title in enumerate(titles)]
    assert claimed(Deduplicator.open(), *boots) == expected


@pytest.mark.parametrize("said", ["in red and blue", "in all colours", "in red", "in blue"])
@pytest.mark.parametrize("names", [("red", "blue"), ("7.1.0", "7.7.0"), ("7.7.0", "7.1.0")])
def test_names_in_one_place_of_the_titles_are_of_two_whatever_one_text_says(names: Sequence[str], said: str) -> None:
    """An employer with ads in several towns writes its address, in one of these towns, into each ad."""
    boots = [Document(f"{A}/{name}", f"{text(1)} {said}", f"Boots, {name}, for sale") for name in names]
    assert claimed(Deduplicator.open(), *boots) == ["unique"] * 2


# Evidence: figures


@pytest.mark.parametrize("count", [40, 400])
@pytest.mark.parametrize("title", ["", "Planning committee"])
def test_meetings_of_one_form_and_title_are_kept(title: str, count: int) -> None:
    meetings = [Document(f"{A}/{day}", f"Meeting of May {day}. {text(1, count)}", title) for day in range(1, 13)]
    assert claimed(Deduplicator.open(), *meetings) == ["unique"] * 12


@pytest.mark.parametrize(
    ("url", "title", "later", "expected"),
    [
        (f"{A}/2", "Trams", "tram 19 at 8", FIGURE),
        (f"{A}/2", "Trams", "tram 19 at 8 today", FIGURE),
        (f"{A}/2", "", "tram 19 at 8", FIGURE),
        (f"{A}/2", "", "tram ۱۹ at ۸", FIGURE),
        (f"{A}/2", "", "tram 19 at 8 today", "copy"),  # without titles, a frame may have its own figures
        (f"{A}/2", "Trams", "tram 18 at 7, 19", "copy"),  # one more
        (f"{A}/2", "Trams", "tram 18", "copy"),  # one less
        (f"{A}/1", "Trams", "tram 19 at 8", "copy"),  # the same URL
        (f"{B}/2", "Trams", "tram 19 at 8", "copy"),
    ],
)
def test_on_one_host_no_figure_gets_lost(url: str, title: str, later: str, expected: str) -> None:
    earlier = Document(f"{A}/1", f"{text(1)} tram 18 at 7", title)
    dedup = Deduplicator.open()
    first, document = dedup.claim(earlier), Document(url, f"{text(1)} {later}", title)
    assert (dedup.matcher.why_siblings(document, dedup.sign(document), first.signature) or "copy") == expected


def strong(number: str) -> bytes:
    """Return the facts of a record that has a number which is the same on all sites."""
    return pack({"sku": (Kind.STRONG, hash_text(number))})


# What is not asked of siblings


@pytest.mark.parametrize(
    ("earlier", "later", "host", "expected"),
    [
        ("Colour: moss green. Size: small. In stock.", "Colour: slate. Size: small. In stock.", A, VALUE),
        ("Colour: moss green. Size: small. In stock.", "Colour: slate. Size: small. In stock.", B, "copy"),
        ("Colour\nMoss green\nMade of\nwool", "Colour\nDark green\nMade of\nwool", A, VALUE),
        ("颜色：墨绿色。尺寸：小号。", "颜色：深蓝色。尺寸：小号。", A, VALUE),
        ("【颜色】墨绿色", "【颜色】深蓝色", A, VALUE),
        ("Colour:green, Size:small", "Colour:slate, Size:small", A, VALUE),
        ("Made of - red wool", "Made of - blue linen", A, VALUE),
        ("Цвет — тёмно-синий. Размер — малый.", "Цвет — светло-серый. Размер — малый.", A, VALUE),
        ("Цвет\u00a0— тёмно-синий. Размер\u00a0— малый.", "Цвет\u00a0— светло-серый. Размер\u00a0— малый.", A, VALUE),
        ("素材：アルミニウム合金", "素材：ステンレススチール", A, VALUE),  # ten characters, nine pairs
        ("สี: น้ำเงินเข้ม", "สี: เขียวอ่อน", A, VALUE),
        ("定于五月六日召开会议", "定于五月七日召开会议", A, VALUE),
        ("held on Monday in the hall", "held on Friday in the hall", A, VALUE),
        ("held on the sixth of May in the hall", "held on the tenth of May in the hall", A, VALUE),
        ("held on 2026-05-06 in hall 5 or 6", "held on 2026-06-06 in hall 5 or 6", A, VALUE),
        ("held on 5 May in hall 5 or 6 or 7", "held on 6 May in hall 5 or 6 or 7", A, VALUE),
        ("A night: 40 crowns, or 33 for members", "A night: 33 crowns, or 40 for members", A, VALUE),
        ("Minutes of the meeting in March 2026", "Minutes of the meeting in April 2026", A, VALUE),
        ("held on 3 March 2026 in the hall", "held on 3 April 2026 in the hall", A, VALUE),
        ("held on March 3, 2026 in the hall", "held on April 3, 2026 in the hall", A, VALUE),
        ("It was green, and small, and in stock.", "It was slate, and small, and in stock.", A, "copy"),
        ("", "Colour: slate. Size: small. In stock.", A, "copy"),
        ("Colour: slate. Size: small. In stock.", "", A, "copy"),
    ],
)
def test_on_one_host_no_labelled_value_and_no_month_gets_lost(
    earlier: str, later: str, host: str, expected: str
) -> None:
    first, second = (f"{text(1, 100)}\n{each}\n{text(2, 20)}" for each in (earlier, later))
    assert expected in verdict(Document(f"{A}/1", first, "Kettle"), Document(f"{host}/2", second, "Kettle"))


@pytest.mark.parametrize(("host", "begins", "expected"), [(B, True, "copy"), (B, False, SUBJECT), (A, True, SUBJECT)])
def test_on_another_host_a_headline_above_the_text_is_no_subject_that_it_lacks(
    host: str, begins: bool, expected: str
) -> None:
    first, second = "Swimmers want their pool", "County closes an old bath"
    parts = text(1, 100).split("\n")[0], text(2, 20)
    earlier, later = ("\n".join([each, *parts] if begins else [*parts, each]) for each in (first, second))
    assert expected in verdict(Document(f"{A}/1", earlier, first), Document(f"{host}/2", later, second))


@pytest.mark.parametrize("sites", [("", ""), (" | The Daily Shop of Ulm", " | Evening Tools and Northern Supply")])
def test_on_another_host_a_name_above_the_text_is_a_subject_that_it_lacks(sites: tuple[str, str]) -> None:
    earlier, later = (f"{name}\n{text(1, 100)}" for name in ("Pencil", "Brush"))
    pair = Document(f"{A}/1", earlier, f"Pencil{sites[0]}"), Document(f"{B}/2", later, f"Brush{sites[1]}")
    assert SUBJECT in verdict(*pair)


@pytest.mark.parametrize("facts", [b"", named("Red"), strong("7")])
def test_a_page_that_grew_is_another_one_and_its_old_text_a_change(facts: bytes) -> None:
    dedup, seen = Deduplicator.open(), []
    for parts in ((1,), (1, 2), (1,), (1, 2)):
        claim = dedup.claim(Document(f"{A}/1", "\n".join(text(part, 100) for part in parts), "News", facts=facts))
        claim.commit()
        seen.append((claim.verdict.status, claim.verdict.changed))
    assert seen == [("unique", False), ("unique", False), ("revisit", True), ("revisit", True)]


def test_documents_without_url_are_never_siblings() -> None:
    pages = [form_page(number) for number in range(9)]
    nowhere = [Document(None, page.text, page.title) for page in pages]
    assert claimed(Deduplicator.open(), *nowhere) == ["unique"] + ["duplicate"] * 8
    assert claimed(Deduplicator.open(), pages[0], nowhere[1]) == ["unique", "duplicate"]
    assert claimed(Deduplicator.open(), nowhere[0], pages[1]) == ["unique", "duplicate"]


@pytest.mark.parametrize(("pieces", "expected"), [(range(5), "revisit"), (range(9), "unique")])
def test_a_page_under_its_own_url_is_another_one_if_a_sixth_of_its_text_is_new_in_short_pieces(
    pieces: Iterable[int], expected: str
) -> None:
    parts = words(500, 1)
    for each in pieces:  # none is a passage
        parts[40 * each : 40 * each] = words(15, 100 + each)
    documents = [Document(f"{A}/1", each) for each in (text(1, 500), " ".join(parts))]
    assert claimed(Deduplicator.open(), *documents) == ["unique", expected]


@pytest.mark.parametrize("place", [0, 33])
def test_a_page_is_another_one_if_a_sixth_of_its_text_is_new_at_its_beginning_or_end(place: int) -> None:
    parts = words(40, 1)
    parts[place : place + 7] = words(7, 101)
    documents = [Document(f"{A}/1", each) for each in (text(1, 40), " ".join(parts))]
    assert claimed(Deduplicator.open(), *documents) == ["unique", "unique"]


def test_a_list_of_which_each_row_ages_is_no_other_page() -> None:
    days = ["\n".join(f"{text(row, 7)} {row % 9 + day} days ago" for row in range(30)) for day in (1, 2)]
    assert claimed(Deduplicator.open(), *(Document(f"{A}/1", day) for day in days)) == ["unique", "revisit"]


def test_a_page_under_its_own_url_is_another_one_if_its_title_says_something_else() -> None:
    for later, expected in (("House 3 | Homes", "revisit"), ("SOLD: House 2 | Homes", "unique"), ("", "revisit")):
        pages = [Document(f"{A}/1", text(1), title) for title in ("House 2 | Homes", later)]
        assert claimed(Deduplicator.open(), *pages) == ["unique", expected]


# Facts


@pytest.mark.parametrize("of", [named, strong])
@pytest.mark.parametrize(
    ("url", "same", "weaker"),
    [
        (f"{A}/2", "duplicate", "unique"),
        (f"{A}/1", "revisit", "unique"),
        (f"{B}/2", "duplicate", "duplicate"),
        (None, "duplicate", "duplicate"),
    ],
)
def test_on_one_site_all_facts_decide_and_between_sites_only_strong_ones(
    url: str | None, same: str, weaker: str, of: Callable[[str], bytes]
) -> None:
    for earlier, later, expected in (
        (of("Red"), of("Blue"), "unique" if of is strong else weaker),
        (of("Red"), of("Red"), same),
        (b"", of("Red"), weaker),
        (of("Red"), b"", weaker),
        (b"", b"", same),
    ):
        documents = [Document(f"{A}/1", text(1), facts=earlier), Document(url, text(1), facts=later)]
        assert claimed(Deduplicator.open(), *documents) == ["unique", expected]


@pytest.mark.parametrize("places", [("http://www.a.example/1", f"{A}/2"), ("file:///a/1.html", "file:///a/2.html")])
def test_www_makes_no_other_host_and_files_are_of_one(places: tuple[str, str]) -> None:
    documents = [Document(url, text(1), facts=named(town)) for url, town in zip(places, ("Ulm", "Bonn"), strict=True)]
    assert claimed(Deduplicator.open(), *documents) == ["unique"] * 2


def test_a_fact_that_tells_the_records_of_another_site_apart_chooses_among_them() -> None:
    dedup = Deduplicator.open()
    branches = [Document(f"{A}/{place}", text(1), facts=named(place)) for place in ("Ulm", "Bonn", "Kiel")]
    assert claimed(dedup, *branches) == ["unique"] * 3
    copy = dedup.claim(Document(f"{B}/1", text(1), facts=named("Bonn")))
    assert (copy.verdict.status, copy.verdict.duplicate_of) == ("duplicate", f"{A}/Bonn")
    copy.commit()
    assert claimed(dedup, Document(f"{B}/2", text(1), facts=named("Trier"))) == ["unique"]
    assert claimed(dedup, Document("http://c.example/", text(1))) == ["duplicate"]  # says nothing of a place


def test_a_record_that_its_own_site_has_with_another_fact_repeats_no_such_record_of_another_site() -> None:
    places = ((f"{A}/1", "Ulm"), (f"{B}/1", "Bonn"), (f"{B}/2", "Ulm"), (f"{A}/2", "Bonn"))
    documents = [Document(url, text(1), facts=named(place)) for url, place in places]
    dedup = Deduplicator.open()
    assert claimed(dedup, *documents) == ["unique", "duplicate", "unique", "unique"]
    assert claimed(dedup, documents[1]) == ["duplicate"]  # as before, though its site has another by now


@pytest.mark.parametrize(("host", "expected"), [(A, "unique"), (B, "duplicate")])
def test_what_strong_facts_show_to_be_one_record_is_a_variant_on_one_host_if_its_title_is_another(
    host: str, expected: str
) -> None:
    boots = [Document(f"{A}/1", text(1), "Red boots", facts=strong("1"))]
    boots += [Document(f"{host}/2", text(1), "Dark boots", facts=strong("1"))]
    assert claimed(Deduplicator.open(), *boots) == ["unique", expected]


def test_short_texts_of_one_site_are_one_record_if_they_have_equal_facts() -> None:
    thanks = [
        Document(f"{A}/{n}", "Thanks, that did it!", facts=named(who)) for n, who in enumerate(("Ann", "Bo", "Ann"))
    ]
    assert claimed(Deduplicator.open(), *thanks) == ["unique", "unique", "duplicate"]
    bare = [Document(f"{A}/{n}", "Thanks, that did it!") for n in range(2)]
    assert claimed(Deduplicator.open(), *bare) == ["unique", "unique"]
    elsewhere = Document(f"{B}/1", "Thanks, that did it!", facts=named("Ann"))
    assert claimed(Deduplicator.open(), thanks[0], elsewhere) == ["unique", "unique"]


@pytest.mark.parametrize(
    ("titles", "facts", "host", "expected"),
    [
        (("Boats", "Boats"), "x", A, "copy"),
        (("Boats", "BOATS"), "x", A, "copy"),
        (("Boats", ""), "x", A, "copy"),
        (("Boats", "Kites"), "x", A, "the titles differ"),
        (("Boats - Shop", "Kites - Shop"), "x", A, "the titles differ"),
        (("operator== - Lib", "operator!= - Lib"), "x", A, "the titles differ"),
        (("Boats", "Kites"), "", A, "copy"),
        (("Boats", "Kites"), "x", B, "copy"),
    ],
)
@pytest.mark.parametrize("content", [text(1), text(1, 40)])
def test_equal_texts_with_equal_facts_are_one_record_under_one_title(
    content: str, titles: tuple[str, str], facts: str, host: str, expected: str
) -> None:
    earlier, later = (
        Document(url, content, title, facts=named(facts) if facts else b"")
        for url, title in zip((f"{A}/1", f"{host}/2"), titles, strict=True)
    )
    assert expected in verdict(earlier, later)


def test_another_record_under_a_title_does_not_make_the_title_say_less() -> None:
    records = [
        Document(f"{A}/{title}/{fact}", text(number), title, facts=named(fact))
        for title, number, fact in (("Boats", 1, "2"), ("Kites", 2, "1"), ("Kites", 1, "2"))
    ]
    assert claimed(Deduplicator.open(), *records) == ["unique"] * 3


def test_records_of_one_url_stay_apart_in_later_runs_too(tmp_path: Path) -> None:
    records = [Document(f"{A}/list", text(1), facts=named(each)) for each in ("1", "2", "3")]
    for expected in ("unique", "revisit", "revisit"):
        with Deduplicator.open(tmp_path / "store.sqlite") as dedup:
            assert claimed(dedup, *records) == [expected] * 3


# In bounded memory


def verdicts() -> list[str]:
    """Return what is decided of pages of a form, with and without titles, on two hosts, and of copies of them."""
    pages = [form_page(number, (A, B)[number % 2], title) for title in ("", None) for number in range(12)]
    documents = [Document(f"{page.url}/{place}", page.text, page.title) for place, page in enumerate(pages + pages)]
    return claimed(Deduplicator.open(), *documents)


def learned(known: Siblings, *documents: Document) -> None:
    dedup = Deduplicator.open()
    for document in documents:
        signature = dedup.sign(document)
        known.learn(signature)


def form_of(known: Siblings, document: Document) -> float:
    """Return how much of a document is known to be form."""
    signature = Deduplicator.open().sign(document)
    return round(Pair(known.page(document, signature, ()), signature).form, 1)


def test_hosts_longest_not_seen_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "MOST", 8)
    known = Siblings(lambda host: ())
    learned(known, *(own_page(number, host) for host in (A, B) for number in range(3)))
    learned(known, own_page(9, "http://c.example"), own_page(4, A), own_page(9, "http://d.example"))
    assert (form_of(known, own_page(7, A)), form_of(known, own_page(7, B))) == (0.5, 0.0)


def test_last_pages_of_a_host_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(siblings, "PAGES", 4)
    known = Siblings(lambda host: ())
    learned(known, *(own_page(number) for number in range(3)))
    others = [Document(f"{B}/other{number}", text(70 + number)) for number in range(4)]
    learned(known, *others[:3])
    assert form_of(known, own_page(7)) == 0.5  # one page of the form is left
    learned(known, others[3])
    assert form_of(known, own_page(7)) == 0.0


def test_a_version_that_a_dead_run_held_makes_no_form_of_the_others(tmp_path: Path) -> None:
    """A process has read the pages of the host before they were forgotten with their run."""
    path = tmp_path / "s.sqlite"
    versions = [text(1, 150), *(edited(text(1, 150), place, place + 40) for place in (10, 60))]
    pages = [Document(f"http://a.example/{n}", each, "A page") for n, each in enumerate(versions)]
    dead = Deduplicator.open(path)
    dead.claim(pages[0]).commit()
    dead.flush()
    with Deduplicator.open(path) as dedup:
        copy = Document("http://a.example/copy", versions[0], "A page")
        assert dedup.claim(copy).verdict.status == "duplicate"
        dead.close(clean=False)
        Deduplicator.open(path).close()
        dedup.flush()
        claims = [dedup.claim(page) for page in pages[1:]]
        assert [claim.verdict.status for claim in claims] == ["unique", "duplicate"]
