"""scrapy-neardup: keep a crawl from fetching and storing the same content twice."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .addon import Addon
    from .claim import Claim
    from .config import Config, ConfigError
    from .dedup import Deduplicator
    from .document import Document
    from .middleware import MirrorMiddleware
    from .origins import ItemOrigins
    from .pipeline import NearDupPipeline
    from .store import StoreError
    from .verdict import Verdict

_HOMES = {
    "Addon": "addon",
    "Claim": "claim",
    "Config": "config",
    "ConfigError": "config",
    "Deduplicator": "dedup",
    "Document": "document",
    "ItemOrigins": "origins",
    "MirrorMiddleware": "middleware",
    "NearDupPipeline": "pipeline",
    "StoreError": "store",
    "Verdict": "verdict",
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
]

if not TYPE_CHECKING:  # it would let any name pass

    def __getattr__(name: str) -> Any:
        # Late, so that what needs no Scrapy does not import it.
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
