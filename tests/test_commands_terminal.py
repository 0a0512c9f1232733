"""The commands on a terminal: progress bars, Ctrl-C and signals."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli import FORKS, environment, succeeded
from feed_files import write_feed
from forks import Fork
from helpers import text, write_rows
from tiers import slow

from scrapy_neardup import Deduplicator, Document
from scrapy_neardup.commands import ending_on_signals

BAR = re.compile(r"\d+%\|[^\r]*?\| +[\d.]+k?/[\d.]+k? \[\d\d:\d\d<[\d:?]+, +[\d.?]+[kM]?B/s\]")
COUNTED = re.compile(r"\| \d+/\d+ \[\d\d:\d\d<")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with feeds, a labelled set, and a store of a document with a long URL and a mirror."""
    made = tmp_path_factory.mktemp("terminal")
    rows = [{"url": f"http://a.example/{n}", "text": text(n, 40)} for n in range(50)]
    write_rows(made / "in.jsonl", rows)
    for ending in ("json", "csv.gz"):
        write_feed(made / f"in.{ending}", rows)
    (made / "long.txt").write_text(text(1, 40))
    (made / "longer.txt").write_text(text(1, 40) + "\n" + text(2, 10))
    with Deduplicator.open(str(made / "held.sqlite")) as dedup:
        for host in "ab":
            dedup.claim(Document(f"http://{host}.example/{'long' * 50}", text(1))).commit()
    succeeded(made, "export", "--store", "held.sqlite", "-o", "held.jsonl")
    return made


@contextmanager
def started(folder: Path, *arguments: str, columns: int = 100) -> Iterator[tuple[Fork, int]]:
    """Start a verb whose stdout and stderr are a terminal; give it, and what the terminal shows as a file to read."""
    shown, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    env = {name: value for name, value in environment().items() if name not in ("COLUMNS", "LINES")}
    name = os.ttyname(terminal)
    fork = FORKS.start(folder, ["neardup", *arguments], env, stdout=name, stderr=name)
    os.close(terminal)
    try:
        yield fork, shown
    finally:
        os.close(shown)
        fork.kill()
        fork.wait(30)


def read(shown: int) -> Iterator[str]:
    """Yield what a terminal shows, as it comes."""
    while True:
        try:
            data = os.read(shown, 1 << 16)
        except OSError:  # nobody has it open any more
            return
        if not data:
            return
        yield data.decode(errors="replace")


def on_terminal(folder: Path, *arguments: str, columns: int = 100) -> str:
    with started(folder, *arguments, columns=columns) as (process, shown):
        said = "".join(read(shown))
        assert process.wait(timeout=60) == 0, said
    return said


@pytest.mark.parametrize(
    "arguments",
    [
        "dedupe in.jsonl -o out.jsonl --workers 0",
        *slow("dedupe in.json in.json -o out.json --workers 2"),
        "dedupe in.csv.gz -o out.csv.gz",
        "import held.jsonl --store new.sqlite",
        *slow("lab cluster in.jsonl -o clusters.jsonl", "lab lexicon in.jsonl -o x.lexicon --band 0 1"),
    ],
)
def test_bar_of_feeds_tells_rate_and_time_left(folder: Path, arguments: str) -> None:
    said = on_terminal(folder, *arguments.split())
    bars = BAR.findall(said)
    assert bars[0].startswith("0%")
    assert bars[-1].startswith("100%")
    assert not BAR.search(succeeded(folder, *arguments.split()).stderr)


def test_an_export_tells_how_far_it_is(folder: Path) -> None:
    arguments = ["export", "--store", "held.sqlite", "-o", "x.jsonl"]
    assert COUNTED.search(on_terminal(folder, *arguments))
    made = succeeded(folder, *arguments)
    assert not COUNTED.search(made.stdout + made.stderr)


@pytest.fixture(scope="module")
def long_feed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("long") / "big.jsonl"
    write_rows(made, [{"id": n, "text": text(n, 300)} for n in range(8000)])
    return made


