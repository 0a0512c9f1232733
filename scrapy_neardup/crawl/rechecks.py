"""Track rechecks: fetches of pages that could be skipped, which show whether the pages have changed."""

from __future__ import annotations

from scrapy.utils.datatypes import LocalCache

from ..mirrors.advice import Advice

MOST = 10_000  # remembered reasons, and remembered failures


class Rechecks:
    """Remembers the rules and originals that led to wrong skips. They cause no more skips in this run."""

    def __init__(self) -> None:
        self._reasons: LocalCache[str, str] = LocalCache(MOST)
        """The reason for the skip of a URL."""
        self._failed: LocalCache[str, bool] = LocalCache(MOST)

    def add(self, url: str, advice: Advice) -> None:
        """Note that a URL is fetched against the advice."""
        if advice.url:
            self._reasons[url] = _reason(advice)

    def fail(self, url: str) -> None:
        """Note that a recheck returned content that is not held."""
        if reason := self._reasons.pop(url, None):
            self._failed[reason] = True

    def have_failed(self, advice: Advice) -> bool:
        """Return whether a recheck showed that this kind of advice is wrong."""
        return _reason(advice) in self._failed


def _reason(advice: Advice) -> str:
    """Return the reason for a skip: the rule, or the original of a known copy."""
    return repr(advice.rule.relation.sites if advice.rule else advice.url)
