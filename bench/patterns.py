"""Search for input on which a regular expression of the package takes more than linear time.

    python bench/patterns.py [--size 2000]

Each compiled pattern in the modules of the package searches, and matches as a whole, texts that repeat one or two short
pieces. The texts have beginnings and ends that may make a match fail late. A pattern is printed with a text if a text
of four times the size takes more than eight times as long. Not each printed pattern is a fault: some match only whole
texts, only at the beginning, or only short names. Linux and macOS only.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

from options import positive

import scrapy_neardup

PIECES = [*"aA10., -_/\\'\"<>=&;:#%\n\u00a0中é[(|", "<a ", "<!--", "&#", "https://", "a.", "1,0", "utm_", "?a=b&"]
AROUND = [("", ""), ("", "\x00"), ("<", "!"), ("http://", "\n"), ("<!--", "<")]
SLOW, GROWTH, PATIENCE = 0.004, 8, 5


def patterns() -> dict[re.Pattern[Any], str]:
    """Return the name of each pattern, with its module."""
    found: dict[re.Pattern[Any], str] = {}
    for module in pkgutil.walk_packages(scrapy_neardup.__path__, "scrapy_neardup."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):  # the package of an extra
                for name, value in vars(importlib.import_module(module.name)).items():
                    if isinstance(value, re.Pattern):
                        found.setdefault(value, f"{module.name}.{name}")
    return found


def texts(size: int) -> Iterator[tuple[str, str]]:
    """Yield texts of a size, each with a text of the same kind that is four times as long."""
    for piece in [*PIECES, *map("".join, product(PIECES, repeat=2))]:
        for begin, end in AROUND:
            yield tuple(begin + piece * (length // len(piece)) + end for length in (size, 4 * size))  # type: ignore[misc]


def seconds(pattern: re.Pattern[Any], whole: bool, text: Any) -> float:
    """Return the CPU time that a pattern takes; at most `PATIENCE`."""
    start = time.process_time()
    signal.alarm(PATIENCE)
    try:
        _ = pattern.fullmatch(text) if whole else [*pattern.finditer(text)]
    except TimeoutError:
        return PATIENCE
    finally:
        signal.alarm(0)
    return time.process_time() - start


def worst(pattern: re.Pattern[Any], size: int) -> tuple[float, str]:
    """Return (growth of time, text) for the first text on which a pattern is too slow; (0.0, "") without one."""
    for short, long in texts(size):
        given = (short, long) if isinstance(pattern.pattern, str) else (short.encode(), long.encode())
        for whole in (False, True):
            first = seconds(pattern, whole, given[0])
            if first > SLOW and (growth := seconds(pattern, whole, given[1]) / first) > GROWTH:
                return growth, short
    return 0.0, ""


def give_up(*_: object) -> None:
    raise TimeoutError


def main() -> None:
    """Print the patterns that take too long."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=positive, default=2000, help="characters")
    opts = parser.parse_args()
    signal.signal(signal.SIGALRM, give_up)
    found, bad = patterns(), 0
    for pattern, name in found.items():
        growth, text = worst(pattern, opts.size)
        if growth > GROWTH:
            bad += 1
            print(f"{name}: {growth:.0f} times as long; {text[:20]!r} … {text[-9:]!r}", flush=True)
    print(f"{len(found)} patterns, {bad} of them more than linear")


if __name__ == "__main__":
    main()
