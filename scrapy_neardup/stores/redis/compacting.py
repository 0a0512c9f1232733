"""Giving back the memory of a server that its stores do not need: what leads to nothing, and what counts no more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress

from ...index.relations import Row
from ...watching import watched
from ..absorbing import thinned
from ..base import StoreError
from .learned import unpacked
from .runs import news
from .scanning import info, namespaces
from .server import Server
from .store import RedisStore, root_of

BUCKETS = 64  # that are gone through in one step, in which nobody else is served
Entry = tuple[bytes, str, Sequence[Row], Mapping[str, float]]
"""What was learned of hosts in one go: its name, the run, evidence, and since when hosts are known."""


def memory(address: str) -> int:
    """Return how many bytes a server takes for all that it holds; 0 where it does not say. Raise StoreError."""
    with closing(Server(address, root_of(""))) as server:
        said = info(server, "memory")
        return int(said.get("used_memory_dataset") or said.get("used_memory") or 0)


def compact_server(address: str) -> None:
    """Remove what all namespaces do not need. Raise StoreError where one can't be read, or is a newer version's."""
    for keys in namespaces(address)[0].values():
        with closing(RedisStore(address, (), namespace=keys.name, run=None)) as store:
            for _ in watched(_gone_through(store), "steps"):
                pass
            _thin(store)
            with suppress(StoreError):  # not all servers know it
                store.server.run([("MEMORY", "PURGE")])


def _gone_through(store: RedisStore) -> Iterator[None]:
    first, last = 0, 1
    while first < last:
        last = store.server.ask("compact", first, BUCKETS)
        first += BUCKETS
        yield


def _thin(store: RedisStore) -> None:
    """Remove evidence on hosts that later one has replaced; but of runs that live or died, which may be forgotten."""
    closed = {run.id for run in store.runs() if run.closed is not None}
    store.documents.learn_runs()
    entries: list[Entry] = []
    for name, fields in news(store.server):
        run = store.documents.runs.get(int(fields[b"run"]), "")
        if not run or run in closed:
            entries.append((name, run, *unpacked(fields[b"body"])))
    spare = [("XDEL", store.server.key("news"), name) for name in _spare(entries)]
    for first in range(0, len(spare), 100):
        store.server.run(spare[first : first + 100])


def _spare(entries: Sequence[Entry]) -> list[bytes]:
    """Return the names of those that tell nothing which others do not."""
    kept = thinned((run, row) for _, run, trials, _ in entries for row in trials)
    counting = {(run, row) for run, rows in kept.items() for row in rows}
    earliest: dict[str, float] = {}
    for *_, met in entries:
        earliest |= {host: when for host, when in met.items() if when < earliest.get(host, when + 1)}
    return [
        name
        for name, run, trials, met in entries
        if not any((run, row) in counting for row in trials)
        and not any(when <= earliest[host] for host, when in met.items())
    ]
