"""Make the Chinese lexicon of scrapy-neardup: the terms of the installed jieba with an IDF in a band.

    python bench/lexicon_zh.py -o scrapy_neardup/fingerprints/lexicons/zh.txt.gz

NOTICE.zh beside the lexicon has the licence.
"""

from __future__ import annotations

import argparse

from scrapy_neardup.fingerprints.lexicon import Lexicon
from scrapy_neardup.text.tokens import path_of

# Shares of the table's highest IDF, measured on labelled news and laws. A wider band loses recall, since an edit can
# change more terms. A narrower or higher band leaves too few terms in a short text.
BAND = (0.55, 0.65)


def chinese() -> Lexicon:
    """Return the lexicon of jieba's terms with an IDF in the band, without single characters."""
    lines = map(str.split, path_of("analyse/idf.txt").read_text("utf-8").splitlines())
    idfs = {term: float(idf) for term, idf in lines}
    low, high = (edge * max(idfs.values()) for edge in BAND)  # the highest is that of a word in one document
    # Single characters are often leftovers of the segmenter.
    terms = frozenset(term for term, idf in idfs.items() if low <= idf <= high and len(term) > 1)
    return Lexicon(terms)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", required=True)
    chinese().save(parser.parse_args().output)


if __name__ == "__main__":
    main()
