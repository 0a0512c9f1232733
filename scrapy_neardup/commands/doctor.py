"""`scrapy neardup doctor`: check versions, settings and the store of a project."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packaging.requirements import Requirement
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from scrapy.utils.project import inside_project

from .. import native
from ..crawl import default_store
from ..detectors import build_detectors
from ..settings import Config, ConfigError
from ..stats import plural
from ..store import Store, StoreError, check_kind, is_server, open_store, shown_address
from ..store.database import check_file
from . import answer, fields
from .look import died

US = "scrapy-neardup"
ADDON, PIPELINE, MIDDLEWARE, ORIGINS = (
    f"scrapy_neardup.{name}" for name in ("Addon", "NearDupPipeline", "MirrorMiddleware", "ItemOrigins")
)
PARTS = {
    ("ITEM_PIPELINES", PIPELINE): "no item is compared or remembered",
    ("DOWNLOADER_MIDDLEWARES", MIDDLEWARE): "no request is skipped, and no dead link is redirected",
    ("SPIDER_MIDDLEWARES", ORIGINS): "items are identified by their own URLs only, and no request is skipped",
}
ENABLE = 'set ADDONS = {"scrapy_neardup.Addon": 500}, which enables all components; a later ADDONS line replaces it'
FILE = "see docs/store.md; nothing is lost while the store is left as it is"
SERVER = "check the address, whether the server runs, and whether it accepts this machine; see docs/redis.md"
Severity = Literal["error", "warning", "note"]


class Remark(NamedTuple):
    """A finding. An error is wrong, a warning is probably a mistake, and a note is good to know."""

    level: Severity
    what: str
    to_do: str


def run_doctor(opts: argparse.Namespace, settings: BaseSettings) -> None:
    """Check versions, settings and the store of a project. Change nothing.

    example:
      scrapy neardup doctor --store redis://user:password@host:6379/0

    The exit code is 2 if there is an error, else 0, even with warnings and notes. `scrapy neardup stats --check` checks
    every row of a store.
    """
    extras = [name for name in metadata(US).get_all("Provides-Extra") or () if name != "all"]
    installed: dict[str, Any] = {
        "versions": {"Python": platform.python_version(), US: version(US), **dict(_needs())},
        "compiled": "no; slower, with the same results" if native.compiled is None else "yes",
        "extras": {extra: ", ".join(map(" ".join, _needs(extra))) for extra in extras},
    }
    found = list(_on_project(opts, settings))
    told = [line for level, what, to_do in found for line in (f"{level}: {what}", f"  to do: {to_do}")]
    result = {**installed, "advice": [remark._asdict() for remark in found]}
    answer(opts, result, [*fields(installed), *(told or ["no problems found"])])
    if errors := sum(remark.level == "error" for remark in found):
        raise ConfigError(f"{plural(errors, 'error')} found")


def _needs(extra: str = "") -> Iterator[tuple[str, str]]:
    """Yield each package that this package, or `extra`, needs: its name, and its version or what is wrong with it."""
    for wanted in map(Requirement, requires(US) or ()):
        if wanted.marker.evaluate({"extra": extra}) if wanted.marker and extra else not (wanted.marker or extra):
            try:
                found = version(wanted.name)
                fits = wanted.specifier.contains(found, prereleases=True)
                yield wanted.name, found if fits else f"{found}, needed is {wanted.specifier}"
            except PackageNotFoundError:
                yield wanted.name, "not installed"


def _on_project(opts: argparse.Namespace, settings: BaseSettings) -> Iterator[Remark]:
    try:
        config = Config.from_settings(settings)
        build_detectors(config)
    except ConfigError as error:
        yield Remark("error", str(error), "correct the setting: a crawl stops at its start")
        return
    if inside_project():
        yield from on_settings(settings, config)
    elif not opts.store:
        what = "there is no Scrapy project here, so no settings and no store were checked"
        yield Remark("note", what, "run doctor in the folder of scrapy.cfg, or name a store with --store")
        return
    yield from _on_store(opts, settings, config)


def on_settings(settings: BaseSettings, config: Config) -> list[Remark]:
    """Return remarks on the settings of a project, errors first. `config` has the plugin's own settings."""
    found = [*_on_components(settings), *_on_others(settings), *_on_ours(config)]
    return sorted(found, key=lambda remark: ("error", "warning", "note").index(remark.level))


def _on_components(settings: BaseSettings) -> Iterator[Remark]:
    """Yield remarks on components of this package that the settings do not enable."""
    if _place(settings, "ADDONS", ADDON) is not None:
        return
    lost = {part: what for part, what in PARTS.items() if _place(settings, *part) is None}
    if len(lost) == len(PARTS):
        what = "the project does not enable the plugin; a spider's custom_settings are not checked"
        yield Remark("error", what, ENABLE)
        return
    for (_, path), what in lost.items():
        yield Remark("warning", f"{path.rpartition('.')[2]} is not enabled, so {what}", ENABLE)


