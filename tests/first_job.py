"""Do the README's first job in a new folder, as a stranger would: `python tests/first_job.py`.

This needs only the package, not pytest. `scrapy` is that of the Python that runs this file. Ports become free ones.
"""

from __future__ import annotations

import re
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from transcript import BLOCK, Reader

ROOT = Path(__file__).parents[1]
SHOWN = re.compile(r"^    \[[\w.]+\] (.*)$", re.MULTILINE)
# By default, one page in a hundred that could be skipped is fetched as a recheck. The README shows a crawl without one.
CRAWL = "```console\n$ scrapy runspider news.py -O news.jsonl -s NEARDUP_RECHECK=0\n```\n"
SERVE = '```console title="another terminal"\n$ python sites.py\n```\n'


def shown() -> list[str]:
    """Return the lines of the crawls' logs that the README shows."""
    return SHOWN.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def do(folder: Path, late: int | None = None) -> tuple[str, int]:
    """Crawl twice. Return both logs, and the number of rows of the first crawl. The site at the port `late` is slow."""
    news, sites = code("README.md", "class NewsSpider"), code("docs/tutorial.md", "class Paper")
    if late:
        wait = f"        if self.server.server_port == {late}:\n            __import__('time').sleep(0.1)\n"
        sites = sites.replace("def do_GET(self):\n", f"def do_GET(self):\n{wait}")
    with closing(Reader(folder, (8001, 8002))) as reader:
        reader.follow(f'```python title="sites.py"\n{sites}```\n```python title="news.py"\n{news}```\n{SERVE}')
        log = reader.follow(CRAWL)
        rows = (folder / "news.jsonl").read_bytes().count(b"\n")
        return log + reader.follow(CRAWL), rows


def code(page: str, part: str) -> str:
    """Return the first code block of a page that contains `part`."""
    return next(body for _, _, body in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")) if part in body)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log, rows = do(Path(folder))
    missing = [line for line in shown() if line not in log]
    if missing or rows != 4:
        sys.exit(f"{log}\n{rows} rows; the README shows what the log lacks: {missing}")
    print(f"{sys.executable}: the README's first job gives what it shows")


if __name__ == "__main__":
    main()
