"""Putting what the log holds into parts, in a process of its own: this module, with STORE and NAMESPACE as arguments.

So a crawl never waits for it, and its memory does not grow by what it takes. A kill at any moment leaves the store as
it was, or tidied: parts are written first, and one transaction then names them and drops what is in them.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys

FRESH = 4096  # documents in RAM before they are put into a part
SEGMENTS = 4096  # rows of the log, however little they hold
OCCUPIED = 75  # exit status: another process is at it

logger = logging.getLogger(__name__)


class Tidying:
    """Has the process begin when there is enough to tidy; one at a time."""

    def __init__(self, store: str, namespace: str) -> None:
        self._store, self._namespace = store, namespace
        self._process: subprocess.Popen[str] | None = None
        self._wait_for = 0  # documents, after a failure

    def begin_if_due(self, documents: int, links: int, segments: int) -> None:
        """Begin if RAM holds so much that is in no part."""
        much = max(documents, links // 2, segments * FRESH // SEGMENTS)
        if self._is_running() or much < max(FRESH, self._wait_for):  # in this order: one that ended well resets that
            return
        command = [sys.executable, "-m", __name__, self._store, self._namespace]
        paths = os.pathsep.join(filter(None, sys.path))
        self._wait_for = much + FRESH // 4
        try:
            self._process = subprocess.Popen(
                command,
                env={**os.environ, "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is for the crawl
            )
        except OSError as error:
            logger.warning("Store %r is not tidied, so it takes more memory: %s", self._store, error)

    def _is_running(self) -> bool:
        if self._process and self._process.poll() is not None:
            self._told(self._process)
            self._process = None
        return self._process is not None

    def wait(self) -> None:
        """Return once it has ended."""
        if self._process:
            self._told(self._process)
            self._process = None

    def _told(self, process: subprocess.Popen[str]) -> None:
        _, errors = process.communicate()
        if process.returncode == OCCUPIED:
            return  # another process is at it, so it needs not be tried at each flush
        if process.returncode:
            last = errors.strip().rpartition("\n")[2]
            logger.warning("Store %r was not tidied, so it takes more memory: %s", self._store, last)
        else:
            self._wait_for = 0


def main(store: str, namespace: str) -> None:
    from filelock import FileLock, Timeout

    from .absorbing import tidy

    try:
        with FileLock(f"{store}.tidying.lock", blocking=False):
            tidy(store, namespace)
    except Timeout:
        sys.exit(OCCUPIED)


if __name__ == "__main__":
    main(*sys.argv[1:])
