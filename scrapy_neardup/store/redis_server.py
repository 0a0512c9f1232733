"""Talk to a server about one namespace: queue writes, send requests, keep the leases of runs, and bridge outages.

`Server.execute` sends the queued writes, then requests, to the script `redis.lua`. If the connection was lost, it
connects again at once. If this fails too, or if an answer does not come in time, the server counts as down: every call
raises at once, until a thread has reached the server again. The thread also renews leases, and sends urgent writes.

A *lease* is the server's note that a process holds a run. It expires unless it is renewed. Each call of the script has
a number. A lease has the number of the last call that wrote something. So the server refuses a call that arrives late.
If a lease is gone, or has too low a number, the server has lost data.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.resources import files
from threading import Event, Lock
from typing import Any, cast
from urllib.parse import quote, urlsplit
from uuid import uuid4

import msgpack
import redis
from redis import exceptions
from redis.backoff import EqualJitterBackoff, NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.connection import parse_url
from redis.retry import Retry
from redis.sentinel import Sentinel

from . import records, shown_address
from .backend import StoreError
from .records import DAMAGE

VERSION = 5  # the version of the layout of keys and values
PLACE = 8  # bytes of the place of a document or visit; that of a row with a text key is longer
SECONDS = 5.0  # the timeout for connecting and for each answer
LEASE = 10.0  # seconds without renewal after which a process counts as dead
PAUSES = (0.1, 10.0)  # the first and the maximum number of seconds between two attempts to reconnect
SOON = 0.1  # seconds after which the thread sends urgent writes, unless a call has sent them
BATCH = 100  # operations in one call of the script
REMEMBERED = 10_000  # rows to write again if the server loses them, about 10 MB
MOST = 100_000  # the maximum number of queued operations
Operation = Sequence[Any]
"""The name and the arguments of an operation or a request of the script. An operation's first argument is a place."""

