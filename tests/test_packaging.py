"""A release: the sdist has all sources, and tools can read the licence."""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from helpers import run
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LEFT_BEHIND = ("example_project/out/items.jsonl", "scrapy_neardup/native/_native.so", "tests/helpers.pyc")
BUILD = "from setuptools import build_meta; build_meta.build_sdist('dist')"


def installed(package: str) -> Version:
    try:
        return Version(version(package))
    except PackageNotFoundError:
        return Version("0")


# With an older packaging, if there is one, setuptools can't read licences.
CAN_BUILD = installed("setuptools") >= Version("77.0.3") and installed("packaging") >= Version("24.2")
pytestmark = pytest.mark.skipif(not CAN_BUILD, reason="no setuptools, or one that is too old")


@pytest.fixture(scope="module")
def sources() -> list[str]:
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no checkout")
    listed = run(["git", "ls-files", "-z"], cwd=ROOT)
    if listed.returncode:  # as where the checkout is another user's
        pytest.skip(listed.stderr)
    return sorted(name for name in listed.stdout.split("\0") if (ROOT / name).is_file())


@pytest.fixture(scope="module")
def sdist(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the files of the sdist, made where the sources were worked with."""
    folder = tmp_path_factory.mktemp("sources")
    for name in (*sources, *LEFT_BEHIND):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes() if name in sources else b"")
    made = run([sys.executable, "-W", "error::DeprecationWarning", "-c", BUILD], cwd=folder)
    assert made.returncode == 0, made.stderr
    [path] = (folder / "dist").iterdir()
    with tarfile.open(path) as tar:
        files = [(member.name, tar.extractfile(member)) for member in tar if member.isfile()]
        return {name.partition("/")[2]: file.read() for name, file in files if file}


def test_sdist_holds_the_sources_and_no_more(sources: list[str], sdist: dict[str, bytes]) -> None:
    assert [name for name in sorted(sdist) if name != "PKG-INFO" and ".egg-info/" not in name] == sources


def test_description_has_no_link_that_leads_nowhere(sdist: dict[str, bytes]) -> None:
    head, _, description = sdist["PKG-INFO"].decode().partition("\n\n")
    assert "Author: scrapy-neardup developers" in head
    assert description.startswith("# scrapy-neardup\n")
    assert re.findall(r"\]\((?!https://)", description) == []


def test_every_page_that_llms_txt_names_is_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text())
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_licence_is_an_expression_with_its_files(sdist: dict[str, bytes]) -> None:
    told = [line for line in sdist["PKG-INFO"].decode().splitlines() if line.startswith("License")]
    assert told == [
        "License-Expression: BSD-3-Clause AND CC-BY-SA-4.0 AND MIT",
        "License-File: LICENSE",
        "License-File: scrapy_neardup/fingerprints/lexicons/NOTICE.en",
        "License-File: scrapy_neardup/fingerprints/lexicons/NOTICE.zh",
        "License-File: scrapy_neardup/papers/synonyms/NOTICE.en",
        "License-File: scrapy_neardup/papers/synonyms/NOTICE.zh",
    ]
