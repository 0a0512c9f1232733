"""Verification of a store: read all of it, of whatever namespace, and say what is damaged. Changes nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..watching import watched
from .base import DOCUMENT, HOST, LINK, META, RUN, StoreError
from .consistency import Consistency
from .damage import DAMAGE
from .findings import NOTHING, Finding, Notes, Survey
from .local.inspection import inspect
from .redis.address import check_client, is_server

if TYPE_CHECKING:
    from .redis.backend import RedisBackend

__all__ = ["Finding", "Survey", "verify"]

_IN_FILE = ("rows", "documents", "links", "runs", "index_files", "bytes")
_ON_SERVER = ("namespaces", "rows", "documents", "links", "runs", "bytes_server")
_KINDS = (META, RUN, LINK, DOCUMENT, HOST)  # links first: what they lead to was written before them


def verify(address: str) -> Survey:
    """Read all of a store at a path or on a server. Raise StoreError where it can't be opened, or is none of ours."""
    if is_server(address):
        return _verify_server(address)
    survey = Survey(Counter(dict.fromkeys(_IN_FILE, 0)))
    inspect(os.path.realpath(address), survey)
    return survey


def _verify_server(address: str) -> Survey:
    check_client(address)
    from .redis.backend import RedisBackend
    from .redis.namespaces import namespaces

    survey = Survey(Counter(dict.fromkeys(_ON_SERVER, 0)))
    names, others = namespaces(address)
    for name in dict.fromkeys(("", *names)):
        with _abandoning(RedisBackend(address, name, writes=False)) as backend:
            if name in names:
                _verify_namespace(backend, name, survey)
            memory = backend.server.memory()
    survey.findings += [Finding(each, "nothing: this version leaves them alone", NOTHING, True) for each in others]
    survey.findings += _check_memory(memory)
    survey.read["bytes_server"] = int(memory.get("used_memory", 0))
    return survey


@contextmanager
def _abandoning(backend: RedisBackend) -> Iterator[RedisBackend]:
    try:
        yield backend
    finally:
        backend.abandon()


def _verify_namespace(backend: RedisBackend, name: str, survey: Survey) -> None:
    from .redis.inspection import Inspection

    notes = Notes(name)
    rows, inspection = Consistency(notes), Inspection(backend, notes)
    inspection.check_types()
    was_quiet = _is_quiet(backend)
    for kind in _KINDS:
        try:
            for row in watched(backend.scan(kind), "rows"):
                rows.take(row.key, row.value, is_pending=row.is_pending)
                inspection.take(row)
            inspection.check()
        except (StoreError, *DAMAGE) as error:
            backend.server.run([("PING",)])  # raises where the server is away
            rows.lose_kind(kind, error)
    rows.check(is_quiet=was_quiet and _is_quiet(backend))
    survey.read.update({name: rows.read[name] for name in ("rows", "documents", "links", "runs")})
    survey.read["namespaces"] += 1
    survey.findings += notes.findings()


def _is_quiet(backend: RedisBackend) -> bool:
    """Return whether nobody is about to write, as far as can be told."""
    try:
        return not any(backend.is_held(run) for run in backend.names())
    except (StoreError, *DAMAGE):
        return False


def _check_memory(memory: Mapping[str, str]) -> Iterator[Finding]:
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and int(memory.get("maxmemory", 0)):
        what = f"the server drops keys when it is full (maxmemory-policy {policy})"
        costs = "documents or all of a store may go at any time"
        yield Finding(what, costs, "set its maxmemory-policy to noeviction", harmless=True)
