"""Runs: who wrote what, and whether it ended well. A run that died is known by its lock, which died with it."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from operator import index
from pathlib import Path
from typing import Any
from uuid import uuid4

from filelock import FileLock, Timeout

from .damage import DAMAGE

_ID = re.compile(r"[\w.-]{1,200}")  # it becomes part of a file's name: one from a stranger is to lead nowhere else


@dataclass(frozen=True)
class Run:
    """The stored record of one run."""

    id: str
    started: float
    """Seconds since the epoch."""
    closed: float | None = None
    """None while it is open: it is alive, or it died."""
    sealed: int = 0
    """Its segments below this number are past being forgotten; the next one gets this number or a higher one."""
    forgotten: tuple[tuple[int, int], ...] = ()
    """The segments that were forgotten: ranges, from the first number to before the second."""
    stats: Mapping[str, int] = field(default_factory=dict)
    """What it came to, by the names of Scrapy's stats; of a run that was resumed the sums."""

    def has_forgotten(self, number: int) -> bool:
        """Say whether a segment was forgotten."""
        return any(start <= number < end for start, end in self.forgotten)

    def ended(self, segments: int, *, forget: bool = False) -> Run:
        """Return the record of this run at its end, with so many segments; `forget` those that are not sealed."""
        forgotten = ((self.sealed, segments),) if forget and segments > self.sealed else ()
        return replace(
            self,
            closed=max(self.started, time.time()),
            sealed=max(self.sealed, segments),
            forgotten=self.forgotten + forgotten,
        )

    def without(self, segments: int) -> Run:
        """Return the record of this run once its segments below a number are forgotten."""
        return replace(self, sealed=max(self.sealed, segments), forgotten=((0, segments),))

    def with_stats(self, stats: Mapping[str, int]) -> Run:
        """Return the record with what the run came to since it was last opened."""
        return replace(self, stats=dict(Counter(self.stats) + Counter(stats)))

    def dump(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, value: bytes) -> Run:
        """Read a stored record; raise ValueError where it is none."""
        try:
            return cls.parsed(json.loads(value))
        except DAMAGE as error:
            raise ValueError(f"the record of a run is damaged: {value[:80]!r}") from error

    @classmethod
    def parsed(cls, record: Mapping[str, Any]) -> Run:
        """Read a record that was JSON; raise ValueError where it is none."""
        try:
            run = cls(**{**record, "forgotten": tuple((int(start), int(end)) for start, end in record["forgotten"])})
            _ = (
                run.started + (run.closed or 0.0) + index(run.sealed),
                dict(run.stats),
            )  # TypeError for what is no number
        except DAMAGE as error:
            raise ValueError(f"no run: {error}") from error
        if not _ID.fullmatch(run.id):
            raise ValueError(f"{run.id!r} is no id of a run")
        return run


def new_id() -> str:
    """Return an id that says when the run began and in which process; no other store has it."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{uuid4().hex[:6]}"


LOOK_SECONDS = 0.05  # how long one who takes a lock waits for others that only look at it


class RunLock:
    """A lock beside the store that the system lets go of when the process ends, however it ends."""

    def __init__(self, store: str, run: str) -> None:
        self.run = run
        self._lock = FileLock(f"{store}.run-{run}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Take the lock; False where a living process holds it."""
        try:
            self._lock.acquire(timeout=LOOK_SECONDS, poll_interval=LOOK_SECONDS / 10)
        except Timeout:
            return False
        return True

    def is_held(self) -> bool:
        """Say whether a living process holds the lock; this makes no file, so it can be asked of what is read-only."""
        if os.name != "posix":  # elsewhere one can't look without taking
            held = not self.acquire()
            self._lock.release()
            return held
        import fcntl

        try:
            with open(self._lock.lock_file, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # in nobody's way who only looks; gone with the file
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def release(self) -> None:
        """Let go of the lock and remove its file."""
        with suppress(OSError):  # elsewhere than on POSIX an open file can't be removed
            Path(
                self._lock.lock_file
            ).unlink()  # while it is held: who waits sees that its file is gone, and begins anew
        self._lock.release()
