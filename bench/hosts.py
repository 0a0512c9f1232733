"""How right the host mirrors are that are learned while crawling, on 10,000 made-up pairs of hosts.

    python bench/hosts.py [--pairs 10000] [--bound 0.86] [--seed 1]

The first host of each pair is held; the second has 20 … 2,000 pages (P(more than n) ~ 20 / n), fetched one by one in
shuffled order or directory by directory. What a page's counterpart says is drawn; the URLs, the rules and the rechecks
are the real ones. Half of the pairs are mirrors: up to 0.8 % of their pages differ (noise), up to 5 % are near copies.

- partial: 3 … 30 % of the pages are not the same, 40 … 100 % of those differ, the others are near copies;
- subtree: some directories are mirrored, in the others each page differs;
- turned: a mirror, until 90 % of its pages differ, from some page on;
- alike: the same paths, other content, half of the pages the same template over and over;
- copied: 20 pages of 200 and more, anywhere, are copies; a tenth of the others share their path with a page of the
  first host.

A rule is right where, at that time, at least 99 % of the pages that it holds for are the same or near copies: of
mirrors, turned ones before they turn, and subtrees where it holds in mirrored directories only. Recall: of mirrors, and
turned ones before they turn, how many have a rule in force. After n pages only pairs with as many count; "end": all,
each after its last page. wrong: the rules in force that are not right, by kind.
saved, missed: in % of all pages of that kind; missed are those skipped that differ.
"""

from __future__ import annotations

import argparse
import random
import resource
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from scrapy_neardup.hosts.relations import BOUND, Outcome
from scrapy_neardup.hosts.rules import Finding, Hosts

KINDS = {"mirror": 0.5, "partial": 0.12, "subtree": 0.08, "turned": 0.1, "alike": 0.12, "copied": 0.08}
AFTER = (10, 20, 30, 50, 100, 200, 500, 1000, 2000)
RECHECK = 0.01
SAME, NEAR, DIFFERENT = Outcome.SAME, Outcome.NEAR, Outcome.DIFFERENT


@dataclass
class Page:
    """One of the second host's."""

    branch: int
    outcome: Outcome
    template: bool = False
    """The same as another page of its host."""
    held: bool = True
    """The first host's page of this path is."""


@dataclass
class Pair:
    number: int
    kind: str
    size: int
    pages: list[Page]
    turns: int
    mirrored: int
    """Directories below this number are."""

    def url(self, page: int, *, second: bool = True) -> str:
        host = f"{'m' if second else 'a'}{self.number}.example"
        return f"http://{host}/{'mirror/' * (second and self.number % 3 == 0)}d{self.pages[page].branch}/{page}.html"


def make(number: int, kind: str, source: random.Random) -> Pair:
    size = max(min(2000, int(20 / (1 - source.random()))), 200 * (kind == "copied"))
    branches = source.randint(1, 8) if kind != "subtree" else source.randint(2, 8)
    turns = int(size * source.uniform(0.3, 0.7)) if kind == "turned" else size
    mirrored = source.randint(1, branches - 1) if kind == "subtree" else branches
    places = [source.randrange(branches) for _ in range(size)]
    if source.random() < 0.5:
        places.sort(key=source.sample(range(branches), branches).__getitem__)
    pair = Pair(number, kind, size, [], turns, mirrored)
    draw = outcomes(pair, source)
    held = source.uniform(0.8, 1)
    for branch in places:
        template = kind == "alike" and source.random() < 0.5
        outcome = draw(len(pair.pages), branch)
        share = 0.1 if kind == "copied" and outcome is DIFFERENT else held
        pair.pages.append(Page(branch, outcome, template, source.random() < share))
    return pair


def outcomes(pair: Pair, source: random.Random) -> Callable[[int, int], Outcome]:
    """Return what draws the outcome of a page."""
    noise = source.choice((0.0, source.uniform(0, 0.008)))
    near = source.choice((0.0, 0.0, source.uniform(0, 0.05)))
    if pair.kind == "partial":
        unlike = source.uniform(0.03, 0.3)
        noise = unlike * source.uniform(0.4, 1)
        near = unlike - noise

    copied = frozenset(source.sample(range(pair.size), min(20, pair.size)))

    def draw(page: int, branch: int) -> Outcome:
        differs = noise
        if pair.kind == "alike" or branch >= pair.mirrored or (pair.kind == "copied" and page not in copied):
            differs = 1.0
        elif page >= pair.turns:
            differs = 0.9
        chance = source.random()
        return DIFFERENT if chance < differs else NEAR if chance < differs + near else SAME

    return draw


