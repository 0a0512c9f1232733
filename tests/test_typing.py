"""The types that users of the package see."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import scrapy_neardup
from scrapy_neardup import Config
from scrapy_neardup.settings import Keywords

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


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return what mypy says of a user's code, away from this project's configuration."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("user")
    (folder / "use.py").write_text(USE.read_text())
    (folder / "wrong.py").write_text("\n".join(WRONG))
    # mypy does not look for what an import hook finds, as some editable installs have it.
    path = {"MYPYPATH": str(ROOT)} if (ROOT / "setup.cfg").exists() else {}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    made = subprocess.run(
        [*command, "use.py", "wrong.py"],
        cwd=folder, env={**os.environ, **path}, capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert made.stdout.endswith(" in 1 file (checked 2 source files)\n"), made.stdout + made.stderr
    return made.stdout.splitlines()


@pytest.mark.slow
def test_a_user_may_be_strict(said: list[str]) -> None:
    assert [line for line in said if not line.startswith(("wrong.py:", "Found "))] == []


@pytest.mark.slow
def test_what_is_wrong_is_found(said: list[str]) -> None:
    for number, error in enumerate(WRONG.values(), 1):
        about = "".join(line for line in said if line.startswith(f"wrong.py:{number}: error"))
        assert error in about if error else not about, said


def test_every_setting_is_a_keyword() -> None:
    assert {"store", *Keywords.__annotations__} == {setting.name for setting in fields(Config)}
