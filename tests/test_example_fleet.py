"""The example's fleet: two workers, the scheduler and dupefilter of scrapy-redis, and our store."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
from helpers import run
from redis_server import server

pytest.importorskip("scrapy_redis")


@pytest.mark.slow
def test_two_workers_share_queue_and_store(tmp_path: Path) -> None:
    folder = shutil.copytree(Path(__file__).parents[1] / "example_project", tmp_path / "example")
    made = run([sys.executable, "run_fleet.py", server().address], cwd=folder)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "FAILED" not in made.stdout
    feeds = sorted((folder / "out" / "fleet").glob("*.jsonl"))
    urls = [{json.loads(line)["url"] for line in feed.read_text().splitlines()} for feed in feeds]
    assert len(urls) == 2
    assert not urls[0] & urls[1]
    logs = [log.read_text() for log in (folder / "out" / "fleet").glob("*.log")]
    assert len(logs) == 2
    assert not any(word in log for log in logs for word in ("Deprecat", "ERROR", "Traceback"))
    assert "Deprecat" not in made.stderr
    assert sum(log.count("Crawled (200)") for log in logs) <= 26  # no page was fetched twice
