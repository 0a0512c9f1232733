"""`scrapy neardup VERB` on a store on a server: results are those on disk, and damage is reported."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import redis
from cli import deduped, neardup, refused, rows, succeeded, told, write
from helpers import edited, talking, text, until
from redis_damage import DAMAGES, contents, fill, judge, restore, values
from redis_server import Server
from store_kinds import ROOT
from tiers import slow

from scrapy_neardup import Deduplicator, StoreError
from scrapy_neardup.store.redis_server import code
from scrapy_neardup.store.verification import verify

UNTOLD = {f"{ROOT}:{name}".encode() for name in ("added", "news", "host", "visit")}
"""Nothing tells that these are missing: the URLs are fetched again, and what is known of hosts is learned anew."""
FEED = [
    *({"url": f"http://a.example/{n}", "text": text(n)} for n in range(30)),
    *({"url": f"http://b.example/{n}", "text": edited(text(n), 50) if n % 2 else text(n)} for n in range(26)),
]


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    with closing(redis.Redis(port=server.port)) as connection:
        yield connection


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a store, and what was exported of it."""
    made = tmp_path_factory.mktemp("held")
    deduped(made, FEED)
    succeeded(made, "export", "-o", "held.jsonl", "--store", "held.sqlite")
    return made


@pytest.fixture(scope="module")
def both(folder: Path) -> Iterator[tuple[str, str]]:
    """Return the addresses of a store on disk and of one on a server that hold the same."""
    with ExitStack() as stack:
        started = Server()
        stack.callback(started.close)
        said = succeeded(folder, "import", "held.jsonl", "--store", started.address).stderr
        assert "held.jsonl: 30 documents and 56 URLs imported; 0 documents known before, or forgotten with" in said
        yield str(folder / "held.sqlite"), started.address


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("clusters", ["--limit", "0"]),
        ("changes", []),
        *slow(("mirrors", []), ("stats", ["--runs"]), ("explain", ["http://b.example/1"])),
        ("explain", ["http://b.example/1", "http://a.example/2"]),
    ],
)
def test_a_verb_gives_the_same_result_as_on_disk(
    folder: Path, both: tuple[str, str], verb: str, arguments: list[str]
) -> None:
    first, second = (told(folder, verb, "--store", store, *arguments) for store in both)
    if verb == "clusters":
        assert len(first) == 26
    assert first == second


def test_stats_and_report(tmp_path: Path, both: tuple[str, str]) -> None:
    first, second = (told(tmp_path, "stats", "--store", store) for store in both)
    same = ("documents", "clusters", "copies", "detectors", "urls", "runs")
    assert [first[name] for name in same] == [second[name] for name in same]
    assert second["bytes_server"] > 0
    said = {succeeded(tmp_path, "report", "-o", f"{n}.html", "--store", store).stderr for n, store in enumerate(both)}
    assert said == {"26 clusters of 30 documents\n"}


def test_project_can_name_it_in_its_settings(tmp_path: Path, server: Server) -> None:
    write(tmp_path / "in.jsonl", FEED)
    for expected in (30, 0):  # at first, and again
        arguments = ("dedupe", "in.jsonl", "-o", "out.jsonl", "--store", server.address, "-s", "NEARDUP_REVISIT=drop")
        succeeded(tmp_path, *arguments)
        assert len(rows(tmp_path / "out.jsonl")) == expected
    assert told(tmp_path, "stats", "-s", f"NEARDUP_STORE={server.address}")["documents"] == 30


# Verify


def test_verify_of_a_server_that_others_use_too(server: Server, client: redis.Redis, tmp_path: Path) -> None:
    assert verify(server.address).findings == []  # there is nothing of ours
    client.set("page:1", "x")
    client.hset("neardup", "x", "y")
    for namespace in ("", "news/{1}:2"):
        fill(server.address, namespace, count=10)
    before = values(client)
    told_of = told(tmp_path, "stats", "--check", "--store", server.address)
    assert (told_of["namespaces"], told_of["runs"], told_of["documents"]) == (2, 4, 2 * 15)
    assert (told_of["whole"], told_of["findings"]) == (True, [])
    assert values(client) == before


