"""The exceptions that Python raises for damaged bytes."""

from __future__ import annotations

import struct

from msgpack.exceptions import UnpackException

DAMAGE = (
    *(ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError),
    *(struct.error, UnpackException),
)
"""Whoever reads what may be damaged catches all of these: JSON that ends in the middle, `1e999` for a number, …"""
