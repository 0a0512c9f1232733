"""Build the detectors that NEARDUP_DETECTORS gives by name, import path or object."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..fingerprints.record import SIMHASH
from ..index.kinds import Near
from ..settings import Config, ConfigError
from ..text.lexicon import Lexicon, builtin
from .detector import Detector
from .standard import Exact, IMatch, Shingle, SimHash

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
