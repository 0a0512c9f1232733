"""The types that users of the package see."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import run

import scrapy_neardup

ROOT = Path(scrapy_neardup.__file__).parents[1]
USE = Path(__file__).with_name("typed_use.py")
WRONG = "from scrapy_neardup import Deduplicator, Document\nDeduplicator.open(None).claim(Document(text=b''))\n"


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


pytestmark = pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")


def test_a_user_may_be_strict(tmp_path: Path) -> None:
    assert checked(tmp_path, USE.read_text()) == "Success: no issues found in 1 source file\n"


def test_what_is_wrong_is_found(tmp_path: Path) -> None:
    assert 'has incompatible type "bytes"; expected "str"' in checked(tmp_path, WRONG)
