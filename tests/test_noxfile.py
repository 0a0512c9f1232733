"""The sessions of nox: the oldest versions are those of every requirement, and workflows name the sessions."""

from __future__ import annotations

import importlib.util
import re
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
    assert {"scrapy==2.14", "redis==5", "pyarrow==17", "hypothesis==6"} <= set(noxfile.oldest_versions())


def test_a_requirement_that_is_not_understood_is_told(
    noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "setup.cfg").write_text(
        "[options]\ninstall_requires =\n    scrapy>=2.15,<3\n[options.extras_require]\n"
    )
    (tmp_path / "pyproject.toml").write_text("[dependency-groups]\ntest = []\ndocs = []\nbrowser = []\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=r"scrapy>=2\.15,<3"):
        noxfile.oldest_versions()


def test_workflows_name_sessions_and_files_that_there_are(noxfile: ModuleType) -> None:
    yaml = pytest.importorskip("yaml")
    files = sorted((ROOT / ".github").rglob("*.yml"))
    jobs = {path.stem: yaml.safe_load(path.read_text())["jobs"] for path in files if path.parent.name == "workflows"}
    assert set(jobs) == {"tests", "release"}
    steps = [step for each in jobs.values() for job in each.values() for step in job["steps"]]
    sessions = re.findall(r"nox -s \"?(\w+)", " ".join(step.get("run", "") for step in steps))
    assert {"tests", "minimum", "release"} == set(sessions)
    assert all(callable(getattr(noxfile, session)) for session in sessions)
    assert tuple(jobs["tests"]["tests"]["strategy"]["matrix"]["python"]) == noxfile.PYTHONS
    assert [used for step in steps if (used := step.get("uses", "@v")) and not re.search(r"@v\d*", used)] == []
    assert all(yaml.safe_load(path.read_text())["body"] for path in files if path.parent.name == "ISSUE_TEMPLATE")


def test_other_tools_read_their_files() -> None:
    yaml = pytest.importorskip("yaml")
    version = re.search("^version = (.+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE)
    assert version
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == version[1]
    assert (ROOT / yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())["mkdocs"]["configuration"]).is_file()
    [hooks] = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in hooks["hooks"]] == ["make check"]
