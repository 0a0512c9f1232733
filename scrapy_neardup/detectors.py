"""The protocol of a detector, the standard detectors, and the detectors that NEARDUP_DETECTORS names.

The standard ones find equal text, equal sets of lexicon terms, near SimHashes and shared shingles. `Signer` makes
records with the fingerprints of all detectors, for many documents at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from operator import index
from os import PathLike
from typing import Any, Protocol, SupportsIndex, runtime_checkable

from .document import Document
from .fingerprints import record
from .fingerprints.lexicon import Lexicon, builtin
from .fingerprints.record import BANDS, ROWS, Wanted
from .row_index import Equal, Index, Near
from .settings import Config, ConfigError, detector_name


def checked(name: str, fingerprints: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return a detector's fingerprints as plain integers. Raise ValueError unless all are unsigned 64-bit integers."""
    try:
        return tuple(array("Q", map(index, fingerprints)))
    except (TypeError, OverflowError):
        values = f"{fingerprints!r:.200}"
        raise ValueError(f"detector {name!r}: fingerprints must be unsigned 64-bit integers, not {values}") from None


@runtime_checkable
class Detector(Protocol):
    """Proposes earlier documents that a document may repeat.

    To use a class of your own, put its import path into NEARDUP_DETECTORS, with arguments if it takes any. If its
    fingerprints are slow to compute, set its attribute `heavy = True`. Crawls then compute them in worker processes.
    """

    name: str
    """One word, for stats, tags and the store."""
    scheme: str
    """The version, parameters and lexicon that determine the fingerprints. A store with another scheme is refused."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        """Return the fingerprints of a document as unsigned 64-bit integers; () to abstain."""

    def index(self) -> Equal | Near | Index[Any]:
        """Return `Equal` to have the store's index find equal fingerprints; else a new, empty index of your own."""


class _Standard:
    part: Wanted  # the part of a record that the detector adds

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        [made] = record.make([document.source], self.part)
        found = record.Decoded(made)
        return next(filter(None, found.keys.values()), () if found.simhash is None else (found.simhash,))

    def index(self) -> Equal:
        return Equal()


class Exact(_Standard):
    """Proposes documents with equal normalized text: the same tokens in the same order.

    One fingerprint is of the text. If there are facts and a host, a second one is of host, facts and text together. It
    finds a record among any number of records with the same text, such as ads.
    """

    name = record.EXACT
    scheme = "exact/4"
    part = Wanted(exact=True)


class IMatch(_Standard):
    """Proposes documents with an equal I-Match digest. Abstains if a text is short or has few terms of the lexicon.

    Chowdhury et al. 2002; Kołcz et al. 2004.
    """

    name = record.IMATCH

    def __init__(self, lexicon: Lexicon | str | PathLike[str] | None = None, randomized: int = 0) -> None:
        """`lexicon` is a lexicon or its path; None for the built-in one.

        `randomized`, from 0 to 64, is the number of randomized lexicons that are used too.
        """
        _check_whole("randomized", randomized, 64)
        if not isinstance(lexicon, Lexicon):
            lexicon = Lexicon.load(lexicon) if lexicon else builtin()
        self.scheme = f"imatch/2 {lexicon.id} {randomized}"
        self.part = Wanted(digests=1 + randomized, terms=lexicon.hashed)


class SimHash(_Standard):
    """Proposes documents with a SimHash at a Hamming distance of at most `distance` (Manku et al. 2007)."""

    name = record.SIMHASH
    scheme = "simhash/1"
    part = Wanted(simhash=True)

    def __init__(self, distance: int = 3) -> None:
        _check_whole("distance", distance, 15)
        self.distance = distance

    def index(self) -> Near:  # type: ignore[override] # the others are found by equal fingerprints
        return Near(self.distance)


class Shingle(_Standard):
    """Proposes documents that share a super-shingle (Broder et al. 1997). Recall rises steeply with resemblance."""

    name = record.SHINGLE
    scheme = f"shingle/1 {BANDS}x{ROWS}"
    part = Wanted(shingle=True)


def _check_whole(name: str, value: object, most: int) -> None:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name} = {value!r} is not allowed; allowed is a whole number from 0 to {most}")


