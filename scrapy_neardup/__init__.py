"""scrapy-neardup: keep a crawl from fetching and storing the same content twice.

An item passes through these modules in this order: crawl/pipeline, items, document, detectors, deduplicator, store,
matching/matcher, crawl/pipeline, deduplicator, store.

A request passes through crawl/middleware and mirrors. It is fetched, skipped or redirected.

docs/architecture.md explains each step.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .crawl.middleware import MirrorMiddleware
    from .crawl.pipeline import Addon, ItemOrigins, NearDupPipeline
    from .deduplicator import Claim, Deduplicator
    from .document import Document
    from .items import item_document
    from .settings import Config, ConfigError
    from .store import StoreError
    from .verdict import Verdict

_HOMES = {
    "Addon": "crawl.pipeline",
    "Claim": "deduplicator",
    "Config": "settings",
    "ConfigError": "settings",
    "Deduplicator": "deduplicator",
    "Document": "document",
    "ItemOrigins": "crawl.pipeline",
    "MirrorMiddleware": "crawl.middleware",
    "NearDupPipeline": "crawl.pipeline",
    "StoreError": "store",
    "Verdict": "verdict",
    "item_document": "items",
}
__all__ = [
    "Addon",
    "Claim",
    "Config",
    "ConfigError",
    "Deduplicator",
    "Document",
    "ItemOrigins",
    "MirrorMiddleware",
    "NearDupPipeline",
    "StoreError",
    "Verdict",
    "item_document",
]

if not TYPE_CHECKING:  # type checkers would otherwise accept any name

    def __getattr__(name: str) -> Any:
        # Imported on access, so that modules that need no Scrapy do not load it.
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
