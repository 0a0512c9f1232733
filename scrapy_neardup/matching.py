"""Which documents held a document repeats, and which of them counts. No Scrapy, no I/O of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .detectors import Exact, SimHash
from .document import Document
from .fingerprints.simhash import hamming
from .signature import Evidence, Signature
from .stores import Store
from .templates import Templates
from .text.urls import canonical_url, domain, host
from .verdict import Match
from .verify import Comparison, Rule, compare

MAX_CANDIDATES = 200  # of a family of texts that share much, and that the verification tells apart
NEAREST = 0.1  # of resemblance: matches that lie so close together count as equally near

_SCOPES: dict[str, Callable[[str], str]] = {"all": lambda url: "", "host": host, "domain": domain}


class Matcher:
    """Has the store propose earlier documents, and lets the rule decide."""

    def __init__(self, store: Store, rule: Rule, scope: str = "all") -> None:
        self.rule = rule
        self.compared = 0
        """How many documents were compared so far: what the detectors cost the verification."""
        self._store = store
        self._scope = _SCOPES[scope]
        self._templates = Templates()

    def learn(self, document: Document) -> None:
        """Take note of a document that was judged, for those that come after it."""
        self._templates.learn(document)

    def best(self, document: Document, signature: Signature) -> Match | None:
        """Choose the document of this very URL if it is among the matches, else the one most repeated of the nearest.

        Where texts form a family, that one is likely its middle: chosen by resemblance alone, the order in which they
        come would split it.
        """
        matches = list(self.matches(document, signature))
        own = [match for match in matches if self.is_own(document.url, match.signature)]
        best = max((match.evidence.resemblance for match in own or matches), default=0.0)
        return max(
            (match for match in own or matches if match.evidence.resemblance > best - NEAREST),
            key=lambda match: (
                match.signature.repeats,
                match.evidence.resemblance,
                -match.signature.first_seen,
            ),
            default=None,
        )

    def matches(self, document: Document, signature: Signature) -> Iterator[Match]:
        """Yield the documents held that the document repeats."""
        scope = self._scope(document.url or "")
        seen: set[Signature] = set()
        for name, earlier in self._store.find(signature.fingerprints):
            if earlier in seen or scope != self._scope(earlier.url or ""):
                continue
            seen.add(earlier)
            self.compared += 1
            if match := self._match(document, signature, name, earlier):
                yield match
            if len(seen) == MAX_CANDIDATES:
                return

    def _match(self, document: Document, signature: Signature, name: str, earlier: Signature) -> Match | None:
        """Return the match of a document with an earlier one that a detector proposed, None where it is none."""
        repeated, same_text = earlier.repeats > 0, _same_text(signature, earlier)
        # Most of what is proposed ends here, so what costs more comes later.
        if not same_text and not self.rule.may_accept(signature.sketch, earlier.sketch, repeated=repeated):
            return None
        found = compare(signature.sketch, earlier.sketch)
        same_url = same_text and self.is_own(document.url, earlier)
        if not self.rule.accepts(found, same_text=same_text, same_url=same_url, repeated=repeated):
            return None
        if self._is_template(document, earlier, found):
            return None
        evidence = (round(value, 4) for value in (found.resemblance, found.containment, found.length_ratio))
        return Match(earlier, Evidence(name, _distance(signature, earlier), *evidence))

    def _is_template(self, document: Document, earlier: Signature, found: Comparison) -> bool:
        """Say whether two pages of one site share no more than its template."""
        if not document.url or not earlier.url or host(document.url) != host(earlier.url):
            return False
        is_template = self._templates.explain(document, earlier.sketch, found, self.rule.min_tokens)
        return is_template and not self.is_own(document.url, earlier)

    def is_own(self, url: str | None, signature: Signature) -> bool:
        """Say whether a URL is the document's own, or an alias of it, rather than a mirror's."""
        if not url or not signature.url:
            return False
        link = self._store.resolve(url)
        known = link is not None and link.signature is signature and not link.mirror
        return known or canonical_url(url) == canonical_url(signature.url)


def _same_text(a: Signature, b: Signature) -> bool:
    digest = a.fingerprints.get(Exact.name, ())
    return bool(digest) and digest == b.fingerprints.get(Exact.name)


def _distance(a: Signature, b: Signature) -> int | None:
    ours, theirs = (s.fingerprints.get(SimHash.name, ()) for s in (a, b))
    return hamming(ours[0], theirs[0]) if ours and theirs else None
