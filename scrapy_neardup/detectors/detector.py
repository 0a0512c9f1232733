"""The protocol of a detector, the standard detectors, and the detectors that NEARDUP_DETECTORS names.

The standard ones find equal text, equal sets of lexicon terms, near SimHashes and shared shingles. `Signer` makes the
records of many documents in one go, with the fingerprints of these and of other detectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, runtime_checkable

from ..document import Document
from ..fingerprints import record
from ..fingerprints.hashes import hash_tokens
from ..fingerprints.imatch import Terms
from ..fingerprints.record import BANDS, ROWS, SIMHASH, Wanted
from ..index.kinds import Equal, Near
from ..settings import Config, ConfigError
from ..text.lexicon import Lexicon, builtin

if TYPE_CHECKING:
    from ..document import Document
    from ..index.kinds import Equal, Index, Near


def checked(name: str, fingerprints: Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Return the fingerprints of a detector as plain integers.

    Raise TypeError or ValueError for values that are not unsigned 64-bit integers.
    """
    try:
        values = tuple(map(index, fingerprints))
    except TypeError as error:
        raise TypeError(f"detector {name!r}: fingerprints must be unsigned 64-bit integers; {error}") from None
    if values and not (min(values) >= 0 and max(values) < 2**64):
        raise ValueError(f"detector {name!r}: fingerprints must be unsigned 64-bit integers, not {values}")
    return values


@runtime_checkable
class Detector(Protocol):
    """Proposes earlier documents that a document may repeat.

    To use a class of your own, put its import path into NEARDUP_DETECTORS. The class is called without arguments. If
    its fingerprints are slow to compute, set its attribute `heavy = True`. Crawls then compute them in worker
    processes.
    """

    name: str
    """One word, for stats, tags and the store."""
    scheme: str
    """The version, parameters and lexicon that determine the fingerprints. A store with another scheme is refused."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        """Return the fingerprints of a document as unsigned 64-bit integers; () to abstain."""

    def index(self) -> Equal | Near | Index[Any]:
        """Return the lookup for these fingerprints: `Equal` or `Near` of the store, or a new, empty index."""


class _Standard:
    part: Wanted
    """The part of a record that the detector adds."""

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        [made] = record.make([document.source], self.part)
        return next(iter(record.fingerprints_in(made, record.Head.of(made)).values()), ())

    def index(self) -> Equal:
        return Equal()


class Exact(_Standard):
    """Proposes documents with equal normalized text: the same tokens in the same order.

    Its first fingerprint is that of the text. If the document has facts, its last one is that of the whole record, so
    that a record is found among however many records with its text.
    """

    name = record.EXACT
    scheme = "exact/3"
    part = Wanted(exact=True)


class IMatch(_Standard):
    """Proposes documents with an equal I-Match digest. Abstains from short texts and foreign languages.

    Chowdhury et al. 2002; Kołcz et al. 2004.
    """

    name = record.IMATCH

    def __init__(self, lexicon: Lexicon, lexicons: int) -> None:
        self.scheme = f"imatch/2 {lexicon.id} {lexicons}"
        self.part = Wanted(digests=1 + lexicons, terms=Terms(hash_tokens(list(lexicon.terms))[:, 0]))


class SimHash(_Standard):
    """Proposes documents with a SimHash at a Hamming distance of at most `distance` (Manku et al. 2007)."""

    name = record.SIMHASH
    scheme = "simhash/1"
    part = Wanted(simhash=True)

    def __init__(self, distance: int) -> None:
        self.distance = distance

    def index(self) -> Near:  # type: ignore[override]
        return Near(self.distance)


class Shingle(_Standard):
    """Proposes documents that share a super-shingle (Broder et al. 1997). Recall rises steeply with resemblance."""

    name = record.SHINGLE
    scheme = f"shingle/1 {BANDS}x{ROWS}"
    part = Wanted(shingle=True)


STANDARD = (Exact, IMatch, SimHash, Shingle)


class Signer:
    """Makes the records of documents."""

    def __init__(self, detectors: Iterable[Detector]) -> None:
        detectors = list(detectors)
        parts = [each.part for each in detectors if isinstance(each, STANDARD) and type(each) in STANDARD]
        chosen: dict[str, Any] = {n: value for part in parts for n, value in part._asdict().items() if value}
        self._wanted = Wanted(**chosen)
        self._others = [each for each in detectors if type(each) not in STANDARD]

    def records(self, documents: Sequence[Document]) -> list[bytes]:
        """Return the records of documents. Raise TypeError or ValueError for an invalid fingerprint."""
        return self.finish(documents, self.begin(documents))

    def begin(self, documents: Iterable[Document]) -> list[bytes]:
        """Return the records with the fingerprints of the standard detectors only. This may be done in any thread."""
        return record.make([document.source for document in documents], self._wanted)

    def finish(self, documents: Iterable[Document], records: list[bytes]) -> list[bytes]:
        """Return records with the fingerprints of all other detectors added. Raise what such a detector raises."""
        if not self._others:
            return records
        return [record.extended(made, self._made(each)) for each, made in zip(documents, records, strict=True)]

    def _made(self, document: Document) -> dict[str, tuple[int, ...]]:
        ready = document.ready
        return {
            d.name: checked(d.name, ready[d.name] if d.name in ready else d.fingerprints(document))
            for d in self._others
        }


# `BUILTIN_DETECTORS` in settings.py lists the same names, so that reading settings imports no detector.
_BUILTIN: dict[str, Callable[[Config], Detector]] = {
    "exact": lambda config: Exact(),
    "imatch": lambda config: IMatch(_lexicon(config), config.imatch_lexicons),
    "simhash": lambda config: SimHash(config.simhash_distance),
    "shingle": lambda config: Shingle(),
    "feature_code": lambda config: _feature_code(),
    "dwdcs": lambda config: _with_extra(lambda: _dwdcs(config)),
    "dwswn": lambda config: _with_extra(_dwswn),
}


def build_detectors(config: Config) -> list[Detector]:
    """Return the detectors in NEARDUP_DETECTORS, in order. Raise ConfigError if a detector can't be built."""
    detectors = [_build(part, config) for part in config.detectors]
    names = [detector.name for detector in detectors]
    if len(set(names)) < len(names):
        raise ConfigError(f"NEARDUP_DETECTORS = {list(config.detectors)!r} is not allowed; allowed is each name once")
    return detectors


