"""Choose the extractor of main text: the built-in one, trafilatura, or the user's function.

The title always comes from the built-in extractor, so that it does not depend on this choice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from lxml import etree

from .html import Page, html_to_page

Extract = Callable[[str], str | None]
"""A function that takes the HTML of a page, and returns its main text; None or "" if there is none."""
BUILTIN = "builtin"
TRAFILATURA = "trafilatura"
ALLOWED = f"{BUILTIN!r}, {TRAFILATURA!r}, or (the import path of) a function that takes HTML and returns its main text"


class Read(Protocol):
    """A function that reads a page."""

    def __call__(self, html: str, *, root: etree._Element | None = None) -> Page:
        """Read a page. `root` is its parsed tree, if there is one."""


def build_reader(extractor: str | Extract) -> Read:
    """Return the reader for `extractor`, which is a name, an import path or a function.

    An import path is imported once. For any other value, raise ValueError, which states the allowed values.
    """
    return _named(extractor) if isinstance(extractor, str) else _own(extractor)


def is_heavy(extractor: str | Extract) -> bool:
    """Return whether an extractor is too slow to run in the reactor.

    trafilatura is too slow. A user's function is too slow if it has an attribute `heavy` that is true.
    """
    if isinstance(extractor, str):
        return extractor == TRAFILATURA or (extractor != BUILTIN and is_heavy(imported(extractor, ALLOWED)))  # type: ignore[arg-type]
    return bool(getattr(extractor, "heavy", False))


@cache
def _named(name: str) -> Read:
    if name == BUILTIN:
        return html_to_page
    return _trafilatura() if name == TRAFILATURA else _own(imported(name, ALLOWED))


class ExtractorError(Exception):
    """A user's function failed on a page. The message names the function and its error."""


def _own(extract: object) -> Read:
    if isinstance(extract, type) or not callable(extract):
        raise ValueError(ALLOWED)
    name = getattr(extract, "__qualname__", repr(extract))

    def read(html: str, *, root: etree._Element | None = None) -> Page:
        try:
            text = extract(html)
        except Exception as error:
            raise ExtractorError(f"NEARDUP_EXTRACTOR: {name} failed on a page: {error!r}") from error
        if not isinstance(text, (str, type(None))):
            raise ExtractorError(f"NEARDUP_EXTRACTOR: {name} returned {type(text).__name__}; allowed is str or None")
        # If the user's function finds no text, the page has none. Text that the function leaves out must not come back.
        return html_to_page(html, text or "", root)

    return read


def _trafilatura() -> Read:
    try:
        extract: Callable[..., str | None] = import_module("trafilatura").extract
    except ImportError as error:
        command = "pip install 'scrapy-neardup[trafilatura]'"
        raise ValueError(f"{TRAFILATURA!r} if it is installed ({error}); {command}") from error

    def read(html: str, *, root: etree._Element | None = None) -> Page:
        # trafilatura returns None for many short pages and lists. The text of the built-in reader is used then.
        page = html_to_page(html, root=root)
        text = extract(html, **_TRAFILATURA_OPTIONS)
        return page._replace(text=text, thin=False) if text else page

    return read


# Comments differ from fetch to fetch. Remains of a template make copies look different.
_TRAFILATURA_OPTIONS: dict[str, Any] = {"include_comments": False, "include_tables": True, "favor_precision": True}


def imported(path: str, allowed: str) -> object:
    """Return the object at an import path. Raise ValueError, with the `allowed` values, if there is none."""
    module, dot, name = path.rpartition(".")
    if not dot:
        raise ValueError(allowed)
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # the user's module may raise anything on import
        raise ValueError(f"{allowed}; {path!r} can't be imported: {error}") from error
