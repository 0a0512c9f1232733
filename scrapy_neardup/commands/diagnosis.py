"""Give advice on settings that are wrong, contradict each other, or have no effect. No I/O.

Each check is a generator of advice. `on_settings` runs all checks. Bad values of the plugin's own settings are not
checked here, since `Config` raises ConfigError for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from numbers import Real
from typing import Any, Literal, NamedTuple

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from ..settings import PREFIX, Config
from ..store.redis.address import is_server

ADDON, PIPELINE, MIDDLEWARE, ORIGINS = (
    f"scrapy_neardup.{name}" for name in ("Addon", "NearDupPipeline", "MirrorMiddleware", "ItemOrigins")
)
Level = Literal["error", "warning", "note"]
RETRY = 550  # the position of RetryMiddleware among the downloader middlewares
_TUNES = {"simhash_distance": "simhash", "imatch_lexicons": "imatch", "lexicon": "imatch", "synonyms": "dwdcs"}


_COMPONENTS = ("ADDONS", "ITEM_PIPELINES", "DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES")
_READ: Mapping[str, tuple[Callable[[BaseSettings, str], int], str]] = {
    "HTTPCACHE_ENABLED": (BaseSettings.getbool, "True or False"),
    "HTTPCACHE_EXPIRATION_SECS": (BaseSettings.getint, "a whole number"),
    "DELTAFETCH_ENABLED": (BaseSettings.getbool, "True or False"),
}
"""Settings of other components that are read here, each with its reader and the allowed values."""


class Advice(NamedTuple):
    """A finding: wrong (error), probably a mistake (warning), or good to know (note)."""

    level: Level
    what: str
    to_do: str


def on_settings(settings: BaseSettings, config: Config) -> list[Advice]:
    """Return advice on the settings of a project, worst first. `config` has the plugin's own settings."""
    found = [advice for check in (_values, _paths, _components, _others) for advice in check(settings)]
    found += [advice for check in (_modes, _times, _rules, _fleet) for advice in check(config)]
    found += _without_effect(settings, config)
    return sorted(found, key=lambda advice: ("error", "warning", "note").index(advice.level))


def _values(settings: BaseSettings) -> Iterator[Advice]:
    """Yield advice on bad values in settings of other components. They stop a component, or the crawl, at its start."""
    bad = [(name, settings[name], allowed) for name, (_, allowed) in _READ.items() if _read(settings, name) is None]
    for name in _COMPONENTS:
        wrong = {part: at for part, at in settings.getdict(name).items() if not _is_component(part, at)}
        if wrong:
            bad.append((name, wrong, "a dictionary that maps classes, or their import paths, to a number or None"))
    for name, value, allowed in bad:
        what = f"{name} = {value!r} is not allowed; allowed is {allowed}"
        yield Advice("error", what, "correct the setting; otherwise its component fails at its start")


def _paths(settings: BaseSettings) -> Iterator[Advice]:
    """Yield advice on wrong import paths of this package."""
    for setting in _COMPONENTS:
        for path in _named(settings, setting):
            if path.split(".")[0].replace("-", "_") == "scrapy_neardup" and isinstance(
                found := _loaded(path), Exception
            ):
                yield Advice("error", f"{setting}: {path!r} can't be loaded: {found}", "correct the path")


