"""The default path of the store, for a crawl without NEARDUP_STORE."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.conf import closest_scrapy_cfg, get_config
from scrapy.utils.project import inside_project

from ..settings import STORE_NAME, ConfigError

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def default_store(settings: BaseSettings) -> Path:
    """Return the path of the store in Scrapy's data folder, else in JOBDIR. Raise ConfigError if there is neither."""
    folder = _data_folder() or settings.get("JOBDIR")
    if not folder:
        raise ConfigError(
            "NEARDUP_STORE = None is not allowed without a scrapy.cfg that marks the project's folder, as on scrapyd; "
            "allowed are a path, the address of a server, or None with JOBDIR, which then holds the store"
        )
    return Path(folder, STORE_NAME)


def _data_folder() -> Path | None:
    """Return the folder of `scrapy.utils.project.data_path` without creating it; None if it is unknown."""
    if not inside_project():
        return Path(".scrapy")
    if folder := get_config().get("datadir", "default", fallback=""):
        return Path(folder)
    file = closest_scrapy_cfg()
    return Path(file).parent / ".scrapy" if file else None
