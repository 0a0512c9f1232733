"""Item pipelines against near-duplicates as one would write them at home with other packages, for `bench/crawl.py`."""

from __future__ import annotations

from collections import deque
from importlib import import_module
from typing import Any

import peers
from scrapy.exceptions import DropItem


class Home:
    """Drops an item whose text is near to an earlier one's; of HTML trafilatura takes the text."""

    peer: peers.Peer

    def __init__(self) -> None:
        self._extract: Any = import_module("trafilatura").extract
        self._texts: deque[str] = deque()
        self._found = type(self).peer(iter(self._texts.popleft, None))

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        self._texts.append(item.get("text") or self._extract(item["html"]) or "")
        if next(self._found) is not None:
            raise DropItem("near to an earlier one", log_level="DEBUG")
        return item


class SimHash(Home):
    peer = staticmethod(peers.simhash)


class MinHash(Home):
    peer = staticmethod(peers.datasketch)
