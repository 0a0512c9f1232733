"""Values as JSON that any file and terminal takes."""

from __future__ import annotations

import json
from typing import Any


def json_text(value: Any, *, indent: int | None = None) -> str:
    r"""Return JSON with all characters as they are, but for halves of surrogate pairs: these are written as `\ud800`.

    Such a half may stand in a URL that was JSON, and in no encoding. What JSON does not know is written as its `str`.
    """
    text = json.dumps(value, ensure_ascii=False, default=str, indent=indent)
    return text.encode(errors="backslashreplace").decode()
