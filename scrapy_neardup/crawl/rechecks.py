"""Track rechecks, fetches of pages that could have been skipped, and the reasons for skips that they prove wrong."""

from __future__ import annotations

from scrapy.utils.datatypes import LocalCache

from ..mirrors.advice import Advice

MOST = 10_000  # the maximum number of remembered reasons, and of remembered failures


class Rechecks:
    """Remembers the rules and originals that led to wrong skips. These cause no more skips in this run."""

    def __init__(self) -> None:
        self._reasons: LocalCache[str, str] = LocalCache(MOST)
        """The reason to skip a URL, for each rechecked URL."""
        self._failed: LocalCache[str, bool] = LocalCache(MOST)

    def add(self, url: str, advice: Advice) -> None:
        """Note that a URL is fetched although the advice is to skip it."""
        if advice.url:
            self._reasons[url] = _reason(advice)

    def fail(self, url: str) -> None:
        """Note that the recheck of a URL returned content that is not held."""
        if reason := self._reasons.pop(url, None):
            self._failed[reason] = True

    def have_failed(self, advice: Advice) -> bool:
        """Return whether a recheck failed that had the same reason as this advice."""
        return _reason(advice) in self._failed


def _reason(advice: Advice) -> str:
    """Return the reason for a skip: the rule, or the original of a known copy."""
    relation = advice.rule and advice.rule.relation
    return repr((relation.sites, relation.shape) if relation else advice.url)