class State(NamedTuple):
    """Of a pair, at some time."""

    in_force: bool
    right: bool
    due: bool
    """There ought to be a rule."""


@dataclass
class Result:
    kind: str
    states: dict[int | str, State] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)


def crawl(pair: Pair, hosts: Hosts, source: random.Random) -> Result:
    result = Result(pair.kind)
    for number in range(pair.size):
        fetch_or_skip(pair, number, hosts, source, result.counts)
        if number + 1 in AFTER:
            result.states[number + 1] = state(pair, number, hosts)
    result.states["end"] = state(pair, pair.size - 1, hosts)
    return result


def fetch_or_skip(pair: Pair, number: int, hosts: Hosts, source: random.Random, counts: Counter[str]) -> None:
    page, url = pair.pages[number], pair.url(number)
    counts["pages"] += 1
    found = hosts.counterparts(url) if page.held else []
    if found and source.random() >= max(RECHECK, found[0].recheck):
        counts["saved"] += 1
        counts["missed"] += page.outcome is DIFFERENT and not page.template
        return
    counts["rechecks"] += bool(found)
    other = pair.url(number, second=False)
    known = [other] if page.held and page.outcome is not DIFFERENT else []
    if page.template:
        known.append(pair.url(0))
    finding = Finding(page.outcome, number) if page.held else None
    hosts.learn(url, known, lambda asked: finding if asked == other else None, number)


def state(pair: Pair, number: int, hosts: Hosts) -> State:
    covered = {page.branch: page for page in reversed(pair.pages)}
    holds = {b: bool(hosts.counterparts(pair.url(pair.pages.index(page)))) for b, page in covered.items()}
    is_mirror = pair.kind == "mirror" or (pair.kind == "turned" and number < pair.turns)
    is_right = is_mirror or (pair.kind == "subtree" and all(b < pair.mirrored for b, found in holds.items() if found))
    return State(any(holds.values()), is_right, is_mirror)


def pairs(count: int, source: random.Random) -> Iterator[Pair]:
    kinds = [kind for kind, share in KINDS.items() for _ in range(round(share * count))]
    for number, kind in enumerate(source.sample(kinds, len(kinds))):
        yield make(number, kind, source)


def report(results: list[Result]) -> None:
    print("pages   pairs   in force   precision   recall   wrong")
    for after in (*AFTER, "end"):
        states = [(result.kind, result.states[after]) for result in results if after in result.states]
        force = sum(state.in_force for _, state in states)
        wrong = Counter(kind for kind, state in states if state.in_force and not state.right)
        due = [state.in_force for _, state in states if state.due]
        precision = 1 - wrong.total() / force if force else float("nan")
        kinds = ", ".join(f"{kind} {count}" for kind, count in wrong.items())
        print(f"{after:>5} {len(states):7d} {force:10d} {precision:11.4f} {sum(due) / max(len(due), 1):8.4f}   {kinds}")
    report_pages(results)


def report_pages(results: list[Result]) -> None:
    print("\nkind        pages    saved   missed   of those skipped   rechecked")
    counts = {kind: sum((r.counts for r in results if r.kind == kind), Counter[str]()) for kind in KINDS}
    for kind, count in [*counts.items(), ("all", sum(counts.values(), Counter[str]()))]:
        saved, missed = count["saved"], count["missed"]
        shares = [100 * value / count["pages"] for value in (saved, missed, count["rechecks"])]
        skipped = 100 * missed / max(saved, 1)
        print(f"{kind:8s} {count['pages']:8d} {shares[0]:8.1f} {shares[1]:8.2f} {skipped:18.2f} {shares[2]:11.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--bound", type=float, default=BOUND)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    source = random.Random(options.seed)
    hosts = Hosts(bound=options.bound)
    report([crawl(pair, hosts, source) for pair in pairs(options.pairs, source)])
    trials = sum(len(relation.trials) for relation in hosts.relations())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{len(hosts)} relations with {trials} trials; {peak:.0f} MiB at most")


if __name__ == "__main__":
    main()
