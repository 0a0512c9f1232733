"""Dispatch `scrapy neardup VERB` to the module of the verb, print its result, and handle closed streams and signals.

To add a verb, add it to `GROUPS`, and write `run_VERB(opts, settings)` in its module, and `add_VERB(parser)` if it has
options of its own. The docstring of `run_VERB` is the help: what the verb does, an example, what else to know. Every
`scrapy` call imports this module, so the modules of the verbs are imported only where they are used.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from inspect import cleandoc
from typing import Any, NoReturn

from scrapy.commands import ScrapyCommand

PROGRAM = "scrapy neardup"

GROUPS = {
    "Work on feeds": {"dedupe": "dedupe"},
    "Look into a store": {
        "explain": "explain",
        **dict.fromkeys(("clusters", "report", "changes", "mirrors", "stats"), "look"),
    },
    "Decide": {"judge": "upkeep", "forget": "upkeep"},
    "Move a store, find mistakes": {"export": "upkeep", "import": "upkeep", "doctor": "doctor"},
    "Measure and tune": {f"lab {verb}": "lab" for verb in ("evaluate", "calibrate", "lexicon", "cluster")},
}
"""The verbs in the groups of the short help, each with its module."""
VERBS = {verb: module for group in GROUPS.values() for verb, module in group.items()}
WITHOUT_STORE = ("dedupe", "lab")  # the modules whose verbs do not work on the project's store
OTHER_WORDS = {"evaluate": ["lab", "evaluate"], "verify": ["stats", "--check"]}  # the meaning of further verbs
SIGNALS = ("SIGTERM", "SIGHUP")  # Windows lacks SIGHUP
INTERRUPTED, UNREAD = 130, 141  # the exit codes of processes that SIGINT and SIGPIPE ended


def overview() -> str:
    """Return the short help, which lists the verbs in groups."""
    lines = [f"usage: {PROGRAM} VERB [options]"]
    for group, verbs in GROUPS.items():
        lines += ["", group, *(f"  {verb:15} {_help(verb)[0]}" for verb in verbs)]
    return "\n".join([*lines, "", f"`{PROGRAM} VERB --help` shows the options of a verb, and an example."])


class Command(ScrapyCommand):
    """The command `scrapy neardup`, which runs a verb."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own attribute, of this type

    def syntax(self) -> str:
        return "VERB [options]"

    def short_desc(self) -> str:
        return "Near-duplicates: dedupe feeds, explain decisions, look into a store"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        prepare()
        super().add_options(parser)
        parser.prog = PROGRAM
        # Scrapy makes the parser, so its method is replaced.
        parser.error = partial(VerbParser.error, parser)  # type: ignore[method-assign, arg-type]
        parser.add_argument("-h", "--help", action="store_true", dest="overview")
        parser.add_argument("--version", action="version", version=f"scrapy-neardup {version('scrapy-neardup')}")
        parser.add_argument("call", nargs=argparse.REMAINDER)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            sys.exit(_refused("", f"{args[0]!r} is not an option; see {PROGRAM} --help"))
        call = [] if opts.overview else opts.call
        words = [*OTHER_WORDS.get(call[0], call[:1]), *call[1:]] if call else []
        opts.verb, rest = self._verb(words)
        if opts.verb:
            self.parser(opts.verb).parse_args(rest, opts)
        super().process_options(args, opts)

    def _verb(self, words: list[str]) -> tuple[str | None, list[str]]:
        """Return the verb, or None if there is none, and its arguments. Exit on an unknown verb."""
        length = 1 + (words[:1] == ["lab"])
        verb = " ".join(words[:length])
        if verb in VERBS:
            return verb, words[length:]
        if not words or words in (["lab"], ["lab", "-h"], ["lab", "--help"]):
            return None, []
        from difflib import get_close_matches

        meant = [f"did you mean {near!r}?" for near in get_close_matches(verb, VERBS, 1)]
        sys.exit(_refused("", f"there is no verb {verb!r}; {(meant or [f'see {PROGRAM} --help'])[0]}"))

    def parser(self, verb: str) -> VerbParser:
        """Return the parser of a verb: its own options, Scrapy's, --json and, if the verb works on a store, --store."""
        from .options import add_store

        add, _ = _functions(verb)
        what, more = _help(verb)
        parser = VerbParser(
            prog=f"{PROGRAM} {verb}",
            description=what,
            epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        super().add_options(parser)
        for action in parser._actions:
            action.default = argparse.SUPPRESS  # a default must not replace an option given before the verb
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        if VERBS[verb] not in WITHOUT_STORE:
            add_store(parser)
        add(parser)
        return parser

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from ..files import FileError
        from ..settings import ConfigError
        from ..store import StoreError
        from ..text.html import ExtractorError

        try:
            with ending_on_signals():
                if opts.verb is None:
                    print(overview())
                else:
                    self.exitcode = _functions(opts.verb)[1](opts, self.settings) or 0
                sys.stdout.flush()
        except (ConfigError, ExtractorError, FileError, StoreError) as error:
            self.exitcode = _refused(opts.verb, error)
        except BrokenPipeError:  # nobody reads the output any more
            self.exitcode = self.exitcode or UNREAD
        except OSError as error:  # not of a file: those are FileErrors and StoreErrors
            self.exitcode = _refused(opts.verb, f"stdout can't be written: {error.strerror or error}")
        except KeyboardInterrupt:
            self.exitcode = INTERRUPTED
        finally:
            discard()


class VerbParser(argparse.ArgumentParser):
    """Reports a wrong argument in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {shown(message)}\n")


def _functions(verb: str) -> tuple[Any, Any]:
    module, name = import_module(f".{VERBS[verb]}", __name__), verb.split()[-1]
    return getattr(module, f"add_{name}", lambda parser: None), getattr(module, f"run_{name}")


def _help(verb: str) -> tuple[str, str]:
    """Return what a verb does, and the rest of its help."""
    what, _, more = cleandoc(_functions(verb)[1].__doc__ or "").partition("\n\n")
    return what, more


def _refused(verb: str | None, why: object) -> int:
    with suppress(OSError):  # stderr can't be written either
        print(f"{PROGRAM} {verb or ''}".rstrip() + f": {shown(why)}", file=sys.stderr)
    return 2


def answer(opts: argparse.Namespace, result: object, lines: Iterable[str] = (), said: str = "") -> None:
    """Print `result` as JSON if `--json` is given. Otherwise, print `lines` on stdout and `said` on stderr."""
    if opts.json:
        from ..files import json_text

        print(json_text(result, indent=2))
        return
    for line in lines:
        print(shown(line))
    if said:
        print(shown(said), file=sys.stderr)


def fields(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each name and value. A mapping or list follows its name in indented lines."""
    for name, value in result.items():
        if isinstance(value, (Mapping, list)):
            yield name
            yield from (f"  {line}" for line in (fields(value) if isinstance(value, Mapping) else value))
        else:
            yield f"{name:24} {'-' if value is None else value}"


def shown(text: object) -> str:
    """Return a text as one line. Characters that are not printable become escapes such as `\\x1b`."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(text))


class Moment:
    """A time, given in seconds since the epoch. `format()` gives local time for people, `str()` ISO 8601."""

    def __init__(self, seconds: float) -> None:
        self._local = time.localtime(seconds)  # unlike datetime, this works after the year 9999

    def __format__(self, spec: str) -> str:
        return format(time.strftime("%Y-%m-%d %H:%M:%S", self._local), spec)

    def __str__(self) -> str:
        offset = time.strftime("%z", self._local)
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', self._local)}{offset[:-2]}:{offset[-2:]}"


def prepare() -> None:
    """Make stdout and stderr accept all characters: those that they can't encode become escapes such as `\\u2192`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed before the start
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as there is a process
        if reconfigure := getattr(getattr(sys, name), "reconfigure", None):
            reconfigure(errors="backslashreplace")


def discard() -> None:
    """Discard output that can't be written. Otherwise, the interpreter tries to write it at exit, and fails."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def ending_on_signals() -> Iterator[None]:
    """Raise SystemExit in this block when one of `SIGNALS` arrives, so that no file is left half written.

    A signal that is ignored (as under `nohup`), or has a handler already, keeps its effect.
    """
    numbers = [getattr(signal, name) for name in SIGNALS if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _end(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)
