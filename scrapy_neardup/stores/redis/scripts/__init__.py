"""The scripts that the server runs. Each is one operation on a namespace, done whole or not at all."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_NEEDS = {
    "claim": ("tables", "growth", "numbers"),
    "compact": ("tables", "growth", "numbers", "documents"),
    "fetch": ("numbers", "documents"),
    "resolve": ("tables", "numbers", "documents", "links"),
    "scan": ("tables",),
    "undo": ("tables", "growth", "numbers", "documents", "links"),
    "write": ("tables", "growth", "numbers", "documents", "links"),
}
NAMES = (*_NEEDS, "begin", "number", "release", "renew", "retake", "swap")
FENCED = ("claim", "write")  # these write in the order of a session


class Script(NamedTuple):
    """A script, and the name by which a server knows it."""

    text: bytes
    sha: bytes


@cache
def script(name: str) -> Script:
    """Return a script, with what it needs before it."""
    folder = files(__name__)
    text = b"".join((folder / f"{each}.lua").read_bytes() for each in ("base", *_NEEDS.get(name, ()), name))
    return Script(text, hashlib.sha1(text).hexdigest().encode())