def _components(settings: BaseSettings) -> Iterator[Advice]:
    """Yield advice on missing or misplaced components of this package."""
    if _place(settings, "ADDONS", ADDON) is not None:
        return
    pipeline = _place(settings, "ITEM_PIPELINES", PIPELINE)
    middleware = _place(settings, "DOWNLOADER_MIDDLEWARES", MIDDLEWARE)
    add_on = 'set ADDONS = {"scrapy_neardup.Addon": 500}, which enables all components; a later ADDONS line replaces it'
    if pipeline is None and middleware is None:
        what = "the project enables neither the pipeline nor the middleware; a spider's custom_settings are not checked"
        yield Advice("error", what, add_on)
    elif middleware is None:
        yield Advice(
            "note", "the middleware is not enabled, so no request is skipped, and no dead link is redirected", add_on
        )
    elif pipeline is None:
        yield Advice("warning", "the pipeline is not enabled, so no item is compared or remembered", add_on)
    if pipeline is not None and _place(settings, "SPIDER_MIDDLEWARES", ORIGINS) is None:
        what = "ItemOrigins is not enabled, so items are identified by their own URLs only, and no request is skipped"
        yield Advice("warning", what, add_on)
    if middleware is not None and middleware > RETRY:
        what = f"MirrorMiddleware is at {middleware}, so a link counts as dead after one failure, before it is retried"
        yield Advice("warning", what, "place MirrorMiddleware at 75 in DOWNLOADER_MIDDLEWARES")


def _others(settings: BaseSettings) -> Iterator[Advice]:
    """Yield advice on other components that conflict with the plugin."""
    place = _place(settings, "ITEM_PIPELINES", PIPELINE)
    ours = 200 if place is None else place
    placed = _named(settings, "ITEM_PIPELINES").items()
    early = [name for name, at in placed if at <= ours and not (_is(name, ORIGINS) or _is(name, PIPELINE))]
    if early:
        what = f"{', '.join(sorted(early))}: not placed after NearDupPipeline ({ours}), so duplicates arrive there too"
        yield Advice("note", what, f"place pipelines that store items after {ours} in ITEM_PIPELINES")
    deltafetch = [name for name in _named(settings, "SPIDER_MIDDLEWARES") if name.endswith("DeltaFetch")]
    if deltafetch and _read(settings, "DELTAFETCH_ENABLED"):
        what = f"{deltafetch[0]} is enabled: a page that gave an item is never fetched again, even if it has changed"
        yield Advice("warning", what, 'set DELTAFETCH_ENABLED = False and NEARDUP_REVISIT = "skip"')
    asks = str(settings.get("HTTPCACHE_POLICY")).endswith("RFC2616Policy")
    if _read(settings, "HTTPCACHE_ENABLED") and not asks and _read(settings, "HTTPCACHE_EXPIRATION_SECS") == 0:
        what = "HTTPCACHE_ENABLED without expiry: pages that have changed or died are never noticed"
        yield Advice("note", what, "set HTTPCACHE_POLICY to RFC2616Policy, or set HTTPCACHE_EXPIRATION_SECS")


def _modes(config: Config) -> Iterator[Advice]:
    if not config.enabled:
        yield Advice("warning", "NEARDUP_ENABLED = False: the plugin is off", "remove the setting to enable the plugin")
    if config.action == "tag" and config.skip_mirrors:
        what = 'NEARDUP_ACTION = "tag" with NEARDUP_SKIP_MIRRORS: the next run skips URLs of tagged duplicates'
        yield Advice("warning", what, "set NEARDUP_SKIP_MIRRORS = False if you want all items in each run")
    if config.action == "audit" and config.revisit != "keep":
        what = f'NEARDUP_REVISIT = {config.revisit!r} has no effect with NEARDUP_ACTION = "audit"'
        yield Advice("note", what, "remove one of the two settings")
    if config.dropped and config.action != "drop":
        what = f"NEARDUP_DROPPED has no effect with NEARDUP_ACTION = {config.action!r}: no item is dropped"
        yield Advice("note", what, "remove one of the two settings")
    if config.revisit == "skip" and not config.skip_mirrors:
        what = 'NEARDUP_REVISIT = "skip" with NEARDUP_SKIP_MIRRORS = False: revisits are fetched and then dropped'
        yield Advice("warning", what, 'set NEARDUP_SKIP_MIRRORS = True, or NEARDUP_REVISIT = "drop"')
    if config.skip_start and not config.skip_mirrors:
        what = "NEARDUP_SKIP_START has no effect with NEARDUP_SKIP_MIRRORS = False"
        yield Advice("note", what, "remove one of the two settings")
    if config.extractor == "trafilatura" and not config.workers:
        what = 'NEARDUP_EXTRACTOR = "trafilatura" with NEARDUP_WORKERS = 0: the crawl waits for each page'
        yield Advice("warning", what, "set NEARDUP_WORKERS to 1 or more")


