"""Addresses of servers: what is allowed, how to connect, and how to name one without its password."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from ..base import StoreError

SCHEMES = ("redis", "rediss", "valkey", "valkeys")
KINDS = (*SCHEMES, *(f"{scheme}+{kind}" for scheme in SCHEMES for kind in ("sentinel", "cluster")), "unix")
SECONDS = 5.0  # how long to wait for a connection, or for an answer
Connect = Callable[[], Any]
"""Makes a connection of the client, of whose calls many have no types."""


def is_server(address: str) -> bool:
    """Say whether an address is that of a server."""
    return address.partition("://")[0] in KINDS and "://" in address


def named(address: str) -> str:
    """Return an address, or a path, as it may be told: without its password."""
    if "://" not in address:
        return address
    try:
        parts = urlsplit(address)
    except ValueError:  # it may have a password all the same
        return f"{address.partition('://')[0]}://…"
    user, at, place = parts.netloc.rpartition("@")
    shown = f"{user.partition(':')[0]}:***@{place}" if at and ":" in user else parts.netloc
    query = urlencode([(key, "***" if "password" in key else value) for key, value in parse_qsl(parts.query)])
    return f"{parts.scheme}://{urlunsplit(('', shown, parts.path, query, parts.fragment)).removeprefix('//')}"


def connecting(address: str, root: str) -> Connect:
    """Return what makes a connection to the server that holds the keys of `root`. Raise StoreError."""
    try:
        import redis  # noqa: F401
    except ImportError:
        raise StoreError(
            f"store {named(address)!r} needs the extra `redis`: pip install 'scrapy-neardup[redis]'"
        ) from None
    before, _, rest = address.partition("://")
    scheme, kind = (*before.split("+"), "single")[:2]
    url = f"{scheme.replace('valkey', 'redis')}://{rest}"
    options = {"socket_timeout": SECONDS, "socket_connect_timeout": SECONDS, "retry": _once()}
    try:
        return {"single": _single, "sentinel": _sentinel, "cluster": _cluster}[kind](url, root, options)
    except (ValueError, TypeError) as error:  # the client takes what follows "?" for arguments of its own
        raise StoreError(f"store {named(address)!r}: no address of a server: {error}") from error


def _once() -> Any:
    """Return what has the client try once: when to try again is not its business."""
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return Retry(NoBackoff(), 0)


def _single(url: str, root: str, options: dict[str, Any]) -> Connect:
    import redis

    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme != "unix" and database and not database.isdecimal():
        raise ValueError(f"{database!r} is no number of a database")
    pool = redis.ConnectionPool.from_url(url, **options)
    pool.make_connection()  # not connected yet: it only takes the arguments
    return lambda: _connection(pool)


def _connection(pool: Any) -> Any:
    import redis

    return redis.Redis(connection_pool=pool, single_connection_client=True).connection


def _sentinel(url: str, root: str, options: dict[str, Any]) -> Connect:
    """Connect to the master that sentinels name: `redis+sentinel://HOST[:PORT][,HOST…]/SERVICE[/DB]`."""
    from redis.sentinel import Sentinel

    parts = urlsplit(url)
    service, _, db = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("after the sentinels comes the name of the service, as in redis+sentinel://HOST:26379/SERVICE")
    user, password = (unquote(text) or None for text in _user(parts.netloc))
    login = {"username": user, "password": password, "ssl": parts.scheme == "rediss", **dict(parse_qsl(parts.query))}
    make: Any = Sentinel
    sentinel = make(_hosts(parts.netloc, 26379), **options)
    pool = sentinel.master_for(service, db=int(db or 0), **{**options, **login}).connection_pool
    pool.make_connection()
    return lambda: _connection(pool)


def _cluster(url: str, root: str, options: dict[str, Any]) -> Connect:
    """Connect to the node of a cluster that has the slot of `root`: `redis+cluster://HOST[:PORT][,HOST…]`."""
    from redis.cluster import ClusterNode, RedisCluster
    from redis.exceptions import RedisClusterException

    parts = urlsplit(url)
    user, password = (unquote(text) or None for text in _user(parts.netloc))
    node_at: Any = ClusterNode
    nodes = [node_at(*pair) for pair in _hosts(parts.netloc, 6379)]
    login = {"username": user, "password": password, "ssl": parts.scheme == "rediss", **dict(parse_qsl(parts.query))}

    def connect() -> Any:
        try:
            cluster: Any = RedisCluster(startup_nodes=nodes, **{**options, **login})
        except RedisClusterException as error:
            raise ConnectionError(str(error)) from error
        node = cluster.get_node_from_key(root)
        return _connection(cluster.get_redis_connection(node).connection_pool)

    return connect


def _user(netloc: str) -> tuple[str, str]:
    user, _, password = netloc.rpartition("@")[0].partition(":")
    return user, password


def _hosts(netloc: str, port: int) -> list[tuple[str, int]]:
    pairs = (place.rpartition(":") for place in netloc.rpartition("@")[2].split(",") if place)
    return [(host, int(number)) if host else (number, port) for host, _, number in pairs]
