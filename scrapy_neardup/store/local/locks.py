"""File locks beside a store, released by the system when their process ends."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

LOOK_SECONDS = 0.05  # how long one who takes a lock waits for others that only look at it


class RunLock:
    """The lock of one run."""

    def __init__(self, store: str, run: str) -> None:
        self._lock = FileLock(f"{store}.run-{run}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Take the lock; return False where a living process holds it."""
        try:
            self._lock.acquire(timeout=LOOK_SECONDS, poll_interval=LOOK_SECONDS / 10)
        except Timeout:
            return False
        return True

    def is_held(self) -> bool:
        """Return whether a living process holds the lock; this makes no file, so what is read-only can be asked too."""
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
        """Release the lock and remove its file."""
        with suppress(OSError):  # elsewhere than on POSIX an open file can't be removed
            # While it is held: who waits sees that its file is gone, and begins anew.
            Path(self._lock.lock_file).unlink()
        self._lock.release()
