"""Make facts from the values of an item, pack them, compare those of two records, and learn counters. Pure.

A fact is a short value that says what the record is: a date, a place, a price, a number. Letter case, white space and
zeros at the end do not change a fact. The facts of a record are stored as bytes, in ascending order. Each fact has
`SIZE` bytes: a hash of the field's name with the kind of the fact, and a hash of the value. So equal facts are equal
bytes.

A counter is a fact such as the views of a page. From most visits to the next, it changes while the text and the other
facts stay the same. So it says nothing of the record. A price, a date or a word is never a counter.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from email.utils import parsedate_to_datetime
from enum import Enum, IntEnum
from functools import lru_cache
from numbers import Number
from pathlib import PurePath
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from .fingerprints.hashes import hash_text
from .text.tokens import folded
from .text.urls import host

SIZE = 5  # bytes of a fact: 2 for the name and the kind, 3 for the value
MOST = 40  # facts that are packed one by one; the others are packed as one
NEAR = 60.0  # seconds before the run: a time between then and now is the time of the crawl
AHEAD = 60.0  # seconds by which the clock of a site may be ahead
LONG_NUMBER = 10_000  # bits
SHORTEST, LONGEST = 10, 50  # characters of a time
FAR = 1e13  # numbers from here on are no times, in seconds or milliseconds since the epoch
_BITS, _KIND = 3, 7  # the kind is in the last 3 of the first 16 bits
_STRONG = re.compile(r"sku|gtin(?:8|12|13|14)?|ean(?:8|13)?|upc|asin|mpn|isbn(?:10|13)?|doi|productid")
# Prices and quantities, which are no counters, are known by a part of the field's name (`_MONEY`), by a whole name in
# its path, such as `price.value` (`_MONEY_OF`), or by a currency in the value (`_CURRENCY`).
_MONEY = re.compile(
    "stock|quantity|qty|availab|inventory|onhand|(?:item|unit|seat|ticket|room|place)s?(?:left|remaining)$"
    "|price|cost|amount|salary|(?:fee|rate)s?$|(?:^|ly|net|base)(?:rent|pay|wage)$"
    "|^(?:current|highest|last|start|starting|min|max)?bid$|^(?:raised|pledged)$"
    "|^(?:hinta|fiyat|harga|kaina|cena|cijena|preț|(?:msrp|rrp|pris|valor|pret|ár|giá|seats)$)"
    "|precio|preço|preco|importe|tarif|alquiler|salario|preis|betrag|gehalt|miete|verfügbar|prix|coût|montant|loyer"
    "|salaire|prezzo|canone|prijs|huur|цена|ціна|стоимость|зарплата|оклад|τιμή|السعر|قیمت|מחיר|कीमत|ราคา"
    "|(?<!评)价|價|租|金额|薪|库存|在庫|数量|価格|料金|値段|家賃|가격|요금|월세"
)
_MONEY_OF = re.compile("price|cost|amount|salary|precio|preis|prix|prezzo|价格|価格|rent|fare|wage|cena|费用")
_COUNT = re.compile(
    "(?:num|page|total)?(?:views|clicks|(?:view|click)s?(?:count|num))|read(?:s?count|num)"
    "|(?:浏览|阅读|点击|访问)(?:量|数|次数)|閲覧数|조회수|просмотр(?:ы|ов)|visitas|vues|aufrufe"
)
_CURRENCY = re.compile(
    r"[$€£¥₽₹₩₺₫₴₪฿]|\d ?[元円원]"
    r"|(?<![^\W\d_])(?:usd|eur|gbp|jpy|cny|rmb|chf|cad|aud|inr|krw|rub|brl|pln|sek|nok|dkk|czk|huf|idr"
    r"|руб|zł|kr|kč|dollars?|euros?)(?![^\W\d_])"
    r"|\d ?(?:ron|tl|lei|rp|ft|pounds?)$|^(?:ron|tl|rp) ?\d"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may(?! [^\W\d_])|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
# A date in figures, a year beside a word, and a day beside a month.
_DATE = re.compile(
    r"\d{4}[-/.年]\d\d?[-/.月]\d\d?(?!\d)|(?<!\d)\d\d?[-/.]\d\d?[-/.](?:\d{4}|\d\d)(?!\d)|\d ?月 ?\d"
    r"|(?<!\d)\d\d?\.?(?: de)? [^\W\d_]{3,}[.,]?(?: de)? (?:19|20)\d\d(?!\d)"
    r"|(?<!\d)(?:19|20)\d\d\.? (?:m\. )?[^\W\d_]{3,} \d\d?(?!\d)"
    r"|[^\W\d_]{3}[.,]? (?:\d\d?,? |de )?(?:19|20)\d\d(?!\d|[.,]\d| ?[^\W\d_])"
    rf"|\d(?:st|nd|rd|th)? (?:of )?{_MONTH}(?!\w)|(?<!\w){_MONTH}\.? \d"
)
_DECIMAL = re.compile(r"\d[.,]\d|^\d+(?::\d+)+$|^\d+ ?%$")  # also a time, a score, a share
_FIGURE = re.compile(r"\d")
_FILLER = re.compile(r"[\s!-/:-@\[-`{-~–—…·•]*")  # "-" and the like in place of a number
# What a strong fact has. Other values, such as "n/a" and "0", only fill a field.
_NUMBER = re.compile(r"(?s)(?=.*\d).*(?:[1-9]|[^\W\d_])")
_SEPARATORS = re.compile(r"[^\w+.]+|\.(?!\d)")  # in a strong fact
_BETWEEN = re.compile(r"(?<=\d)[^\w+.]+(?=\d)")  # the same between figures
_LETTERS = re.compile(r"[^\W\d_]{3}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_MOMENT = re.compile(
    r"(?=.*[:时]|(?:\D*\d){14})"  # without a colon, it has seconds
    r"(\d{4})[-/.年]?(\d\d?)[-/.月]?(\d\d?)日?[T ,_-]*(\d\d?)[:时-]?(\d\d)(?:[:分-]?(\d\d))?[分秒]?(?:[.,]\d+)?"
    r"\s*(Z|UTC|GMT|[+-]\d\d:?\d\d)?",
    re.I,
)
_YEAR_LAST = re.compile(r"(\d\d?)[/.-](\d\d?)[/.-](\d{4})(?=[ T,])")
_HALF = re.compile(r"\s*[ap]\.?m\.?$", re.I)  # of a day
_ISO = re.compile(r"(?<=\d\d-\d\d)t(?=\d\d:)")  # JSON feeds of Scrapy write a datetime with T, CSV with a blank
# The scheme, the session, the query, and a fragment, unless it names a page, as in `#/a`.
_LINK_END = re.compile(r"^(?:[a-z]+:)?//(?:www\.)?|;jsessionid=[^/?#]*|\?[^#]*|#(?![/!]).*", re.I | re.S)
_WORD_OF_SCHEMA = re.compile(r"https?://schema\.org/\w+$")
# In a query, what names a page: an id, a number, a date, or the name of a file or video.
_PAGE_ID = re.compile(
    r"[?&]((?:(?:article|document|event|job|news|post|product|story|thread|topic|variant)(?:_?id)?"
    r"|id|[gu]uid|code|sku|slug)=[\w%-]{1,64}"
    r"|(?:(?:category|doc|file|item|node|page)_?id|[adefijmnptuv]id|nr?|no|num|number|item|key|edition|issue)=\d{1,20}"
    r"|(?:p|year)=\d{1,9}|(?:date|day)=[\d-]{1,10}|(?:f|file|filename|attachment|document|doc)=[^&#;]{1,200}"
    r"|\w+=[^&#;]{1,200}\.(?:pdf|docx?|xlsx?|csv|zip|epub|mp[34])|v=(?!\d+(?:[&#;]|$))[\w-]{11})(?=[&#;]|$)"
)


class Kind(IntEnum):
    """The kind of a fact. Between records of one site, facts of all kinds count."""

    CODE = 0
    """A whole number or a code. It may be a counter."""
    WORDS = 1
    """Words or a date. Such facts are the same on all sites, so they tell records of other sites apart too."""
    OTHER = 2
    """A decimal number or a sum of money."""
    STRONG = 3
    """A number that is the same on all sites, such as an ISBN."""
    FIGURE = 4
    """A number with words. It may tell records apart, as "12 Mill Street", or be a counter, as "3 days ago"."""
    LINK = 5
    """A link without most of its query. It may be a counter."""
    COUNT = 6
    """A whole number that counts views. Between visits to one URL, it is always a counter."""


COUNTING = (Kind.CODE, Kind.FIGURE, Kind.LINK, Kind.COUNT)  # the kinds of counters
TELLING = ((Kind.WORDS, Kind.FIGURE), (Kind.CODE, Kind.OTHER))  # see `telling`
Names: TypeAlias = Collection[int]  # hashes of the names of fields, as `name_of` returns them
Fact: TypeAlias = tuple[Kind, int]  # the kind of a fact, and the 64-bit hash of its value


class Clock(NamedTuple):
    """The start of a run and the present, in seconds since the epoch; zeros if unknown."""

    since: float = 0.0
    now: float = 0.0

    def shows(self, moment: datetime | float) -> bool:
        """Return whether a time is in the run, give or take a minute. One without a zone may be local or UTC."""
        return bool(self.now) and any(self.since - NEAR <= each <= self.now + AHEAD for each in _seconds(moment))


# Make facts


@lru_cache(maxsize=4096)
def plain(field: str) -> str:
    """Return a field's name in lower case, without separators: `productid` for `Product-Id`."""
    return re.sub(r"[_\-\s]+", "", field).lower()


