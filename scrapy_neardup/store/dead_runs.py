"""End dead runs when a store is opened and, on a server, at regular intervals."""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

from . import erasure
from .runs import Run

if TYPE_CHECKING:
    from .store import Store

logger = logging.getLogger(__name__)

LOOK = 10.0  # seconds between two checks for dead runs
LOOKS = 4  # an open run is dead after this many consecutive checks that find no living process of it


class Dead:
    """Ends the dead runs of a store. `keeps` decides whether their documents are kept or forgotten."""

    def __init__(self, store: Store, *, keeps: bool) -> None:
        self._store = store
        self.keeps = keeps
        self._look_at = time.monotonic() + LOOK
        self._missed: Counter[str] = Counter()

    def look(self) -> None:
        """If the next check is due, check which runs are dead, and end them.

        A run is dead after `LOOKS` checks in a row that find no living process of it, so that a process that lost its
        connection has time to reconnect. Raise StoreError if the server fails.
        """
        if time.monotonic() < self._look_at:
            return
        self._look_at, before, self._missed = time.monotonic() + LOOK, self._missed, Counter()
        session, backend = self._store.session, self._store.backend
        missed = Counter({name: before[name] + 1 for name in session.others_open() if not backend.is_held(name)})
        if dead := [name for name, times in missed.items() if times >= LOOKS]:
            self.end(session.hold_dead(dead))
        self._missed = missed

    def end(self, runs: list[Run]) -> None:
        """End dead runs. This process must hold their locks. Release the locks, except that of its own run.

        Raise StoreError if a write fails.
        """
        for run in runs:
            before = self._store.session.documents
            erasure.end(self._store, run, forget=not self.keeps)
            outcome = "are kept" if self.keeps else f"are forgotten: {before - self._store.session.documents}"
            logger.warning("Run %s died. Its documents %s (NEARDUP_UNCLEAN_RUN)", run.id, outcome)
        self._store.flush()
        for run in runs:
            if run.id != self._store.run:
                self._store.backend.release_run(run.id)
