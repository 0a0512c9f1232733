"""The lines and sentences of a plain text. Pure."""

from __future__ import annotations

from .lines import squeeze

_ODD_SPACE = [c for c in map(chr, range(1 << 16)) if c.isspace() and c not in "\n "]


def split_lines(text: str) -> list[str]:
    """Return the distinct lines and sentences of a text, with one blank for each run of white space."""
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
    return list(filter(None, dict.fromkeys(text.split("\n"))))
