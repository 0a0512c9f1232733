"""A run that goes on after its connection was lost: what the server knows and what this process does agree again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .documents import pairs
from .server import Server

if TYPE_CHECKING:
    from .store import RedisStore

logger = logging.getLogger(__name__)


def resume(store: RedisStore) -> None:
    """Go on with the run, or begin it anew where others ended it or the server lost data. Raise StoreError."""
    if store.begun_anew or not store.runs_known.retake(store.documents.count):
        _begin_anew(store)
    store.documents.recheck(_committing(store))
    _drop_unknown(store)
    pending = [signature for signature in store.documents.pending if signature.number is None]
    for signature in pending:
        store.add(signature)
    if store.begun_anew:
        again = store.late.repeat_all()
        logger.warning(
            "Store %r has lost what this run wrote, or took it for dead: %d documents are entered again",
            store.server.name, again + len(pending),
        )  # fmt: skip
    store.begun_anew = False
    store.runs_known.reached()
    store.reconnects += 1


def _begin_anew(store: RedisStore) -> None:
    """Take the run again. What was queued goes by numbers that may be others' now: it is done from memory instead."""
    evidence = [each.arguments for each in store.server.operations if each.name == "learn"]
    store.server.operations.clear()
    store.server.runs += 1
    store.begun_anew = True
    store.begin_again()
    for _, _, body in evidence:
        store.server.queue("learn", str(store.documents.run), store.runs_known.token, body)


def _committing(store: RedisStore) -> set[int]:
    """Return the numbers of the documents of which a commit is queued."""
    packed = [each.arguments[1] for each in store.server.operations if each.name == "commit"]
    return {int.from_bytes(each, "big") for each in packed if isinstance(each, bytes)}


def _drop_unknown(store: RedisStore) -> None:
    """Drop documents that were entered for this run by a claim of which the answer never came."""
    [rows] = store.server.run([("HGETALL", store.server.key("pending"))])
    known = {signature.number for signature in store.documents.pending} | _committing(store)
    mine = (int(number) for number, run in pairs(rows).items() if int(run) == store.documents.run)
    for number in mine:
        if number not in known:
            store.server.queue("drop", number.to_bytes(4, "big"), b"", str(store.documents.run))


def warn_of_eviction(server: Server) -> None:
    """Say so where the server drops keys of its own accord when it is full."""
    [memory] = server.run([("INFO", "memory")])
    told = dict(line.split(":", 1) for line in memory.decode().split() if ":" in line)
    policy = told.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and told.get("maxmemory", "0") != "0":
        logger.warning(
            "Store %r: when the server is full it drops keys, documents with them: set its maxmemory-policy to"
            " noeviction instead of %s", server.name, policy,
        )  # fmt: skip
