"""Convert values to types that Spark supports, and back. Imports no Spark."""

from __future__ import annotations


def encode_text(text: str) -> bytes:
    return text.encode("utf8", "surrogatepass")  # URLs and titles may hold lone surrogates


def decode_text(stored: bytes) -> str:
    return stored.decode("utf8", "surrogatepass")


def signed(value: int) -> int:
    """Return the signed 64-bit integer that has the same bits as an unsigned one."""
    return value - (1 << 64) if value >> 63 else value
