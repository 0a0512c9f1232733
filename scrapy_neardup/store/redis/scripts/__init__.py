"""The scripts that a server runs, each in one atomic step."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple


class Script(NamedTuple):
    """A script with the name by which a server knows it."""

    text: bytes
    sha: bytes


def _read(name: str) -> Script:
    text = b"".join((files(__name__) / f"{each}.lua").read_bytes() for each in ("common", name))
    return Script(text, hashlib.sha1(text).hexdigest().encode())


SCRIPTS = {name: _read(name) for name in ("compact", "find", "run", "write")}
"""Scripts by name. Each begins with the code that all share."""
