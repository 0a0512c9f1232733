"""Heavy detectors and extractors. Worker processes import this file, so it imports little."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from scrapy_neardup import Document
from scrapy_neardup.detectors import Exact
from scrapy_neardup.row_index import Equal


class Heavy:
    """A detector whose fingerprint is the id of its process. Texts that begin with fail, die or once make it fail."""

    name = "heavy"
    scheme = "1"
    heavy = True

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        if document.text.startswith("fail"):
            raise OddError("no fingerprint", "of this text")
        if document.text.startswith("die"):
            os._exit(1)
        if document.text.startswith("once"):
            once(Path(document.title))
        return (os.getpid(),)

    def index(self) -> Equal:
        return Equal()


class OddError(Exception):
    """An error that can't be sent from one process to another, since unpickling gives it only one argument."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


class Hindered(Heavy):
    """A detector that ends each process to which it is sent, as long as `file` exists."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["file"].exists():
            os._exit(1)
        self.__dict__.update(state)


def once(file: Path) -> None:
    """End the first process that calls this, which then creates `file`. Do nothing in later ones."""
    if not file.exists():
        file.touch()
        os._exit(1)


class NotHere(Exact):
    """A detector that raises an error if it is called in the process that crawls, not in a worker."""

    name = "not_here"
    heavy = True

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        if os.environ["NEARDUP_TEST_CRAWL"] == str(os.getpid()):
            raise AssertionError("asked in the process that crawls")
        return super().fingerprints(document)


def wait_until_told() -> None:
    end = time.monotonic() + 60
    while not Path(os.environ["NEARDUP_TEST_GATE"]).exists():
        if time.monotonic() > end:
            raise TimeoutError("the reactor never told")
        time.sleep(0.01)


class WhenTold(Exact):
    """A detector that waits until the spider `Patient` creates its file."""

    heavy = True

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        wait_until_told()
        return super().fingerprints(document)


def reader(html: str) -> str:
    return f"{len(html)} characters, read by {os.getpid()}"


reader.heavy = True  # type: ignore[attr-defined]


def failing(html: str) -> str:
    raise OddError("no text", "in this page")


failing.heavy = True  # type: ignore[attr-defined]


def read_when_told(html: str) -> str:
    """Return the start of a page as its text, after the spider `Patient` has created its file."""
    wait_until_told()
    return html[:500]


read_when_told.heavy = True  # type: ignore[attr-defined]