def _times(config: Config) -> Iterator[Advice]:
    if config.ttl is not None and config.ttl < config.mirror_ttl:
        what = f"NEARDUP_TTL ({config.ttl:.0f} s) is shorter than NEARDUP_MIRROR_TTL ({config.mirror_ttl:.0f} s)"
        what = f"{what}: skipped pages are forgotten before they are fetched again"
        yield Advice("warning", what, "set NEARDUP_TTL to more than NEARDUP_MIRROR_TTL")
    if config.skip_mirrors and not config.recheck:
        what = "NEARDUP_RECHECK = 0: changes of skipped pages are not noticed before NEARDUP_MIRROR_TTL ends"
        yield Advice("note", what, "remove the setting; its default is 0.01")


def _rules(config: Config) -> Iterator[Advice]:
    both = sorted(set(config.mirror_hosts) & set(config.preferred_hosts))
    if both:
        what = f"NEARDUP_MIRROR_HOSTS and NEARDUP_PREFERRED_HOSTS both name {', '.join(both)}"
        what = f"{what}: the rules on these mirrors are ignored"
        yield Advice("warning", what, "name each host in only one of the two settings")
    if config.unheld_mirrors != "leave" and not config.mirror_hosts and not config.learn_hosts:
        what = f"NEARDUP_UNHELD_MIRRORS = {config.unheld_mirrors!r} has no effect without rules on hosts"
        yield Advice("note", what, "set NEARDUP_LEARN_HOSTS = True, or name rules in NEARDUP_MIRROR_HOSTS")


def _fleet(config: Config) -> Iterator[Advice]:
    if is_server(config.store or "") and config.revisit == "keep":
        what = 'NEARDUP_REVISIT = "keep" on a server: if several crawls share the store, no single feed is complete'
        yield Advice("note", what, 'join the feeds of all these crawls, or set NEARDUP_REVISIT = "drop"')


def _without_effect(settings: BaseSettings, config: Config) -> Iterator[Advice]:
    """Yield advice on settings of detectors that are not in use."""
    for name, detector in _TUNES.items():
        if settings.get(setting := PREFIX + name.upper()) and detector not in config.detectors:
            what = f"{setting} has no effect without {detector!r} in NEARDUP_DETECTORS"
            yield Advice("note", what, "remove the setting")


def _place(settings: BaseSettings, setting: str, component: str) -> int | None:
    """Return the position of a component in a setting; None if the component is not enabled."""
    return next((at for name, at in _named(settings, setting).items() if _is(name, component)), None)


def _named(settings: BaseSettings, setting: str) -> Mapping[str, int]:
    """Return the positions of enabled components by import path, without bad entries, which `_values` reports."""
    found: dict[Any, Any] = settings.getdict(setting)
    return {_path(name): at for name, at in found.items() if at is not None and _is_component(name, at)}


def _is_component(name: Any, at: Any) -> bool:
    return (isinstance(name, str) or hasattr(name, "__qualname__")) and (at is None or isinstance(at, Real))


def _read(settings: BaseSettings, name: str) -> int | None:
    """Return a setting of another component as a flag or number; None if its value is neither."""
    try:
        return _READ[name][0](settings, name)
    except (TypeError, ValueError):
        return None


def _path(component: Any) -> str:
    return component if isinstance(component, str) else f"{component.__module__}.{component.__qualname__}"


def _is(path: str, component: str) -> bool:
    found = _loaded(path)
    return isinstance(found, type) and issubclass(found, _loaded(component))


@cache
def _loaded(path: str) -> Any:
    """Return the object at an import path, or the error."""
    try:
        return load_object(path)
    except Exception as error:  # a module of the user's may raise anything on import
        return error
