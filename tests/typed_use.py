"""The public names in a user's own code. No test runs this file; mypy checks it (test_typing.py)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from scrapy.crawler import Crawler
from typing_extensions import assert_type

from scrapy_neardup import Claim, Config, Deduplicator, Document, MirrorMiddleware, NearDupPipeline, Verdict


def claimed(texts: dict[str, str]) -> Iterator[Verdict]:
    with Deduplicator.open(None, min_tokens=20, detectors=["exact", "simhash"]) as dedup:
        assert_type(dedup, Deduplicator)
        for url, text in texts.items():
            claim = dedup.claim(Document(url=url, text=text))
            assert_type(claim, Claim)
            claim.commit()
            yield claim.verdict
        dedup.flush()


def opened(folder: Path) -> list[Deduplicator]:
    return [
        Deduplicator.open(folder / "held.sqlite", ttl="365 days", dead_http_codes=[404], resemblance={0: 0.5, 50: 0.4}),
        Deduplicator.from_config(
            Config(
                store=folder / "held.sqlite", detectors=["exact", {"name": "simhash", "distance": 6}], fields=["body"]
            )
        ),
    ]


def told(verdict: Verdict) -> str:
    assert_type(verdict.duplicate_of, str | None)
    assert_type(verdict.resemblance, float | None)
    assert_type(verdict.tag(), dict[str, Any])
    return verdict.status


class Pipeline(NearDupPipeline):
    async def process_item(self, item: Any) -> Any:
        return await super().process_item(item)


def parts(crawler: Crawler) -> tuple[NearDupPipeline, MirrorMiddleware]:
    return Pipeline.from_crawler(crawler), MirrorMiddleware.from_crawler(crawler)


assert_type(Config(detectors=["exact"]).detectors, tuple[Any, ...])
assert_type(Config(mirror_ttl=timedelta(days=3), dropped=Path("dropped.csv")).mirror_ttl, float)
assert_type(Document.from_field("<p>text</p>", url="http://a.example/"), Document)
