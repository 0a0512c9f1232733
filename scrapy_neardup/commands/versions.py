"""List installed versions of this package and its requirements."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import NamedTuple

from packaging.requirements import Requirement

US = "scrapy-neardup"
NOT_FOR_USERS = ("all", "test", "bench", "dev", "docs")


class Need(NamedTuple):
    """A required package and its installed version."""

    name: str
    wanted: str
    """The required versions, such as `>=2.15`; "" for any."""
    found: str | None
    """The installed version; None if the package is not installed."""
    fits: bool


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and its requirements."""
    needed = {need.name: need.found or "not installed" for need in needs()}
    return {"Python": platform.python_version(), US: version(US), **needed}


def extras() -> list[str]:
    """Return the names of the extras for users, without those for development."""
    return [name for name in metadata(US).get_all("Provides-Extra") or () if name not in NOT_FOR_USERS]


def needs(extra: str = "") -> Iterator[Need]:
    """Yield the requirements of an extra or, if `extra` is "", of the package itself."""
    for wanted in map(Requirement, requires(US) or ()):
        if wanted.marker is None if not extra else wanted.marker and wanted.marker.evaluate({"extra": extra}):
            yield _need(wanted)


def _need(wanted: Requirement) -> Need:
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return Need(wanted.name, str(wanted.specifier), None, fits=False)
    return Need(wanted.name, str(wanted.specifier), found, wanted.specifier.contains(found, prereleases=True))
