"""Talk to a server for one namespace of it: queued writes, requests, leases of runs, and what an outage needs.

`Server.run` sends what is queued and some requests to the script `store.lua`. A connection that was lost is made anew
at once. If that fails too, or if an answer did not come in time, the server counts as down: every call raises at once,
until a thread has reached the server again. The thread also renews the leases, and sends what must not wait for a call.

Each connection has a token of its own, with which it takes the leases. So the server refuses commands of an old
connection that arrive late.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit
from uuid import uuid4

import msgpack
import redis
import redis.connection
from redis import exceptions
from redis.backoff import EqualJitterBackoff, NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

from ..damage import DAMAGE
from ..interface import META, RUN, Record, StoreError
from .address import named

VERSION = 4  # the version of the layout of keys and values
SECONDS = 5.0  # the timeout for connecting and for each answer
LEASE = 10.0  # seconds without renewal after which a process counts as dead
PAUSES = (0.1, 10.0)  # the first and the maximum number of seconds between two attempts to reconnect
SOON = 0.1  # seconds after which the thread sends what is urgent, unless a call has sent it
BATCH = 100  # operations in one call of the script
REMEMBERED = 10_000  # rows to write again if the server loses them, about 10 MB
MOST = 100_000  # the maximum number of queued operations
SCRIPT = (files(__package__) / "store.lua").read_bytes()
_SHA = hashlib.sha1(SCRIPT).hexdigest()
_ELSEWHERE, _KEPT, _FREE = range(3)  # the results of `requests.lease`

ERRORS = (OSError, exceptions.RedisError)
_REFUSED = (  # a new connection finds the right server, has the script, and takes the leases again
    *(exceptions.NoScriptError, exceptions.ReadOnlyError),
    *(exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError),
)
_AGAIN = (exceptions.ConnectionError, OSError, *_REFUSED)
_LOST = (exceptions.TimeoutError, *_AGAIN)
_ADVICE = {  # keys are parts of error messages; the client library removes the first word of a message
    "used memory": "it is full; give it more memory, or forget old documents",
    "authenticat": "it needs a password",
    "username-password": "the user or the password is wrong",
    "invalid password": "the password is wrong",
    "permissions": "this user lacks a permission",
    "user executing the script": "this user lacks a permission",
    "wrong kind of value": "a key is damaged, or somebody else's: `scrapy neardup verify` says which",
    "bad argument": "it is damaged: `scrapy neardup verify` says what to do",
    "read only replica": "it is a replica; name the master",
    "persist": "it can't write its disk",
    "loading": "it is still loading its data; try again",
    "max number of clients": "it has too many clients: raise its `maxclients`",
}
Operation = Sequence[Any]
"""The name and the arguments of an operation or a request of the script."""
logger = logging.getLogger(__name__)


@cache
def code(run: str) -> bytes:
    """Return the code of a run: 4 bytes of a hash of its id. Two runs of a store can't have the same code."""
    return hashlib.blake2b(run.encode(), digest_size=4).digest()


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Convert errors of the client library and of damaged bytes in a `with` block to StoreError."""
    try:
        yield
    except ERRORS as error:
        raise explained(name, error) from error
    except DAMAGE as error:
        why = " ".join(str(error).split())
        advice = "`scrapy neardup verify` says where, and what to do"
        raise StoreError(f"store {name!r} is damaged: {why}; {advice}") from error


def explained(name: str, error: BaseException) -> StoreError:
    """Return the StoreError for an error of the client library, with advice. `name` is the store."""
    why = " ".join(str(error).split()) or type(error).__name__
    advice = next((f"; {text}" for sign, text in _ADVICE.items() if sign in why.lower()), "")
    return StoreError(f"store {name!r} can't be used: {why}{advice}")


# Clients


def clients(address: str) -> Callable[[], Any]:
    """Return a function that creates a client for an address. Raise StoreError for an invalid address."""
    before, _, rest = address.partition("://")
    scheme, _, kind = before.partition("+")
    url = f"{scheme.replace('valkey', 'redis')}://{rest}"
    retry: Any = Retry(NoBackoff(), 0)  # `Server` retries, since it must take the leases first
    options = {"protocol": 2, "socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry": retry}
    try:
        return {"": _single, "sentinel": _sentinel, "cluster": _cluster}[kind](url, options)
    except (ValueError, TypeError) as error:  # the client reads the query of the address as keyword arguments
        raise StoreError(f"store {named(address)!r}: not the address of a server: {error}") from error


def _single(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    database = urlsplit(url).path.strip("/")
    if not url.startswith("unix") and database and not database.isdecimal():
        raise ValueError(f"{database!r} is not the number of a database")
    redis.ConnectionPool.from_url(url, **options).make_connection()  # does not connect, only checks the arguments
    return lambda: redis.Redis.from_url(url, **options)


def _sentinel(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    service, _, db = urlsplit(url).path.strip("/").partition("/")
    if not service:
        raise ValueError("the name of the service is missing, as in redis+sentinel://HOST:26379/SERVICE")
    hosts, login = _hosts(url, 26379)
    make: Any = Sentinel
    client = make(hosts, **options).master_for(service, **{**options, **login, "db": int(db or 0)})
    client.connection_pool.make_connection()
    return lambda: client


def _cluster(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    hosts, login = _hosts(url, 6379)
    make: Any = RedisCluster
    node: Any = ClusterNode

    def cluster() -> Any:
        try:
            return make(startup_nodes=[node(*pair) for pair in hosts], **{**options, **login})
        except exceptions.RedisClusterException as error:
            raise exceptions.ConnectionError(str(error)) from error

    return cluster


def _hosts(url: str, port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Return the hosts and ports in an address, and its other parts as options of the client."""
    parts = urlsplit(url)
    parse_url: Any = redis.connection.parse_url
    login, at, names = parts.netloc.rpartition("@")
    hosts, options = [], {}
    for name in names.split(","):
        options = parse_url(f"{parts.scheme}://{login}{at}{name}?{parts.query}")
        hosts.append((options.pop("host", "localhost"), options.pop("port", port)))
    options["ssl"] = bool(options.pop("connection_class", None))
    return hosts, options


