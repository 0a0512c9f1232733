"""The pipeline and the middlewares of a crawl, with their shared state. Only this package uses Scrapy's engine.

`NearDup` (extension) owns the store, the settings and the counts. What a crawl remembers besides is in few places, each
with one reason: `Pages` follows each response with its items, weakly; `Tickets` has the requests that were changed;
`Access` keeps documents that passed while the store did not answer; `Warnings` counts verdicts. docs/architecture.md
follows an item and a request through the files.
"""

from __future__ import annotations

from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg, get_config
from scrapy.utils.project import inside_project

from ..settings import STORE_NAME, ConfigError


def default_store(settings: BaseSettings) -> Path:
    """Return the path of the store in Scrapy's data folder or, if that is unknown, in JOBDIR.

    Raise ConfigError if JOBDIR is not set either.
    """
    folder = _data_folder() or settings.get("JOBDIR")
    if not folder:
        raise ConfigError(
            "NEARDUP_STORE = None is not allowed, since there is no scrapy.cfg to mark the project's folder (as on "
            "scrapyd); allowed is a path or the address of a server. Or set JOBDIR: the store is then created in it"
        )
    return Path(folder, STORE_NAME)


def _data_folder() -> Path | None:
    """Return the folder in which Scrapy's `data_path` puts files, without creating it; None if it is unknown."""
    if not inside_project():
        return Path(".scrapy")
    if folder := get_config().get("datadir", "default", fallback=""):
        return Path(folder)
    file = closest_scrapy_cfg()
    return Path(file).parent / ".scrapy" if file else None
