"""The package text-dedup, which needs other versions of libraries: run by the Python of an environment that has it.

Its MinHash-LSH over shingles of three words; Chinese, which it does not cut, has few: a word ends at a comma there.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

ARGUMENTS = "--path json --split train --column text --ngram 3 --threshold 0.5 --num_perm 128"
TOLD = "import json, pickle, sys; print(json.dumps(pickle.load(open(sys.argv[1], 'rb')).parent))"


def command(python: str, *, output: str, cache: str) -> list[str]:
    """Return what takes copies out of a feed; the path of the feed comes last."""
    arguments = f"{ARGUMENTS} --output {output} --cache_dir {cache} --data_files"
    return [python, "-m", "text_dedup.minhash", *arguments.split()]


def clusters(python: str, feed: Path) -> list[list[str]]:
    """Return what it finds in a feed, by the ids of the rows."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "output")
        called = [*command(python, output=str(output), cache=str(Path(folder, "cache"))), str(feed.absolute())]
        called += ["--debug", "--idx_column", "id"]
        subprocess.run(called, check=True, capture_output=True, cwd=folder)
        told = subprocess.run([python, "-c", TOLD, str(output / "uf.pkl")], check=True, capture_output=True, text=True)
    parents: dict[str, str] = json.loads(told.stdout)
    found = defaultdict(list)
    for name in parents:
        found[_root(parents, name)].append(name)
    return list(found.values())


def _root(parents: dict[str, str], name: str) -> str:
    while parents[name] != name:
        name = parents[name]
    return name
