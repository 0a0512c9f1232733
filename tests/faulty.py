"""Fixtures that give the Python that a test starts a full disk, a read-only disk, or a user without rights of root."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

_NAMESPACE = "unshare --user --map-root-user --mount sh -c"
_SMALL = 'mount -t tmpfs -o size={size} none {disk} && {python} "$@"; code=$?; cp -r {disk}/. {kept}; exit $code'
_READ_ONLY = 'mount --bind {disk} {disk} && mount -o remount,ro,bind {disk} && exec {python} "$@"'
_COMMON = "setpriv --inh-caps=-all --bounding-set=-all"  # root then has the permissions of any owner


class Disk(NamedTuple):
    """A small file system that only the processes of `small_disk` see."""

    path: Path
    kept: Path
    """A folder with a copy of its content, made when the process has ended."""


def start_python_by(script: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace `sys.executable` by a shell script. Skip the test if this machine does not allow what the script does."""
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    tried = subprocess.run([python, "-c", ""], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"not allowed here: {tried.stderr.strip()}")
    monkeypatch.setattr(sys, "executable", str(python))


def _in_namespace(script: str, **names: object) -> str:
    inner = script.format(python=shlex.quote(sys.executable), **names)
    return f'exec {_NAMESPACE} {shlex.quote(inner)} sh "$@"'


@pytest.fixture
def common_user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Python obey the permissions of files, even if root runs the tests."""
    if os.geteuid() == 0:
        script = f'exec {_COMMON} {shlex.quote(sys.executable)} "$@"'
        start_python_by(script, tmp_path_factory.mktemp("user"), monkeypatch)


@pytest.fixture
def read_only_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that is read-only for the Python that the test starts, though the test itself can write to it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    start_python_by(_in_namespace(_READ_ONLY, disk=shlex.quote(str(disk))), tmp_path, monkeypatch)
    return disk


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """Return a disk of 1 MB, on which the Python that the test starts runs."""
    disk = Disk(tmp_path / "disk", tmp_path / "kept")
    for folder in disk:
        folder.mkdir()
    names = {name: shlex.quote(str(path)) for name, path in disk._asdict().items()}
    script = _in_namespace(_SMALL, disk=names["path"], kept=names["kept"], size="1m")
    start_python_by(script, tmp_path, monkeypatch)
    return disk


def fill_up(disk: Path) -> Path:
    """Fill a disk with one file, and return its path."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return filler
