"""What the store costs: RAM and disk per document, documents a second, time to open.

    python bench/store.py [DOCUMENTS]

The texts are made of 300 random words each, so none repeats another.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from scrapy_neardup import Deduplicator, Document


def texts(count: int) -> list[str]:
    source = random.Random(1)
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(50_000)]
    return [" ".join(source.choices(words, k=300)) for _ in range(count)]


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    documents = texts(count)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "store.sqlite"))
        with Deduplicator.open(path) as dedup:
            before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
            for number, text in enumerate(documents):
                dedup.claim(Document(url=f"http://host/articles/{number}.html", text=text)).commit()
            dedup.flush()
            print(f"{count / (time.perf_counter() - start):.0f} documents/s")
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(f"{grown * 1024 / count:.0f} bytes of RAM a document (ru_maxrss, in kB as on Linux)")
        print(f"{Path(path).stat().st_size / count:.0f} bytes on disk a document, its URL among them")
        start = time.perf_counter()
        Deduplicator.open(path).close()
        print(f"{time.perf_counter() - start:.2f} s to open and close")


if __name__ == "__main__":
    main()
