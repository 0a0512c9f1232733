"""List the namespaces on a server by scanning its keys."""

from __future__ import annotations

import re
from urllib.parse import unquote

from .clients import keys
from .server import VERSION

_KEY = re.compile(rb"\{neardup:([^:{}]*):%d\}" % VERSION)


def namespaces(address: str) -> list[str]:
    """Return the sorted namespaces on a server. Raise StoreError if the server fails."""
    matches = filter(None, map(_KEY.match, keys(address, "{neardup:*")))
    return sorted({unquote(match[1].decode(errors="replace")) for match in matches})
