"""`scrapy neardup doctor`: check versions, settings and the store of a project."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.project import inside_project

from .. import native
from ..detectors import Detector
from ..detectors.registry import build_detectors
from ..feeds.json_text import json_text
from ..settings import Config, ConfigError
from ..stats import plural
from ..store import Store, StoreError, open_store
from ..store.local.database import check_file
from ..store.redis.address import is_server, named
from .diagnosis import Advice, on_settings
from .options import add_json, add_store, print_result, with_store
from .runs import died
from .versions import Need, extras, needs, versions

EXAMPLES = """examples:
  scrapy neardup doctor
  scrapy neardup doctor --json
  scrapy neardup doctor --store redis://user:password@host:6379/0

Checks versions, extras, the settings of the project and its store, and changes nothing. The exit code is 2 if
there is an error, else 0, even with warnings and notes. `scrapy neardup verify` checks every row of a store.
"""
FILE = "see docs/store.md; nothing is lost while the store is left as it is"
SERVER = "check the address, whether the server runs, and whether it accepts this machine; see docs/redis.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_store(parser)
    add_json(parser)


def run(opts: argparse.Namespace, settings: BaseSettings) -> None:
    compiled = "no; slower, with the same results" if native.compiled is None else "yes"
    installed = {
        "versions": versions(),
        "compiled": compiled,
        "extras": {extra: _state(needs(extra)) for extra in extras()},
    }
    found = [*_on_packages(), *_on_project(opts, settings)]
    if opts.json:
        print(json_text({**installed, "advice": [advice._asdict() for advice in found]}, indent=2))
    else:
        print_result(installed, as_json=False)
        print(*(map(_told, found) if found else ["no problems found"]), sep="\n")
    if errors := sum(advice.level == "error" for advice in found):
        raise ConfigError(f"{plural(errors, 'error')} found")


def _told(advice: Advice) -> str:
    return f"{advice.level}: {advice.what}\n  to do: {advice.to_do}"


def _state(wanted: Iterable[Need]) -> str:
    return ", ".join(f"{need.name} {need.found or 'not installed'}" for need in wanted)


def _on_packages() -> Iterator[Advice]:
    for need in needs():
        if not need.fits:
            what = f"{need.name} {need.found or 'is not installed'}; needed is {need.name}{need.wanted}"
            yield Advice("error", what, f"pip install '{need.name}{need.wanted}'")
    for extra in extras():
        old = [need for need in needs(extra) if need.found and not need.fits]
        for need in old:
            what = f"{need.name} {need.found}; the extra {extra!r} needs {need.name}{need.wanted}"
            yield Advice("warning", what, f"pip install 'scrapy-neardup[{extra}]'")


def _on_project(opts: argparse.Namespace, settings: BaseSettings) -> Iterator[Advice]:
    try:
        config = Config.from_settings(settings)
        detectors = build_detectors(config)
    except ConfigError as error:
        yield Advice("error", str(error), "correct the setting: a crawl stops at its start")
        return
    if inside_project():
        yield from on_settings(settings, config)
    elif not opts.store:
        what = "there is no Scrapy project here, so no settings and no store were checked"
        yield Advice("note", what, "run doctor in the folder of scrapy.cfg, or name a store with --store")
    if opts.store or inside_project():
        yield from _on_store(opts, config, settings.get("JOBDIR"), detectors)


def _of_store(config: Config, job: str | None) -> BaseSettings:
    """Return the settings that name the store. The default namespace is used in place of one with `{spider}`."""
    namespace = "" if "{spider}" in config.namespace else config.namespace
    return BaseSettings({"NEARDUP_STORE": config.store, "NEARDUP_NAMESPACE": namespace, "JOBDIR": job})


def _on_store(
    opts: argparse.Namespace, config: Config, job: str | None, detectors: Sequence[Detector]
) -> Iterator[Advice]:
    try:
        found = with_store(opts, _of_store(config, job))
    except ConfigError as error:
        yield Advice("error", str(error), "set NEARDUP_STORE or JOBDIR: a crawl stops at its start")
        return
    except StoreError as error:
        yield Advice("error", str(error), f"name another store with {'--store' if opts.store else 'NEARDUP_STORE'}")
        return
    address = str(found.store)
    if not is_server(address) and not os.path.exists(address):
        yield _on_missing(address, by_hand=bool(opts.store), in_data_folder=not config.store)
        return
    try:
        with closing(open_store(address, detectors, namespace=found.namespace, run=None)) as store:
            yield from _on_contents(named(address), store)
    except StoreError as error:
        yield Advice("error", str(error), SERVER if is_server(address) else FILE)


def _on_missing(path: str, *, by_hand: bool, in_data_folder: bool) -> Advice:
    """Return advice on a store that does not exist yet: a note if the first crawl can create it, else an error."""
    if by_hand:
        return Advice("error", f"store {path!r} does not exist", "name an existing store with --store")
    try:
        if not in_data_folder or os.path.isdir(os.path.dirname(path)):
            check_file(Path(path), writes=True)
    except StoreError as error:
        return Advice(
            "error", str(error), "correct NEARDUP_STORE, or make its folder writable: a crawl stops at its start"
        )
    return Advice("note", f"store {path!r} does not exist yet", "nothing: the first crawl creates it")


def _on_contents(name: str, store: Store) -> Iterator[Advice]:
    dead = [run.id for run in died(store) if not run.forgotten]
    if dead:
        what = f"store {name!r}: {plural(len(dead), 'run')} died, the last one is {dead[-1]}"
        yield Advice(
            "note", what, "nothing: the next crawl forgets or keeps their documents, as NEARDUP_UNCLEAN_RUN says"
        )
    policy = store.describe().get("eviction", "noeviction")
    if policy != "noeviction":
        what = f"store {name!r}: when the server is full, it deletes documents, since its maxmemory-policy is {policy}"
        yield Advice("error", what, "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file")
