"""The types that users of the package see."""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import run

import scrapy_neardup
from scrapy_neardup import Config
from scrapy_neardup.keywords import Keywords

ROOT = Path(scrapy_neardup.__file__).parents[1]
USE = Path(__file__).with_name("typed_use.py")
WRONG = {
    "from scrapy_neardup import Config, Deduplicator, Document": "",
    "Deduplicator.open(None).claim(Document(text=b''))": 'has incompatible type "bytes"; expected "str"',
    "from scrapy_neardup import Deduplicatr": 'has no attribute "Deduplicatr"',
    "Deduplicator.open(None, nosuch=5)": 'Unexpected keyword argument "nosuch"',
    "Deduplicator.open(None, detectors=3)": 'has incompatible type "int"',
    "Config(action='burn')": "has incompatible type \"Literal['burn']\"",
}
"""Line by line: what a user wrote, and what mypy has to say of it."""


def checked(folder: Path, source: str) -> str:
    """Return what mypy says of a user's code, away from this project's configuration."""
    (folder / "use.py").write_text(source)
    # mypy does not look for what an import hook finds, as some editable installs have it.
    path = {"MYPYPATH": str(ROOT)} if (ROOT / "setup.cfg").exists() else {}
    made = run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", "use.py"],
        cwd=folder,
        **path,
    )
    return made.stdout + made.stderr


needs_mypy = pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")


@needs_mypy
def test_a_user_may_be_strict(tmp_path: Path) -> None:
    assert checked(tmp_path, USE.read_text()) == "Success: no issues found in 1 source file\n"


@needs_mypy
def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    said = checked(tmp_path, "\n".join(WRONG))
    for number, error in enumerate(WRONG.values(), 1):
        about = "".join(line for line in said.splitlines() if line.startswith(f"use.py:{number}: error"))
        assert error in about if error else not about, said


def test_every_setting_is_a_keyword() -> None:
    assert {"store", *Keywords.__annotations__} == {setting.name for setting in fields(Config)}
