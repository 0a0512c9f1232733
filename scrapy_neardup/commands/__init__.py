"""`scrapy neardup VERB`: a module a verb.

This one is imported by every `scrapy` call, so it imports none of them until `scrapy neardup` is called.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from importlib import import_module
from keyword import iskeyword
from typing import Any, NoReturn

from scrapy.commands import ScrapyCommand

VERBS = {
    "dedupe": "remove duplicates from feeds of documents",
    "evaluate": "measure detectors on labelled documents",
    "calibrate": "find thresholds for a wanted precision, from labelled documents",
    "lexicon": "make an I-Match lexicon from feeds of documents",
    "cluster": "find clusters of repeated documents in feeds, as a batch",
    "explain": "say why two documents are duplicates or not",
    "stats": "say what a store holds",
    "mirrors": "list the hosts that mirror each other",
    "resolve": "say where else the content of URLs lies",
    "clusters": "list the documents of a store that have mirrors",
    "runs": "list who wrote into a store, and whether it ended well",
    "forget": "let go of documents and URLs of a store",
    "report": "draw a report of a store as one HTML page",
    "export": "write all that a store holds as JSON lines",
    "import": "take what export wrote into a store",
    "compact": "give back the space that a store does not need",
    "doctor": "look for what is wrong with versions, settings and the store",
    "verify": "read all of a store and say whether it is whole",
}


class Command(ScrapyCommand):
    """Dispatches to the verbs."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy's own attribute, of this type

    def syntax(self) -> str:
        return "VERB [options]"

    def short_desc(self) -> str:
        return "Near-duplicates: dedupe feeds, explain decisions, look into a store"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.error = partial(VerbParser.error, parser)  # type: ignore[method-assign, arg-type]
        verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=VerbParser)
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
            _module(name).add_arguments(verb)
            verb.epilog = _module(name).EXAMPLES

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        from ..config import ConfigError
        from ..feeds import FeedError
        from ..stores import StoreError
        from ..text.extractors import ExtractorError
        from ..watching import watching
        from .progress import counted

        if opts.verb is None:
            print(f"usage: scrapy neardup VERB [options]; VERB is one of: {', '.join(VERBS)}", file=sys.stderr)
            self.exitcode = 2
            return
        try:
            if args:
                raise FeedError(f"{args[0]!r} is no option of {opts.verb}")
            with watching(counted):
                _module(opts.verb).run(opts, self.settings)
        except (ConfigError, ExtractorError, FeedError, StoreError) as error:
            print(f"scrapy neardup {opts.verb}: {error}", file=sys.stderr)
            self.exitcode = 2
        except BrokenPipeError:  # whoever reads has seen enough; the interpreter is not to flush into it either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            self.exitcode = 130


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Leaves the examples as they are written."""


class VerbParser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"scrapy neardup: {message}\n")


def _module(verb: str) -> Any:
    return import_module(f".{verb}{'_' * iskeyword(verb)}", __name__)