@pytest.fixture
def big(tmp_path: Path, long_feed: Path) -> Path:
    """Return a directory with a feed that takes a while; a command that is ended leaves it so."""
    (tmp_path / "big.jsonl").symlink_to(long_feed)
    return tmp_path


SLOW_TO_END = [
    (signal.SIGINT, "lab cluster big.jsonl -o out.jsonl"),
    (signal.SIGINT, "lab lexicon big.jsonl -o out.lexicon"),
    (signal.SIGINT, "dedupe big.jsonl -o out.jsonl --workers 2"),
    (signal.SIGTERM, "dedupe big.jsonl -o out.jsonl --workers 2"),
    (signal.SIGHUP, "dedupe big.jsonl -o out.jsonl --workers 2"),
]


@pytest.mark.parametrize(
    ("number", "arguments"),
    [
        (signal.SIGINT, "dedupe big.jsonl -o out.jsonl --duplicates d.jsonl --workers 0"),
        (signal.SIGTERM, "lab cluster big.jsonl -o out.jsonl"),
        *slow(*SLOW_TO_END),
    ],
)
def test_signals_end_a_command_without_half_written_files(big: Path, number: int, arguments: str) -> None:
    with started(big, *arguments.split()) as (process, shown):
        said, parts = "", read(shown)
        while not re.search(r"\b[1-9]\d*%", said):  # until it is under way
            part = next(parts, None)
            assert part is not None, f"it ended before: {said}"
            said += part
        if number == signal.SIGINT:  # as a terminal sends it
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        said += "".join(parts)  # until all of its processes have ended
        assert process.wait(timeout=60) == 128 + number, said
    assert "Traceback" not in said
    assert os.listdir(big) == ["big.jsonl"]


@pytest.mark.parametrize("before", [signal.SIG_IGN, print])
def test_a_signal_that_is_ignored_or_seen_to_is_left_so(before: signal.Handlers) -> None:
    usual = signal.signal(signal.SIGHUP, before)
    try:
        with ending_on_signals():
            assert signal.getsignal(signal.SIGHUP) is before
            with pytest.raises(SystemExit) as ended:
                os.kill(os.getpid(), signal.SIGTERM)
            assert ended.value.code == 143
        assert signal.getsignal(signal.SIGHUP) is before
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, usual)


CAN_NOT = "scrapy neardup stats: stdout can't be written: No space left on device\n"


def test_where_stdout_can_not_be_written_it_is_told(folder: Path) -> None:
    call = ["neardup", "stats", "--store", "held.sqlite"]
    fork = FORKS.start(folder, call, environment(), stdout="/dev/full")
    assert (fork.wait(60), fork.communicate()) == (2, ("", CAN_NOT))


@pytest.mark.slow
@pytest.mark.parametrize(("options", "unbuffered"), [("", ""), (" --json", ""), ("", "1")])
@pytest.mark.parametrize(("end", "code", "said"), [(" >/dev/full", 2, CAN_NOT), (" >&-", 0, ""), (" | true", 0, "")])
def test_a_shell_is_told_where_stdout_can_not_be_written(
    folder: Path, end: str, code: int, said: str, options: str, unbuffered: str
) -> None:
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    call = f"{sys.executable} -m scrapy neardup stats --store held.sqlite{options}{end}"
    made = subprocess.run(["sh", "-c", call], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert (made.returncode, made.stderr) == (code, said)


@pytest.mark.slow
def test_only_the_verb_that_is_called_is_imported(folder: Path) -> None:
    code = "import sys; from scrapy.cmdline import execute\ntry: execute(['scrapy', 'neardup', 'stats', '--help'])\n"
    code += "finally: print(*(name for name in sys.modules if name.startswith('scrapy_neardup.commands.')))"
    made = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60)
    loaded = {name.rpartition(".")[2] for name in made.stdout.splitlines()[-1].split()}
    assert "look" in loaded
    assert not loaded & {"dedupe", "doctor", "explain", "lab"}
