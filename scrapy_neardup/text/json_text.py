"""Write values as JSON that any file and terminal takes."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return JSON with all characters as they are, but for halves of surrogate pairs: these are written as `\ud800`.

    Such a half may stand in a URL that was JSON, and in no encoding. What JSON does not know is written as its `str`,
    and as null the numbers that it does not know: NaN, and those that are infinite.
    """
    try:
        text = _dumped(value, indent)
    except ValueError:  # seldom, so that nobody else waits until all is looked through
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
