"""The scripts that the server runs: each is done whole, and to do it twice changes nothing."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

NAMES = ("compact", "find", "run", "write")


class Script(NamedTuple):
    """A script, and the name by which a server knows it."""

    text: bytes
    sha: bytes


@cache
def script(name: str) -> Script:
    """Return a script, with what all of them share before it."""
    text = b"".join((files(__name__) / f"{each}.lua").read_bytes() for each in ("common", name))
    return Script(text, hashlib.sha1(text).hexdigest().encode())
