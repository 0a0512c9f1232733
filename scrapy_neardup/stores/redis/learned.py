"""What was learned of hosts, as a stream on the server that every process reads on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgpack

from ...index.hosts import Hosts
from ...index.relations import Row
from ...signature import Link
from ...text.shapes import site
from .damage import sound
from .runs import news
from .server import Server

AT_ONCE = 50  # entries that are taken in at a step


class Learned:
    """Shares evidence on host mirrors, and since when hosts are known."""

    def __init__(self, server: Server, hosts: Hosts) -> None:
        self._server = server
        self._hosts = hosts
        self._run, self._token = 0, b""
        self._last = "-"
        self._trials: list[Row] = []
        self._met: dict[str, float] = {}
        self._known: set[str] = set()

    def begin(self, run: int, token: bytes) -> None:
        """Say whose evidence it is."""
        self._run, self._token = run, token

    def learn(self, trials: Iterable[Row]) -> None:
        self._trials += trials

    def meet(self, link: Link) -> None:
        """Take note of a host."""
        self._hosts.meet(link.url, link.seen)
        name = site(link.url)
        if name and name not in self._known:
            self._known.add(name)
            self._met[name] = link.seen

    def send(self) -> None:
        """Have it written before all that is asked later."""
        if (self._trials or self._met) and self._server.operations.has_room:
            trials, met, self._trials, self._met = self._trials, self._met, [], {}
            self.put(self._run, trials, met)

    def put(self, run: int, trials: Iterable[Row], met: Mapping[str, float]) -> None:
        """Have some be written as that run's."""
        body = msgpack.packb([list(trials), met], unicode_errors="surrogatepass")
        token = self._token if run == self._run else b""
        self._server.queue("learn", str(run), token, body)

    def refresh(self) -> bool:
        """Take in some of what came since; say whether there is more."""
        some = list(islice(news(self._server, self._last), AT_ONCE))
        for name, fields in some:
            self._last = name.decode()
            trials, met = self._read(fields)
            self._hosts.load(trials)
            for host, when in met.items():
                self._known.add(host)
                self._hosts.meet_site(host, when)
        return len(some) == AT_ONCE

    def all(self) -> Iterator[tuple[int, Row]]:
        """Yield all evidence, each with the number of the run that found it."""
        for _, fields in news(self._server):
            yield from ((int(fields[b"run"]), row) for row in self._read(fields)[0])

    def _read(self, fields: Mapping[bytes, bytes]) -> tuple[list[Row], dict[str, float]]:
        with sound(self._server.name):
            return unpacked(fields[b"body"])

    def of(self, run: int) -> list[Row]:
        """Return what a run found, given its number."""
        return [row for number, row in self.all() if number == run]


def unpacked(body: bytes) -> tuple[list[Row], dict[str, float]]:
    trials, met = msgpack.unpackb(body, use_list=False, unicode_errors="surrogatepass")
    return [Row(*row) for row in trials], dict(met)
