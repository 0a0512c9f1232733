"""Two processes that write to one store for a while, as others tidy, compact, export and read it: nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from helpers import detectors, names

from scrapy_neardup.stores import SqliteStore
from scrapy_neardup.stores.compacting import compact
from scrapy_neardup.stores.transfer import export_rows
from scrapy_neardup.stores.verifying import verify

SECONDS = float(os.environ.get("NEARDUP_TEST_SECONDS", "4"))
WRITE = """
import sys, time
from contextlib import closing
from helpers import detectors, link, signature
from scrapy_neardup.stores import SqliteStore, tidying
tidying.FRESH = 300
path, first, end = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
number = first
with closing(SqliteStore(path, detectors())) as store:
    while time.monotonic() < end:
        each = signature(str(number), exact=number + 1, simhash=number << 20)
        store.add(each)
        store.commit(each)
        store.record(link(each.url, each))
        number += 1
        if number % 50 == 0:
            store.flush()
            store.refresh()
            [found] = [s.url for _, s in store.find({"exact": (number - 40,)})]
            assert found.endswith(f"/{number - 41}"), (number, found)
print(number)
"""


def test_two_writers_and_who_tidies_up_behind_them(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    starts = (0, 10_000_000)
    SqliteStore(path, detectors()).close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, path, str(first), str(SECONDS)],
            cwd=Path(__file__).parent, stdout=-1, stderr=-1, text=True,
        )
        for first in starts
    ]  # fmt: skip
    while any(writer.poll() is None for writer in writers):
        survey = verify(path)
        assert survey.whole, survey.findings
        compact(path)
        with export_rows(path, "") as rows:
            assert [row["type"] for row in rows][-1] == "end"
        time.sleep(0.2)
    ends = [writer.communicate() for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], ends
    expected = [n for first, (last, _) in zip(starts, ends, strict=True) for n in range(first, int(last))]
    with closing(SqliteStore(path, detectors(), run=None)) as store:
        assert sorted(map(int, names(store.signatures()))) == expected
        assert len(store) == len(expected) > 300
        assert [run.closed is not None for run in store.runs()] == [True] * 3
    survey = verify(path)
    assert survey.whole, survey.findings
