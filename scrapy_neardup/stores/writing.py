"""A write that goes on in a thread while others go on: its error is told to whoever asks next."""

from __future__ import annotations

from concurrent.futures import Future


class Writing:
    """One write at a time, if any."""

    def __init__(self) -> None:
        self._future: Future[None] | None = None

    @property
    def is_on(self) -> bool:
        """Whether there is one that was begun and of whose end nobody has heard."""
        return self._future is not None

    def begin(self, future: Future[None]) -> None:
        """Take note of a write."""
        self._future = future

    def failure(self, *, wait: bool = False) -> BaseException | None:
        """Return the error of a write that has ended, once; None where there is none. `wait`: until it ends."""
        if self._future is None or not (wait or self._future.done()):
            return None
        future, self._future = self._future, None
        return future.exception()
