"""Runs of this process: leases that it renews, and the ordinals by which the server knows all runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from ..base import StoreError

LEASE = 10.0  # seconds for which a process is taken for alive that renews nothing
_EPOCH = 29_454_720  # minutes: ordinals grow with time, since 2026
_ELSEWHERE, _KEPT, _FREE = range(3)  # as in scripts/run.lua

Ask = Callable[[str, Sequence[Any]], Any]
"""Runs a script on the server, given its name and arguments."""


class Leases:
    """Which runs this process has. Each connection has a token of its own, so that no late write of another counts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._token = uuid4().hex
        self._next = ""
        self._process = ""
        self._held: dict[str, bytes] = {}
        self._ordinals: dict[str, bytes] = {}
        self._runs: dict[bytes, str] = {}
        self._stop = Event()
        self._thread: Thread | None = None

    # Names

    def ordinal(self, ask: Ask, run: str, *, makes: bool = True) -> bytes | None:
        """Return the ordinal of a run; None where it has none and gets none."""
        if run not in self._ordinals:
            ordinal = ask("run", ["name", run, _new_ordinal() if makes else b""])
            if ordinal is None:
                return None
            self._learn(run, ordinal)
        return self._ordinals[run]

    def run(self, ordinal: bytes, names: Callable[[], dict[str, bytes]]) -> str:
        """Return the run that has an ordinal; `names` asks for all of them. Raise ValueError where there is none."""
        if ordinal not in self._runs:
            for name, each in names().items():
                self._learn(name, each)
        if ordinal not in self._runs:
            raise ValueError(f"no run has the ordinal {ordinal.hex()}")
        return self._runs[ordinal]

    def _learn(self, run: str, ordinal: bytes) -> None:
        self._ordinals[run] = ordinal
        self._runs[ordinal] = run

    # Leases

    @property
    def fence(self) -> list[bytes | str]:
        """What scripts take to tell whether this process still has its runs."""
        return [each for ordinal in self._held.values() for each in (ordinal, self._token)]

    def take(self, ask: Ask, run: str) -> bool:
        """Take a run; False where a living process has it."""
        wanted = self._ordinals.get(run) or _new_ordinal()
        ordinal, state = ask("run", _taking(run, wanted, self._token, self._token))
        self._learn(run, ordinal)
        if state != _ELSEWHERE:
            self._held[run] = ordinal
        return bool(state != _ELSEWHERE)

    def release(self, ask: Ask, run: str) -> None:
        """Let go of a run."""
        if ordinal := self._held.pop(run, None):
            ask("run", ["release", run, ordinal, self._token])

    def retake(
        self, ask_all: Callable[[Sequence[Sequence[Any]]], list[Any]], process: str
    ) -> dict[bytes, bytes] | None:
        """Take the runs over a new connection to a process of the server.

        Return None where it has all that it was told, else the runs' ordinals, by those before. Raise StoreError where
        another process has one.
        """
        self._next = self._next or uuid4().hex  # the same one until an answer comes
        results = ask_all([_taking(run, each, self._next, self._token) for run, each in self._held.items()])
        for run, (_, state) in zip(self._held, results, strict=True):
            if state == _ELSEWHERE:
                raise StoreError(
                    f"store {self._name!r} heard nothing of run {run!r} for {LEASE:.0f} seconds, so another process"
                    " took it for dead and has it now"
                )
        changed = {self._held[run]: ordinal for run, (ordinal, _) in zip(self._held, results, strict=True)}
        is_whole = process == self._process and all(state == _KEPT for _, state in results)
        self._token, self._next, self._process = self._next, "", process
        if is_whole:
            return None
        self._ordinals.clear()
        self._runs.clear()
        for run, before in self._held.items():
            self._held[run] = changed[before]
            self._learn(run, changed[before])
        return changed

    def renewals(self) -> list[list[Any]]:
        """Return what renews the leases."""
        return [["renew", run, each, self._token, "", _milliseconds()] for run, each in self._held.items()]

    def renew_on(self, renew: Callable[[], None]) -> bool:
        """Have a thread renew the leases from now on; return whether there was none."""
        is_first = self._thread is None
        if is_first:
            self._thread = Thread(target=self._renew, args=(renew,), name="neardup-lease", daemon=True)
            self._thread.start()
        return is_first

    def _renew(self, renew: Callable[[], None]) -> None:
        while not self._stop.wait(LEASE / 4):
            with suppress(StoreError):  # it is tried again
                renew()

    def stop(self) -> None:
        """Renew no more."""
        self._stop.set()


def _taking(run: str, ordinal: bytes, token: str, before: str) -> list[Any]:
    return ["take", run, ordinal, token, before, _milliseconds()]


def _milliseconds() -> int:
    return int(LEASE * 1000)


def _new_ordinal() -> bytes:
    return (int(time.time() / 60) - _EPOCH & 0xFFFFFF).to_bytes(3, "big")
