"""The pipeline and the middlewares of a crawl, with their shared state. Only these and contrib use Scrapy's engine.

`NearDup` (extension) owns the store, the settings and the counts. It also keeps the documents of items that passed
while the store failed. Most other memory is in three classes. `ItemOrigins` holds each response with its items, weakly.
`MirrorMiddleware` holds the requests that were skipped. `Observer` counts items and copies, for its warnings.
docs/architecture.md follows an item and a request through the files.

This file has the *doors*, by which other components take part: advisers, and signals. docs/contrib.md shows their use.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg, get_config
from scrapy.utils.project import inside_project

from ..settings import STORE_NAME, ConfigError

if TYPE_CHECKING:
    from scrapy import Request

    from ..deduplicator import Claim
    from ..mirrors import Advice

item_judged = object()
"""The signal of each item, sent before the item is dropped or passes on. Its arguments are `item`, `document` (None
if the item has none), `claim` (None without a verdict) and `response` (None if unknown)."""

request_skipped = object()
"""The signal of each request that is skipped, since the store holds its content. Its argument is `request`."""


class Adviser:
    """Is asked before a fetch and for a dead link, and told of each visit. Subclasses override what they need.

    To take part in a crawl, an adviser adds itself to `NearDup.advisers`. The advisers are asked in the order of this
    list, and then the store. The first advice is followed. An audit asks no adviser.
    """

    async def advise(self, request: Request) -> Advice | None:
        """Return advice on a request that is about to be sent; None to ask the next adviser.

        Some requests are sent without asking, such as one that was skipped before, or a start request without
        NEARDUP_SKIP_START.
        """

    async def rescue(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request for a page that stands in for a dead link in this run only; None to ask the next adviser.

        It is called when no known copy of the URL `dead` is left to try, and no URL has returned its held content in
        this run. `seen` is the time of the last visit to `dead`. Make the request with `detours.detour`.
        """

    def visited(self, claim: Claim) -> None:
        """Note what a URL returned. This is called after `claim` was committed, in the thread that uses the store."""


def default_store(settings: BaseSettings) -> Path:
    """Return the path of the default store, in the folder of Scrapy's `data_path`. Do not create the folder.

    In a project without scrapy.cfg, as on scrapyd, return a path in JOBDIR. Raise ConfigError if JOBDIR is not set.
    """
    if not inside_project():
        return Path(".scrapy", STORE_NAME)
    file, named = closest_scrapy_cfg(), get_config().get("datadir", "default", fallback="")
    folder = named or (Path(file).parent / ".scrapy" if file else settings.get("JOBDIR"))
    if not folder:
        raise ConfigError(
            "NEARDUP_STORE = None is not allowed, since there is no scrapy.cfg to mark the project's folder (as on "
            "scrapyd); allowed is a path or the address of a server. Or set JOBDIR: the store is then created in it"
        )
    return Path(folder, STORE_NAME)