def _on_others(settings: BaseSettings) -> Iterator[Remark]:
    """Yield remarks on other components that conflict with the plugin."""
    place = _place(settings, "ITEM_PIPELINES", PIPELINE)
    ours = 200 if place is None else place
    placed = _placed(settings, "ITEM_PIPELINES")
    if early := [
        path for path, found, at in placed if at <= ours and not (_is(found, ORIGINS) or _is(found, PIPELINE))
    ]:
        what = f"{', '.join(sorted(early))}: not placed after NearDupPipeline ({ours}), so duplicates arrive there too"
        yield Remark("note", what, f"place pipelines that store items after {ours} in ITEM_PIPELINES")
    with suppress(TypeError, ValueError):  # a bad value stops the crawl, with Scrapy's message
        deltafetch = [path for path, *_ in _placed(settings, "SPIDER_MIDDLEWARES") if path.endswith("DeltaFetch")]
        if deltafetch and settings.getbool("DELTAFETCH_ENABLED"):
            what = f"{deltafetch[0]} is enabled: a page that gave an item is never fetched again, even if it changed"
            yield Remark("warning", what, 'set DELTAFETCH_ENABLED = False and NEARDUP_REVISIT = "skip"')
        asks = str(settings.get("HTTPCACHE_POLICY")).endswith("RFC2616Policy")
        if settings.getbool("HTTPCACHE_ENABLED") and not asks and not settings.getint("HTTPCACHE_EXPIRATION_SECS"):
            what = "HTTPCACHE_ENABLED without expiry: pages that have changed or died are never noticed"
            yield Remark("note", what, "set HTTPCACHE_POLICY to RFC2616Policy, or set HTTPCACHE_EXPIRATION_SECS")


def _on_ours(config: Config) -> Iterator[Remark]:
    """Yield remarks on settings of the plugin that contradict each other, or that turn it off."""
    if not config.enabled:
        yield Remark("warning", "NEARDUP_ENABLED = False: the plugin is off", "remove the setting to enable the plugin")
    if config.action == "tag" and config.skip_mirrors:
        what = 'NEARDUP_ACTION = "tag" with NEARDUP_SKIP_MIRRORS: the next run skips URLs of tagged duplicates'
        yield Remark("warning", what, "set NEARDUP_SKIP_MIRRORS = False if you want all items in each run")
    if config.revisit == "skip" and not config.skip_mirrors:
        what = 'NEARDUP_REVISIT = "skip" with NEARDUP_SKIP_MIRRORS = False: revisits are fetched and then dropped'
        yield Remark("warning", what, 'set NEARDUP_SKIP_MIRRORS = True, or NEARDUP_REVISIT = "drop"')
    if config.ttl is not None and config.ttl < config.mirror_ttl:
        what = f"NEARDUP_TTL ({config.ttl:.0f} s) is shorter than NEARDUP_MIRROR_TTL ({config.mirror_ttl:.0f} s)"
        what = f"{what}: skipped pages are forgotten before they are fetched again"
        yield Remark("warning", what, "set NEARDUP_TTL to more than NEARDUP_MIRROR_TTL")
    if both := sorted(set(config.mirror_hosts) & set(config.preferred_hosts)):
        what = f"NEARDUP_MIRROR_HOSTS and NEARDUP_PREFERRED_HOSTS both name {', '.join(both)}"
        what = f"{what}: the rules on these mirrors are ignored"
        yield Remark("warning", what, "name each host in only one of the two settings")
    if is_server(config.store or "") and config.revisit == "keep":
        what = 'NEARDUP_REVISIT = "keep" on a server: if several crawls share the store, no single feed is complete'
        yield Remark("note", what, 'join the feeds of all these crawls, or set NEARDUP_REVISIT = "drop"')


def _place(settings: BaseSettings, setting: str, component: str) -> float | None:
    """Return the position of a component in a setting; None if the component is not enabled."""
    return next((at for _, found, at in _placed(settings, setting) if _is(found, component)), None)


def _placed(settings: BaseSettings, setting: str) -> Iterator[tuple[str, Any, float]]:
    """Yield the enabled components of a setting, each as (import path, object or import error, position)."""
    for name, at in settings.getdict(setting).items():
        if isinstance(at, (int, float)) and isinstance(name, (str, type)):
            try:
                found = load_object(name)
            except Exception as error:  # a module of the user's may raise anything on import
                found = error
            yield name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}", found, at


def _is(found: Any, component: str) -> bool:
    return isinstance(found, type) and issubclass(found, load_object(component))


def _on_store(opts: argparse.Namespace, settings: BaseSettings, config: Config) -> Iterator[Remark]:
    to_do = f"name another store with {'--store' if opts.store else 'NEARDUP_STORE'}"
    try:
        address = str(opts.store or config.store or default_store(settings))
        check_kind(address)
        if is_server(address) or os.path.exists(address):
            to_do = SERVER if is_server(address) else FILE
            if not is_server(address):
                check_file(Path(address), writes=True)
            # A namespace with `{spider}` has no name outside a crawl, so the default namespace is checked.
            namespace = "" if "{spider}" in config.namespace else config.namespace
            with closing(open_store(address, build_detectors(config), namespace=namespace, run=None)) as store:
                yield from _on_contents(shown_address(address), store)
        elif opts.store:
            raise StoreError(f"store {address!r} does not exist")
        else:
            to_do = "correct NEARDUP_STORE, or make its folder writable: a crawl stops at its start"
            if config.store or os.path.isdir(os.path.dirname(address)):
                check_file(Path(address), writes=True)
            yield Remark("note", f"store {address!r} does not exist yet", "nothing: the first crawl creates it")
    except (ConfigError, StoreError) as error:
        yield Remark("error", str(error), to_do)


def _on_contents(name: str, store: Store) -> Iterator[Remark]:
    if dead := [run.id for run in died(store) if not run.forgotten]:
        what = f"store {name!r}: {plural(len(dead), 'run')} died, the last one is {dead[-1]}"
        to_do = "nothing: the next crawl forgets or keeps their documents, as NEARDUP_UNCLEAN_RUN says"
        yield Remark("note", what, to_do)
    policy = store.describe().get("eviction", "noeviction")
    if policy != "noeviction":
        what = f"store {name!r}: when the server is full, it deletes documents, since its maxmemory-policy is {policy}"
        yield Remark("error", what, "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file")
