"""Convert errors of the server and the client library to StoreError, with advice. No I/O."""

from __future__ import annotations

from redis import exceptions

from ..interface import StoreError

ERRORS = (OSError, exceptions.RedisError)
TIMEOUT = exceptions.TimeoutError
_VOID = (
    *(exceptions.NoScriptError, exceptions.ReadOnlyError),
    *(exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError),
)
_UNHELD = "neardup: the run is not held"  # the same text as in scripts/common.lua
_ADVICE = {  # keys are parts of error messages; the client library removes the first word of a message
    "used memory": "it is full; give it more memory, or forget old documents",
    "authenticat": "it needs a password",
    "username-password": "the user or the password is wrong",
    "invalid password": "the password is wrong",
    "permissions": "this user lacks a permission",
    "user executing the script": "this user lacks a permission",
    "wrong kind of value": "a key is damaged, or somebody else's: `scrapy neardup verify` says which",
    "bad argument": "it is damaged: `scrapy neardup verify` says what to do",
    "read only replica": "it is a replica; name the master",
    "persist": "it can't write its disk",
    "loading": "it is still loading its data; try again",
    "max number of clients": "it has too many clients: raise its `maxclients`",
}


def explained(name: str, error: BaseException) -> StoreError:
    """Return the StoreError for an error of the client library, with advice. `name` is the store."""
    why = " ".join(str(error).split()) or type(error).__name__
    advice = next((f"; {text}" for sign, text in _ADVICE.items() if sign in why.lower()), "")
    return StoreError(f"store {name!r} can't be used: {why}{advice}")


def is_void(answer: object) -> bool:
    """Return whether an answer is an error that may disappear after a reconnect.

    A new connection finds the right server, loads the scripts, and takes the leases of the runs again.
    """
    return isinstance(answer, _VOID) or (isinstance(answer, exceptions.RedisError) and _UNHELD in str(answer))