def fact_of(field: str, value: Any, clock: Clock) -> Fact | None:
    """Return the fact of a single value, such as a number, a date or an enum; None for strings and all other values."""
    if isinstance(value, Enum):
        value = value.value if isinstance(value.value, (str, int)) else value.name
        return string_fact(field, str(value), clock)
    if isinstance(value, bool):
        return Kind.WORDS, hash_text(str(value).casefold())
    if not isinstance(value, (int, float, Decimal)) and isinstance(value, Number):
        value = getattr(value, "item", lambda: None)()  # a number of NumPy
    if isinstance(value, (int, float, Decimal)):
        return _number_fact(field, value, clock)
    if isinstance(value, datetime) and clock.shows(value):
        return _NOW
    if isinstance(value, (date, time, timedelta, UUID, PurePath)):
        return Kind.WORDS, hash_text(str(value))
    return None


def string_fact(field: str, text: str, clock: Clock) -> Fact:
    """Return the fact of a short string. A string with the time of the crawl gives the same fact in each crawl."""
    if clock.now and len(text) < LONGEST and any(map(clock.shows, _moments(text.strip()))):
        return _NOW
    written = _ISO.sub(" ", folded(text))
    kind = _kind(field, written)
    if kind is Kind.STRONG:  # "1-11" is another part than "11-1", but of an ISBN only the digits count
        is_grouped = plain(field.rpartition(".")[2]).startswith(("isbn", "ean", "gtin", "upc"))
        written = _SEPARATORS.sub("", written if is_grouped else _BETWEEN.sub("_", written))
    return kind, hash_text(written)


