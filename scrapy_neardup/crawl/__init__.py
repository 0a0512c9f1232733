"""The pipeline and the middlewares of a crawl, with their shared state. Only this package uses Scrapy's engine.

`NearDup` (extension) owns the store, the settings and the counts, and keeps documents that passed while the store did
not answer. What a crawl remembers besides is in few places, each with one reason: `ItemOrigins` follows each response
with its items, weakly; `MirrorMiddleware` has the requests that were skipped; `Observer` counts verdicts.
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
without text), `claim` (None without a verdict) and `response` (None if unknown)."""

request_skipped = object()
"""The signal of each request that is skipped since its content is held. Its argument is `request`."""


class Adviser:
    """Is asked before each fetch and for each dead link, and told of each visit. Subclasses override what they need.

    To take part in a crawl, an adviser adds itself to `NearDup.advisers`. Advisers are asked in this order, the store
    at last, and the first advice is followed. An audit asks none.
    """

    async def advise(self, request: Request) -> Advice | None:
        """Return advice on a request that is about to be sent; None to ask the next adviser.

        Not asked about start requests (but see NEARDUP_SKIP_START), nor about those that are sent in any case.
        """

    async def rescue(self, request: Request, dead: str, seen: float) -> Request | None:
        """Return the request for a page that stands in for a dead link in this run only; None to ask the next adviser.

        Asked after all known copies of the URL `dead` failed, if the store holds content of `dead` that this run has
        not delivered. `dead` was last visited at `seen`, a Unix time. Make the request with `middleware.detour`.
        """

    def visited(self, claim: Claim) -> None:
        """Note what a URL returned. Called after the claim was committed, in the thread that uses the store."""


def default_store(settings: BaseSettings) -> Path:
    """Return the path of the store in the folder in which Scrapy's `data_path` puts files, without creating the folder.

    In a project without scrapy.cfg, as on scrapyd, return a path in JOBDIR. Raise ConfigError if that is not set.
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
