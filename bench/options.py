"""Check the options of benches before anything is measured, and report a mistake in one line."""

from __future__ import annotations

import argparse


def positive(value: str) -> int:
    """Return a whole number of 1 or more."""
    if not value.isdecimal() or not int(value):
        raise argparse.ArgumentTypeError(f"{value!r} is not allowed; allowed is a whole number from 1")
    return int(value)


def some_of(value: str, allowed: frozenset[str]) -> list[str]:
    """Return the names in a comma-separated list of allowed names."""
    names = value.split(",")
    if unknown := [name for name in names if name not in allowed]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not allowed; allowed are {', '.join(sorted(allowed))}")
    return names
