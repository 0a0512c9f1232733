"""Compare scrapy-neardup with other packages on made-up texts: copies found, wrong copies, and speed.

    pip install -r bench/peers.txt
    python bench/compare.py [--documents 400] [--tokens 300] [--text-dedup PYTHON]

It prints the table of docs/comparison.md, and a table for Chinese texts. A set has `--documents` originals, one copy of
each of them in every kind of `KINDS`, and as many form pages. Each ten form pages share their first half, the form, but
no more, so they are no copies. The texts come one by one, the originals first. A row has the share of copies of each
kind that a package assigns to their originals, and the shares of originals and form pages that it takes for copies. The
time is the CPU time of all threads of the process, from the first text to the last verdict. In Chinese, two characters
count as a word. Packages that are not installed are named.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import peers
from options import positive
from texts import made_up

from scrapy_neardup import Deduplicator, Document

KINDS = ("1 % changed", "10 % changed", "20 % changed", "cut to 70 %", "30 % added")
CUTS: dict[str, dict[str, Any]] = {"English": {}, "Chinese": {"analyzer": "char", "ngram": (5, 5)}}
"""The options by which gaoya splits texts into shingles."""
FORM = 10  # pages of one form
Contestant = tuple[str, Callable[[Iterable[str]], Iterable["int | None"]]]
"""The name of the needed package, and the function that yields the verdicts."""
Found = list["int | None"]
"""For each text, the number of the earlier text that it repeats."""


class Case(NamedTuple):
    text: str
    kind: str
    original: int | None = None


def cases(language: str, number: int, size: int) -> list[Case]:
    """Return a set: originals, copies of every kind, and form pages."""
    source = random.Random(4)
    texts = made_up(language, 3 * number, size)
    made = [Case(text, "original") for text in texts[:number]]
    for kind in KINDS:
        made += [Case(edited(texts[n], kind, texts[2 * number + n], source), kind, n) for n in range(number)]
    for place, text in enumerate(texts[number : 2 * number]):
        form = texts[2 * number + place // FORM]
        made.append(Case(joined(split(form)[: size // 2] + split(text)[size // 2 :], text), "form"))
    return made


def split(text: str) -> list[str]:
    return text.split(" ") if " " in text else [text[start : start + 2] for start in range(0, len(text), 2)]


def joined(words: Sequence[str], like: str) -> str:
    return (" " if " " in like else "").join(words)


def edited(text: str, kind: str, other: str, source: random.Random) -> str:
    """Return a copy of a text, changed as `kind` says. New words are from the text `other`."""
    words, share = split(text), int(kind.split(" %")[0].split()[-1]) / 100
    others = split(other)
    if kind.endswith("changed"):
        for place in source.sample(range(len(words)), int(share * len(words))):
            words[place] = source.choice(others)
    elif kind.startswith("cut"):
        words = words[: int(share * len(words))]
    else:
        words = others[: int(share * len(words))] + words
    return joined(words, text)


# Packages


def ours(texts: Iterable[str]) -> Iterator[int | None]:
    places: dict[str, int] = {}
    with Deduplicator.open(None) as dedup:
        for number, text in enumerate(texts):
            claim = dedup.claim(Document(url=(url := f"http://site{number % 500}.example/{number}"), text=text))
            claim.commit()
            places[url] = number
            of = claim.verdict.duplicate_of
            yield places[of] if of else None


def text_dedup(python: str, texts: Iterable[str]) -> Iterator[int | None]:
    """Join texts that share a band, by text-dedup. The first text of a cluster is the original of the others."""
    texts = list(texts)
    with tempfile.TemporaryDirectory() as folder:
        feed = Path(folder, "feed.jsonl")
        feed.write_text("".join(json.dumps({"id": f"t{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
        clusters = [sorted(int(name[1:]) for name in cluster) for cluster in peers.text_dedup_clusters(python, feed)]
    of = {number: cluster[0] for cluster in clusters for number in cluster[1:]}
    return (of.get(number) for number in range(len(texts)))


def packages(language: str, opts: argparse.Namespace) -> dict[str, Contestant]:
    """Return each contestant with the package that it needs."""
    found: dict[str, Contestant] = {
        "**scrapy-neardup**, defaults": ("scrapy-neardup", ours),
        "datasketch, MinHash-LSH at 0.5": ("datasketch", peers.datasketch),
        "rensa, 32 bands of 4": ("rensa", peers.rensa),
        "gaoya, 32 bands of 4, at 0.5": ("gaoya", partial(peers.gaoya, **CUTS[language])),
        "FastSketchLSH, 32 bands of 4": ("FastSketchLSH", peers.fastsketchlsh),
        "simhash, distance 3": ("simhash", partial(peers.simhash, features=peers.characters)),
    }
    if opts.text_dedup:
        found["text-dedup, MinHash-LSH at 0.5"] = ("", partial(text_dedup, opts.text_dedup))
    return found


def versioned(name: str, package: str) -> str:
    """Return a name with the installed version of its package. Raise PackageNotFoundError if there is none."""
    return name.replace(package, f"{package} {version(package)}", 1) if package else name


# Figures


def row(made: Sequence[Case], found: Found, seconds: float) -> list[str]:
    """Return the shares of found copies by kind, of originals and form pages taken for copies, texts per CPU second."""
    total = Counter(case.kind for case in made)
    pairs = [(case, of) for case, of in zip(made, found, strict=True) if of is not None]
    right = Counter(case.kind for case, of in pairs if of == case.original)
    wrong = Counter(case.kind for case, _ in pairs if case.original is None)
    shares = [right[kind] / total[kind] for kind in KINDS]
    shares += [wrong[kind] / total[kind] for kind in ("original", "form")]
    return [*(f"{100 * share:.1f}" for share in shares), f"{len(made) / seconds:,.0f}" if seconds else "–"]


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def duplicates(language: str, opts: argparse.Namespace) -> None:
    made = cases(language, opts.documents, opts.tokens)
    print(f"\n{language}, {len(made):,} texts of about {opts.tokens} words:\n")
    heads = [*KINDS, "wrong: others", "wrong: one form", "texts/s"]
    print(line([f"{language}: found, %", *heads]), line(["---"] * (len(heads) + 1)), sep="\n")
    for name, (package, run) in packages(language, opts).items():
        try:
            shown = versioned(name, package)
        except PackageNotFoundError:
            print(line([name, "not installed"]))
            continue
        if package:  # without one, another process runs the package
            list(run(case.text for case in made[:20]))  # to load what the first text needs
        start = process_time()
        found = list(run(case.text for case in made))
        took = process_time() - start if package else 0.0
        print(line([shown, *row(made, found, took)]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=positive, default=400, metavar="N", help="originals of a set (400)")
    parser.add_argument("--tokens", type=positive, default=300, metavar="N", help="of a text (300)")
    parser.add_argument("--text-dedup", metavar="PYTHON", help="of an environment that has text-dedup")
    opts = parser.parse_args()
    for language in CUTS:
        duplicates(language, opts)


if __name__ == "__main__":
    main()
