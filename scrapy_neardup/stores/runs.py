"""Runs: who wrote what, and whether it ended well. A run that died is known by its lock, which died with it."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout


@dataclass
class Run:
    """The stored record of one run."""

    id: str
    started: float
    """Seconds since the epoch."""
    closed: float | None = None
    """None while it is open: it is alive, or it died."""
    sealed: int = 0
    """How many of its segments are past being forgotten."""

    def dump(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, value: bytes) -> Run:
        return cls(**json.loads(value))


def new_id() -> str:
    """Return an id that says when the run began and in which process."""
    return f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


class RunLock:
    """A lock beside the store that the system lets go of when the process ends, however it ends."""

    def __init__(self, store: str, run: str) -> None:
        self._lock = FileLock(f"{store}.run-{run}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Take the lock; False where a living process holds it."""
        try:
            self._lock.acquire(blocking=False)
        except Timeout:
            return False
        return True

    def release(self) -> None:
        """Let go of the lock and remove its file."""
        self._lock.release()
        Path(self._lock.lock_file).unlink(missing_ok=True)
