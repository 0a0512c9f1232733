"""Items of every kind that Scrapy knows, for spiders and tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any

import attrs
import scrapy
from pydantic import create_model


def kinds(*fields: str) -> dict[str, Callable[..., Any]]:
    """Return a class with these fields for each kind of item. Fields that are not given are "", except in a dict."""
    pydantic: Any = dict.fromkeys(fields, (Any, ""))
    return {
        "dict": dict,
        "dataclass": make_dataclass("DataclassItem", [(name, Any, "") for name in fields]),
        "attrs": attrs.make_class("AttrsItem", {name: attrs.field(default="") for name in fields}),
        "pydantic": create_model("PydanticItem", **pydantic),
        "item": type("ScrapyItem", (scrapy.Item,), {name: scrapy.Field() for name in fields}),
    }
