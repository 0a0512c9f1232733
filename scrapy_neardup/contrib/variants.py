"""Skip URLs that differ from a fetched one only in parts that never change the content, such as session ids."""

from __future__ import annotations

import json
import logging
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import signals

from ..atomic import replacing
from ..crawl.detours import is_plain
from ..crawl.doors import Adviser
from ..crawl.extension import NearDup
from ..settings import ConfigError
from .variant_rules import Rule, VariantRules

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from typing_extensions import Self

    from ..matching.claim import Claim
    from ..mirrors.advice import Advice

logger = logging.getLogger(__name__)


class Variants(Adviser):
    """An extension that learns such parts of each host. With VARIANTS_FILE, later crawls know them from the start."""

    def __init__(self, neardup: NearDup, file: str | None) -> None:
        config = neardup.config
        self._neardup = neardup
        self._file = file
        self._rules = VariantRules(neardup.dedup, ttl=config.mirror_ttl, skips_revisits=config.revisit == "skip")
        self._changes: deque[tuple[Rule, bool]] = deque()
        if file and Path(file).exists():
            try:
                self._rules.load(json.loads(Path(file).read_bytes()))
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigError(f"VARIANTS_FILE = {file!r} can't be read: {error!r}") from error

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        o = cls(NearDup.from_crawler(crawler), crawler.settings.get("VARIANTS_FILE"))
        o._neardup.advisers.append(o)
        crawler.signals.connect(o.spider_closed, signal=signals.spider_closed)
        return o

    async def spider_closed(self) -> None:
        self._tell()
        if self._file:
            await self._neardup.access.ask(self._save, self._file)

    def _save(self, file: str) -> None:
        with replacing(file) as part:
            Path(part).write_text(json.dumps(self._rules.dump()), encoding="utf-8")

    async def advise(self, request: Request) -> Advice | None:
        self._tell()
        if not self._neardup.config.skip_mirrors or not is_plain(request):
            return None
        return await self._neardup.access.ask(self._rules.advise, request.url)

    def visited(self, claim: Claim) -> None:
        for url in filter(None, (claim.document.url, *claim.document.aliases)):
            if url not in claim.document.loose:
                self._changes += ((rule, rule.in_force) for rule in self._rules.learn(url, claim))

    def _tell(self) -> None:
        """Count and log new rules, in the thread that owns the stats."""
        while self._changes:
            rule, in_force = self._changes.popleft()
            self._neardup.stats.inc_value(f"neardup/variants/{'learned' if in_force else 'dropped'}")
            level = logging.INFO if in_force else logging.WARNING
            what = "in nothing that matters" if in_force else "in content: they are fetched again"
            logger.log(level, "%s and the same URLs without these parts differ %s", rule.name, what)
