"""The reference names all settings, stats, meta keys, fields of the tag, commands and Python names, and no others.

The tables of the Chinese pages name the same things as those of the English pages.

NEARDUP_WRITE_DOCS=1 writes the tables of the commands' options anew from their help.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import pytest
from scrapy.commands import ScrapyCommand
from scrapy.settings import Settings
from scrapy.utils.misc import load_object

import scrapy_neardup
from scrapy_neardup.commands import VERBS, Command
from scrapy_neardup.crawl.detours import KEY, Ticket
from scrapy_neardup.settings import Config
from scrapy_neardup.stats import BY_DETECTOR, PREFIX, Stat
from scrapy_neardup.verdict import Verdict

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
CHINESE = DOCS / "zh"
COMMANDS = REFERENCE / "commands.md"
HEAD = "| argument | meaning |\n|---|---|\n"
OPTIONS = re.compile(rf"{re.escape(HEAD)}(?:\|.*\n)*")
SETTING = re.compile(r"NEARDUP_[A-Z_]*[A-Z]")
NO_SETTING = {"NEARDUP_TEST_REDIS_SERVER", "NEARDUP_TEST_KILLS"}  # of tests, in docs/redis.md and docs/scaling.md
CODE, FIGURES = re.compile(r"`[^`]+`"), re.compile(r"[-*\d., /()]+")
HOW_TO = [path.relative_to(DOCS).as_posix() for path in sorted((DOCS / "how-to").glob("*.md"))]
TRANSLATED = ["tutorial.md", "reference/settings.md", *HOW_TO]  # the rest is in English only
PAIRS = [(ROOT / "README.md", ROOT / "README.zh-CN.md"), *((DOCS / name, CHINESE / name) for name in TRANSLATED)]


def rows(page: Path) -> list[list[str]]:
    """Return the cells of a page's tables."""
    found = re.findall(r"^\|(.*)\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)] for row in found]


def names(name: str) -> list[str]:
    """Return the code that begins the rows of a page of the reference."""
    return [row[0].strip("`") for row in rows(REFERENCE / name) if row[0].startswith("`")]


def pages() -> list[Path]:
    return [*ROOT.glob("README*.md"), *DOCS.rglob("*.md"), ROOT / "example_project" / "README.md"]


# Settings


def test_settings_are_those_of_the_code_with_their_defaults() -> None:
    said = [row[:2] for row in rows(REFERENCE / "settings.md") if len(row) == 3 and row[0].startswith("`")]
    read = {
        name.strip("`").removeprefix("NEARDUP_").lower(): ast.literal_eval(default.strip("`")) for name, default in said
    }
    assert len(said) == len(read)
    assert read.keys() == {setting.name for setting in fields(Config)}
    assert Config(**read) == Config()


def test_every_page_names_settings_that_exist() -> None:
    known = {*NO_SETTING, *(f"NEARDUP_{setting.name.upper()}" for setting in fields(Config))}
    named = [(page.name, name) for page in pages() for name in SETTING.findall(page.read_text(encoding="utf-8"))]
    assert [(page, name) for page, name in named if name not in known] == []


# Stats, meta, tag


def test_stats_are_those_of_the_code() -> None:
    assert names("stats.md") == unordered(
        [*(PREFIX + name for name in get_args(Stat)), f"{PREFIX}{BY_DETECTOR}<detector>"]
    )


def test_meta_keys_are_those_of_the_code() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "scrapy_neardup").rglob("*.py"))
    used = re.findall(r'meta(?:\.get\(|\.pop\(|\[)"(\w*neardup\w*)"', code)
    assert names("meta.md") == [*dict.fromkeys(used), KEY, *Ticket._fields]


def test_tag_is_that_of_the_code() -> None:
    assert names("tag.md")[: len(fields(Verdict))] == [*Verdict("unique").tag()]


class unordered:  # noqa: N801 - reads as what it is in an assertion
    """Equal to any order of the same things, each once."""

    def __init__(self, things: Any) -> None:
        self.things = sorted(things)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and sorted(other) == self.things

    def __repr__(self) -> str:
        return repr(self.things)


def test_contrib_is_that_of_the_code() -> None:
    files = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "scrapy_neardup" / "contrib").glob("*.py"))]
    code = "".join(files)
    read = re.findall(r'settings\.get\("([A-Z_]+)"|limit_of\(crawler, "([A-Z_]+)"', code)
    said = [row[0].strip("`") for row in rows(DOCS / "contrib.md") if row[0].startswith("`")]
    assert [name for name in said if name.isupper()] == unordered({name for found in read for name in found if name})
    for path in filter(lambda name: name.startswith("scrapy_neardup."), said):
        assert load_object(path).__doc__
    assert len([name for name in said if name.startswith("scrapy_neardup.")]) == code.count("Adviser):") + 1


