"""Two processes that write to one store while others tidy, compact, export and read it: nothing is lost.

NEARDUP_TEST_DOCUMENTS says how many each of them writes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from helpers import detectors, names
from tiers import slow

from scrapy_neardup.store import open_store
from scrapy_neardup.store.transfer import export_rows
from scrapy_neardup.store.upkeep import compact, verify

DOCUMENTS = int(os.environ.get("NEARDUP_TEST_DOCUMENTS", "2000"))
WRITE = """
import sys
from contextlib import closing
from helpers import detectors, link, signature
from scrapy_neardup.store import open_store
from scrapy_neardup.index import row_index
from scrapy_neardup.store.local import stored_index
row_index.TAIL = stored_index.LEAST = 300
path, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with closing(open_store(path, detectors())) as store:
    for number in range(first, first + count):
        each = signature(str(number), exact=number + 1, simhash=number << 20)
        store.add(each)
        store.commit(each)
        store.record(link(each.url, each))
        if number % 50 == 49:
            store.flush()
            store.refresh()
            [found] = [s.url for _, s in store.find({"exact": (number - 40,)})]
            assert found.endswith(f"/{number - 41}"), (number, found)
            print(number, flush=True)
"""


@pytest.mark.parametrize("count", [400, *slow(DOCUMENTS)])
def test_two_writers_and_who_tidies_up_behind_them(tmp_path: Path, count: int) -> None:
    path = str(tmp_path / "store.sqlite")
    starts = (0, 10_000_000)
    open_store(path, detectors()).close()
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITE, path, str(first), str(count)],
            cwd=Path(__file__).parent, stdout=-1, stderr=-1, text=True,
        )
        for first in starts
    ]  # fmt: skip
    for _ in writers[0].stdout or ():  # each line: more was written
        survey = verify(path)
        assert survey.whole, survey.findings
        compact(path)
        with export_rows(path, "") as rows:
            assert [row["type"] for row in rows][-1] == "end"
    ends = [writer.communicate(timeout=120) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0], ends
    with closing(open_store(path, detectors(), run=None)) as store:
        expected = [number for first in starts for number in range(first, first + count)]
        assert sorted(map(int, names(store.signatures()))) == expected
        assert len(store) == len(expected)
        assert [run.closed is not None for run in store.runs()] == [True] * 3
    survey = verify(path)
    assert survey.whole, survey.findings
