"""Runs many calls of `scrapy neardup`, each in a process of its own that is forked once all has been imported.

`python cli_forks.py`: a call a line on stdin, as JSON; what came of it a line on stdout, until stdin ends. Linux and
macOS only.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path

TIMEOUT = 100.0  # seconds for a call


class Forks:
    """The process that forks, there from the first call on until this process ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __call__(self, folder: Path, arguments: Sequence[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Call a verb; raise TimeoutError where that takes too long."""
        self._process = self._process or started()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin
        assert stdout
        print(json.dumps([str(folder), arguments, env]), file=stdin, flush=True)
        if not select.select([stdout], [], [], TIMEOUT)[0]:
            self.close()
            raise TimeoutError(f"{' '.join(arguments)}: not done after {TIMEOUT} s")
        return subprocess.CompletedProcess(arguments, *json.loads(stdout.readline()))

    def close(self) -> None:
        """End the process, and what it has forked."""
        if self._process:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
        self._process = None


def started() -> subprocess.Popen[str]:
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True}
    return subprocess.Popen([sys.executable, __file__], cwd=Path(__file__).parent, **pipes)


def main() -> None:
    from scrapy import cmdline

    from scrapy_neardup.commands import VERBS, _module

    for verb in VERBS:
        _module(verb)
    sys.path.insert(0, "")  # as `python -m scrapy` has it
    for line in sys.stdin:
        folder, arguments, env = json.loads(line)
        print(json.dumps(called(cmdline, folder, ["scrapy", "neardup", *arguments], env)), flush=True)


def called(cmdline: object, folder: str, arguments: Sequence[str], env: dict[str, str]) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr of a call."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.chdir(folder)
            os.environ.clear()
            os.environ.update(env)
            for to, file in ((1, out), (2, err)):
                os.dup2(file.fileno(), to)
            os._exit(outcome(cmdline, arguments))
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode())
        return os.waitstatus_to_exitcode(status), texts[0], texts[1]


def outcome(cmdline: object, arguments: Sequence[str]) -> int:
    code: object = 0
    try:
        cmdline.execute(list(arguments))  # type: ignore[attr-defined]
    except SystemExit as error:
        code = error.code
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # what an interpreter does before it ends
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    main()
