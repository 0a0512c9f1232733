"""scrapy-neardup: keep a crawl from fetching and storing the same content twice.

An item passes through these modules in this order: crawl/pipeline, items, document, detectors, deduplicator, store and
matching/matcher. Together they reach the verdict. Then crawl/pipeline, deduplicator and store carry it out.

A request passes through crawl/middleware and mirrors. It is fetched, skipped or redirected.

docs/architecture.md explains each step.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .crawl.middleware import MirrorMiddleware as MirrorMiddleware
    from .crawl.pipeline import Addon as Addon
    from .crawl.pipeline import ItemOrigins as ItemOrigins
    from .crawl.pipeline import NearDupPipeline as NearDupPipeline
    from .deduplicator import Claim as Claim
    from .deduplicator import Deduplicator as Deduplicator
    from .document import Document as Document
    from .items import item_document as item_document
    from .settings import Config as Config
    from .settings import ConfigError as ConfigError
    from .store import StoreError as StoreError
    from .verdict import Verdict as Verdict
else:  # imported on access, so that modules that need no Scrapy do not load it
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
    __all__ = [*_HOMES]

    def __getattr__(name: str) -> Any:  # hidden from type checkers, which would accept any name
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
