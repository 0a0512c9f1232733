"""Test a release: on each Python that is found, the oldest and the newest Scrapy, and the oldest version of everything.

nox                             all of it, except the wheels
nox -s tests-3.12 -- -k urls    one Python, some tests
nox -s minimum package
nox -s wheels
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TESTED = "test,docs,browser"
PYTEST = ("pytest", "--numprocesses", "3", "--dist", "loadgroup", "-m", "slow or not slow")
nox.needs_version = ">=2024.4"
nox.options.error_on_missing_interpreters = False


def runs(program: str) -> bool:
    """Return whether a program starts: a stand-in that only tells how to get a Python does not."""
    found = shutil.which(program)
    return found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0


@nox.session(python=PYTHONS)
@nox.parametrize("scrapy", ["oldest", "newest"])
def tests(session: nox.Session, scrapy: str) -> None:
    """Run all tests but those of Spark."""
    session.install(f".[{TESTED}]", *(["scrapy~=2.15.0"] if scrapy == "oldest" else []))
    session.run(*PYTEST, *session.posargs)


@nox.session(python=PYTHONS[0] if runs(f"python{PYTHONS[0]}") else None)
def minimum(session: nox.Session) -> None:
    """Run the tests on the oldest version that setup.cfg allows of each package that it names."""
    if session.python is None:  # as a Python that is missing it would be skipped
        session.error(f"this needs Python {PYTHONS[0]}")
    oldest = Path(session.create_tmp(), "oldest.txt")
    oldest.write_text("\n".join(oldest_versions()) + "\n")
    session.install(f".[{TESTED}]", "--constraint", str(oldest))
    session.run(*PYTEST, *session.posargs)


@nox.session
def package(session: nox.Session) -> None:
    """Build wheel and sdist, check both, and use the wheel with all extras away from the sources."""
    session.install("build", "twine")
    made = Path(session.create_tmp(), "dist")
    shutil.rmtree(made, ignore_errors=True)
    session.run("python", "-W", "error::SetuptoolsDeprecationWarning", "-m", "build", "--outdir", str(made))
    session.run("twine", "check", "--strict", *map(str, made.iterdir()))
    [wheel] = made.glob("*.whl")
    session.install(f"{wheel}[all]")
    session.chdir(session.create_tmp())
    session.run("scrapy", "neardup", "doctor")


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build the wheels for this system, and check that each has the compiled part. On Linux, this needs Docker."""
    session.install("cibuildwheel")
    session.run("cibuildwheel", "--output-dir", "dist", *session.posargs)


def oldest_versions() -> list[str]:
    """Return a requirement of exactly the oldest version for each package that has one in setup.cfg."""
    setup = configparser.ConfigParser()
    setup.read("setup.cfg")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    oldest = set()
    for line in filter(None, map(str.strip, "\n".join(lists).splitlines())):
        found = re.fullmatch(r"(?P<name>[\w.-]+)(?:\[\w+\])?(?:>=(?P<version>[\w.]+))?(?:; .+)?|%\(\w+\)s", line)
        assert found, f"setup.cfg: {line!r} is not understood"
        if found["version"]:
            oldest.add(f"{found['name']}=={found['version']}")
    return sorted(oldest)