ERRORS = (OSError, exceptions.RedisError, exceptions.RedisClusterException)
_AGAIN = (  # errors after which a new connection may find the right server
    *(OSError, exceptions.ConnectionError, exceptions.RedisClusterException, exceptions.ReadOnlyError),
    *(exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError),
)
_LOST = (exceptions.TimeoutError, *_AGAIN)  # errors that show that the server is down
_SCRIPT = (files(__package__) / "redis.lua").read_bytes()
_ADVICE = {  # keys are parts of error messages of the server, most of which say enough
    "used memory": "it is full; give it more memory, or forget old documents",
    "wrong kind of value": "a key is damaged, or somebody else's: `scrapy neardup stats --check` says which",
    "bad argument": "it is damaged: `scrapy neardup stats --check` says what to do",
    "read only replica": "it is a replica; name the master",
    "max number of clients": "raise its `maxclients`",
}
logger = logging.getLogger(__name__)


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Convert errors of the client library and of damaged bytes in a `with` block to StoreError, with advice."""
    try:
        yield
    except (*ERRORS, *DAMAGE) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        if not isinstance(error, ERRORS):
            advice = "`scrapy neardup stats --check` says where, and what to do"
            raise StoreError(f"store {name!r} is damaged: {why}; {advice}") from error
        advice = next((f"; {text}" for sign, text in _ADVICE.items() if sign in why.lower()), "")
        raise StoreError(f"store {name!r} can't be used: {why}{advice}") from error


def clients(address: str) -> Callable[[], Any]:
    """Return a function that creates a client for an address. Raise StoreError for an invalid address."""
    before, _, rest = address.partition("://")
    scheme, _, kind = before.replace("valkey", "redis").partition("+")
    url = f"{scheme}://{rest}"
    retry: Any = Retry(NoBackoff(), 0)  # `Server` retries, with a new connection
    options: Any = {"protocol": 2, "socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry": retry}
    try:
        made = _group(url, kind, options) if kind else partial(redis.Redis.from_url, url, **options)
        if kind != "cluster":
            made().connection_pool.make_connection()  # does not connect, only checks the arguments
        database = urlsplit(url).path.strip("/")
        if not (kind or url.startswith("unix") or database.isdecimal() or not database):
            raise ValueError(f"{database!r} is not the number of a database")
        return made
    except (ValueError, TypeError) as error:  # the client reads the query of the address as keyword arguments
        raise StoreError(f"store {shown_address(address)!r}: not the address of a server: {error}") from error


def _group(url: str, kind: str, options: Any) -> Callable[[], Any]:
    """Return a function that creates a client of a cluster, or of the master that sentinels name for a service."""
    parts, port = urlsplit(url), 26379 if kind == "sentinel" else 6379
    login, at, names = parts.netloc.rpartition("@")
    told: Any = [cast(Any, parse_url)(f"{parts.scheme}://{login}{at}{name}?{parts.query}") for name in names.split(",")]
    hosts = [(each.pop("host", "localhost"), each.pop("port", port)) for each in told]
    login_options = {"ssl": bool(told[-1].pop("connection_class", None)), **options, **told[-1]}
    if kind == "cluster":
        return partial(RedisCluster, startup_nodes=[cast(Any, ClusterNode)(*each) for each in hosts], **login_options)
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("the name of the service is missing, as in redis+sentinel://HOST:26379/SERVICE")
    return partial(cast(Any, Sentinel)(hosts, **options).master_for, service, **login_options, db=int(database or 0))


def code(run: str) -> bytes:
    return records.code(run).to_bytes(4, "big")


class Server:
    """One namespace of a server, with the runs that this process holds there.

    An operation may be executed twice, but never out of order.
    """

    def __init__(self, address: str, namespace: str) -> None:
        self.name = shown_address(address)
        # The braces keep all keys on one node of a cluster.
        self.root = f"{{neardup:{quote(namespace, safe='')}:{VERSION}}}"
        self.runs: set[bytes] = set()  # the codes of the runs that this process holds
        self.held: dict[bytes, Operation] = {}
        """By place: the operations that hold pending documents of this process, and the last on a run or schemes."""
        self._queue: list[Operation] = []
        self._kept = OrderedDict[bytes, Operation]()  # the last operations on other rows, by place
        self._refused: Exception | None = None  # the error of the last attempt to send the queue
        self._damage: Exception | None = None  # the first error of a write that can never succeed
        self._id, self._number, self._written = uuid4().hex, 0, 0
        self._connect = clients(address)
        self._client: Any = None
        self._script: Any = None
        self._away: Exception | None = None  # the error for which the server counts as down
        self._failures = 0
        self._lock, self._up, self._wakes, self._closed = Lock(), Event(), Event(), Event()

    def key(self, suffix: str, code: bytes = b"") -> bytes:
        """Return a Redis key in the namespace: the suffix, followed by the code of a run, if any."""
        return f"{self.root}:{suffix}".encode() + code

    # Writes

    def add(self, *operations: Operation) -> None:
        """Queue operations. Raise StoreError if the queue is full."""
        if len(self._queue) + len(operations) > MOST:
            raise StoreError(f"more than {MOST:,} rows wait for the server")
        self._queue += operations
        for operation in operations:
            self.remember(operation)

    def remember(self, operation: Operation) -> None:
        """Remember the last operation on a row, to repeat it if the server loses the row. Forget a dropped row."""
        name, row, *_ = operation
        self.held.pop(row, None)
        self._kept.pop(row, None)
        if name != "drop":
            is_held = name == "hold" or row.startswith((b"key/run", b"key/meta"))  # few, so all are remembered
            (self.held if is_held else self._kept)[row] = operation
        if len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def flush(self, *, wait: bool) -> None:
        if wait or self._queue:
            self.execute()
            if error := self._refused or (wait and self._damage):
                self._damage = None
                with store_errors(self.name):
                    raise error

    # Requests

    def execute(self, *requests: Operation) -> list[Any]:
        """Send the queue, then requests. Return their answers. Raise StoreError if the server fails or refuses one."""
        with store_errors(self.name):
            answers = _without_errors(self._tried(requests, self._raise_if_down))
            self._failures = 0
            return answers

    def _raise_if_down(self) -> None:
        if self._away:
            raise self._away.with_traceback(None)

    def _tried(self, requests: Sequence[Operation], check: Callable[[], object] = lambda: None) -> list[Any]:
        """Send requests, unless `check` raises. Repeat once if the connection was lost. Mark the server down or up."""
        check()
        with self._lock:
            check()  # again, since the thread may have found that the server is down
            try:
                answers = Retry(NoBackoff(), 1, _AGAIN).call_with_retry(lambda: self._sent(requests), self._drop)
            except Exception as error:
                if self._away or isinstance(error, _LOST):
                    self._away, self._failures = error, min(self._failures + 1, 30)
                    self._drop()
                    self._up.clear()
                    self._wakes.set()
                raise
            self._away = None
            self._up.set()
            return answers

    def _sent(self, requests: Sequence[Operation]) -> list[Any]:
        self._open()
        while True:
            batch = self._queue[:BATCH]
            is_last = bool(self._refused) or len(batch) == len(self._queue)
            told = self._exchanged(batch, requests if is_last else (), [*self.runs])
            if told is None:
                self._take_again()
                continue
            damage, self._refused, answers, is_noted = told
            self._damage = self._damage or damage
            self._written = self._number if is_noted else self._written
            if not self._refused:
                del self._queue[: len(batch)]
            if is_last:
                return list(answers)

    def _exchanged(self, batch: Sequence[Operation], requests: Sequence[Operation], codes: Sequence[bytes]) -> Any:
        """Execute the script. Return its answer; None if a lease of these runs is not as this process left it."""
        self._number += 1
        given = [batch, requests, codes, self._id, self._number, self._written]
        told = self._script([self.root], [msgpack.packb(given, use_bin_type=False)])
        for error in (told[1], *told[2]) if told else ():
            if isinstance(error, _LOST):
                raise error
        return told

    def _take_again(self) -> None:
        """Renew lost leases, and queue what the server may have lost. Raise StoreError if another process has a run."""
        answers = self._exchanged((), [self._taking(run, LEASE) for run in [*self.runs]], ())[2]
        if 0 in _without_errors(answers):
            why = f"since its lease of {LEASE:.0f} seconds expired"
            raise StoreError(f"store {self.name!r} gave this run to another process, {why}")
        logger.warning("Store %r lost this run or its lease; its last rows are written again", self.name)
        again = (*self.held.values(), *self._kept.values())
        # Rows with text keys only if they are missing (True), since another process may have changed them meanwhile.
        self._queue[:0] = [[*each, True] if len(each[1]) > PLACE else each for each in again]

    # Connections

    def _open(self) -> None:
        if self._closed.is_set():
            raise exceptions.ConnectionError("it was closed")
        if not self._script:
            client = self._client = self._connect()
            if hasattr(client, "get_node_from_key"):  # a cluster, which would go on with half of the keys in a move
                client = client.get_redis_connection(client.get_node_from_key(self.root))
            self._script = client.register_script(_SCRIPT)

    def _drop(self, error: Exception | None = None) -> None:
        script, self._script, self._client = self._script, None, None
        if script:
            script.registered_client.connection_pool.disconnect()

    def reach(self) -> None:
        self._up.wait(LEASE)

    def close(self) -> None:
        self._closed.set()
        self._wakes.set()
        self._drop()

    # Leases, and the thread

    def _taking(self, run: bytes, seconds: float) -> Operation:
        return ["lease", run, int(1000 * seconds)]

    def hold_run(self, run: str) -> bool:
        if is_ours := self.execute(self._taking(code(run), LEASE)) != [0]:
            self.runs.add(code(run))
        return is_ours

    def is_held(self, run: str) -> bool:
        return bool(self.execute(["call", "EXISTS", self.key("lease.", code(run))])[0])

    def release_run(self, run: str) -> None:
        if code(run) in self.runs:
            self.runs.remove(code(run))
            self.execute(self._taking(code(run), 0))

    def keep(self) -> None:
        """Renew the leases, reconnect, and send urgent writes, until `close` is called."""
        pauses = EqualJitterBackoff(PAUSES[1], PAUSES[0])
        while not self._closed.is_set():
            if self._wakes.wait(LEASE / 4):
                self._wakes.clear()
                self._closed.wait(pauses.compute(self._failures) if self._away else SOON)
            with suppress(Exception):  # of any kind, since the next attempt may succeed
                self._tried([self._taking(run, LEASE) for run in [*self.runs]])


def _without_errors(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
