"""Write values as JSON, and parse JSON objects, with the reason why something is none."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from functools import partial
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return a value as JSON. Letters of all scripts stay. Lone surrogates (`\ud800`) are escaped.

    Values of unknown types are written as their `str`, and NaN and infinite numbers as null.
    """
    dump = partial(json.dumps, ensure_ascii=False, default=str, indent=indent)
    try:
        text = dump(value, allow_nan=False)
    except ValueError:  # for NaN and infinity, which are too rare to look for them first
        text = dump(json.loads(json.dumps(value, default=str), parse_constant=lambda name: None))
    return text.encode(errors="backslashreplace").decode()


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse a JSON object. Raise ValueError with the reason if `raw` is not one."""
    try:
        # Decode here, since json would guess the encoding of each line.
        return checked_object(json.loads(raw.removeprefix(BOM_UTF8).decode("utf-8", "surrogatepass")))
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise ValueError("no JSON: too deep") from error


def checked_object(data: Any, raw: bytes = b"") -> dict[str, Any]:
    """Return parsed JSON. Raise ValueError if it is no object, or if `raw`, its source, is not UTF-8."""
    raw.decode()
    if not isinstance(data, dict):
        raise ValueError(f"no JSON object but {json.dumps(data):.40}")
    return data
