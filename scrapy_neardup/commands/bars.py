"""Show progress bars on stderr if it is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm

from ..feeds import Feeds

T = TypeVar("T")


def counted(things: Iterable[T], unit: str, total: int | None = None) -> Iterator[T]:
    """Yield `things`, and show a bar with their number and rate and, if `total` is known, the remaining time.

    The bar disappears at the end.
    """
    yield from tqdm(things, unit=f" {unit}", total=total, disable=None, dynamic_ncols=True, leave=False)


def through(feeds: Feeds, batches: Iterable[T], size: Callable[[T], int] = lambda row: 1) -> Iterator[T]:
    """Yield batches that are read from `feeds`, and show a bar with their rows, the rate and the remaining time.

    `size` returns the number of rows in a batch; by default, a batch is a row. The remaining time is estimated from the
    bytes that were read so far.
    """
    with _FeedBar(total=feeds.size or None) as bar:
        for batch in batches:
            bar.come(feeds.at, size(batch))
            yield batch


class _FeedBar(tqdm):  # type: ignore[type-arg]
    """A bar that advances by bytes and counts rows."""

    def __init__(self, total: int | None) -> None:
        self.rows = 0
        # With miniters=0, a row also updates the bar if its bytes were counted before.
        super().__init__(
            total=total,
            disable=None,
            dynamic_ncols=True,
            miniters=0,
            bar_format="{percentage:3.0f}%|{bar}| {rows} docs [{elapsed}<{remaining}, {docs_a_second:.0f} docs/s]",
        )

    def come(self, at: int, rows: int) -> None:
        """Count so many rows. `at` is the number of bytes read so far."""
        self.rows += rows
        self.update(at - self.n)

    @property
    def format_dict(self) -> dict[str, Any]:
        known = super().format_dict
        return {**known, "rows": self.rows, "docs_a_second": self.rows / (known["elapsed"] or 1)}