def test_verify_lists_all_that_is_damaged(server: Server, client: redis.Redis, tmp_path: Path) -> None:
    for namespace in ("", "news"):
        fill(server.address, namespace, count=10)
    root = "{neardup:news:5}"
    [run, _] = sorted(client.hgetall(f"{root}:run"))
    client.hdel(f"{root}:document.".encode() + code(run.decode()), code(run.decode()) + bytes([0, 0, 0, 9]))
    client.delete(*sorted(client.keys("{neardup:news:5}k*"))[:20])
    client.hset(f"{ROOT}:run", "20200101-000000-1", "nothing")
    before = values(client)
    made = neardup(tmp_path, "stats", "--check", "--store", server.address)
    assert made.returncode == 2
    assert made.stderr.count("\n") == 1
    assert f"store '{server.address}' is damaged" in made.stderr
    assert "1 visits lead to documents that do not exist (namespace 'news')" in made.stdout
    assert "rows are missing in their index (namespace 'news')" in made.stdout
    assert "1 rows of kind 'run' can't be read: 'run/20200101-000000-1': " in made.stdout
    assert made.stdout.count("  to do: restore a backup of the store") >= 3
    assert values(client) == before


def test_verify_names_the_code_of_a_run_of_which_the_record_is_lost(server: Server, client: redis.Redis) -> None:
    fill(server.address)
    name = min(client.hgetall(f"{ROOT}:run"))
    client.hdel(f"{ROOT}:run", name)
    [finding] = verify(server.address).findings
    assert "records of runs are missing" in finding.what
    assert code(name.decode()).hex() in finding.what


BUSY = """
import sys
from helpers import text
from scrapy_neardup import Deduplicator, Document
with Deduplicator.open(sys.argv[1]) as dedup:
    for number in range(100_000):
        claim = dedup.claim(Document(url=f"http://c.example/{number}", text=text(number % 1500, 60)))
        claim.withdraw() if number % 7 == 0 else claim.commit()
"""


@pytest.mark.slow
def test_verify_while_others_write(server: Server, client: redis.Redis) -> None:
    fill(server.address)
    found = 0
    with talking(BUSY, server.address) as process:
        for wanted in (80, 160, 320):
            until(lambda wanted=wanted: verify(server.address).read["documents"] > wanted, 60)
            survey = verify(server.address)
            assert survey.findings == []
            found = survey.read["documents"]
        assert process.poll() is None
    assert found > 320
    client.delete(*client.keys("*:lease.*"))  # as if it had run out
    assert verify(server.address).findings == []  # a run that died is no damage
    Deduplicator.open(server.address).close()
    survey = verify(server.address)
    assert (survey.findings, survey.read["documents"]) == ([], 75)


@pytest.mark.parametrize(("kind", "seeds"), [("flip", 3), *slow(*((kind, 30) for kind in DAMAGES))])
def test_damage_is_found_and_causes_no_crash(kind: str, seeds: int, server: Server, client: redis.Redis) -> None:
    fill(server.address, count=15)
    kept, right = contents(client), values(client)
    changed = found = 0
    for seed in range(seeds):
        restore(client, kept)
        DAMAGES[kind](client, random.Random(f"{kind} {seed}"))
        before = values(client)
        changed += before != right and not (right.keys() - before.keys()) & UNTOLD
        found += bool(verify(server.address).findings)
        assert values(client) == before
        judge(server.address)
    assert changed * 3 // 4 < found  # nothing tells of bits in what only tells rows apart


# What is not ours, or not yet


def test_store_of_another_version_is_left_alone(server: Server, client: redis.Redis) -> None:
    client.set(b"{neardup:other:6}k", b"newer")
    client.rpush(b"{neardup::1}:meta", b"older")
    before = values(client)
    fill(server.address)
    assert verify(server.address).findings == []
    assert before.items() <= values(client).items()


@pytest.mark.parametrize(("suffix", "kind"), [(":meta", "meta"), (":run", "run"), (":last", "document")])
def test_keys_of_somebody_else_are_left_alone(
    suffix: str, kind: str, server: Server, client: redis.Redis, folder: Path
) -> None:
    client.rpush(ROOT + suffix, "theirs")
    before = values(client)
    with pytest.raises(StoreError, match="wrong kind of value"):
        fill(server.address)
    assert "wrong kind of value" in refused(folder, "import", "held.jsonl", "--store", server.address)
    assert any(f"rows of kind {kind!r} can't be read" in each.what for each in verify(server.address).findings)
    after = values(client)
    assert all(after[name] == value for name, value in before.items())
