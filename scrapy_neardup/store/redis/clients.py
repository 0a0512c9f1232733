"""Connections of the client to what an address names: one server, a master that sentinels know, a node of a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import redis
import redis.connection
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.exceptions import RedisClusterException
from redis.retry import Retry
from redis.sentinel import Sentinel

from ..base import StoreError
from .address import named

SECONDS = 5.0  # how long to wait for a connection, or for an answer
Connect = Callable[[], Any]
"""Makes a connection of the client, of whose calls many have no types."""


def connecting(address: str, root: str) -> Connect:
    """Return what makes a connection to the server that holds the keys of `root`. Raise StoreError."""
    before, _, rest = address.partition("://")
    scheme, kind = (*before.split("+"), "single")[:2]
    url = f"{scheme.replace('valkey', 'redis')}://{rest}"
    retry: Any = Retry(NoBackoff(), 0)  # when to try again is not the client's business
    options = {"protocol": 2, "socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry": retry}
    try:
        return {"single": _single, "sentinel": _sentinel, "cluster": _cluster}[kind](url, root, options)
    except (ValueError, TypeError) as error:  # the client takes what follows "?" for arguments of its own
        raise StoreError(f"store {named(address)!r}: no address of a server: {error}") from error


def _connection(pool: Any) -> Any:
    return redis.Redis(connection_pool=pool, single_connection_client=True).connection


def _single(url: str, root: str, options: dict[str, Any]) -> Connect:
    database = urlsplit(url).path.strip("/")
    if not url.startswith("unix") and database and not database.isdecimal():
        raise ValueError(f"{database!r} is no number of a database")
    pool = redis.ConnectionPool.from_url(url, **options)
    pool.make_connection()  # not connected yet: it only takes the arguments
    return lambda: _connection(pool)


def _sentinel(url: str, root: str, options: dict[str, Any]) -> Connect:
    """Connect to the master that sentinels name: `redis+sentinel://HOST[:PORT][,HOST…]/SERVICE[/DB]`."""
    service, _, db = urlsplit(url).path.strip("/").partition("/")
    if not service:
        raise ValueError("after the sentinels comes the name of the service, as in redis+sentinel://HOST:26379/SERVICE")
    hosts, login = _hosts(url, 26379)
    make: Any = Sentinel
    pool = make(hosts, **options).master_for(service, **{**options, **login, "db": int(db or 0)}).connection_pool
    pool.make_connection()
    return lambda: _connection(pool)


def _cluster(url: str, root: str, options: dict[str, Any]) -> Connect:
    """Connect to the node of a cluster that has the slot of `root`: `redis+cluster://HOST[:PORT][,HOST…]`."""
    hosts, login = _hosts(url, 6379)
    make: Any = RedisCluster
    node: Any = ClusterNode

    def connect() -> Any:
        try:
            cluster = make(startup_nodes=[node(*pair) for pair in hosts], **{**options, **login})
        except RedisClusterException as error:
            raise ConnectionError(str(error)) from error
        return _connection(cluster.get_redis_connection(cluster.get_node_from_key(root)).connection_pool)

    return connect


def _hosts(url: str, port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Return the hosts and ports that an address names, and all else that it says."""
    parts = urlsplit(url)
    parse_url: Any = redis.connection.parse_url
    login, at, names = parts.netloc.rpartition("@")
    hosts, options = [], {}
    for name in names.split(","):
        options = parse_url(f"{parts.scheme}://{login}{at}{name}?{parts.query}")
        hosts.append((options.pop("host", "localhost"), options.pop("port", port)))
    options["ssl"] = bool(options.pop("connection_class", None))
    return hosts, options
