"""Every kind of address, with real servers: a store works in the same way at each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from helpers import edited, python, text, until
from redis_groups import Cluster, Group, Sentinels, TlsFront, asked, certificate
from redis_server import free_port, server
from store_kinds import ROOT

from scrapy_neardup import Deduplicator, Document, StoreError
from scrapy_neardup.store.verification import verify

USER = "on >secret ~{neardup:* resetchannels -@all +@read +@write +@scripting +@connection -@dangerous +info"
"""What a user of a server needs to be allowed, as docs/redis.md says."""


def commit(dedup: Deduplicator, number: int, *, host: str = "a", copy: str | None = None) -> str:
    claim = dedup.claim(Document(url=f"http://{host}.example/{number}", text=copy or text(number)))
    claim.commit()
    return claim.verdict.status


def works(address: str, namespace: str = "") -> None:
    """See that a store holds what one process brought, that another finds copies, and that verify finds it whole."""
    with Deduplicator.open(address, namespace=namespace) as one, Deduplicator.open(address, namespace=namespace) as two:
        assert [commit(one, number) for number in range(10)] == ["unique"] * 10
        one.flush()
        assert commit(two, 3, host="b", copy=edited(text(3), 50)) == "duplicate"
        two.claim(Document(url="http://a.example/11", text=text(11))).withdraw()
        two.flush()
        found = one.store.resolve("http://b.example/3")
        assert found
        assert found.signature
        assert found.signature.url == "http://a.example/3"
    with Deduplicator.open(address, namespace=namespace) as three:
        assert sorted(each.url or "" for each in three.store.signatures()) == [
            f"http://a.example/{n}" for n in range(10)
        ]
    survey = verify(address)
    assert survey.findings == []
    assert survey.read["documents"] >= 10


@pytest.fixture
def group() -> Iterator[Group]:
    with Group() as servers:
        yield servers


@pytest.mark.parametrize("scheme", ["redis", "valkey"])
def test_plain_address_with_a_database(scheme: str, group: Group) -> None:
    own = group.started()
    works(f"{scheme}://127.0.0.1:{own.port}/3")
    assert asked(own.port, "DBSIZE") == 0  # it is in database 3


def test_address_of_a_unix_socket(tmp_path: Path, group: Group) -> None:
    path = tmp_path / "s"
    group.started("--unixsocket", str(path))
    works(f"unix://{path}?db=1")


def test_address_with_a_password_and_errors_without_it(group: Group) -> None:
    own = group.started("--requirepass", "se:cr@t")
    works(f"redis://:se%3Acr%40t@127.0.0.1:{own.port}")
    works(f"redis://127.0.0.1:{own.port}?password=se%3Acr%40t", "other")
    for address in (f"redis://127.0.0.1:{own.port}", f"redis://:wrong@127.0.0.1:{own.port}"):
        with pytest.raises(StoreError, match=r"Authentication required|password") as caught:
            Deduplicator.open(address)
        assert "wrong@" not in str(caught.value)


def test_user_that_may_only_what_it_needs(group: Group) -> None:
    own = group.started()
    asked(own.port, "ACL", "SETUSER", "worker", *USER.split())
    works(f"redis://worker:secret@127.0.0.1:{own.port}")
    asked(own.port, "ACL", "SETUSER", "worker", "-@write")
    with pytest.raises(StoreError, match="has no permissions to run the 'hset' command"):
        Deduplicator.open(f"redis://worker:secret@127.0.0.1:{own.port}")


def test_address_with_tls(tmp_path: Path, group: Group) -> None:
    own = group.started()
    mine, key = certificate(tmp_path)
    front = TlsFront(own, mine, key)
    group.callback(front.stop)
    works(f"rediss://127.0.0.1:{front.port}?ssl_ca_certs={mine}")
    with pytest.raises(StoreError, match=r"(?i)certificate"):  # signed by itself, which nobody said is to be trusted
        Deduplicator.open(f"rediss://127.0.0.1:{front.port}")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("redis://127.0.0.1:{port}/99", "out of range"),
        ("redis://127.0.0.1:port", "not the address of a server"),
        ("redis://127.0.0.1:6379/x", "not the number of a database"),
        ("redis://127.0.0.1:6379/0?foo=1", "not the address of a server"),
        ("redis://:secret@[::1", "not the address of a server"),
        ("redis+sentinel://127.0.0.1:{port}", "the name of the service"),
        ("redis+sentinel://127.0.0.1:{port}/pages", "SENTINEL"),
        ("redis+cluster://127.0.0.1:{port}", "Cluster mode is not enabled"),
        ("redis+cluster://127.0.0.1:{free}", "can't be used"),
        ("redis+sentinal://:secret@127.0.0.1:{port}", "no such kind of store"),
    ],
)
def test_addresses_that_lead_nowhere(address: str, said: str) -> None:
    with pytest.raises(StoreError, match=said) as caught:
        Deduplicator.open(address.format(port=server().port, free=free_port()))
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


WITHOUT_CLIENT = """
import sys
sys.modules["redis"] = None
from scrapy_neardup.store import StoreError, open_store
from scrapy_neardup.store.verification import verify
for ask in (verify, lambda address: open_store(address, ())):
    try:
        ask("redis://:secret@127.0.0.1")
    except StoreError as error:
        print(error)
