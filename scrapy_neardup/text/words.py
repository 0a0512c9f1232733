"""Split text into words at ASCII characters only."""

from __future__ import annotations

from .. import native

_ASCII_WORDS = bytes(c if c > 127 else ord(chr(c).lower()) if chr(c).isalnum() else ord(" ") for c in range(256))


def word_lines(text: bytes) -> bytes:
    """Return the words of a UTF-8 text, one on each line. All separators in the text must be ASCII.

    Only ASCII letters are changed to lower case.
    """
    return native.compiled.word_lines(text) if native.compiled else b"\n".join(text.translate(_ASCII_WORDS).split())
