"""List the exceptions that decoding damaged bytes can raise."""

from __future__ import annotations

import struct

from msgpack.exceptions import UnpackException

DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
    *(struct.error, UnpackException),
)
"""Exceptions to catch when reading bytes that may be damaged, such as truncated JSON or `1e999` for a number."""