STANDARD = (Exact, IMatch, SimHash, Shingle)


class Signer:
    """Makes records of documents, with the fingerprints of all its detectors."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        detectors = list(detectors)
        parts = [each.part for each in detectors if isinstance(each, STANDARD) and type(each) in STANDARD]
        chosen: dict[str, Any] = {n: value for part in parts for n, value in part._asdict().items() if value}
        self._wanted = Wanted(**chosen)
        self._others = [each for each in detectors if type(each) not in STANDARD]

    def records(self, documents: Sequence[Document]) -> list[bytes]:
        """Return the records of documents. Raise ValueError for an invalid fingerprint."""
        return self.finish(documents, self.begin(documents))

    def begin(self, documents: Iterable[Document]) -> list[bytes]:
        """Return the records with the fingerprints of the standard detectors only. This may be done in any thread."""
        return record.make([document.source for document in documents], self._wanted)

    def finish(self, documents: Iterable[Document], records: list[bytes]) -> list[bytes]:
        """Return `records` with the fingerprints of all other detectors added. Raise what these detectors raise."""
        if not self._others:
            return records
        return [record.extended(made, self._made(each)) for each, made in zip(documents, records, strict=True)]

    def _made(self, document: Document) -> dict[str, tuple[int, ...]]:
        ready = document.ready
        return {
            d.name: checked(d.name, ready[d.name] if d.name in ready else d.fingerprints(document))
            for d in self._others
        }


_BUILTIN: dict[str, type[Detector] | str] = {
    **{each.name: each for each in STANDARD},
    # Imported only if they are used, since each crawl waits for imports at its start.
    "feature_code": "scrapy_neardup.papers.feature_code.FeatureCode",
    "dwdcs": "scrapy_neardup.papers.dwdcs.DWDCS",
    "dwswn": "scrapy_neardup.papers.dwdcs.DWSWN",
}


def build_detectors(config: Config) -> list[Detector]:
    """Return the detectors in NEARDUP_DETECTORS, in order. Raise ConfigError for a bad one, or for two of one name."""
    detectors = [_build(part) for part in config.detectors]
    names = [detector.name for detector in detectors]
    if len(set(names)) < len(names):
        raise ConfigError(f"NEARDUP_DETECTORS = {list(config.detectors)!r} is not allowed; allowed is each name once")
    return detectors


def is_heavy(detector: Detector) -> bool:
    """Return whether a detector is too slow for the reactor: its attribute `heavy` is true."""
    return bool(getattr(detector, "heavy", False))


def _build(part: Any) -> Detector:
    if not isinstance(part, (str, Mapping)):
        return _checked(part, part)
    arguments = {} if isinstance(part, str) else {name: value for name, value in part.items() if name != "name"}
    make = _BUILTIN.get(detector_name(part), detector_name(part))
    try:
        if isinstance(make, str):
            module, _, name = make.rpartition(".")
            make = getattr(import_module(module), name)
        made = make(**arguments)
    except Exception as error:  # a module of the user's may raise anything on import
        why = _on_arguments(make, error) if isinstance(error, TypeError) and callable(make) else error
        raise ConfigError(f"NEARDUP_DETECTORS: {part!r} can't be used as a detector: {why}") from error
    return _checked(made, part)


def _on_arguments(make: Callable[..., object], error: TypeError) -> str:
    """Return a message: what is wrong with the arguments of a detector, and which are allowed."""
    why = "its arguments do not fit" if make.__module__.startswith("scrapy_neardup.") else str(error)
    try:
        known = [str(each.replace(annotation=each.empty)) for each in signature(make).parameters.values()]
    except ValueError:  # a class in C need not have a signature
        return why
    return f"{why}; allowed are {', '.join(known) or 'none'}"


def _checked(made: object, part: object) -> Detector:
    if isinstance(made, type) or not isinstance(made, Detector):
        why = f"{part!r} is not a detector: it needs `name`, `scheme`, `fingerprints` and `index`"
    elif isinstance(made.index(), Near) and type(made) is not SimHash:
        why = f"the index of {made.name!r} is `Near`; allowed is `Equal`, or its own index"
    else:
        return made
    raise ConfigError(f"NEARDUP_DETECTORS: {why}")
