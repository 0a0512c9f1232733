"""A web server of stories, pages of 19 KB that are made beforehand; `bench/crawl.py` crawls it.

    python bench/crawl_pages.py STORIES [--latency SECONDS]

It listens on 127.0.0.1 to 127.0.0.4, and prints the port. Every host has all stories, each under the same path, and
`/list`: their paths, a line each. A story links to five others. All but the first host frame them in their own way.
"""

from __future__ import annotations

import argparse
import asyncio

from serving import serve
from texts import made_up, page_of

TOKENS, LINKS = 700, 5
LIST = "/list"


class Stories:
    """The answer for each path of each site."""

    def __init__(self, count: int) -> None:
        texts = made_up("English", count, TOKENS)
        self._pages = {
            f"/story/{number}.html": page_of(text, [(number + step) % count for step in range(1, LINKS + 1)])
            for number, text in enumerate(texts)
        }
        self._list = "\n".join(self._pages)

    def answer(self, site: int, path: str) -> str | None:
        """Return a page, None where there is none."""
        page = self._list if path == LIST else self._pages.get(path)
        hosted = f'<body><div class="host">Hosted by friends, number {site}</div><div '
        return page.replace("<body ", hosted) if page and site > 1 else page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", type=int)
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    options = parser.parse_args()
    asyncio.run(serve(Stories(options.stories), options.latency))


if __name__ == "__main__":
    main()
