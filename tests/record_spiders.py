"""Spiders of items as records; `spiders.py` imports them for the process that crawls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timezone
from typing import Any

import attrs
import scrapy
from itemloaders import ItemLoader
from pydantic import BaseModel


@dataclass
class DataclassEvent:
    title: str = ""
    date: str = ""
    location: str | None = None
    description: str = ""


@attrs.define
class AttrsEvent:
    title: str = ""
    date: str = ""
    location: str | None = None
    description: str = ""


class PydanticEvent(BaseModel):
    title: str = ""
    date: str = ""
    location: str | None = None
    description: str = ""


def loaded(**values: Any) -> dict[str, list[Any]]:
    """Return an item as an item loader makes it: each value in a list."""
    loader = ItemLoader(item={})
    for name, value in values.items():
        loader.add_value(name, value)
    item: dict[str, list[Any]] = loader.load_item()
    return item


EVENTS: dict[str, Callable[..., Any]] = {
    "dict": dict,
    "dataclass": DataclassEvent,
    "attrs": AttrsEvent,
    "pydantic": PydanticEvent,
    "loader": loaded,
}


class EventSpider(scrapy.Spider):
    """Requests URLs one after another, and yields the rows that each lists as JSON as items of a kind.

    `spec`: `urls`, and optionally `kind`, `method` and `own`, the field for the URL of the page.
    """

    name = "events"
    custom_settings = {"CONCURRENT_REQUESTS": 1}  # noqa: RUF012 - in the order of the URLs

    def __init__(self, spec: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec

    async def start(self):
        for number, url in enumerate(self.spec["urls"]):
            yield scrapy.Request(url, method=self.spec.get("method", "GET"), priority=-number)

    def parse(self, response):
        for row in response.json():
            if own := self.spec.get("own"):
                row[own] = response.url
            yield EVENTS[self.spec.get("kind", "dict")](**row)


class OtherEventSpider(EventSpider):
    """The same under another name."""

    name = "other_events"


class Gazette(scrapy.Item):
    """An edition of a gazette as a project of official gazettes has it: the text is in a file."""

    territory_id = scrapy.Field()
    date = scrapy.Field()
    edition_number = scrapy.Field()
    is_extra_edition = scrapy.Field()
    power = scrapy.Field()
    scraped_at = scrapy.Field()
    file_urls = scrapy.Field()
    files = scrapy.Field()


class Meeting(scrapy.Item):
    """A public meeting as a project of cities' calendars has it: many of a page, with one description."""

    title = scrapy.Field()
    description = scrapy.Field()
    classification = scrapy.Field()
    status = scrapy.Field()
    start = scrapy.Field()
    end = scrapy.Field()
    all_day = scrapy.Field()
    location = scrapy.Field()
    links = scrapy.Field()
    source = scrapy.Field()
    id = scrapy.Field()


class Job(scrapy.Item):
    """An advertisement of a job board: one of a page."""

    url = scrapy.Field()
    job_title = scrapy.Field()
    company = scrapy.Field()
    city = scrapy.Field()
    salary_min = scrapy.Field()
    salary_max = scrapy.Field()
    employment_type = scrapy.Field()
    date_posted = scrapy.Field()
    description_html = scrapy.Field()
    apply_url = scrapy.Field()
    crawled_at = scrapy.Field()


def gazette(row: dict[str, Any], url: str) -> Gazette:
    values = row | {"date": date.fromisoformat(row["date"]), "scraped_at": datetime.now(timezone.utc)}
    return Gazette(territory_id="4106902", power="executive", file_urls=[values.pop("file")], **values)


def meeting(row: dict[str, Any], url: str) -> Meeting:
    values = row | {"start": datetime.fromisoformat(row["start"]), "source": url}
    place = {"name": "City Hall", "address": values.pop("address", "121 Quay Street")}
    links = [{"title": "Agenda", "href": values.pop("agenda")}] if "agenda" in row else []
    values["id"] = f"board/{values['start']:%Y%m%d%H%M}/x/{'_'.join(row['title'].lower().split())}"
    return Meeting(classification="Board", all_day=False, end=None, location=place, links=links, **values)


def job(row: dict[str, Any], url: str) -> Job:
    return Job(url=url, employment_type="FULL_TIME", crawled_at=datetime.now(timezone.utc).isoformat(), **row)


MADE: dict[str, Callable[[dict[str, Any], str], scrapy.Item]] = {"gazette": gazette, "meeting": meeting, "job": job}


class ProjectSpider(EventSpider):
    """Yields the rows that each URL lists as the items of a project: `spec` names its `shape`."""

    name = "project"

    def parse(self, response):
        for row in response.json():
            yield MADE[self.spec["shape"]](row, response.url)
