"""The store on a server: every decision is made there, so that workers of several machines share them.

Keys, each beginning with `{neardup:NAMESPACE:1}`, so that a cluster keeps them together (1 is the version of all this):
- that name itself, a hash: how many runs there were,
- `k`, `s`, `u`: the tables of equal fingerprints, of SimHashes, of URLs (see `scripts/tables.lua`); in `k` also how far
  they have grown, and the number of the next document,
- `h…`: older documents of a hash that very many share,
- `d…`, `r…`, `o…`: by number, records of documents, how often they are repeated, which URLs lead to them,
- `:gone`, a bit for each number whose document is held no more; `:pending`, number to run,
- `:runs`, `:numbers`, `:ids`, `:holders`, `:sessions`, `:lease.N`, `:open.N`, `:session.…`: runs (see `runs`),
- `:news`, a stream: what was learned of hosts; `:meta`: what the store was made with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from ...detectors import SimHash
from ...detectors.base import Detector
from ...fingerprints import sketch
from ...index.hosts import Hosts
from ...index.relations import Row
from ...signature import Link, Signature
from ...text import tokens
from ..base import Forgotten, Selection, StoreError
from ..forgetting import forget
from ..layered import digest
from ..meta import merge_meta, own_fingerprints, schemes
from ..runs import Run
from .asking import Asking
from .claims import Claims
from .documents import Documents
from .forgetting import forget_run, seen_before
from .late import Late
from .learned import Learned
from .packing import pack_document, pack_link
from .resuming import resume, warn_of_eviction
from .runs import LEASE, Runs
from .server import BegunAnewError, Server, Then

VERSION = 1  # of the keys and of what is in them
BATCH = 100  # of what waits for no answer
_PLACES = 1 << 16


def root_of(namespace: str) -> str:
    """Return what the keys of a namespace begin with; the braces keep them together in a cluster."""
    return f"{{neardup:{quote(namespace, safe='')}:{VERSION}}}"


class RedisStore:
    """A store for several processes of several machines; each sees at once what the others committed.

    `run` is the id of a run to go on with, "" for a new one, None to look into the store without writing.
    """

    is_remote = True

    def __init__(
        self,
        address: str,
        detectors: Sequence[Detector],
        *,
        namespace: str = "",
        unclean_run: str = "forget",
        run: str | None = "",
    ) -> None:
        self.server = Server(address, root_of(namespace))
        self.asking = Asking(detectors)
        self.documents = Documents(self.server)
        self.runs_known = Runs(self.server, forgets=unclean_run == "forget")
        self.hosts, self.run = Hosts(), ""
        self.stats: dict[str, int] = {}
        self.learned = Learned(self.server, self.hosts)
        self.late = Late(self)
        self.reconnects = 0
        """How often the run went on over a new connection."""
        self.begun_anew = False
        """Whether it was begun anew, and what it had written is not yet looked for."""
        self.claims = Claims(self)
        self._own_seen = self._written = 0
        self._record = Run("", 0.0)
        try:
            self._begin(detectors, run)
        except BaseException:
            self._abandon()
            raise

    def _begin(self, detectors: Sequence[Detector], run: str | None) -> None:
        self._made_as = {"sketch": sketch.SCHEME, "tokens": tokens.SCHEME, **{d.name: d.scheme for d in detectors}}
        self.agree_on(self._made_as, self.asking.own, writes=run is not None)
        if run is not None:
            self._begin_run(run)
            self.server.resume = partial(resume, self)
            warn_of_eviction(self.server)
        self.learned.begin(self.documents.run, self.runs_known.token)
        while self.refresh():
            pass

    def _begin_run(self, run: str) -> None:
        self._record = self.runs_known.begin(run)
        self.run, self.documents.run = self._record.id, self.runs_known.number

    def begin_again(self) -> None:
        """Begin the run anew on a server that has lost it, be it all that it had."""
        self.agree_on(self._made_as, self.asking.own)
        self._begin_run(self.run)
        self.learned.begin(self.documents.run, self.runs_known.token)
        self.documents.count, self._own_seen = 0, 0
        self.claims.abandon()
        self.claims = Claims(self)

    def agree_on(self, made_as: Mapping[str, str], own: Iterable[str], *, writes: bool = True) -> None:
        """Have the store say what its fingerprints are made as, in every process. Raise StoreError where it differs."""
        stored = self._meta()
        try:
            meta = merge_meta(stored or None, made_as, own)
        except ValueError as error:
            raise StoreError(f"store {self.server.name!r} does not fit: {error}; it was left as it is") from error
        if writes and meta != stored and self.server.ask("swap", stored, meta) != meta:
            self.agree_on(made_as, own)  # another process was quicker
        self.asking.whole = own_fingerprints(meta)

    def _meta(self) -> bytes:
        [meta] = self.server.run([("GET", self.server.key("meta"))])
        return meta or b""

    @property
    def schemes(self) -> Mapping[str, str]:
        """What the fingerprints of each detector were made as."""
        return schemes(self._meta() or None)

    @property
    def own_fingerprints(self) -> frozenset[str]:
        """The names of detectors with indexes of their own, as all who opened the store said."""
        return own_fingerprints(self._meta() or None)

    # Documents

    def foresee(self, signatures: Sequence[Signature]) -> None:
        if not self.asking.own:
            self.claims.foresee(signatures)

    def intend(self, signature: Signature) -> None:
        if (left := self.claims.intended) and left is not signature:
            self.leave(left)  # its claim failed, maybe after it was entered
        claims = self.claims
        try:
            claims.intend(signature)
        except BegunAnewError:
            self._intend_again(claims)

    def find(self, fingerprints: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, Signature]]:
        numbers = self._found(fingerprints)
        for name, index in self.asking.own.items():
            others = (s for s in index.find(fingerprints.get(name, ())) if s.fingerprints is not fingerprints)
            numbers[name] = [other.number for other in others if other.number is not None]
        wanted = (number for name in self.asking.names for number in numbers.get(name, ()))
        held = self.documents.fetch(wanted, pending=self.claims.intends(fingerprints))
        for name in self.asking.names:
            yield from ((name, held[number]) for number in numbers.get(name, ()) if number in held)

    def _found(self, fingerprints: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
        claims = self.claims
        try:
            return claims.find(fingerprints)
        except BegunAnewError:
            self._intend_again(claims)
            return self.claims.find(fingerprints)

    def _intend_again(self, claims: Claims) -> None:
        """Have a claim that was interrupted be made from its beginning."""
        if signature := claims.intended:
            if claims.leave():
                self.withdraw(signature)
            self.claims.intend(signature)

    def enter(self, signature: Signature) -> bool:
        claims = self.claims
        try:
            return claims.enter(signature)
        except BegunAnewError:
            self._intend_again(claims)
            return False

    def leave(self, signature: Signature) -> None:
        if self.claims.leave():
            self.withdraw(signature)

    def is_pending(self, signature: Signature) -> bool:
        return self.claims.is_pending(signature)

    def add(self, signature: Signature) -> None:
        self.claims.add(signature)

    def entry(self, signature: Signature) -> tuple[bytes, bytes, int]:
        """Return what a script takes to enter a document: its SimHash, its record, the number of the run."""
        place = self.documents.run, self._segment, self._written % _PLACES
        self._written += 1
        signature.key = (self.run, *place[1:])
        simhash = signature.fingerprints.get(SimHash.name, ())
        near = simhash[0].to_bytes(8, "little") if simhash else b""
        return near, pack_document(signature, place, self.asking.whole), place[0]

    def take_back(self) -> None:
        """Let the last entry be none: the server did not take it."""
        self._written -= 1

    def hold(self, signature: Signature, number: int) -> None:
        """Have a document that the server gave a number be pending."""
        self.documents.hold(signature, number)
        self.documents.pending[signature] = None
        for name, index in self.asking.own.items():
            index.remove(signature.fingerprints.get(name, ()), signature)  # where it is entered again
            index.add(signature.fingerprints.get(name, ()), signature)

    def commit(self, signature: Signature) -> None:
        if signature in self.documents.pending and signature.number is not None:
            del self.documents.pending[signature]
            self.late.committed(signature)
            number = signature.number.to_bytes(4, "big")
            then = partial(self._committed, signature)
            self._queue("commit", str(self.documents.run), number, then=then, can_wait=True)

    def _committed(self, signature: Signature, count: int) -> None:
        if not count:  # others dropped it, since they took this process for dead
            self.late.repeat(signature)

    def withdraw(self, signature: Signature) -> None:
        self.documents.pending.pop(signature, None)
        self.late.withdrawn(signature)
        if signature.number is not None:
            self._queue(
                "drop", signature.number.to_bytes(4, "big"), self.asking.question(signature.fingerprints).rows, b""
            )
            for name, index in self.asking.own.items():
                index.remove(signature.fingerprints.get(name, ()), signature)

    def run_of(self, signature: Signature) -> str:
        return signature.key[0] if signature.key else self.run

    def signatures(self) -> Iterator[Signature]:
        return self.documents.all()

    def degrees(self) -> Iterator[int]:
        return self.documents.all_repeats()

    def __len__(self) -> int:
        return self.documents.committed() + len(self.documents.pending)

    # Links

    def record(self, link: Link) -> None:
        link.digest = link.digest or digest(link.url)
        self.documents.unknown.discard(link.digest)
        number = link.signature.number if link.signature else None
        if link.signature and number is None:
            return  # never held
        if not link.void:
            self.learned.meet(link)
        self.late.linked(link)
        packed = pack_link(link, number, self.documents.run, self._segment)
        url, run = link.digest.to_bytes(8, "little"), str(self.documents.run)
        self.documents.linked.add(link.digest)
        self.server.queue("link", url, packed, run, then=self.documents.counted, can_wait=not link.mirror)
        self._send_in_time()

    @property
    def _segment(self) -> int:
        return self._record.sealed + self._written // _PLACES

    def repeat(self, signature: Signature) -> None:
        if signature.number is not None:
            self.server.queue("repeat", signature.number.to_bytes(4, "big"), then=self.documents.counted)

    def resolve(self, url: str) -> Link | None:
        return self.documents.resolve_one(url)

    def links(self, signature: Signature) -> Iterator[Link]:
        return self.documents.links(signature.number) if signature.number is not None else iter(())

    def all_links(self) -> Iterator[Link]:
        return self.documents.all_links()

    def learn(self, trials: Iterable[Row]) -> None:
        self.learned.learn(trials)

    # What is forgotten

    def forget(self, what: Selection) -> Forgotten:
        return forget_run(self, what.run) if what.run is not None else forget(self, what)

    def seen_before(self, when: float) -> Iterator[Signature]:
        """Yield the documents that no URL gave since then."""
        return seen_before(self, when)

    # The server, and other processes

    def remember(self, signature: Signature, links: Iterable[Link]) -> None:
        """Have a document that was not judged, since the server was away, be held once it is back, with its URLs."""
        self.late.remember(signature, links)

    def _queue(self, name: str, *arguments: str | bytes, then: Then = bool, can_wait: bool = False) -> None:
        self.server.queue(name, *arguments, then=then, can_wait=can_wait)
        self._send_in_time()

    def _send_in_time(self) -> None:
        if len(self.server) >= BATCH:
            with suppress(StoreError):  # it stays queued, and `flush` tells
                self.server.flush(wait=False)

    def runs(self) -> list[Run]:
        return self.runs_known.all()

    def is_alive(self, run: str) -> bool:
        return self.runs_known.is_alive(run)

    def describe(self) -> dict[str, object]:
        [memory] = self.server.run([("INFO", "memory")])
        told = dict(line.partition(":")[::2] for line in memory.decode().split() if ":" in line)
        return {
            "store": self.server.name,
            "bytes_server": int(told.get("used_memory", 0)),
            "eviction": told.get("maxmemory_policy", "noeviction"),
            "urls": self.documents.state()[-1],
            "runs": len(self.runs()),
        }

    def flush(self, *, wait: bool = True) -> None:
        self.documents.unknown.clear()
        self.learned.send()
        self.server.flush(wait=wait)

    def refresh(self) -> bool:
        if self.asking.own:
            self._enter_own()
        self.runs_known.end_dead()
        more = self.learned.refresh()  # it has the run resumed, which may find more that is late
        return self.late.step() or more

    def _enter_own(self) -> None:
        """Have the indexes in RAM know the documents that came since."""
        last = self.documents.next_number
        for signature in self.documents.fetch(range(self._own_seen, last)).values():
            if signature not in self.documents.pending:
                for name, index in self.asking.own.items():
                    index.remove(signature.fingerprints.get(name, ()), signature)
                    index.add(signature.fingerprints.get(name, ()), signature)
        self._own_seen = last

    def close(self, *, clean: bool = True) -> None:
        self.server.connection.wait(LEASE)
        try:
            self.learned.send()
            if self.run:
                self.server.check()
                self.runs_known.renew()
            self.server.run(())
            for signature in list(self.documents.pending):
                self.withdraw(signature)
            while self.late.step():
                pass
            self.server.flush(wait=True)
            if self.run and clean:
                ended = self._record.ended(self._segment + 1).with_stats(self.stats)
                self.runs_known.close(ended)
        finally:
            self._abandon()

    def _abandon(self) -> None:
        self.runs_known.abandon()
        self.server.close()
