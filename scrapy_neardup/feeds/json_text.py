"""Write values as JSON that any file and terminal accepts."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON, with all characters unescaped, except that a lone surrogate is written as `\ud800`.

    URLs from JSON may contain lone surrogates, which no encoding accepts. Values of unknown types are written as their
    `str`, and NaN and infinite numbers as null.
    """
    try:
        text = _dumped(value, indent)
    except ValueError:  # rare, so that other texts are not searched
        text = _dumped(_known(value), indent)
    return text.encode(errors="backslashreplace").decode()


def _dumped(value: Any, indent: int | None) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, indent=indent, allow_nan=False)


def _known(value: Any) -> Any:
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, dict):
        return {_known(name): _known(each) for name, each in value.items()}
    return list(map(_known, value)) if isinstance(value, list | tuple) else value
