"""Dispatch `scrapy neardup VERB` to the module of the verb.

To add a verb, add it to `GROUPS`, and write `run_VERB(opts, settings)` in its module, and `add_VERB(parser)` if it has
options of its own. The docstring of `run_VERB` is the help: what the verb does, an example, what else to know. Every
`scrapy` call imports this module, so it imports the module of a verb only when the verb is called.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.metadata import version
from inspect import cleandoc
from typing import Any, NoReturn

from scrapy.commands import ScrapyCommand

from .terminal import Ended, discard, ending_on_signals, prepare, shown

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
"""The module of each verb."""
VERBS = {verb: module for group in GROUPS.values() for verb, module in group.items()}
OTHER_WORDS = {"evaluate": ["lab", "evaluate"], "verify": ["stats", "--check"]}  # words that scripts may use
INTERRUPTED, UNREAD = 130, 141  # the exit codes of processes that SIGINT and SIGPIPE ended


def overview() -> str:
    """Return the short help: the verbs in groups."""
    lines = [f"usage: {PROGRAM} VERB [options]"]
    for group, verbs in GROUPS.items():
        lines += ["", group, *(f"  {verb:15} {_help(verb)[0]}" for verb in verbs)]
    return "\n".join([*lines, "", f"`{PROGRAM} VERB --help` shows the options of a verb, and an example."])


class Command(ScrapyCommand):
    """The command `scrapy neardup`: dispatches to the verbs."""

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
        parser.error = partial(VerbParser.error, parser)  # type: ignore[method-assign, arg-type]
        parser.add_argument("-h", "--help", action="store_true", dest="overview")
        parser.add_argument("--version", action="version", version=f"scrapy-neardup {version('scrapy-neardup')}")
        parser.add_argument("call", nargs=argparse.REMAINDER)

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            sys.exit(_refused("", f"{args[0]!r} is not an option; see {PROGRAM} --help"))
        if opts.overview:
            opts.call = []
        words = [*OTHER_WORDS.get(opts.call[0], opts.call[:1]), *opts.call[1:]] if opts.call else []
        opts.verb, rest = self._verb(words)
        if opts.verb:
            try:
                self.parser(opts.verb).parse_args(rest, opts)
            except KeyboardInterrupt:  # the import of a verb takes a while
                sys.exit(INTERRUPTED)
        super().process_options(args, opts)

    def _verb(self, words: list[str]) -> tuple[str | None, list[str]]:
        """Return the verb and its arguments. Without a verb, return None."""
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
        """Return the parser of a verb. It takes Scrapy's global options too, and those that other verbs have."""
        from .options import add_store

        add, _ = _functions(verb)
        what, more = _help(verb)
        parser = VerbParser(
            prog=f"{PROGRAM} {verb}",
            description=what,
            epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            conflict_handler="resolve",
            allow_abbrev=False,
        )
        super().add_options(parser)
        for action in parser._actions:
            action.default = argparse.SUPPRESS  # the default must not replace an option that is given before the verb
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        if not verb.startswith("lab "):
            add_store(parser)
        add(parser)
        return parser

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        try:
            with ending_on_signals():
                self.exitcode = self._run(opts)
                sys.stdout.flush()
        except BrokenPipeError:  # nobody reads the output any more
            self.exitcode = self.exitcode or UNREAD
        except OSError as error:  # no file's, which are FeedErrors and StoreErrors
            self.exitcode = _refused(opts.verb, f"stdout can't be written: {error.strerror or error}")
        except Ended as ended:
            self.exitcode = ended.code
        except KeyboardInterrupt:
            self.exitcode = INTERRUPTED
        finally:
            discard()

    def _run(self, opts: argparse.Namespace) -> int:
        from ..feeds import FeedError
        from ..settings import ConfigError
        from ..store import StoreError
        from ..text.html import ExtractorError

        if opts.verb is None:
            print(overview())
            return 0
        _, run = _functions(opts.verb)
        try:
            return run(opts, self.settings) or 0
        except (ConfigError, ExtractorError, FeedError, StoreError) as error:
            return _refused(opts.verb, error)


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
