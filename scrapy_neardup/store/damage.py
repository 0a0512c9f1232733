"""The exceptions that Python raises for damaged bytes."""

from __future__ import annotations

import struct

from msgpack.exceptions import UnpackException

DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
    *(struct.error, UnpackException),
)
"""Catch all of these when reading bytes that may be damaged: truncated JSON, `1e999` for a number, …"""
