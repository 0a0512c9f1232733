"""Write a report as one HTML page that loads nothing.

All strings of a store are data: they go into the page as JSON, and from there into text nodes only. The page's
Content-Security-Policy allows no script but its own.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from typing import IO, Any

from .data import Report

SCRIPTS = ("dom.js", "charts.js", "hosts.js", "clusters.js", "page.js")
DATA = "{{ data }}"


def write_page(report: Report, file: IO[bytes]) -> None:
    """Write the page that shows a report."""
    head, tail = _page().split(DATA)
    file.write(head.encode())
    for part in _json(report):
        # Only "<" could end the script. In JSON, "<" occurs in strings only.
        file.write(part.replace("<", "\\u003c").encode("ascii"))
    file.write(tail.encode())


def _page() -> str:
    """Return the page without its data."""
    style = _asset("page.css")
    script = "\n".join(_asset(name) for name in SCRIPTS)
    page = _asset("page.html").replace("{{ policy }}", _policy(style, script))
    return page.replace("{{ style }}", style).replace("{{ script }}", script)


def _policy(style: str, script: str) -> str:
    # `data:` is for an empty icon in the page. Without it, a browser would request one.
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:;"
        " base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> Iterator[str]:
    """Yield a value as JSON in parts, a column at a time."""
    if not isinstance(value, dict):
        # In ASCII, since a URL may contain lone surrogates.
        yield json.dumps(value, separators=(",", ":"))
        return
    for number, (name, part) in enumerate(value.items()):
        yield f"{',' if number else '{'}{json.dumps(name)}:"
        yield from _json(part)
    yield "}" if value else "{}"