"""


def test_package_that_is_missing_is_named() -> None:
    told = python(WITHOUT_CLIENT)
    says = "store 'redis://:***@127.0.0.1' needs the extra `redis`: pip install 'scrapy-neardup[redis]'\n"
    assert (told.stdout, told.stderr) == (2 * says, "")


# Servers that belong together


@pytest.fixture
def sentinels() -> Iterator[Sentinels]:
    with Group() as group:
        yield Sentinels(group)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Group() as group:
        yield Cluster(group)


def eventually(dedup: Deduplicator, number: int) -> str:
    """Commit a document as soon as the store can be asked; return the verdict."""
    verdicts: list[str] = []

    def is_done() -> bool:
        try:
            verdicts.append(commit(dedup, number))
            dedup.flush()
        except StoreError:
            return False
        return True

    until(is_done, 60)
    return verdicts[0]


def test_sentinels_name_the_master(sentinels: Sentinels) -> None:
    works(sentinels.address)


@pytest.mark.slow
def test_store_follows_to_the_new_master(sentinels: Sentinels) -> None:
    with Deduplicator.open(sentinels.address) as dedup:
        assert [commit(dedup, number) for number in range(5)] == ["unique"] * 5
        dedup.flush()
        sentinels.fail_over()
        assert eventually(dedup, 5) == "unique"
        assert commit(dedup, 2, host="b") == "duplicate"
    with closing(Deduplicator.open(sentinels.address)) as after:
        assert {each.url for each in after.store.signatures()} == {f"http://a.example/{n}" for n in range(6)}
        assert all(run.closed for run in after.store.runs() if run.id != after.store.run)
    assert verify(sentinels.address).findings == []


def test_cluster_keeps_a_namespace_on_one_node(cluster: Cluster) -> None:
    for namespace in ("one", "three"):
        works(cluster.address, namespace)
    assert sum(asked(port, "DBSIZE") > 0 for port in cluster.ports) == 2
    assert verify(cluster.address).read["namespaces"] == 2


@pytest.mark.slow
def test_store_follows_its_keys_to_another_node(cluster: Cluster) -> None:
    with Deduplicator.open(cluster.address) as dedup:
        assert [commit(dedup, number) for number in range(5)] == ["unique"] * 5
        dedup.flush()

        def claim_on_the_way() -> None:
            with pytest.raises(StoreError):
                commit(dedup, 4, host="b")

        target = cluster.move(ROOT, claim_on_the_way)
        assert eventually(dedup, 5) == "unique"
        assert commit(dedup, 2, host="c") == "duplicate"
    assert asked(cluster.ports[target], "EXISTS", f"{ROOT}:meta") == 1
    survey = verify(cluster.address)
    assert (survey.findings, survey.read["documents"]) == ([], 6)
