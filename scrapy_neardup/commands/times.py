"""Format times for people and for programs."""

from __future__ import annotations

import time


class Moment:
    """A time, given in seconds since the epoch. `format()` gives local time for people, `str()` ISO 8601."""

    def __init__(self, seconds: float) -> None:
        self._local = time.localtime(seconds)  # datetime fails after the year 9999

    def __format__(self, spec: str) -> str:
        return format(time.strftime("%Y-%m-%d %H:%M:%S", self._local), spec)

    def __str__(self) -> str:
        offset = time.strftime("%z", self._local)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', self._local)}{offset[:-2]}:{offset[-2:]}"
