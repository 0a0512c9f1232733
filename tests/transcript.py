"""Do what a page tells its reader to do: write the files that it shows, and run its commands, in order.

A code block with a title is a file in the reader's folder. `NAME, at its end` adds to that file. In a `console` block,
lines that begin with `$ ` are commands, and the lines after them are their output. In a block with the title "another
terminal", the command keeps running after it has printed a line. Other blocks are only read.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import scrapy

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
AT_ITS_END = ", at its end"
ELSEWHERE = "another terminal"
VARYING = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b\d{8}-\d{6}-\d+-[0-9a-f]{6}\b")


class Reader:
    """Follows a page in a folder. Commands get free ports instead of the page's; in their output it is the reverse."""

    def __init__(self, folder: Path, ports: tuple[int, ...]) -> None:
        self.home = self.place = folder
        taken = [socket.create_server(("127.0.0.1", 0)) for _ in ports]
        self._ports = {str(port): str(free.getsockname()[1]) for port, free in zip(ports, taken, strict=True)}
        for free in taken:
            free.close()
        self._running: list[subprocess.Popen[str]] = []
        self._env = _environment(folder / ".venv" / "bin")

    def close(self) -> None:
        for process in self._running:
            process.kill()
            process.communicate()

    def follow(self, page: str) -> str:
        """Return the page with the output that its commands print now. Times and ids of runs stay as they are."""
        return BLOCK.sub(self._do, page)

    def _do(self, block: re.Match[str]) -> str:
        language, title, body = block.groups()
        if language == "console":
            made = self._console(body, title == ELSEWHERE)
            kept = body if masked(made) == masked(body) else made
            return block[0].replace(body, kept)
        if title:
            path = self.home / title.removesuffix(AT_ITS_END)
            with path.open("a" if title.endswith(AT_ITS_END) else "x", encoding="utf-8") as file:
                file.write(self._here(body))
        return block[0]

    def _console(self, body: str, elsewhere: bool) -> str:
        made = ""
        for command in re.findall(r"^\$ (.*)$", body, re.MULTILINE):
            printed = self._start(command) if elsewhere else self._run(command)
            made += f"$ {command}\n{self._there(printed)}"
        return made

    def _run(self, command: str) -> str:
        if command.startswith("cd "):
            self.place /= command.removeprefix("cd ")
            return ""
        with self._process(command) as process:
            printed, _ = process.communicate(timeout=120)
        assert process.returncode == 0, f"{command}\n{printed}"
        return printed

    def _start(self, command: str) -> str:
        process = self._process(f"exec {command}")
        self._running.append(process)
        assert process.stdout
        return process.stdout.readline()

    def _process(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", self._here(command)],
            cwd=self.place,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )

    def _here(self, text: str) -> str:
        for theirs, ours in self._ports.items():
            text = text.replace(theirs, ours)
        return text

    def _there(self, text: str) -> str:
        text = text.replace(str(Path(scrapy.__file__).parent), "/home/me/.venv/lib/python3/site-packages/scrapy")
        text = text.replace(str(self.home), "/home/me")
        for theirs, ours in self._ports.items():
            text = text.replace(ours, theirs)
        return text if text.endswith("\n") or not text else f"{text}\n"


def masked(text: str) -> str:
    """Return a text without times and ids of runs, which differ each time."""
    return VARYING.sub("…", text)


def _environment(programs: Path) -> dict[str, str]:
    """Return environment variables with which `python` and `scrapy` are those that run the test."""
    programs.mkdir(parents=True)
    for name, module in (("python", ""), ("scrapy", "-m scrapy")):
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        program.chmod(0o755)
    dropped = ("SCRAPY_", "PYTHONPATH", "NEARDUP_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(dropped) and not k.lower().endswith("_proxy")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {**kept, "PATH": path, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
