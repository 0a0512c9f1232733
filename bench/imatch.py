"""I-Match alone: which terms its lexicon keeps, and how many randomized lexicons there are.

    python bench/imatch.py DIR…        DIR holds docs.jsonl (id, text) and pairs.jsonl (a, b, label)

Whatever `imatch` proposes is taken for a duplicate, without verification: precision and recall are its own (strict:
see accuracy.py). The first table has a lexicon made of the set's own document frequencies for each band of normalized
IDF; the second the built-in lexicon, alone and with randomized ones (Kołcz et al. 2004). `cand.` is how many earlier
documents were proposed for a document.
"""

from __future__ import annotations

import argparse
from collections import Counter

from scrapy_neardup.detectors import IMatch
from scrapy_neardup.items import item_document
from scrapy_neardup.quality.evaluation import decide, warm_up
from scrapy_neardup.quality.labels import MODES, LabelledSet, Partition
from scrapy_neardup.settings import Config
from scrapy_neardup.text.lexicon import Lexicon, builtin

BANDS = ((0.0, 1.0), (0.1, 0.5), (0.2, 0.6), (0.3, 0.7), (0.4, 0.6), (0.4, 0.8), (0.5, 0.7), (0.5, 0.9), (0.6, 0.8))
NUMBERS = (0, 1, 2, 5, 10, 20)


def row(labelled: LabelledSet, detector: IMatch) -> str:
    """Return a line of either table: precision, recall, F1, candidates a document."""
    outcome = decide(labelled.rows, Config(detectors=(detector,)), verified=False)
    score = labelled.score(Partition(outcome.clusters), MODES["strict"])
    return f"{score.precision:6.3f} {score.recall:6.3f} {score.f1:6.3f} {outcome.candidates:6.2f}"


def frequencies(labelled: LabelledSet) -> Counter[str]:
    """Count in how many documents of the set each term is."""
    documents = filter(None, (item_document(data, Config()) for data in labelled.rows.values()))
    return Counter(term for document in documents for term in set(document.tokens))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    warm_up()
    for folder in parser.parse_args().folders:
        labelled = LabelledSet.load(folder)
        counts = frequencies(labelled)
        print(f"\n{folder}: {len(labelled.rows)} documents\n{'band, 10 randomized':24}      P      R     F1  cand.")
        for band in BANDS:
            lexicon = Lexicon.from_frequencies(counts, len(labelled.rows), *band)
            print(f"{band[0]} to {band[1]:<17} {row(labelled, IMatch(lexicon, 10))}", flush=True)
        print(f"{'randomized lexicons':24}      P      R     F1  cand.")
        for number in NUMBERS:
            print(f"{number:<24} {row(labelled, IMatch(builtin(), number))}", flush=True)


if __name__ == "__main__":
    main()
