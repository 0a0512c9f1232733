"""Output of the commands to streams that can't be written, that nobody reads, or that can't encode characters."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli import FORKS, environment, neardup, refused, succeeded, write
from helpers import text
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands import shown

MIRROR = "http://b.example/\x1b]0;owned\x07\n2 of 2 clusters\x9b2J\u202egpj"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a feed of ten rows, of which one can't be read, and a store."""
    for name in ("in", "whole"):
        write(tmp_path / f"{name}.jsonl", [{"url": f"http://a.example/{n}", "text": text(n)} for n in range(9)])
    with open(tmp_path / "in.jsonl", "a") as file:
        file.write("{\n")
    with Deduplicator.open(str(tmp_path / "held.sqlite")) as dedup:
        for url in ("http://a.example/", MIRROR):
            dedup.claim(Document(url, text(1))).commit()
    return tmp_path


def shell(folder: Path, arguments: str, end: str, **environment: str) -> tuple[int, str, str]:
    """Call a verb with stdout and stderr as `end` says; return its exit code, and what came out of the rest."""
    call = f"{{ {shlex.quote(sys.executable)} -m scrapy neardup {arguments}; echo $? >code; }} {end}"
    env = {**os.environ, **environment}
    made = subprocess.run(["sh", "-c", call], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    return int((folder / "code").read_text()), made.stdout, made.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "end", "code"),
    [
        ("dedupe in.jsonl -o out.jsonl", "2>&1 | true", 141),
        ("dedupe in.jsonl -o out.jsonl", "2>/dev/full", 2),
        ("dedupe - -o - <whole.jsonl", "| true", 141),
        ("export --store held.sqlite -o -", "| true", 141),
    ],
)
def test_where_nobody_reads_a_command_ends_and_leaves_nothing(
    folder: Path, arguments: str, end: str, code: int
) -> None:
    before = sorted(os.listdir(folder))
    ended, _, said = shell(folder, arguments, end)
    assert (ended, said) == (code, "")
    assert sorted({*os.listdir(folder)} - {"code"}) == before


CHECK = ("stats", "--check", "--store", "held.sqlite")


@pytest.fixture
def damaged(folder: Path) -> Path:
    """Damage the store, and return its directory."""
    file = folder / "held.sqlite"
    file.write_bytes(file.read_bytes()[:-3000] + bytes(3000))
    assert "is damaged" in neardup(folder, *CHECK).stderr
    return folder


def test_what_is_found_shows_in_the_exit_code_though_the_list_can_not_be_written(damaged: Path) -> None:
    fork = FORKS.start(damaged, ["neardup", *CHECK], environment(), stdout="/dev/full")
    fork.communicate()
    assert fork.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("mirrors --store held.sqlite -s NEARDUP_MIRROR_HOSTS={}", "0 pairs of hosts"),
        *slow(
            ("mirrors --help", "\\u2194 means that neither host"),
            (
                """mirrors --store held.sqlite -s NEARDUP_MIRROR_HOSTS='{"b.example": "a.example"}'""",
                "\\u2192 a.example",
            ),
        ),
    ],
)
def test_what_an_encoding_does_not_have_is_written_as_its_number(folder: Path, arguments: str, said: str) -> None:
    code, stdout, stderr = shell(folder, arguments, "", PYTHONIOENCODING="ascii", LC_ALL="C.UTF-8")
    assert (code, stderr) == (0, "")
    assert said in stdout


@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\n", "\x7f", "\x9b", "\u200b", "\u2028", "\u202e", "\ud800"])
def test_control_characters_are_shown(sign: str) -> None:
    assert shown(f"a{sign}b") == f"a{sign!r}b".replace("'", "")


def test_other_characters_are_shown_as_they_are() -> None:
    assert shown("a b/é/鹤/e\u0301/😀\\x1b") == "a b/é/鹤/e\u0301/😀\\x1b"


@pytest.mark.parametrize("arguments", [("clusters",), ("explain", "http://a.example/")])
def test_control_characters_of_a_store_do_not_reach_the_terminal(folder: Path, arguments: tuple[str, ...]) -> None:
    said = succeeded(folder, *arguments, "--store", "held.sqlite").stdout
    assert all(line.isprintable() for line in said.split("\n"))
    assert "\\x1b" in said


def test_control_characters_do_not_reach_the_terminal_in_errors_either(folder: Path) -> None:
    url = "http://c.example/\x1b\nno error"
    assert "http://c.example/\\x1b\\nno error" in refused(folder, "explain", url, "--store", "held.sqlite")
    assert "'\\x1bstats'" in refused(folder, "\x1bstats")
