"""Reading all that a server holds: what is damaged or missing, what that costs, and what to do. Changes nothing.

Nothing on a server has a checksum, so all of it is read as the store reads it, has to make sense, and is compared with
what else there is of it. How many there are of each is compared only where nobody wrote meanwhile.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from ..inspecting import Finding, Survey
from ..meta import merge_meta
from ..runs import Run
from .documents import pairs
from .learned import unpacked
from .noting import HARMLESS, Notes
from .runs import news
from .scanning import Namespace, info, namespaces
from .server import Server
from .store import root_of
from .tables import Numbered, check_tables

_READ = ("namespaces", "keys", "runs", "documents", "links", "bytes_server")
_UNSAID = "nothing says what of the run is forgotten, or whether it closed"
_UNLEARNED = "what was learned of host mirrors is lost, and learned again"
_UNKNOWN = "its documents are unknown: their pages are stored once more"


def verify_server(address: str) -> Survey:
    """Read all that a server holds of our stores. Raise StoreError where it can't be asked."""
    survey = Survey(Counter(dict.fromkeys(_READ, 0)))
    found, others = namespaces(address)
    for keys in sorted(found.values(), key=lambda keys: keys.root):
        notes = Notes(keys.name)
        with closing(Server(address, keys.root)) as server:
            _Space(server, keys, survey.read, notes).check()
        survey.findings += notes.findings()
    costs = "nothing: this version leaves them alone"
    survey.findings += [Finding(f"{what} are of another version", costs, HARMLESS, True) for what in others]
    with closing(Server(address, root_of(""))) as server:
        _check_memory(server, survey)
    return survey


def _check_memory(server: Server, survey: Survey) -> None:
    memory = info(server, "memory")
    survey.read["bytes_server"] = int(memory.get("used_memory", 0))
    policy = memory.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and int(memory.get("maxmemory", 0)):
        survey.findings.append(
            Finding(
                f"the server drops keys when it is full (maxmemory-policy {policy})",
                "documents or all of a store may go at any time",
                "set its maxmemory-policy to noeviction",
                harmless=True,
            )
        )


class _Space:
    """One namespace."""

    def __init__(self, server: Server, keys: Namespace, read: Counter[str], notes: Notes) -> None:
        self._server, self._keys, self._read, self._notes = server, keys, read, notes
        self._ids: dict[int, str] = {}

    def check(self) -> None:
        """Read all of it that can be read."""
        self._read.update(namespaces=1, keys=sum(self._keys.keys.values()))
        for shown in self._keys.strangers:
            self._notes.add("# keys are of a name that a store has not", "nothing", shown, harmless=True)
        for shown in self._keys.wrong:
            self._notes.add("# keys are somebody else's, or damaged", "the store is refused, or of no use", shown)
        if self._keys.wrong or not self._check_meta():
            return
        self._check_runs()
        if self._has_state():
            self._check_pending()
            self._check_news()
            seen = Numbered(self._server, self._ids, self._keys)
            check_tables(seen, self._notes, self._is_quiet)
            self._read.update(documents=len(seen), links=seen.links)
            if seen.links and ":news" not in self._keys.keys:
                self._notes.add("all entries on host mirrors are missing", _UNLEARNED)

    def _hash(self, name: str) -> dict[bytes, bytes]:
        [rows] = self._server.run([("HGETALL", self._server.key(name) if name else self._server.root)])
        return dict(pairs(rows))

    def _check_meta(self) -> bool:
        """Say whether this version can read the rest."""
        costs = "nothing says what its fingerprints depend on"
        [meta] = self._server.run([("GET", self._server.key("meta"))])
        if meta is None:
            self._notes.add("the record of what the store was made with is missing", costs)
            return True
        try:
            merge_meta(meta, {})
        except ValueError as error:
            self._notes.add("the record of what the store was made with can't be read", "it is refused", error)
            return False
        return True

    def _check_runs(self) -> None:
        self._check_names()
        self._check_count()
        known, leases = set(self._ids.values()), self._leases()
        for name, record in self._hash("runs").items():
            self._read["runs"] += 1
            leases.pop(name.decode(errors="replace"), None)
            with self._notes.reading("# records of runs", _UNSAID, repr(name)[1:]):
                if (run := Run.load(record)).id != name.decode() or run.id not in known:
                    raise ValueError(f"it is that of run {run.id!r}, which has no number")
        for run_id in (name for name, is_alive in leases.items() if not is_alive):  # else it has only just begun
            self._notes.add("# records of runs are missing", _UNSAID, run_id)

    def _check_names(self) -> None:
        numbers = self._hash("numbers")
        for number, name in self._hash("ids").items():
            with self._notes.reading("# names of runs", _UNSAID, number):
                self._ids[int(number)] = name.decode()
                if numbers.pop(name, None) != number:
                    self._notes.add("# runs have lost their number", _UNSAID, name.decode())
        for name in numbers:
            self._notes.add("# runs have lost their name", _UNKNOWN, name.decode(errors="replace"))

    def _check_count(self) -> None:
        """See that no run will be given the number of another."""
        with self._notes.reading("the number of the next run", "what two runs brought is taken for one's", "runs"):
            if int(self._hash("").get(b"runs", 0)) < max(self._ids, default=0):
                raise ValueError("it is that of another run")

    def _leases(self) -> dict[str, bool]:
        """Return of which runs a living process has a lease."""
        asked = [("EXISTS", self._server.key(f"lease.{number}")) for number in self._ids]
        return dict(zip(self._ids.values(), map(bool, self._server.run(asked)), strict=True))

    def _has_state(self) -> bool:
        """Say whether it is known how many documents there are, and how far their tables have grown."""
        lacks = {"", "k"} - set(self._keys.keys)
        if lacks and set(self._keys.keys) & {"d", "s", "u"}:
            shown = " and ".join(repr(f"{self._server.root}{kind}") for kind in sorted(lacks))
            self._notes.add(f"{shown} is missing", "all of it is unknown: all pages are stored once more")
            return False
        return True

    def _check_pending(self) -> None:
        for number, run in self._hash("pending").items():
            with self._notes.reading("# pending documents", _UNKNOWN, number.decode(errors="replace")):
                _ = int(number), self._ids[int(run)]

    def _check_news(self) -> None:
        for name, fields in news(self._server):
            with self._notes.reading("# entries on host mirrors", _UNLEARNED, name.decode(errors="replace")):
                if int(fields[b"run"]):
                    _ = self._ids[int(fields[b"run"])]
                unpacked(fields[b"body"])

    def _is_quiet(self) -> bool:
        """Say whether nobody is about to write."""
        return not any(self._leases().values())
