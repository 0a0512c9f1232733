"""Progress bars on stderr, shown only on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

from ..feeds import Feeds

T = TypeVar("T")


def counted(things: Iterable[T], unit: str, total: int | None = None) -> Iterator[T]:
    """Yield things, and show how many there were, how many a second, and of a known total how long it will take.

    Where several are gone through one after another the bar of one makes room for the next.
    """
    yield from tqdm(things, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True, leave=False)


def through(feeds: Feeds, rows: Iterable[T]) -> Iterator[T]:
    """Yield rows made of feeds, and show how many a second; how long it will take is told from the bytes read."""
    with _FeedBar(total=feeds.size) as bar:
        for row in rows:
            bar.come(feeds.at)
            yield row


class _FeedBar(tqdm):  # type: ignore[type-arg]
    """Goes by bytes, and tells of rows."""

    def __init__(self, total: int) -> None:
        self.rows = 0
        # miniters: rows of which no byte was read anew count too.
        super().__init__(
            total=total,
            disable=None,
            dynamic_ncols=True,
            miniters=0,
            bar_format="{percentage:3.0f}%|{bar}| {rows} docs [{elapsed}<{remaining}, {docs_a_second:.0f} docs/s]",
        )

    def come(self, at: int) -> None:
        """Take note of a row, and of how many bytes have been read."""
        self.rows += 1
        self.update(at - self.n)

    @property
    def format_dict(self) -> dict[str, Any]:
        known = super().format_dict
        return {**known, "rows": self.rows, "docs_a_second": self.rows / (known["elapsed"] or 1)}