def link_fact(link: str) -> Fact:
    """Return the fact of a link. Leave out its scheme, and what names no page in its query and fragment.

    A term of schema.org, such as `https://schema.org/InStock`, counts as a word.
    """
    kind = Kind.WORDS if _WORD_OF_SCHEMA.match(link) else Kind.LINK
    return kind, hash_text("&".join([_LINK_END.sub("", link), *sorted(_PAGE_ID.findall(link.lower()))]))


def list_fact(elements: Collection[Fact]) -> Fact:
    """Return one fact for several values, given the fact of each. The order of the values does not count."""
    kinds = {kind for kind, _ in elements}
    values = sorted(value for _, value in elements)
    return next(kind for kind in (Kind.WORDS, *Kind) if kind in kinds), hash_text(repr(values))


def nested_fact(facts: Mapping[str, Fact]) -> Fact:
    """Return one fact for a value with fields, given the fact of each field."""
    return list_fact([(kind, hash_text(f"{name}\0{value}")) for name, (kind, value) in facts.items()])


def _number_fact(field: str, value: int | float | Decimal, clock: Clock) -> Fact | None:
    if isinstance(value, int):
        written = brief(value)
    elif not (number := Decimal(str(value))).is_finite():
        return None
    else:
        written = f"{number:f}" if abs(number.adjusted()) < 30 else str(number)
        written = written.rstrip("0").rstrip(".") if "." in written else written
    if isinstance(value, (int, float)) and abs(value) < FAR and clock.shows(float(value)):
        return _NOW
    return _kind(field, written), hash_text(written)


def brief(value: object) -> str:
    """Return a value as a string; a very long number in hexadecimal, since `str` refuses it."""
    return hex(value) if isinstance(value, int) and value.bit_length() > LONG_NUMBER else str(value)


def _kind(field: str, written: str) -> Kind:
    by_name = _kind_by_name(field)
    if by_name is Kind.STRONG and _NUMBER.match(written):
        return by_name
    if not _FIGURE.search(written):
        return Kind.CODE if _FILLER.fullmatch(written) else Kind.WORDS
    if _DATE.search(written):
        return Kind.WORDS
    if by_name is Kind.OTHER or _DECIMAL.search(written) or _CURRENCY.search(written):
        return Kind.OTHER
    if _LETTERS.search(written):
        return Kind.FIGURE
    return Kind.COUNT if by_name is Kind.COUNT else Kind.CODE


