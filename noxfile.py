"""Test a release: on each Python that is found, the oldest and the newest Scrapy, and the oldest version of everything.

nox                             all of it, except the wheels for other systems
nox -s tests-3.12 -- -k urls    one Python, some tests
nox -s minimum release
nox -s wheels
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nox

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
TESTED = ("test", "docs", "browser")
PYTEST = ("pytest", "--numprocesses", "3", "--dist", "loadgroup", "-m", "slow or not slow")
nox.needs_version = ">=2025.2.9"
nox.options.error_on_missing_interpreters = False


def runs(program: str) -> bool:
    """Return whether a program starts: a stand-in that only tells how to get a Python does not."""
    found = shutil.which(program)
    return found is not None and subprocess.run([found, "--version"], capture_output=True).returncode == 0


@nox.session(python=PYTHONS)
@nox.parametrize("scrapy", ["oldest", "newest"])
def tests(session: nox.Session, scrapy: str) -> None:
    """Run all tests but those of Spark."""
    session.install(".", *groups(*TESTED), *(["scrapy~=2.14.0"] if scrapy == "oldest" else []))
    session.run(*PYTEST, *session.posargs)


@nox.session(python=PYTHONS[0] if runs(f"python{PYTHONS[0]}") else None)
def minimum(session: nox.Session) -> None:
    """Run the tests on the oldest version that the package allows of each one that it names."""
    if session.python is None:  # as a Python that is missing it would be skipped
        session.error(f"this needs Python {PYTHONS[0]}")
    oldest = Path(session.create_tmp(), "oldest.txt")
    oldest.write_text("\n".join(oldest_versions()) + "\n")
    session.install(".", *groups(*TESTED), "--constraint", str(oldest))
    session.run(*PYTEST, *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """Build what a release has for this system, up to the upload: dist/. Do the README's first job with each wheel."""
    session.install("build", "twine")
    made = Path("dist")
    shutil.rmtree(made, ignore_errors=True)
    for what, env in (("--sdist", {}), ("--wheel", {}), ("--wheel", {"CC": "false"})):  # the last without a compiler
        shutil.rmtree("build", ignore_errors=True)  # else a wheel gets what another one left there
        deprecated = ("-W", "error::SetuptoolsDeprecationWarning")
        session.run("python", *deprecated, "-m", "build", what, "--outdir", str(made), env=env)
    session.run("twine", "check", "--strict", *map(str, made.iterdir()))
    [sdist], wheels = made.glob("*.tar.gz"), sorted(made.glob("*.whl"))
    if len(wheels) != 2 or not wheels[-1].name.endswith("-py3-none-any.whl"):
        session.error(f"a compiled wheel and a pure one were to be made from {sdist}, not {wheels}")
    for wheel in wheels:
        use(session, wheel)


@nox.session(default=False)
def wheels(session: nox.Session) -> None:
    """Build the wheels for this system, and check that each has the compiled part. On Linux, this needs Docker."""
    session.install("cibuildwheel")
    session.run("cibuildwheel", "--output-dir", "dist", *session.posargs)


def use(session: nox.Session, wheel: Path) -> None:
    """Install a wheel where nothing else is, then its extras, and do with it what a user does first."""
    place = Path(session.create_tmp(), wheel.stem)
    session.run("python", "-m", "venv", "--clear", str(place))
    python = str(place / ("Scripts" if (place / "Scripts").exists() else "bin") / "python")
    is_pure = wheel.name.endswith("-any.whl")
    session.run(python, "-m", "pip", "install", "--quiet", str(wheel), external=True)
    session.run(python, "tests/first_job.py", external=True)
    compiled = f"from scrapy_neardup import native; assert (native.compiled is None) == {is_pure}"
    session.run(python, "-I", "-c", compiled, external=True)  # -I: not the package that lies here
    session.run(python, "-m", "pip", "install", "--quiet", f"{wheel}[all]", external=True)
    session.run(python, "-I", "-m", "scrapy", "neardup", "doctor", external=True)


def groups(*names: str) -> Iterator[str]:
    """Return the requirements of groups of pyproject.toml, without any pip that knows groups."""
    return iter(nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *names))


def oldest_versions() -> list[str]:
    """Return a requirement of exactly the oldest version for each package that has one in setup.cfg or in a group."""
    setup = configparser.ConfigParser()
    setup.read("setup.cfg")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    oldest = set()
    for line in filter(None, map(str.strip, [*"\n".join(lists).splitlines(), *groups(*TESTED)])):
        found = re.fullmatch(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?(?:>=(?P<version>[\w.]+))?(?:; .+)?|%\(\w+\)s", line)
        assert found, f"setup.cfg or pyproject.toml: {line!r} is not understood"
        if found["version"]:
            oldest.add(f"{found['name']}=={found['version']}")
    return sorted(oldest)