def keys(address: str, pattern: str) -> Iterator[bytes]:
    """Yield the keys of a server or cluster that match a pattern. Raise StoreError if the server fails."""
    with store_errors(named(address)), clients(address)() as client:
        yield from client.scan_iter(match=pattern, count=1000)


def namespaces(address: str) -> list[str]:
    """Return the sorted namespaces on a server. Raise StoreError if the server fails."""
    key = re.compile(rb"\{neardup:([^:{}]*):%d\}" % VERSION)
    matches = filter(None, map(key.match, keys(address, "{neardup:*")))
    return sorted({unquote(match[1].decode(errors="replace")) for match in matches})


# Writes


class Hold(NamedTuple):
    """A pending document: its place, value, keys and SimHash as arguments of the script, and its record."""

    place: bytes
    value: bytes
    keys: bytes
    simhash: bytes
    record: Record


class Queue:
    """The operations to send, and the last ones, to send them again if the server loses them.

    An operation may be executed twice, but never out of order.
    """

    def __init__(self) -> None:
        self.held: dict[bytes, Hold] = {}
        """The pending documents of this process by place."""
        self.refused: Exception | None = None
        """The error of the last attempt to send the queue; None if it succeeded."""
        self.damage: Exception | None = None
        """The first error of a write that can never succeed. `Server.flush` raises this error, then sets None."""
        self._again: list[Operation] = []
        self._waiting: list[Operation] = []
        self._rows: OrderedDict[Any, Operation] = OrderedDict()
        self._named: OrderedDict[Any, Operation] = OrderedDict()

    def __len__(self) -> int:
        return len(self._again) + len(self._waiting)

    def add(self, *operations: Operation) -> None:
        """Queue operations, and remove their documents from `held`. Raise StoreError if the queue is full."""
        if len(self._waiting) + len(operations) > MOST:
            raise StoreError(f"more than {MOST:,} rows wait for the server")
        self._waiting += operations
        for operation in operations:
            self.held.pop(operation[1], None)
            self.remember(operation)

    def remember(self, operation: Operation) -> None:
        """Remember an operation as the last one on its row, to repeat it if the server loses the row."""
        name, first, second, *rest = operation
        kept = self._named if first in (RUN, META) else self._rows
        key = (first, second) if name in ("set", "add") else first
        kept.pop(key, None)
        if name in ("row", "add") or (name == "set" and rest[0] is not False):
            kept[key] = operation
        if len(self._rows) > REMEMBERED:
            self._rows.popitem(last=False)

    def repeat(self) -> None:
        """Queue all remembered operations again. Rows of runs, hosts and `meta` are written only if missing."""
        kept = [*self._named.values(), *self._rows.values()]
        rows = [["add", *each[1:4]] if each[0] == "set" else each for each in kept]
        self._again = [*rows, *(["hold", *hold[:4]] for hold in [*self.held.values()])]

    def batch(self) -> list[Operation]:
        """Return the next operations to send."""
        return (self._again or self._waiting)[:BATCH]

    def settle(self, batch: Sequence[Operation], refused: Exception | None, damage: Exception | None) -> None:
        """Remove a batch from the queue, unless the server refused it."""
        self.refused, self.damage = refused or None, self.damage or damage or None
        if not refused:
            del (self._again or self._waiting)[: len(batch)]