@lru_cache(maxsize=4096)
def _kind_by_name(field: str) -> Kind | None:
    names = [*map(plain, field.split("."))]
    if _STRONG.fullmatch(names[-1]):
        return Kind.STRONG
    if _COUNT.fullmatch(names[-1]):
        return Kind.COUNT
    return Kind.OTHER if _MONEY.search(names[-1]) or any(map(_MONEY_OF.fullmatch, names)) else None


def _moments(text: str) -> Iterator[datetime | float]:
    """Yield the times that a text may mean, if it has a date and a time of day: 05/06/2024 1:00 pm has two."""
    if len(text) < SHORTEST or not (text[0].isdigit() or ":" in text):  # most texts end here, in a tenth of the time
        return
    if re.fullmatch(r"\d{10}(?:\d{3}|\.\d+)?", text):
        yield float(text)
    clock = _HALF.sub("", text)
    half = text[len(clock) :].lower()
    # A time with seconds is hardly that of an event, but of the crawl. So it is also read with the month first.
    orders = (r"\3-\2-\1", r"\3-\1-\2") if half or clock.count(":") > 1 else (r"\3-\2-\1",)
    for written in {_YEAR_LAST.sub(order, clock) for order in orders}:
        with suppress(ValueError, TypeError, IndexError, OverflowError):
            if found := _MOMENT.fullmatch(written):
                *parts, zone = found.groups("")
                offset = f"{zone[:3]}:{zone[-2:]}" if zone[:1] in ("+", "-") else "+00:00" if zone else ""
                moment = datetime.fromisoformat("{}-{:0>2}-{:0>2}T{:0>2}:{}:{:0>2}".format(*parts) + offset)
            elif ":" in text and any(map(str.isalpha, text)):  # as in an HTTP header, or as C's ctime writes it
                moment = parsedate_to_datetime(re.sub(r"[-/]([A-Za-z]+)[-/]", r" \1 ", written))
            else:
                continue
            yield moment.replace(hour=moment.hour % 12 + 12 * ("p" in half)) if half else moment


def _seconds(moment: datetime | float) -> Iterator[float]:
    """Yield the possible values of a time, in seconds since the epoch. A number may be in milliseconds."""
    if isinstance(moment, datetime):
        with suppress(OverflowError, OSError, ValueError):
            yield moment.timestamp()
            if moment.tzinfo is None:
                yield moment.replace(tzinfo=timezone.utc).timestamp()
    else:
        yield from (moment, moment / 1000)


_NOW: Fact = Kind.WORDS, hash_text("now")


# Pack and compare facts


@lru_cache(maxsize=4096)
def name_of(field: str) -> int:
    """Return the hash of a field's name, 13 bits."""
    return hash_text(field) & 0x1FFF


def pack(facts: Mapping[str, Fact]) -> bytes:
    """Return the facts of a record as bytes, given the fact of each field; b"" for no facts."""
    names = sorted(facts, key=lambda name: (facts[name][0] is not Kind.STRONG, name))
    packed = [_packed(name, *facts[name]) for name in names[:MOST]]
    if rest := names[MOST:]:
        packed.append(_packed("", Kind.OTHER, hash_text(repr([(name, facts[name][1]) for name in rest]))))
    return b"".join(sorted(packed))


def _packed(name: str, kind: Kind, value: int) -> bytes:
    return ((name_of(name) << _BITS | kind) << 24 | value & 0xFFFFFF).to_bytes(SIZE, "big")


def names_in(facts: bytes, kinds: Collection[int] = (*Kind,)) -> frozenset[int]:
    """Return the hashed names of the packed facts of these kinds."""
    return frozenset(_by_name(facts, kinds))


def _by_name(facts: bytes, kinds: Collection[int] = (*Kind,)) -> dict[int, bytes]:
    """Return the values of the packed facts of these kinds, by hashed name."""
    found: dict[int, bytes] = {}
    for at in range(0, len(facts), SIZE):
        head = int.from_bytes(facts[at : at + 2], "big")
        if head & _KIND in kinds:
            name = head >> _BITS
            found[name] = found.get(name, b"") + facts[at + 2 : at + SIZE]
    return found


