"""Processes that can't even start: nobody waits for them, and they are not started again forever."""

from __future__ import annotations

import os
from typing import Any

import pytest

from scrapy_neardup import Document
from scrapy_neardup.detectors import build_detectors
from scrapy_neardup.processes import ProcessError, RowSigner, signed
from scrapy_neardup.settings import Config


class Deadly:
    """Ends each process to which it is sent; heavy, so that it is."""

    name = scheme = "deadly"
    heavy = True

    def __reduce__(self) -> Any:
        return os._exit, (3,), b"x" * (1 << 20)  # state, more than a pipe holds

    def fingerprints(self, document: Document) -> tuple[int, ...]:
        raise AssertionError

    def index(self) -> None:
        raise AssertionError


def test_nobody_waits_for_a_process_that_dies_at_its_start_and_a_feed_ends_with_a_word_of_it() -> None:
    config = Config()
    signer = RowSigner(config, [*build_detectors(config), Deadly()])
    with pytest.raises(ProcessError, match="--workers: a process died with exit code 3"):
        list(signed([[(1, {"text": "some"})]], signer, 2))