class Server:
    """One namespace of a server, with the runs that this process holds there."""

    def __init__(self, address: str, namespace: str) -> None:
        self.name = named(address)
        # The braces keep all keys on one node of a cluster.
        self.root = f"{{neardup:{quote(namespace, safe='')}:{VERSION}}}"
        self.queue = Queue()
        self.runs: dict[str, bytes] = {}
        """The codes of the runs that this process holds, by id."""
        self.connections = 0
        """The number of connections opened so far."""
        self._connect = clients(address)
        self._retry = Retry(NoBackoff(), 1, _AGAIN)
        self._client: Any = None
        self._wire: Any = None
        self._id = uuid4().hex
        self._process = b""
        self._away: Exception | None = None
        self._failures = 0
        self._is_urgent = self._is_closed = False
        self._lock = Lock()
        self._changed = Condition()

    def key(self, suffix: str) -> str:
        """Return the Redis key with this suffix in the namespace."""
        return f"{self.root}:{suffix}"

    def run(self, *requests: Operation, checks: bool = True) -> list[Any]:
        """Send the queued writes, then these requests. Return the answers to the requests.

        Raise StoreError if the server fails or refuses a request. With `checks=False`, the answer to a refused request
        is the error.
        """
        with store_errors(self.name):
            if self._away:
                raise self._away.with_traceback(None)
            with self._lock:
                try:
                    answers = self._retry.call_with_retry(lambda: self._sent(requests), lambda error: None)
                except _LOST as error:
                    self._leave(error)
                    raise
            self._failures = 0
            for error in answers if checks else ():
                if isinstance(error, Exception):
                    raise error
            return answers

    def _sent(self, requests: Sequence[Operation]) -> list[Any]:
        self._open()
        while True:
            batch = self.queue.batch()
            is_last = bool(self.queue.refused) or len(batch) == len(self.queue)
            damage, refused, answers = self._exchanged(batch, requests if is_last else (), self.runs.values())
            self.queue.settle(batch, refused, damage)
            if is_last:
                return answers

    def _exchanged(self, batch: Sequence[Operation], requests: Sequence[Operation], codes: Iterable[bytes]) -> list[Any]:
        """Have the script executed. The server refuses it unless this connection holds the runs with these codes."""
        packed = msgpack.packb([batch, requests], use_bin_type=False)
        try:
            self._wire.send_command("EVALSHA", _SHA, 1, self.root, b"".join([self._token, *codes]), packed)
            told: list[Any] = self._wire.read_response(disable_decoding=True)
            for error in (told[1], *told[2]):
                if isinstance(error, _LOST):
                    raise error
        except BaseException as error:
            if isinstance(error, _LOST) or not isinstance(error, exceptions.ResponseError):
                self._drop()  # an answer may be partly read
            raise
        return told

    def flush(self, *, tells: bool) -> None:
        """Send all queued writes. Raise StoreError if a write fails.

        A write to a damaged key can never succeed. Its error is raised only with `tells=True`, and only once.
        """
        self.run()
        error = self.queue.refused
        if tells:
            error, self.queue.damage = error or self.queue.damage, None
        if error:
            raise explained(self.name, error) from error

    def memory(self) -> dict[str, str]:
        """Return the server's figures on its memory, by name, as INFO reports them."""
        [told] = self.run(["call", "INFO", "memory"], checks=False)
        lines = told.decode().splitlines() if isinstance(told, bytes) else []
        return dict(line.partition(":")[::2] for line in lines if ":" in line)

    # Connections

    def _open(self) -> None:
        """Connect if there is no connection, and take the leases of the runs with the token of the connection."""
        if self._is_closed:
            raise exceptions.ConnectionError("it was closed")
        if self._wire:
            return
        try:
            client = self._client = self._connect()
            if hasattr(client, "get_node_from_key"):  # a cluster
                client = client.get_redis_connection(client.get_node_from_key(self.root))
            self._wire = redis.Redis(connection_pool=client.connection_pool, single_connection_client=True).connection
            self.connections += 1
            self._token = f"{self._id}{self.connections:08}".encode()
            self._wire.send_command("SCRIPT", "LOAD", SCRIPT)
            self._wire.read_response()
            self._resume()
        except BaseException:
            self._drop()
            raise
        self._leave(None)

    def _resume(self) -> None:
        """Take the leases of the runs again. Queue again what the server may have lost."""
        before, self._process = self._process, b""  # stays unknown until all leases are taken
        taking = [self._taking(run, LEASE) for run in self.runs]
        _, _, [process, *states] = self._exchanged((), [["process"], *taking], ())
        if error := next((each for each in states if isinstance(each, Exception)), None):
            raise error
        if _ELSEWHERE in states:
            raise StoreError(
                f"store {self.name!r} gave this run to another process, since its lease of {LEASE:.0f} seconds expired"
            )
        if before != process or not process or _FREE in states:
            self.queue.repeat()
        if _FREE in states:
            logger.warning("Store %r lost this run or its lease; its last rows are written again", self.name)
        self._process = process

    def _drop(self) -> None:
        wire, client, self._wire, self._client = self._wire, self._client, None, None
        for each in (wire and wire.disconnect, client and client.close):
            with suppress(*ERRORS):
                if each:
                    each()

    def _leave(self, error: Exception | None) -> None:
        """Mark the server as down because of `error`, or as up if `error` is None."""
        with self._changed:
            self._away = error
            self._changed.notify_all()

    def _wait(self, holds: Callable[[], object], seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(holds, seconds)

    def reach(self) -> None:
        """If the server is down, wait some seconds for it to come back."""
        self._wait(lambda: not self._away, LEASE)

    def close(self) -> None:
        """Close the connection. Queued writes are not sent, and the leases expire."""
        self._is_closed = True
        self._leave(exceptions.ConnectionError("it was closed"))
        self._drop()

    # Leases, and the thread

    def _taking(self, run: str, seconds: float) -> Operation:
        return ["lease", code(run), run, int(1000 * seconds)]

    def take(self, run: str) -> bool:
        """Take the lease of a run. Return False if another living process has it."""
        if self.run(self._taking(run, LEASE)) == [_ELSEWHERE]:
            return False
        self.runs = {**self.runs, run: code(run)}  # a new dictionary, since the thread may be iterating over the old one
        return True

    def lease(self, run: str) -> bytes:
        """Return the Redis key of the lease of a run."""
        return self.key("lease.").encode() + code(run)

    def release(self, run: str) -> None:
        """Release the lease of a run."""
        if run in self.runs:
            self.runs = {each: code for each, code in self.runs.items() if each != run}
            self.run(self._taking(run, 0))

    def hurry(self) -> None:
        """Have the thread send the queue soon."""
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()

    def keep(self) -> None:
        """Start the thread that renews the leases, reconnects, and sends what is urgent."""
        Thread(target=self._keep, name="neardup-redis", daemon=True).start()

    def _keep(self) -> None:
        pauses = EqualJitterBackoff(PAUSES[1], PAUSES[0])
        while not self._is_closed:
            if self._away:
                self._wait(lambda: self._is_closed, pauses.compute(min(self._failures, 30)))
                self._failures += 1
                self._reopen()
                continue
            self._wait(lambda: self._away or self._is_urgent or self._is_closed, LEASE / 4)
            if self._is_urgent:
                self._wait(lambda: self._is_closed, SOON)
                self._is_urgent = False
            with suppress(Exception):  # of any kind, since the next attempt may succeed
                self.run(["renew", int(1000 * LEASE)])

    def _reopen(self) -> None:
        with self._lock:
            try:
                self._open()
            except Exception as error:  # of any kind, since the next attempt may succeed
                self._leave(error)