def agree(new: bytes, held: bytes, counters: Names = (), *, needs_all: bool = False) -> bool:
    """Return whether two records of one host have the same facts, apart from counters (see `counting`).

    Unless `needs_all`, the held record may have more facts if the two share a strong fact, and differ in none.
    """
    if new == held:
        return True
    left_out = counting(new, held, counters)
    ours, theirs = (
        {name: value for name, value in _by_name(each).items() if name not in left_out} for each in (new, held)
    )
    is_part = not needs_all and are_strongly_equal(new, held) is True and ours.items() <= theirs.items()
    return ours == theirs or is_part


def counting(a: bytes, b: bytes, counters: Names) -> frozenset[int]:
    """Return the counters with a value of the kinds `COUNTING` in both records: "3 views" is one, "no views" is not."""
    return names_in(a, COUNTING) & names_in(b, COUNTING) & frozenset(counters) if counters else frozenset()


def are_strongly_equal(a: bytes, b: bytes) -> bool | None:
    """Return whether the `STRONG` facts that both records have are equal; None if they have none in common."""
    if not (a and b):
        return None
    ours, theirs = (_by_name(each, (Kind.STRONG,)) for each in (a, b))
    common = ours.keys() & theirs.keys()
    return all(ours[name] == theirs[name] for name in common) if common else None


def strong(facts: bytes) -> frozenset[tuple[int, bytes]]:
    """Return the facts of the kind `STRONG`, each as its hashed name and its values."""
    return frozenset(_by_name(facts, (Kind.STRONG,)).items())


def differing(a: bytes, b: bytes) -> frozenset[int]:
    """Return the hashed names of the facts in which two records differ. A fact that one of them lacks differs too."""
    ours, theirs = _by_name(a), _by_name(b)
    return frozenset(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def telling(new: bytes, family: Iterable[bytes]) -> frozenset[int]:
    """Return the hashed names of those facts of a new record in which the records of a family differ.

    A family is the records of one site that resemble the new record. The new record can repeat only a member that has
    the same values of these facts. Facts with words count first. Numbers may differ between sites, so they count only
    among members that have the same words, and only if the new record has no strong fact.
    """
    ours, theirs, found = _by_name(new), [_by_name(each) for each in family], set[int]()
    for kinds in TELLING[: 1 if strong(new) else 2]:
        names = {name for name in _by_name(new, kinds) if len({each.get(name) for each in theirs}) > 1}
        theirs = [each for each in theirs if all(each.get(name) == ours[name] for name in names)]
        found |= names
    return frozenset(found)


# Counters

SEVERAL = 4  # visits at which a counter must have changed, one of them with a long text
SHARE = 0.5  # the share of all visits at which it must have changed
VISITED = 1000  # hosts whose visits are remembered; those visited longest ago are forgotten


class Counters:
    """The known counters of each host, and the visits from which more are learned."""

    def __init__(self) -> None:
        self._known: dict[str, set[int]] = {}
        # For each host and fact: all visits, those at which it changed, and those of these with a long text.
        self._visits = lru_cache(VISITED)(lambda name: Counter[tuple[str, int]]())

    def of(self, url: str | None, facts: bytes = b"") -> frozenset[int]:
        """Return the hashed names of the known counters of a URL's host, and of all in `facts` that count views."""
        known = self._known.get(host(url or ""), ()) if self._known else ()
        return names_in(facts, (Kind.COUNT,)).union(known)

    def visit(self, url: str, new: bytes, held: bytes, *, has_text: bool) -> list[int]:
        """Learn from the facts of a record at two visits, with equal texts. Return the hashed names of new counters.

        `has_text`: whether the text is long. If it is short, the numbers may be all that the record says.
        """
        changed = differing(new, held)
        facts = names_in(new, COUNTING) & names_in(held, COUNTING)
        if not changed <= facts:  # something else changed too
            return []
        name = host(url)
        visits = self._visits(name)
        kinds = {"all": facts, "changed": changed, "beside text": changed if has_text else ()}
        visits.update((kind, fact) for kind, of in kinds.items() for fact in of)
        found = [
            fact
            for fact in facts - self.of(url, new)
            if visits["beside text", fact] and visits["changed", fact] >= max(SEVERAL, SHARE * visits["all", fact])
        ]
        for fact in found:
            self.know(name, fact)
        return found

    def know(self, name: str, fact: int, *, is_counter: bool = True) -> None:
        """Note that a fact of a host is a counter; with `is_counter=False`, that it is none."""
        known = self._known.setdefault(name, set())
        (known.add if is_counter else known.discard)(fact)

    def known(self) -> Iterator[tuple[str, int]]:
        """Yield the known counters: the host, and the hashed name of the field."""
        yield from ((name, fact) for name, facts in self._known.items() for fact in sorted(facts))
