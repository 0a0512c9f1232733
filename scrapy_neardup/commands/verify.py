"""`scrapy neardup verify`: check every row of a store, and list damage with its cost."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from scrapy.settings import BaseSettings

from ..stats import plural
from ..store import StoreError
from ..store.redis.address import named
from ..store.verification import Finding, Survey, verify
from .options import add_json, add_store, existing_store, print_result
from .streams import shown

EXAMPLES = """examples:
  scrapy neardup verify
  scrapy neardup verify --store neardup.sqlite --json
  scrapy neardup verify --store redis://user:password@host:6379/0

Reads all namespaces, whatever the settings say. Crawls may run meanwhile. Each finding is listed with its cost and a
remedy. The exit code is 2 if a row is damaged. A damaged or missing file of the index is harmless: the next crawl
rebuilds it. On a server, the index is compared with the rows only if no crawl is running.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    address = existing_store(opts, settings)
    survey, store = verify(address), named(address)
    _print(store, survey, as_json=opts.json)
    if damaged := sum(not finding.harmless for finding in survey.findings):
        raise StoreError(
            f"store {store!r} is damaged, see the list ({plural(damaged, 'finding')}); it was left as it is"
        )


def _print(store: str, survey: Survey, *, as_json: bool) -> None:
    findings = [asdict(finding) for finding in survey.findings]
    for finding in () if as_json else survey.findings:
        print(*map(shown, _lines(finding)), sep="\n")
    result = {"store": store, **survey.read, "whole": survey.whole}
    print_result({**result, "findings": findings} if as_json else result, as_json=as_json)


def _lines(finding: Finding) -> list[str]:
    return [finding.what, f"  costs: {finding.costs}", f"  to do: {finding.to_do}"]
