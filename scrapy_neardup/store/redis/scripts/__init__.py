"""Load the Lua scripts that a server runs atomically."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple


class Script(NamedTuple):
    """A Lua script with its SHA-1. The server identifies the script by this hash."""

    text: bytes
    sha: bytes


def _read(name: str) -> Script:
    text = b"".join((files(__name__) / f"{each}.lua").read_bytes() for each in ("common", name))
    return Script(text, hashlib.sha1(text).hexdigest().encode())


SCRIPTS = {name: _read(name) for name in ("compact", "find", "run", "write")}
"""The scripts by name. The text of each script begins with common.lua."""
