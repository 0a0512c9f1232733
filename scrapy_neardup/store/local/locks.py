"""File locks beside a store. The system releases them when their process ends."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

LOOK_SECONDS = 0.05  # seconds to wait, since another process may hold the lock only to check it


class RunLock:
    """The lock file of one run in a store."""

    def __init__(self, store: str, run: str) -> None:
        self._lock = FileLock(f"{store}.run-{run}.lock", thread_local=False)

    def acquire(self) -> bool:
        """Take the lock. Return False if another living process holds it."""
        try:
            self._lock.acquire(timeout=LOOK_SECONDS, poll_interval=LOOK_SECONDS / 10)
        except Timeout:
            return False
        return True

    def is_held(self) -> bool:
        """Return whether a living process holds the lock. On POSIX, the check creates no file."""
        if os.name != "posix":  # elsewhere a lock can't be checked without taking it
            held = not self.acquire()
            self._lock.release()
            return held
        import fcntl

        try:
            with open(self._lock.lock_file, "rb") as file:
                # A shared lock does not block other checks. Closing the file releases it.
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def release(self) -> None:
        """Release the lock and remove its file."""
        with suppress(OSError):  # outside POSIX an open file can't be removed
            # The file is removed first, so that a waiting process notices that it is gone, and starts over.
            Path(self._lock.lock_file).unlink()
        self._lock.release()
