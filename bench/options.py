"""What the options of benches may be: told before anything is measured, in one line."""

from __future__ import annotations

import argparse
from pathlib import Path


def positive(value: str) -> int:
    """Return a whole number from 1."""
    if not value.isdecimal() or not int(value):
        raise argparse.ArgumentTypeError(f"{value!r} is not allowed; allowed is a whole number from 1")
    return int(value)


def new_file(value: str) -> Path:
    """Return the path of a file that can be written."""
    path = Path(value)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{value!r} is not allowed; allowed is a file in a folder that is there")
    return path


def some_of(value: str, allowed: frozenset[str]) -> list[str]:
    """Return names that are parted by commas."""
    names = value.split(",")
    if unknown := [name for name in names if name not in allowed]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not allowed; allowed are {', '.join(sorted(allowed))}")
    return names
