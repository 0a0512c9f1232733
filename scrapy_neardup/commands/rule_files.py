"""Write learned rules into files for other tools: duplicate-url-discarder, robots.txt, Scrapy's settings."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from ..hosts.rules import Hosts
from ..hosts.variants import Variant
from ..progress import watched
from ..store import Store
from ..text.shapes import Shape, site

Named: TypeAlias = Mapping[str, str]


class Covered(NamedTuple):
    """A place of a host to which a rule on variants applies."""

    site: str
    where: str
    """See `Variation.where`."""
    parts: frozenset[str]
    prefix: str


def covered(store: Store) -> list[Covered]:
    """Return the places that the rules in force cover, of the URLs in the store, if the URLs without parts exist."""
    rules = defaultdict(list)
    for relation in store.hosts.relations():
        if isinstance(relation, Variant) and relation.in_force:
            rules[relation.sites[0]].append(relation)
    found: dict[Covered, bool] = {}
    for visit in watched(store.all_visits(), "visits") if rules else ():
        for rule in rules[site(visit.url)]:
            here = rule.variation(visit.url)
            if here and here.parts and rule.covers(here.place):
                place = Covered(rule.sites[0], here.where, here.parts, rule.shape.prefixes[0])
                found[place] = found.get(place, True) and (_is_free(place) or store.resolve(here.plain) is not None)
    return sorted((place for place, is_safe in found.items() if is_safe), key=repr)


def _is_free(place: Covered) -> bool:
    """Return whether all parts are parameters of any value, such as session ids, which a site may put on every URL."""
    return all(part.endswith("=*") for part in place.parts)


def _hosts(hosts: Hosts, named: Named) -> Iterator[tuple[str, str]]:
    """Yield each mirror host with its original, if a rule in force says that they have equal paths."""
    for relation in hosts.relations():
        original = relation.original()
        if relation.in_force and not relation.is_variant and original is not None and relation.shape == Shape():
            yield relation.sites[1 - original], relation.sites[original]
    yield from named.items()


def discarder_rules(store: Store, named: Named) -> str:
    """Return the rules on parameters and prefixes as JSON for duplicate-url-discarder."""
    found: dict[tuple[str, tuple[str | int, ...]], set[str]] = defaultdict(set)
    for place in covered(store):
        if place.parts == {f"{place.prefix}/"}:
            found["subpathRemoval", (0,)].add(f"{place.site}{place.where}")
        elif all("=" in part and not part.startswith(";") for part in place.parts):
            names = tuple(sorted(part.partition("=")[0] for part in place.parts))
            values = "&".join(sorted(part for part in place.parts if not part.endswith("=*")))
            found["queryRemoval", names].add(f"{place.site}{place.where}{f'?{values}' if values else ''}")
    rules = [
        {"args": list(args), "order": 100, "processor": processor, "urlPattern": {"include": sorted(include)}}
        for (processor, args), include in sorted(found.items())
    ]
    return json.dumps(rules, indent=2, ensure_ascii=False) + "\n"


def robots(store: Store, named: Named) -> str:
    """Return the rules on variants as lines of robots.txt, a group for each host."""
    lines: dict[str, set[str]] = defaultdict(set)
    for place in covered(store):
        lines[place.site].update(_robots_lines(place))
    groups = (f"# {name}\nUser-agent: *\n{_lines(sorted(found))}" for name, found in sorted(lines.items()) if found)
    return "\n".join(groups)


def _robots_lines(place: Covered) -> Iterator[str]:
    if any(part.startswith(";") for part in place.parts):
        return
    if _is_free(place):
        yield f"Clean-param: {'&'.join(sorted(part.removesuffix('=*') for part in place.parts))} {place.where}"
    elif len(place.parts) == 1:
        [part] = place.parts
        if part == f"{place.prefix}/":
            yield f"Disallow: {place.where}"
        elif part.startswith("…"):
            yield f"Disallow: {place.where}*{part[1:]}$"
        else:
            yield from (f"Disallow: {place.where}*{mark}{part}{end}" for mark in "?&" for end in "$&")


def mirror_hosts(store: Store, named: Named) -> str:
    """Return the rules on hosts as the setting NEARDUP_MIRROR_HOSTS, with those that the setting has already."""
    pairs = dict(_hosts(store.hosts, named))
    return f"NEARDUP_MIRROR_HOSTS = {{\n{_lines(f'    {a!r}: {b!r},' for a, b in sorted(pairs.items()))}}}\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


FILES: dict[str, Callable[[Store, Named], str]] = {".json": discarder_rules, ".txt": robots, ".py": mirror_hosts}
"""The function that makes the text of a file, by the ending of its name."""
