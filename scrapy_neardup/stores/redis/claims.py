"""Claims that are atomic between processes: a document is held, pending, unless another came that it may repeat.

The first look enters the document where no fingerprint of it is known: one round trip. Else the documents found are
compared, and if it repeats none of them it is entered unless newer ones share a fingerprint: these are compared then.
Documents near in SimHash are compared after it was entered, since this process finds them, not the server: if it
repeats one of those it is taken out again. So of two that repeat each other and come at once, one is found.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...signature import Signature
from ..base import StoreError
from ..layered import digest
from .asking import Question, each_field, fields
from .damage import sound
from .server import Command

if TYPE_CHECKING:
    from .store import RedisStore

Numbers = dict[str, list[int]]
NO_ENTRY = b"", b"", 0


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
        self._buckets = self._supposed = [1, 1, 1]
        """How many buckets of hashes, of SimHashes and of URLs there were when we last heard of it; when we asked."""
        self._foreseen: dict[Signature, tuple[bool, int, Numbers]] = {}
        """By document whether it was entered, the number that came next then, and what was found."""
        self._coming: set[int] = set()
        """Those of them that were entered and not yet intended: as if they were not there."""
        self._is_late = False
        """Whether documents were entered after them that come before."""

    def foresee(self, signatures: Sequence[Signature]) -> None:
        """Have the first looks of documents, which are to be intended in this order, go together in one round trip.

        They find and enter what they would one by one: each is entered before the next one's look.
        """
        self.give_up()
        if not signatures:
            return
        asked = [(each, self._question(each), url_hash(each)) for each in signatures]
        sent = [self._sent("ask", 0, question, self._store.entry(each), url) for each, question, url in asked]
        try:
            rows = iter(self._store.server.run([command for commands in sent for command in commands], first=True))
        except StoreError:
            self._store.server.distrust()  # some may have been entered: they are dropped where the run goes on
            raise
        self._store.documents.unknown.clear()
        for (each, question, url), answers in zip(asked, zip(rows, rows, rows, strict=True), strict=True):
            number, following, found = self._taken(question, url, 0, answers)
            if number >= 0:
                self._store.hold(each, number)
                self._coming.add(number)
            self._foreseen[each] = number >= 0, following, found
        self._is_late = False

    def give_up(self) -> None:
        """Forget what was foreseen and never intended."""
        for signature, (is_entered, *_) in self._foreseen.items():
            if is_entered:
                self._store.withdraw(signature)
        self._foreseen.clear()
        self._coming.clear()

    def abandon(self) -> None:
        """Let go of what was foreseen, since the server knows nothing of it any more."""
        for signature in self._foreseen:
            self._store.documents.pending.pop(signature, None)

    def intend(self, signature: Signature) -> None:
        """Let the next look enter a document, or be the one that was foreseen."""
        self._entered = self._entered and signature is self._intended
        self._intended, self._above, self._newer = signature, 0, None
        if foreseen := self._foreseen.pop(signature, None):
            self._entered, self._above, self._newer = foreseen
            self._coming -= {signature.number}
            if self._is_late:
                for name, numbers in self._looked(signature).items():
                    self._newer[name] = sorted({*self._newer.get(name, ()), *numbers})

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
        return self._call("look", 0, self._store.asking.question(fingerprints), NO_ENTRY)[2]

    def enter(self, signature: Signature) -> bool:
        """Enter the document unless newer ones may be repeated, which the next look finds; say whether it is held."""
        if self._intended is not signature:
            self.add(signature)
            return True
        if not self._entered:
            self._newer = self._asked(signature)
            self._is_late = self._is_late or self._entered
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
        [[number, *_]] = self._store.server.run([self.command("enter", 0, question, entry)])
        self._store.hold(signature, number)

    def _asked(self, signature: Signature) -> Numbers:
        """Enter a document unless there are newer ones that share a fingerprint; return these, and those near."""
        if self._entered:
            return self._looked(signature)
        question = self._question(signature)
        number, self._above, found = self._call("ask", self._above, question, self._store.entry(signature))
        if number >= 0:
            self._store.hold(signature, number)
            self._entered = True
        else:
            self._store.take_back()
        return self._without(found, self._coming)

    def _looked(self, signature: Signature) -> Numbers:
        """Return what is found that came since."""
        found = self._call("look", self._above, self._question(signature), NO_ENTRY)[2]
        return self._without(found, {*self._coming, signature.number})

    def _without(self, found: Numbers, left_out: Container[int | None]) -> Numbers:
        return {name: [n for n in numbers if n not in left_out] for name, numbers in found.items()}

    def _question(self, signature: Signature) -> Question:
        return self._store.asking.question(signature.fingerprints)

    def command(self, mode: str, above: int, question: Question, entry: tuple[Any, ...]) -> Command:
        """Return the command that runs `scripts/claim.lua`."""
        hashes = question.rows, question.newest, fields(question.hashes, self._buckets[0]), self._buckets[0]
        return self._store.server.call("claim", mode, above, *hashes, *entry)

    def _call(self, mode: str, above: int, question: Question, entry: tuple[Any, ...]) -> tuple[int, int, Numbers]:
        """Return the number given or -1, the one that comes next, and what was found from `above` on, before both."""
        url = url_hash(self._intended) if self._intended else 0
        self._store.documents.unknown.clear()
        answers = self._store.server.run(self._sent(mode, above, question, entry, url), first=True)
        return self._taken(question, url, above, answers)

    def _sent(self, mode: str, above: int, question: Question, entry: tuple[Any, ...], url: int) -> list[Command]:
        looking = self._store.documents.looking_up(url, self._buckets[2])
        self._supposed = list(self._buckets)
        return [self.command(mode, above, question, entry), self._reading(question), looking]

    def _taken(self, question: Question, url: int, above: int, answers: Sequence[Any]) -> tuple[int, int, Numbers]:
        """Return what the answers to commands mean, as `_call` does."""
        [number, following, hits, *self._buckets], near, links = answers
        if self._is_elsewhere(question):
            near = [*near, *self._store.server.run([self._reading(question)])[0]]
        if self._supposed[2] == self._buckets[2] and url:
            self._store.documents.keep_known(url, links or b"")
        with sound(self._store.server.name):
            found = self._store.asking.found(question, hits, b"".join(filter(None, near)), range(above, following))
        return number, following, found

    def _is_elsewhere(self, question: Question) -> bool:
        """Say whether buckets of SimHashes were split between asking and the answer, of those that were read."""
        before, now = self._supposed[1], self._buckets[1]
        return before != now and fields(question.probes, before) != fields(question.probes, now)

    def _reading(self, question: Question) -> Command:
        """Return the command that reads buckets of SimHashes."""
        return ("HMGET", f"{self._store.server.root}s", b"", *each_field(fields(question.probes, self._buckets[1])))

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


def url_hash(signature: Signature) -> int:
    """Return the hash of a document's URL; 0 where it has none."""
    return digest(signature.url) if signature.url else 0
