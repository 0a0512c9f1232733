"""What nox runs: the oldest versions are those of every requirement in setup.cfg."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")  # nox does not like to see a session twice
def noxfile() -> ModuleType:
    pytest.importorskip("nox")
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_requirement_has_its_oldest_version(noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert {"scrapy==2.15", "redis==5", "pyarrow==17"} <= set(noxfile.oldest_versions())


def test_a_requirement_that_is_not_understood_is_told(
    noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    scrapy>=2.15,<3\n[options.extras_require]\n"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=r"scrapy>=2\.15,<3"):
        noxfile.oldest_versions()