def is_heavy(detector: Detector) -> bool:
    """Return whether a detector is too slow for the reactor: its attribute `heavy` is true."""
    return bool(getattr(detector, "heavy", False))


def _build(part: str | Detector, config: Config) -> Detector:
    if isinstance(part, str):
        return _BUILTIN[part](config) if part in _BUILTIN else _checked(_imported(part), part)
    return _checked(part, part)


def _imported(path: str) -> object:
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)()
    except Exception as error:  # a module of the user's may raise anything on import
        raise ConfigError(f"NEARDUP_DETECTORS: {path!r} can't be used as a detector: {error}") from error


def _checked(made: object, part: object) -> Detector:
    if isinstance(made, type) or not isinstance(made, Detector):
        raise ConfigError(
            f"NEARDUP_DETECTORS: {part!r} is not a detector: it needs `name`, `scheme`, `fingerprints` and `index`"
        )
    if isinstance(made.index(), Near) and made.name != SIMHASH:
        raise ConfigError(
            f"NEARDUP_DETECTORS: the index of {made.name!r} is `Near`; allowed is `Equal`, or its own index"
        )
    return made


def _lexicon(config: Config) -> Lexicon:
    if config.lexicon is None:
        return builtin()
    try:
        return Lexicon.load(config.lexicon)
    except (OSError, ValueError) as error:
        raise ConfigError(f"NEARDUP_LEXICON = {config.lexicon!r} can't be read: {error}") from error


# The detectors of `papers` are imported only if they are used, since each crawl waits for imports at its start.


def _feature_code() -> Detector:
    from ..papers.feature_code import FeatureCode

    return FeatureCode()


def _dwdcs(config: Config) -> Detector:
    from ..papers.dwdcs import DWDCS, Concepts, builtin

    try:
        concepts = Concepts.load(*config.synonyms) if config.synonyms else builtin()
    except (OSError, ValueError) as error:
        raise ConfigError(f"NEARDUP_SYNONYMS = {config.synonyms!r} can't be read: {error}") from error
    return DWDCS(concepts)


def _dwswn() -> Detector:
    from ..papers.dwdcs import DWSWN

    return DWSWN()


def _with_extra(make: Callable[[], Detector]) -> Detector:
    try:
        return make()
    except ModuleNotFoundError as error:
        raise ConfigError(f"NEARDUP_DETECTORS: {error}") from error
