"""End runs whose process died: at the start, and on a server also while running."""

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

LOOK = 10.0  # seconds between two looks at who lives
LOOKS = 4  # in a row at which nobody has a run that is open: then it is dead


class Dead:
    """Ends runs whose process died; `keeps` their rows, or forgets them."""

    def __init__(self, store: Store, *, keeps: bool) -> None:
        self._store = store
        self.keeps = keeps
        self._look_at = time.monotonic() + LOOK
        self._missed: Counter[str] = Counter()

    def look(self) -> None:
        """End the runs that died meanwhile, now and then: what they kept is held no more, before others drop copies.

        One that was cut off from the server has some time to come back. Raise StoreError.
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
        """End runs that died, which this process holds, and let go of them. Raise StoreError."""
        for run in runs:
            before = self._store.session.documents
            erasure.end(self._store, run, forget=not self.keeps)
            outcome = "are kept" if self.keeps else f"are forgotten: {before - self._store.session.documents}"
            logger.warning("Run %s died; the documents that it left %s (NEARDUP_UNCLEAN_RUN)", run.id, outcome)
        self._store.flush()
        for run in runs:
            if run.id != self._store.run:
                self._store.backend.release_run(run.id)
