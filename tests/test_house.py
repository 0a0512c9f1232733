"""The house: rooms import only from those below, and each module has a name of its own."""

from __future__ import annotations

import ast
import re
from collections import Counter

from house import PACKAGE, ROOMS, chain, imports, modules, outside, room

VERBS = "commands"  # whose modules are named as the verbs of the command
OF_SCRAPY = {"crawler", "engine", "scraper", "downloader", "handlers", "itemproc", "settings", "signals", "spider"}


def test_every_room_has_its_place() -> None:
    assert {room(module) for module in modules()} - {""} == {*ROOMS}


def test_a_module_imports_from_its_room_and_those_below() -> None:
    place = {"": len(ROOMS), **{name: number for number, name in enumerate(ROOMS)}}
    found = [(module, other) for module in modules() for other in imports(module, late=True) if room(other)]
    assert [pair for pair in found if place[room(pair[0])] < place[room(pair[1])]] == []


def test_only_the_glue_imports_scrapy() -> None:
    assert {room(module) for module in modules() if "scrapy" in outside(module)} <= {
        *("crawl", "commands", "contrib"),
        "feeds",  # an archive's pages are decoded as Scrapy decodes responses
    }
    assert imports("") == set()  # so whoever imports a room does not import the glue


def test_nothing_is_assigned_to_an_object_of_scrapy() -> None:
    nodes = [(module, node) for module, tree in modules().items() for node in ast.walk(tree)]
    assigned = [each for each in nodes if isinstance(each[1], ast.Attribute) and isinstance(each[1].ctx, ast.Store)]
    names = [(module, ast.unparse(node).replace("_", "").split(".")[:-1]) for module, node in assigned]
    assert [module for module, parts in names if OF_SCRAPY & {*parts}] == []


def test_optional_packages_are_imported_where_they_are_used() -> None:
    optional = {"brotli", "minisom", "pyarrow", "pyspark", "redis", "snowballstemmer", "stopwordsiso", "trafilatura"}
    found = {(module, name) for module in modules() for name in outside(module, late=False) & optional}
    assert found == {("store.redis_server", "redis"), ("spark.job", "pyspark")}  # imported late themselves


def test_nothing_knows_contrib() -> None:
    assert not [module for module in modules() if room(module) != "contrib" and "contrib" in map(room, imports(module))]
    names = re.compile(r"contrib[/.](?!md)")
    files = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "contrib"]
    assert [path.name for path in files if names.search(path.read_text(encoding="utf-8"))] == []


def test_imports_go_in_no_circle_and_not_too_deep() -> None:
    assert len(chain()) <= 12


def test_there_are_few_rooms_and_modules_of_the_root() -> None:
    assert len(ROOMS) <= 28


def test_no_two_modules_have_one_name() -> None:
    names = Counter(module.rpartition(".")[2] for module in modules() if room(module) != VERBS)
    assert [name for name, count in names.items() if count > 1 and name != "store"] == []


def test_the_architecture_page_names_what_is_there() -> None:
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]*)*(?:\.py|/))`", page))
    assert {name for name in named if not ((PACKAGE / name).exists() or (PACKAGE.parent / name).exists())} == set()
    rooms = {f"{name}/" if (PACKAGE / name / "__init__.py").is_file() else f"{name}.py" for name in ROOMS}
    assert {name for name in rooms if name.endswith("/")} <= named
