"""`scrapy neardup doctor`: each piece of advice appears where it belongs, and none if all is well."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cli import deduped, neardup, succeeded, told
from faulty import common_user  # noqa: F401 - a fixture
from redis_server import Server
from scrapy.settings import Settings
from tiers import slow

from scrapy_neardup import Addon, ItemOrigins, MirrorMiddleware, NearDupPipeline, native
from scrapy_neardup.commands.doctor import on_settings
from scrapy_neardup.settings import Config

ADD_ON = {"ADDONS": {"scrapy_neardup.Addon": 500}}
ORIGINS = {"SPIDER_MIDDLEWARES": {ItemOrigins: 0}}


def advised(settings: dict[str, Any]) -> list[str]:
    """Return level and text of each advice."""
    made = Settings(settings)
    return [f"{advice.level}: {advice.what}" for advice in on_settings(made, Config.from_settings(made))]


class OurPipeline(NearDupPipeline):
    """As a project may have it."""


class OurAddon(Addon):
    """As a project may have it."""


BAD_VALUES = {"ITEM_PIPELINES": {"x.Y": "early"}, "HTTPCACHE_ENABLED": "perhaps", "DELTAFETCH_ENABLED": []}


@pytest.mark.parametrize(
    "settings",
    [
        ADD_ON,
        {"ADDONS": {Addon: 500}},
        {"ADDONS": {OurAddon: 500}},
        {"ADDONS": {f"{__name__}.OurAddon": 500}},
        {
            **ORIGINS,
            "ITEM_PIPELINES": {f"{__name__}.OurPipeline": 300},
            "DOWNLOADER_MIDDLEWARES": {MirrorMiddleware: 75},
        },
        {**ADD_ON, "ITEM_PIPELINES": {"no.such.pipeline": 400, "json.decoder.nothing": 401}},  # it can't be ours
        {"ADDONS": {"scrapy_neardup.Addon": 500, 5: 6}, **BAD_VALUES},  # which are left to Scrapy
        {**ORIGINS, "ITEM_PIPELINES": {NearDupPipeline: 300}, "DOWNLOADER_MIDDLEWARES": {MirrorMiddleware: 75}},
        {**ADD_ON, "ITEM_PIPELINES": {"shop.pipelines.Save": 400}},
        {**ADD_ON, "NEARDUP_REVISIT": "skip", "DELTAFETCH_ENABLED": True},
        {**ADD_ON, "NEARDUP_ACTION": "tag", "NEARDUP_SKIP_MIRRORS": False},
        {**ADD_ON, "NEARDUP_TTL": "90 days", "NEARDUP_STORE": "held.sqlite"},
        {**ADD_ON, "NEARDUP_STORE": "redis://127.0.0.1", "NEARDUP_REVISIT": "drop"},
    ],
)
def test_nothing_is_said_where_all_is_well(settings: dict[str, Any]) -> None:
    assert advised(settings) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "error: the project does not enable the plugin"),
        ({"ADDONS": {"scrapy_neardup.Addon": None}}, "error: the project does not enable the plugin"),
        (
            {**ORIGINS, "ITEM_PIPELINES": {"scrapy_neardup.NearDupPipeline": 300}},
            "warning: MirrorMiddleware is not enabled, so no request is skipped, and no dead link",
        ),
        (
            {**ORIGINS, "DOWNLOADER_MIDDLEWARES": {MirrorMiddleware: 75}},
            "warning: NearDupPipeline is not enabled, so no item is compared",
        ),
        (
            {"ITEM_PIPELINES": {NearDupPipeline: 300}, "DOWNLOADER_MIDDLEWARES": {MirrorMiddleware: 75}},
            "warning: ItemOrigins is not enabled, so items are identified by their own URLs only",
        ),
        ({**ADD_ON, "NEARDUP_ENABLED": False}, "warning: NEARDUP_ENABLED = False"),
        ({**ADD_ON, "ITEM_PIPELINES": {"shop.pipelines.Save": 200}}, "note: shop.pipelines.Save: not placed after"),
        (
            {**ADD_ON, "SPIDER_MIDDLEWARES": {"scrapy_deltafetch.DeltaFetch": 100}, "DELTAFETCH_ENABLED": True},
            "warning: scrapy_deltafetch.DeltaFetch is enabled",
        ),
        ({**ADD_ON, "HTTPCACHE_ENABLED": True}, "note: HTTPCACHE_ENABLED without expiry"),
        ({**ADD_ON, "NEARDUP_ACTION": "tag"}, 'warning: NEARDUP_ACTION = "tag" with NEARDUP_SKIP_MIRRORS'),
        (
            {**ADD_ON, "NEARDUP_REVISIT": "skip", "NEARDUP_SKIP_MIRRORS": False},
            'warning: NEARDUP_REVISIT = "skip" with NEARDUP_SKIP_MIRRORS',
        ),
        ({**ADD_ON, "NEARDUP_TTL": "1 day"}, "warning: NEARDUP_TTL (86400 s) is shorter"),
        (
            {**ADD_ON, "NEARDUP_MIRROR_HOSTS": {"m.example": "example"}, "NEARDUP_PREFERRED_HOSTS": ["m.example"]},
            "warning: NEARDUP_MIRROR_HOSTS and NEARDUP_PREFERRED_HOSTS both name m.example",
        ),
        ({**ADD_ON, "NEARDUP_STORE": "redis://127.0.0.1"}, 'note: NEARDUP_REVISIT = "keep" on a server'),
    ],
)
def test_each_thing_is_named(settings: dict[str, Any], said: str) -> None:
    [advice] = advised(settings)
    assert advice.startswith(said)


def test_a_path_of_ours_that_leads_nowhere_enables_nothing() -> None:
    assert advised({"ADDONS": {"scrapy_neardup.Adon": 500}})[0] == (
        "error: the project does not enable the plugin; a spider's custom_settings are not checked"
    )


def test_the_worst_comes_first() -> None:
    levels = [advice.partition(":")[0] for advice in advised({"HTTPCACHE_ENABLED": True, "NEARDUP_ACTION": "tag"})]
    assert levels == ["error", "warning", "note"]


# The command


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose settings are fine."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = shop.settings\n")
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    adapt(tmp_path, f"ADDONS = {ADD_ON['ADDONS']}")
    return tmp_path


def adapt(project: Path, settings: str) -> None:
    (project / "shop" / "settings.py").write_text(settings + "\n")


def advice(project: Path, *arguments: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = told(project, "doctor", *arguments)["advice"]
    return found


def test_doctor_tells_versions_and_extras(project: Path) -> None:
    made = told(project, "doctor")
    assert {"Python", "scrapy-neardup", "scrapy", "numpy"} <= set(made["versions"])
    assert made["compiled"].startswith("yes" if native.compiled else "no")
    assert {"redis", "som", "dwdcs", "warc"} <= set(made["extras"])
    assert not {"all", "test", "dev"} & set(made["extras"])


def test_a_store_that_the_first_crawl_will_make_is_no_error(project: Path) -> None:
    assert [each["what"].endswith("does not exist yet") for each in advice(project)] == [True]
    assert not (project / ".scrapy").exists()


@pytest.mark.parametrize("place", ["", "[datadir]\ndefault = kept/here\n"])
def test_the_project_s_store_is_found_where_it_was_made(project: Path, place: str) -> None:
    fill(project)
    succeeded(project, "export", "--store", "held.sqlite", "-o", "held.jsonl")
    with (project / "scrapy.cfg").open("a") as file:
        file.write(place)
    (project / "below").mkdir()
    assert "does not exist" in neardup(project / "below", "stats").stderr
    assert not [*project.rglob("kept"), *project.rglob(".scrapy")]
    succeeded(project, "import", str(project / "held.jsonl"))
    assert advice(project) == []


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("missing/held.sqlite", "there is no directory 'missing'; create it first"),
        ("a" * 256, "can't be opened: "),
        (f"{'a' * 256}/held.sqlite", "there is no directory 'aaa"),
        ("shop/settings.py/held.sqlite", "there is no directory 'shop/settings.py'"),
    ],
)
def test_a_store_that_no_crawl_can_make_is_an_error(project: Path, store: str, said: str) -> None:
    made = neardup(project, "doctor", "-s", f"NEARDUP_STORE={store}")
    assert made.returncode == 2
    assert f"error: store '{store}'" in made.stdout
    assert said in made.stdout
    assert "to do: correct NEARDUP_STORE, or make its folder writable: a crawl stops at its start\n" in made.stdout
    assert made.stderr == "scrapy neardup doctor: 1 error found\n"


@pytest.mark.parametrize("arguments", [["-s", "NEARDUP_STORE=ftp://me:secret@x/y"], ["--store", "ftp://me:secret@x/y"]])
def test_no_kind_of_store_is_an_error_among_the_others(project: Path, arguments: list[str]) -> None:
    made = neardup(project, "doctor", "-s", "HTTPCACHE_ENABLED=1", *arguments)
    assert made.returncode == 2
    assert "scrapy-neardup " in made.stdout
    assert "note: HTTPCACHE_ENABLED without expiry" in made.stdout
    assert "error: store 'ftp://me:***@x/y': no such kind of store; allowed are a path, redis" in made.stdout
    named = arguments[0 if arguments[0] == "--store" else 1].split("=")[0]
    assert f"to do: name another store with {named}\n" in made.stdout


@pytest.mark.parametrize("name", ["typo.sqlite", *slow("a" * 256)], ids=["", "of no file"])
def test_a_store_named_by_hand_has_to_be_there(project: Path, name: str) -> None:
    made = neardup(project, "doctor", "--store", name)
    assert made.returncode == 2
    assert f"error: store '{name}' does not exist\n" in made.stdout
    assert name not in os.listdir(project)


def test_a_store_in_order_needs_nothing(project: Path) -> None:
    fill(project)
    assert succeeded(project, "doctor", "--store", "held.sqlite").stdout.splitlines()[-1] == "no problems found"


def fill(project: Path) -> None:
    rows = [{"url": f"http://a.example/{number}", "text": f"word{number} " * 30} for number in range(3)]
    deduped(project, rows)


def test_a_bad_value_is_an_error(project: Path) -> None:
    adapt(project, "NEARDUP_ACTION = 'burn'")
    made = neardup(project, "doctor")
    assert made.returncode == 2
    assert "error: NEARDUP_ACTION = 'burn' is not allowed" in made.stdout
    assert made.stderr == "scrapy neardup doctor: 1 error found\n"


def test_a_store_of_another_scheme_is_an_error(project: Path) -> None:
    fill(project)
    detectors = "NEARDUP_DETECTORS = [{'name': 'imatch', 'randomized': 3}]"
    adapt(project, f"ADDONS = {ADD_ON['ADDONS']}\nNEARDUP_STORE = 'held.sqlite'\n{detectors}")
    before = (project / "held.sqlite").read_bytes()
    made = neardup(project, "doctor")
    assert made.returncode == 2
    assert "held.sqlite' does not fit: 'imatch' was made as" in made.stdout
    assert (project / "held.sqlite").read_bytes() == before


def test_a_server_that_throws_keys_away_is_an_error(project: Path, server: Server) -> None:
    server.tell("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    made = neardup(project, "doctor", "--store", server.address)
    assert made.returncode == 2
    assert "maxmemory-policy is allkeys-lru" in made.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("common_user")
def test_a_store_that_may_not_be_written_is_an_error(project: Path) -> None:
    fill(project)
    os.chmod(project / "held.sqlite", 0o400)
    made = neardup(project, "doctor", "--store", "held.sqlite")
    assert "error: store 'held.sqlite' can't be written: this user may not write it" in made.stdout
