"""The lines and sentences of a plain text. Pure."""

from __future__ import annotations

from .. import native
from .lines import squeeze

_ODD_SPACE = [c for c in map(chr, range(1 << 16)) if c.isspace() and c not in "\n "]


def split_lines(text: str) -> list[str]:
    """Return the lines and sentences of a text, with one blank for each run of white space; [] where it has none."""
    found = sentence_lines(text).decode(errors="surrogatepass")
    return found.split("\n") if found else []


def sentence_lines(text: str) -> bytes:
    """Return the lines and sentences of a text in UTF-8, a line each; b"" where it has none."""
    if native.compiled:
        return native.compiled.sentence_lines(text.encode(errors="surrogatepass"))
    # A regular expression would take two to four times as long as all this.
    text = "\n".join(map(str.strip, text.split("\n")))
    if any(odd in text for odd in _ODD_SPACE):
        text = "\n".join(map(squeeze, text.split("\n")))
    while "  " in text:
        text = text.replace("  ", " ")
    for stop in filter(text.__contains__, ".!?"):
        text = text.replace(f"{stop} ", f"{stop}\n")
    if not text.isascii():
        for stop in "。！？":
            text = text.replace(stop, f"{stop}\n")
        text = text.replace("\n ", "\n")
    return "\n".join(filter(None, text.split("\n"))).encode(errors="surrogatepass")
