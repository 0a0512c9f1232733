"""Dispatch `scrapy neardup VERB` to the module of that name.

To add a verb, add it to `VERBS`, and write a module with `EXAMPLES`, `add_arguments(parser)` and `run(opts, settings)`.
Every `scrapy` call imports this module, so it imports a verb only when the verb is called.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Any, NoReturn

from scrapy.commands import ScrapyCommand

from .interrupts import Ended, ending_on_signals
from .streams import StdoutError, prepare, shown, watched_streams

PROGRAM = "scrapy neardup"

VERBS = {
    "dedupe": "remove duplicates from feeds",
    "evaluate": "measure precision and recall on labelled documents",
    "calibrate": "find thresholds for a target precision, from labelled documents",
    "lexicon": "build an I-Match lexicon from feeds",
    "cluster": "cluster the documents of feeds, as a batch",
    "review": "judge drops one by one, least certain first",
    "explain": "explain why a page is a duplicate or not",
    "stats": "count what a store holds",
    "mirrors": "list the hosts that mirror each other",
    "resolve": "list other URLs with the content of a URL",
    "clusters": "list the originals of a store with their copies",
    "changes": "list the pages that are new, changed, back, moved or gone since the previous crawl",
    "runs": "list the runs of a store and how they ended",
    "forget": "remove documents and URLs from a store",
    "report": "write a report on a store as one HTML page",
    "export": "write a store as JSON lines",
    "import": "read an export into a store",
    "compact": "give unused space of a store back to the system",
    "doctor": "check versions, settings and the store",
    "verify": "check every row of a store for damage",
}

INTERRUPTED = 130  # the exit code of a process that SIGINT ended
_SET_AFTER = "set_after_verb"


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
        verbs = parser.add_subparsers(prog=PROGRAM, dest="verb", metavar="VERB", parser_class=VerbParser)
        for name, text in VERBS.items():
            verb = verbs.add_parser(
                name,
                help=text,
                description=text,
                conflict_handler="resolve",
                formatter_class=HelpFormatter,
                allow_abbrev=False,
            )
            super().add_options(verb)
            _add_to_those_before(verb)
            verb.verb = name

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        opts.set = [*opts.set, *getattr(opts, _SET_AFTER, ())]
        super().process_options(args, opts)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with watched_streams():
            try:
                with ending_on_signals():
                    self.exitcode = self._run(args, opts)
                    sys.stdout.flush()
            except StdoutError as error:
                self.exitcode = _refused(opts.verb, f"stdout can't be written: {error}")
            except Ended as ended:
                self.exitcode = ended.code
            except KeyboardInterrupt:
                self.exitcode = INTERRUPTED

    def _run(self, args: list[str], opts: argparse.Namespace) -> int:
        from ..feeds import FeedError
        from ..progress import watching
        from ..settings import ConfigError
        from ..store import StoreError
        from ..text.extractors import ExtractorError
        from .bars import counted

        if opts.verb is None:
            print(f"usage: {PROGRAM} VERB [options]; VERB is one of: {', '.join(VERBS)}", file=sys.stderr)
            return 2
        try:
            if args:
                is_option = args[0].startswith("-")
                raise FeedError(
                    f"{args[0]!r} is {'not an option of' if is_option else 'one argument too many for'} {opts.verb}"
                )
            with watching(counted):
                return _module(opts.verb).run(opts, self.settings) or 0
        except (ConfigError, ExtractorError, FeedError, StoreError) as error:
            return _refused(opts.verb, error)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Prints the examples as they are written."""


class VerbParser(argparse.ArgumentParser):
    """Reports a wrong argument in one line. Loads the options of its verb at the first use."""

    verb: str | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        try:
            self.complete()
        except KeyboardInterrupt:  # the import of a verb takes a while
            self.exit(INTERRUPTED)
        return super().parse_known_args(args, namespace)

    def complete(self) -> None:
        """Add the verb's own options, once."""
        if self.verb:
            module, self.verb = _module(self.verb), None
            module.add_arguments(self)
            self.epilog = module.EXAMPLES

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {shown(message)}\n")


def _add_to_those_before(verb: argparse.ArgumentParser) -> None:
    """Keep global options that are given before the verb. The defaults of the verb would overwrite them."""
    for action in verb._actions:
        action.default = argparse.SUPPRESS
        if action.dest == "set":
            action.dest = _SET_AFTER


def _module(verb: str) -> Any:
    return import_module(f".{verb}{'_' * iskeyword(verb)}", __name__)


def _refused(verb: str, why: object) -> int:
    print(f"{PROGRAM} {verb}: {shown(why)}", file=sys.stderr)
    return 2