# Chinese


def facts(page: Path) -> list[list[str | list[str]]]:
    """Return what a translation keeps of each cell of a page's tables: figures, or the code, in any order."""
    return [[cell if FIGURES.fullmatch(cell) else sorted(CODE.findall(cell)) for cell in row] for row in rows(page)]


def test_the_tutorial_the_how_tos_and_the_settings_are_translated() -> None:
    assert [path.relative_to(CHINESE).as_posix() for path in CHINESE.rglob("*.md")] == unordered(TRANSLATED)


@pytest.mark.parametrize(("english", "chinese"), PAIRS, ids=lambda path: str(path.relative_to(ROOT)))
def test_chinese_tables_have_the_names_values_and_figures_of_the_english(english: Path, chinese: Path) -> None:
    assert facts(chinese) == facts(english)


# Commands


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each verb."""
    command = Command()
    command.settings = Settings()
    return {verb: command.parser(verb) for verb in VERBS}


@cache
def global_options() -> set[str]:
    command = ScrapyCommandOnly()
    command.settings = Settings()
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return {option for action in parser._actions for option in action.option_strings}


class ScrapyCommandOnly(ScrapyCommand):
    def short_desc(self) -> str:
        return ""

    def run(self, args: list[str], opts: argparse.Namespace) -> None: ...


def options(parser: argparse.ArgumentParser) -> list[str]:
    """Return a row for each option of a verb, as its help tells of it."""
    formatter = argparse.HelpFormatter("")
    own = [action for action in parser._actions if not global_options() & {*action.option_strings}]
    cells = [(_called(action, formatter), formatter._expand_help(action).replace("|", "\\|")) for action in own]
    return [f"| `{name}` | {text} |\n" for name, text in cells]


def tables() -> dict[str, str]:
    """Return the table of each verb's own options; for "", that of the options of two verbs or more."""
    found = {verb: options(parser) for verb, parser in verb_parsers().items()}
    counts = Counter(row for rows in found.values() for row in rows)
    shared = dict.fromkeys(row for row in chain.from_iterable(reversed(found.values())) if counts[row] > 1)
    own = {verb: [row for row in rows if row not in shared] for verb, rows in found.items()}
    return {part: f"{HEAD}{''.join(rows)}" if rows else "" for part, rows in {"": shared, **own}.items()}


def _called(action: argparse.Action, formatter: argparse.HelpFormatter) -> str:
    value = (
        formatter._format_args(action, formatter._get_default_metavar_for_optional(action)) if action.nargs != 0 else ""
    )
    return f"{', '.join(action.option_strings)} {value}".strip().replace("|", "\\|")


def sections() -> Iterator[tuple[str, str]]:
    """Yield the verb of each section of the page with its text; first "" with what stands before."""
    for part in re.split(r"^## ", f"\n{COMMANDS.read_text(encoding='utf-8')}", flags=re.MULTILINE):
        yield part.split("\n", 1)[0], part.removeprefix("\n")


def test_commands_have_a_section_each() -> None:
    assert [verb for verb, _ in sections()] == unordered(["", *VERBS])


def test_commands_have_the_options_of_their_help() -> None:
    expected = tables()
    if os.environ.get("NEARDUP_WRITE_DOCS"):
        page = COMMANDS.read_text(encoding="utf-8")
        for verb, section in sections():
            page = page.replace(section, OPTIONS.sub(lambda _, verb=verb: expected[verb], section))
        COMMANDS.write_text(page, encoding="utf-8")
    for verb, section in sections():
        assert "".join(OPTIONS.findall(section)) == expected[verb], f"{verb}: NEARDUP_WRITE_DOCS=1 mends it"


# CONTRIBUTING


def test_every_feature_has_a_quick_test() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| .* \| (`test_.*) \|$", page, re.MULTILINE)
    assert len(cells) > 30
    for name, *tests in (re.findall(r"\btest_\w+(?:\.py)?", cell) for cell in cells):
        source = (ROOT / "tests" / name).read_text(encoding="utf-8")
        assert "pytestmark = pytest.mark.slow" not in source
        for test in tests:
            if test.endswith(".py"):
                source = (ROOT / "tests" / test).read_text(encoding="utf-8")
            else:
                found = re.search(rf"((?:^[@ )].*\n)*)^def {test}\(", source, re.MULTILINE)
                assert found, f"there is no {test}"
                assert "@pytest.mark.slow" not in found[1], f"{test} is slow"


# Python


def test_python_names_all_that_is_public() -> None:
    assert names("python.md")[: len(scrapy_neardup.__all__)] == unordered(scrapy_neardup.__all__)
