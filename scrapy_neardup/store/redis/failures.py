"""Errors of a server and of the client: what is wrong, and what to do. No I/O."""

from __future__ import annotations

from typing import Any

from ..base import StoreError

_ADVICE = {  # the client leaves out the first word of what the server says
    "used memory": "it is full: give it more memory, or forget what is old",
    "authenticat": "it wants a password",
    "username-password": "the user or the password is wrong",
    "invalid password": "the password is wrong",
    "permissions": "this user may not do that",
    "user executing the script": "this user may not do that",
    "wrong kind of value": "a key is damaged, or somebody else's: `scrapy neardup verify` says which",
    "bad argument": "it is damaged: `scrapy neardup verify` says what to do",
    "read only replica": "it is a replica; name the master",
    "persist": "it can't write its disk",
    "loading": "it is still loading its data; try again",
    "max number of clients": "it has too many clients: raise its `maxclients`",
    "replicas to write": "it has too few replicas at hand",
    "busy running a script": "another client keeps it busy",
}
_DAMAGE = ("wrong kind of value", "bad argument", "attempt to")
_ELSEWHERE = ("ReadOnlyError", "MovedError", "AskError", "TryAgainError", "ClusterDownError", "MasterDownError")
_UNHELD = "neardup: the run is not held"  # as in scripts/common.lua


def explained(name: str, error: BaseException) -> StoreError:
    """Return what to raise in place of an error of the client."""
    why = " ".join(str(error).split()) or type(error).__name__
    advice = next((f"; {text}" for sign, text in _ADVICE.items() if sign in why.lower()), "")
    return StoreError(f"store {name!r} can't be asked: {why}{advice}")


def is_damage(result: Any) -> bool:
    """Return whether an operation was refused for what the server holds, so that it is refused ever again."""
    return _says(result, *_DAMAGE) and not is_elsewhere(result) and not _says(result, "used memory", "permissions")


def is_elsewhere(result: Any) -> bool:
    """Return whether another server is to be asked, or this one once it is what it was."""
    return type(result).__name__ in _ELSEWHERE


def is_unheld(result: Any) -> bool:
    """Return whether a script was refused since the lease of a run is gone, or another's."""
    return _says(result, _UNHELD)


def lacks_script(result: Any) -> bool:
    return isinstance(result, Exception) and "NOSCRIPT" in f"{type(result).__name__} {result}".upper()


def _says(result: Any, *signs: str) -> bool:
    return isinstance(result, Exception) and any(sign in str(result).lower() for sign in signs)
