"""The types of the settings as keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Literal, TypeAlias, TypedDict

Action: TypeAlias = Literal["drop", "tag", "audit"]
Revisit: TypeAlias = Literal["keep", "drop", "skip"]
Scope: TypeAlias = Literal["all", "host", "domain"]
ShortText: TypeAlias = Literal["unique", "exact"]
UncleanRun: TypeAlias = Literal["forget", "keep"]
UnheldMirrors: TypeAlias = Literal["leave", "redirect", "skip"]

Duration: TypeAlias = "float | str | timedelta"


class Keywords(TypedDict, total=False):
    """Every setting except the store, as a user writes it."""

    enabled: bool
    store_required: bool
    namespace: str
    fields: Sequence[str] | None
    title_field: str
    url_field: str
    tag_field: str
    ignore_fields: Sequence[str]
    extractor: str | Callable[[str], str | None]
    detectors: Sequence[object]
    """Names, import paths, or objects with the protocol `Detector`."""
    action: Action
    revisit: Revisit
    dropped: str | PathLike[str] | None
    reviewed: str | PathLike[str] | None
    scope: Scope
    simhash_distance: int
    length_ratio: float
    resemblance: float | Mapping[int, float]
    imatch_lexicons: int
    min_tokens: int
    short_text: ShortText
    lexicon: str | PathLike[str] | None
    synonyms: Sequence[str]
    skip_mirrors: bool
    skip_start: bool
    count_changes: bool
    dead_links: bool
    dead_http_codes: Iterable[int] | str
    mirror_hosts: Mapping[str, str]
    learn_hosts: bool
    unheld_mirrors: UnheldMirrors
    recheck: float
    mirror_ttl: Duration
    ttl: Duration | None
    unclean_run: UncleanRun
    preferred_hosts: Sequence[str]
    workers: int
