"""Claims that are atomic between processes: a document is held, pending, unless another came that it may repeat.

The first look enters the document where no fingerprint of it is known: one round trip. Else the documents found are
compared, and if it repeats none of them it is entered unless newer ones share a fingerprint: these are compared then.
Documents near in SimHash are compared after it was entered, since this process finds them, not the server: if it
repeats one of those it is taken out again. So of two that repeat each other and come at once, one is found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...signature import Signature
from ..layered import digest
from .asking import Probes, Question, bucketed
from .server import Command

if TYPE_CHECKING:
    from .store import RedisStore

LEAST_BUCKETS = 1024  # as in scripts/tables.lua
Numbers = dict[str, list[int]]


class Claims:
    """What is to be entered next, and what was found on the way."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store
        self._intended: Signature | None = None
        self._above = 0
        """Documents below this number were found by the last look."""
        self._newer: Numbers | None = None
        """Those that came since, for the next look."""
        self._entered = False
        self._buckets = LEAST_BUCKETS
        """How many buckets of SimHashes there were when we last heard of it."""

    def intend(self, signature: Signature) -> None:
        """Let the next look enter a document."""
        self._entered = self._entered and signature is self._intended
        self._intended, self._above, self._newer = signature, 0, None

    @property
    def intended(self) -> Signature | None:
        """The document that is to be entered, or is, but has not been found to be unique yet."""
        return self._intended

    def intends(self, fingerprints: Mapping[str, tuple[int, ...]]) -> bool:
        """Say whether a look is for the document that is to be entered."""
        return self._intended is not None and fingerprints is self._intended.fingerprints

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Numbers:
        """Return the numbers of documents by detector."""
        if self.intends(fingerprints) and self._intended:
            newer, self._newer = self._newer, None
            return self._asked(self._intended) if newer is None else newer
        return self._call("look", 0, self._store.asking.question(fingerprints), (b"", b"", 0))[2]

    def enter(self, signature: Signature) -> bool:
        """Enter the document unless newer ones may be repeated, which the next look finds; say whether it is held."""
        if self._intended is not signature:
            self.add(signature)
            return True
        if not self._entered:
            self._newer = self._asked(signature)
            if not self._entered or any(self._newer.values()):
                return False
        self._intended, self._entered = None, False
        return True

    def leave(self) -> bool:
        """Let go of the document that was to be entered; say whether it was."""
        entered, self._entered, self._intended = self._entered, False, None
        return entered

    def add(self, signature: Signature) -> None:
        """Enter a document, whatever it repeats."""
        question, entry = self._question(signature), self._store.entry(signature)
        number, *_ = self._store.server.ask("claim", "enter", 0, question.rows, question.newest, *entry)
        self._store.hold(signature, number)

    def _asked(self, signature: Signature) -> Numbers:
        """Enter a document unless there are newer ones that share a fingerprint; return these, and those near."""
        question = self._question(signature)
        if self._entered:
            found = self._call("look", self._above, question, (b"", b"", 0))[2]
            return {name: [n for n in numbers if n != signature.number] for name, numbers in found.items()}
        number, self._above, found = self._call("ask", self._above, question, self._store.entry(signature))
        if number >= 0:
            self._store.hold(signature, number)
            self._entered = True
        else:
            self._store.take_back()
        return found

    def _question(self, signature: Signature) -> Question:
        return self._store.asking.question(signature.fingerprints)

    def _call(self, mode: str, above: int, question: Question, entry: tuple[Any, ...]) -> tuple[int, int, Numbers]:
        """Return the number given or -1, the one that comes next, and what was found from `above` on, before both."""
        server = self._store.server
        claim = server.call("claim", mode, above, question.rows, question.newest, *entry)
        buckets = bucketed(question.probes, self._buckets)
        url = digest(self._intended.url) if self._intended and self._intended.url else 0
        more = [self._store.documents.resolving([url])] if url else []
        sent = [claim, self._reading(buckets), ("HGET", server.root, "s.buckets"), *more]
        answer, near, count, *known = server.run(sent)
        for row in known:
            self._store.documents.keep_known(url, row)
        self._buckets = int(count or self._buckets)
        now = bucketed(question.probes, self._buckets)
        if not np.array_equal(now, buckets):  # these were split since we last heard of it
            near = [*near, *server.run([self._reading(now)])[0]]
        number, following, hits = answer
        among = range(above, following)
        return number, following, self._store.asking.found(question, hits, b"".join(filter(None, near)), among)

    def _reading(self, buckets: Probes) -> Command:
        """Return the command that reads buckets of SimHashes."""
        root = self._store.server.root.encode() + b"s"
        return ("MGET", root, *[root + each.to_bytes(4, "big") for each in set(buckets.tolist())])

    # Documents of other processes

    def is_pending(self, signature: Signature) -> bool:
        """Say whether a document that was just found is pending in another process; have it dropped if that is dead."""
        server, number, others = self._store.server, signature.number, self._store.documents.others
        if number is None or number not in others:
            return False
        [alive] = server.run([("EXISTS", server.key(f"lease.{others[number]}"))])
        if not alive:
            server.queue("drop", number.to_bytes(4, "big"), b"", str(others[number]))
        return True
