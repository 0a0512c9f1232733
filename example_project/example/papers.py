"""Two made-up newspapers: the Post writes its articles, the Gazette copies most of them."""

from pathlib import Path
from typing import NamedTuple

CONTENT = Path(__file__).parents[1] / "content"

MIRRORED = (
    "en/lighthouse",
    "en/market-week-14",
    "en/night-ferry",
    "zh/old-bridge",
    "zh/tea-hill",
    "zh/weather-week-12",
    "zh/wetland-birds",
)
NOTES = {  # above and below the reprint
    "en/seed-library": ("Editor's note: this first appeared in a neighbouring paper. We print it with pleasure.", ""),
    "zh/library-nights": ("", "编者按：本文转载自友报，略有改动的只是标题的字号，欢迎读者来信讨论。"),
}
CUT = "en/tram-line"
LOOK_ALIKES = ("en/market-week-15", "zh/weather-week-13", "en/ferry-again")  # the next of a series; a topic retold
GAZETTE_ONLY = (*LOOK_ALIKES, "zh/kite-festival")


class Article(NamedTuple):
    title: str
    paragraphs: list[str]


def post() -> dict[str, Article]:
    return {name: load(name) for name in (*MIRRORED, *NOTES, CUT)}


def gazette() -> dict[str, Article]:
    articles = {name: load(name) for name in (*MIRRORED, *GAZETTE_ONLY)}
    articles |= {name: with_note(load(name), *note) for name, note in NOTES.items()}
    articles[CUT] = shortened(load(CUT))
    return articles


def load(name: str) -> Article:
    title, *paragraphs = (CONTENT / f"{name}.txt").read_text(encoding="utf-8").strip().split("\n\n")
    return Article(title, paragraphs)


def with_note(article: Article, above: str, below: str) -> Article:
    return article._replace(paragraphs=[text for text in (above, *article.paragraphs, below) if text])


def shortened(article: Article) -> Article:
    return article._replace(paragraphs=article.paragraphs[: len(article.paragraphs) * 3 // 4])
