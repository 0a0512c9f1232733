"""Pack the facts of a record, and compare those of two records. Pure.

A fact is a short value that says what the record is: a date, a place, a price, a number. The facts of a record are
stored as bytes, `SIZE` for each fact, in ascending order: a hash of the field's name with the kind of the fact, and a
hash of the value. So equal facts are equal bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum

from .fingerprints.hashes import hash_text

SIZE = 5  # bytes of a fact: 2 for the name and the kind, 3 for the value
MOST = 40  # facts that are packed one by one; the others are packed as one
_BITS, _KIND = 3, 7  # the bits of the kind, beside the name


class Kind(IntEnum):
    """What a fact may decide besides the records of its own site."""

    CODE = 0
    """A whole number or a code. If it changes at each visit, it is a counter."""
    WORDS = 1
    """Words or a date. Other sites write it in the same way, so it tells their records apart too."""
    OTHER = 2
    """A link, a decimal number or a sum of money."""
    STRONG = 3
    """A number that is the same on all sites, such as an ISBN."""
    FIGURE = 4
    """A number with words, such as "12 Mill Street" or "3 days ago". It may be a counter, or tell records apart."""


COUNTING = (Kind.CODE, Kind.FIGURE)
TELLING = (Kind.WORDS, Kind.FIGURE)
Names = Collection[int]
"""Hashes of the names of fields, as `name_of` returns them."""


def name_of(field: str) -> int:
    """Return the hash of a field's name, 13 bits."""
    return hash_text(field) & 0x1FFF


def pack(facts: Mapping[str, tuple[Kind, int]]) -> bytes:
    """Return the facts of a record as bytes; b"" without any.

    `facts` has the kind and the 64-bit hash of the value by the name of the field.
    """
    names = sorted(facts)
    packed = [_packed(name, *facts[name]) for name in names[:MOST]]
    if rest := names[MOST:]:
        packed.append(_packed("", Kind.OTHER, hash_text(repr([(name, facts[name][1]) for name in rest]))))
    return b"".join(sorted(packed))


def _packed(name: str, kind: Kind, value: int) -> bytes:
    return (name_of(name) << _BITS | kind).to_bytes(2, "big") + (value & 0xFFFFFF).to_bytes(3, "big")


def names_in(facts: bytes, kinds: Collection[int] = (*Kind,)) -> frozenset[int]:
    """Return the hashed names of the facts of these kinds."""
    return frozenset(_by_name(facts, kinds))


def _by_name(facts: bytes, kinds: Collection[int] = (*Kind,)) -> dict[int, bytes]:
    """Return the values of the facts of some kinds by name."""
    found: dict[int, bytes] = {}
    for at in range(0, len(facts), SIZE):
        head = int.from_bytes(facts[at : at + 2], "big")
        if head & _KIND in kinds:
            name = head >> _BITS
            found[name] = found.get(name, b"") + facts[at + 2 : at + SIZE]
    return found


def agree(new: bytes, held: bytes, ignored: Names = ()) -> bool:
    """Return whether two records of one site have the same facts, apart from the ignored fields.

    If an equal strong fact shows that they are one record, the held record may have more facts than the new one.
    """
    if new == held:
        return True
    ours, theirs = (
        {name: value for name, value in _by_name(each).items() if name not in ignored} for each in (new, held)
    )
    return ours == theirs or (are_strongly_equal(new, held) is True and ours.items() <= theirs.items())


def are_strongly_equal(a: bytes, b: bytes) -> bool | None:
    """Return whether the strong facts that both records have are equal; None if they have none in common."""
    if not (a and b):
        return None
    ours, theirs = (_by_name(each, (Kind.STRONG,)) for each in (a, b))
    common = ours.keys() & theirs.keys()
    return all(ours[name] == theirs[name] for name in common) if common else None


def has_strong(facts: bytes) -> bool:
    """Return whether a record has a strong fact."""
    return bool(_by_name(facts, (Kind.STRONG,)))


def differing(a: bytes, b: bytes) -> frozenset[int]:
    """Return the hashed names of the facts in which two records differ. A fact that one of them lacks differs too."""
    ours, theirs = _by_name(a), _by_name(b)
    return frozenset(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def telling(new: bytes, family: Iterable[bytes]) -> frozenset[int]:
    """Return the hashed names of those facts in words or dates that tell the records of a family apart.

    The family are records of another site with one text. A new record with this text can only repeat the one with which
    it agrees in these facts. Facts that the new record lacks are left out.
    """
    theirs = [_by_name(each) for each in family]
    return frozenset(name for name in _by_name(new, TELLING) if len({each.get(name) for each in theirs}) > 1)


def agree_in(names: Names, a: bytes, b: bytes) -> bool:
    """Return whether two records have equal facts of these names."""
    ours, theirs = _by_name(a), _by_name(b)
    return all(ours.get(name) == theirs.get(name) for name in names)
