"""A store whose log brings what this process and others wrote: runs, parts, and segments that are in no part yet.

Rows of the log, by key:
- `meta/NAMESPACE`: JSON, the version of the format and what the fingerprints depend on,
- `run/NAMESPACE/RUN`: JSON, a `Run`,
- `segment/NAMESPACE/RUN/NUMBER`: a batch of documents and links (see `segments`) that is in no part yet,
- `parts/NAMESPACE`: JSON, the names of the files that are the parts (see `manifest`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple
from urllib.parse import quote

from ..detectors.base import Detector
from ..index.relations import Row
from . import manifest, segments
from .base import StoreError
from .damage import DAMAGE
from .layered import LayeredStore
from .log import Log, Rows
from .meta import own_fingerprints, schemes
from .part import Part, Reading
from .runs import Run
from .segments import Batch

LEARNED = 50  # pieces of evidence, or hosts, that are taken in at a step


class News(NamedTuple):
    """What was written since the log was last read."""

    rows: Rows
    parts: Sequence[Part] = ()
    """Those that the rows name, if any and if they could be read."""


class LoggedStore(LayeredStore):
    """What is read from a log, for `SqliteStore` to write there."""

    def __init__(self, detectors: Sequence[Detector], log: Log, namespace: str) -> None:
        super().__init__(detectors)
        self._log = log
        self._namespace = quote(namespace, safe="")
        self._runs: dict[str, Run] = {}
        self._news: Future[News] | None = None
        self._damage: ValueError | None = None

    def refresh(self) -> bool:
        more = self.read_on()
        self._raise_damage()
        return more

    def read_on(self) -> bool:
        """Do as `refresh` does, but leave it to that to tell of damage."""
        more = super().refresh()
        if self._news and self._news.done() and not more:
            news, self._news = self._news, None
            self._receive(news.result())
            more = bool(self._work)  # another time: a crawl waits
        if self._news is None:
            self._news = self._asked_for()
        return more

    def _catch_up(self) -> None:
        """Take in all that was written by now."""
        self.finish()
        earlier, self._news = self._news, None
        if earlier:
            self._receive(earlier.result())
            self.finish()
        self._receive(self._asked_for().result())
        self.finish()
        self._raise_damage()

    def _asked_for(self) -> Future[News]:
        """Ask for what is new. The log's thread maps the parts, of which it may read much."""
        kinds = *(f"{kind}/{self._namespace}/" for kind in ("run", "segment")), self._manifest
        return self._log.made_of_news(partial(self._with_parts, self.parts.all), *kinds)

    def _with_parts(self, known: Sequence[Part], rows: Rows) -> News:
        listed = dict(rows).get(self._manifest)
        with suppress(ValueError, OSError):  # it is tried again, and then told
            return News(rows, manifest.read_parts(self._log.path, listed, known) if listed else ())
        return News(rows)

    @property
    def _manifest(self) -> str:
        return f"parts/{self._namespace}"

    def _receive(self, news: News) -> None:
        self._read_runs(news.rows)
        self._map_parts(news, at_once=False)
        self._take_in(news.rows)

    # Runs

    def runs(self) -> list[Run]:
        return sorted(self._runs.values(), key=lambda run: run.started)

    @property
    def known_runs(self) -> Mapping[str, Run]:
        """The runs by id."""
        return self._runs

    @property
    def own_fingerprints(self) -> frozenset[str]:
        """The names of detectors with indexes of their own, as all who opened the store said."""
        return own_fingerprints(self._log.get(f"meta/{self._namespace}"))

    @property
    def schemes(self) -> Mapping[str, str]:
        """What the fingerprints of each detector were made as."""
        return schemes(self._log.get(f"meta/{self._namespace}"))

    def all_trials(self) -> Iterator[tuple[str, Row]]:
        """Yield the evidence on host mirrors, each with the run that found it."""
        for part in self.parts.all:
            yield from part.trials()
        for (run, _), batch in self.batches.items():
            yield from ((run, row) for row in batch.trials)

    def _refusal(self, what: str, why: object) -> StoreError:
        return StoreError(f"store {self._log.path!r} {what}: {why}; it was left as it is")

    def _save(self, run: Run) -> None:
        self._runs[run.id] = run
        self._append(f"run/{self._namespace}/{run.id}", run.dump())

    def _append(self, key: str, value: bytes | None) -> None:
        if self.run:  # else the store is only looked into
            self._log.append(key, value)

    def _segment_key(self, run: str, number: int | str) -> str:
        return f"segment/{self._namespace}/{run}/{number}"

    def _segment_of(self, key: str) -> tuple[str, int]:
        """Return the run and the number in a row's key; ("", 0) where it is no segment of this namespace."""
        run, _, number = key.removeprefix(f"segment/{self._namespace}/").partition("/")
        return (run, int(number)) if key == self._segment_key(run, number) and number.isdecimal() else ("", 0)

    def _read_runs(self, rows: Rows) -> None:
        prefix = f"run/{self._namespace}/"
        for key, value in rows:
            if key.startswith(prefix):
                try:
                    run = Run.load(value)
                except ValueError as error:
                    self._damage = error  # the rest is to be taken in all the same
                    continue
                self._runs[run.id] = run
                self._drop_forgotten(run)

    def _drop_forgotten(self, run: Run) -> None:
        """Let go of what a run, maybe another process's, has forgotten."""
        if run.forgotten:
            for segment in [s for s in self.batches if s[0] == run.id and run.has_forgotten(s[1])]:
                self.let_go(self.batches.pop(segment))
            self.parts.forget_runs(self._runs)

    # Parts and segments

    def _map_parts(self, news: News, *, at_once: bool = True) -> None:
        """Go by the parts that the newest manifest among the rows names."""
        if listed := dict(news.rows).get(self._manifest):
            parts = news.parts or self._read_parts(listed)
            try:
                self.show(parts, self._runs, at_once=at_once)
            except DAMAGE as error:  # of large parts only the head was checked
                raise self._refusal("is damaged", error) from error

    def _read_parts(self, listed: bytes) -> list[Part]:
        try:
            return manifest.read_parts(self._log.path, listed, self.parts.all)
        except (ValueError, OSError) as error:
            now = self._log.get(self._manifest)
            if now is None or now == listed:
                raise self._refusal("can't be read", error) from error
        return self._read_parts(now)  # another process has just put them into others

    def _unseen(self, new: Sequence[Part]) -> list[Iterator[None]]:
        return [*super()._unseen(new), *map(self._learning, new)]

    def _learning(self, part: Part) -> Iterator[None]:
        """Take in the evidence on hosts that came with a part, some at a step."""
        with Reading(part):
            trials, met = [row for _, row in part.trials()], iter(list(part.met()))
        for first in range(0, len(trials), LEARNED):
            self.hosts.load(trials[first : first + LEARNED])
            yield
        while some := list(islice(met, LEARNED)):
            for name, when in some:
                self.hosts.meet_site(name, when)
            yield

    def _take_in(self, rows: Rows) -> None:
        """Have the documents and links of segments that are not known yet entered, little by little."""
        for key, value in rows:
            segment = self._segment_of(key)
            if segment[0] and segment not in self.batches and not self.parts.has_segment(*segment):
                self._work.append(self._entering(*segment, value))

    def _entering(self, run: str, number: int, segment: bytes) -> Iterator[None]:
        """Enter a segment, a document or link at a step."""
        if run in self._runs and self._runs[run].has_forgotten(number):
            return
        try:
            batch = segments.decode(run, number, segment, self.keyed)
        except ValueError as error:
            self._damage = error
            return
        self.batches[run, number] = batch
        for step in self._steps(batch):
            if (run, number) not in self.batches:
                return  # forgotten by now
            step()
            yield
        self.hosts.load(batch.trials)

    def _steps(self, batch: Batch) -> Iterator[Callable[[], None]]:
        yield from (partial(self.fresh.add, signature) for signature in batch.signatures)
        yield from (partial(LayeredStore.record, self, link) for link in batch.links)
        for key in batch.forgotten:
            if signature := self.keyed(key):
                yield partial(LayeredStore.withdraw, self, signature)

    def _raise_damage(self) -> None:
        if damage := self._damage:
            self._damage = None
            raise self._refusal("can't be read", damage) from damage
