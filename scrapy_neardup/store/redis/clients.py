"""Connect to a single server, a Sentinel master, or a node of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import redis
import redis.connection
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

from ..interface import StoreError
from .address import named
from .failures import ERRORS, explained

SECONDS = 5.0  # the timeout for connecting and for each answer
Connect = Callable[[], Any]
"""A function that opens a connection."""


def connecting(address: str, root: str) -> Connect:
    """Return a function that connects to the server at an address. Raise StoreError for an invalid address.

    In a cluster, it connects to the node that has the keys with the prefix `root`.
    """
    making = _making(address)
    return lambda: _connection(making(), root)


def _connection(client: Any, root: str) -> Any:
    """Open a connection to a server or, in a cluster, to the node that has the keys with the prefix `root`."""
    if hasattr(client, "get_node_from_key"):  # a cluster
        client = client.get_redis_connection(client.get_node_from_key(root))
    return redis.Redis(connection_pool=client.connection_pool, single_connection_client=True).connection


def keys(address: str, pattern: str) -> Iterator[bytes]:
    """Yield the keys that match a pattern, on a server or on all nodes of a cluster.

    Raise StoreError if the server fails.
    """
    try:
        with _making(address)() as client:
            yield from client.scan_iter(match=pattern, count=1000)
    except ERRORS as error:
        raise explained(named(address), error) from error


def _making(address: str) -> Callable[[], Any]:
    """Return a function that creates a client for an address. Raise StoreError for an invalid address."""
    before, _, rest = address.partition("://")
    scheme, kind = (*before.split("+"), "single")[:2]
    url = f"{scheme.replace('valkey', 'redis')}://{rest}"
    retry: Any = Retry(NoBackoff(), 0)  # `Server` retries instead
    options = {"protocol": 2, "socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry": retry}
    try:
        return {"single": _single, "sentinel": _sentinel, "cluster": _cluster}[kind](url, options)
    except (ValueError, TypeError) as error:  # the client reads the query of the address as keyword arguments
        raise StoreError(f"store {named(address)!r}: not the address of a server: {error}") from error


def _single(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    database = urlsplit(url).path.strip("/")
    if not url.startswith("unix") and database and not database.isdecimal():
        raise ValueError(f"{database!r} is not the number of a database")
    pool = redis.ConnectionPool.from_url(url, **options)
    pool.make_connection()  # does not connect, only checks the arguments
    return lambda: redis.Redis.from_pool(pool)


def _sentinel(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that creates a client of the master of a Sentinel service.

    The address is `redis+sentinel://HOST[:PORT][,HOST…]/SERVICE[/DB]`.
    """
    service, _, db = urlsplit(url).path.strip("/").partition("/")
    if not service:
        raise ValueError("the name of the service is missing, as in redis+sentinel://HOST:26379/SERVICE")
    hosts, login = _hosts(url, 26379)
    make: Any = Sentinel
    client = make(hosts, **options).master_for(service, **{**options, **login, "db": int(db or 0)})
    client.connection_pool.make_connection()
    return lambda: client


def _cluster(url: str, options: dict[str, Any]) -> Callable[[], Any]:
    """Return a function that creates a client of the cluster at `redis+cluster://HOST[:PORT][,HOST…]`."""
    hosts, login = _hosts(url, 6379)
    make: Any = RedisCluster
    node: Any = ClusterNode

    def cluster() -> Any:
        try:
            return make(startup_nodes=[node(*pair) for pair in hosts], **{**options, **login})
        except RedisClusterException as error:
            raise ConnectionError(str(error)) from error

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
