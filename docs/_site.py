"""Lays the repository out as a site: README.md is its front page; what is linked to outside docs/ comes along.

Links are written as they work in the repository. Here each is led to where its file lies in the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FRONT = {"README.md": "index.md", "README.zh-CN.md": "zh/index.md"}
LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the front pages, and each file outside docs/ that a page leads to."""
    sources = [*FRONT, *(in_repository(file.src_uri) for file in files.documentation_pages())]
    for source in sources:  # grows
        if not source.startswith("docs/"):
            files.append(File.generated(config, in_site(source), abs_src_path=str(ROOT / source)))
        if source.endswith(".md"):
            sources += dict.fromkeys(path for path in linked(source) if path not in sources)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead each link to where its file lies in the site."""
    here = page.file.src_uri

    def led(match: re.Match[str]) -> str:
        target = target_of(in_repository(here), match[1])
        return posixpath.relpath(in_site(target), posixpath.dirname(here) or ".") if target else match[1]

    return LINK.sub(led, markdown)


def linked(source: str) -> Iterator[str]:
    """Return the files outside docs/ that a page of the repository links to."""
    for link in LINK.findall((ROOT / source).read_text(encoding="utf-8")):
        target = target_of(source, link)
        if target and not target.startswith("docs/"):
            yield target


def target_of(source: str, link: str) -> str:
    """Return the file that a link of a file leads to, from the root of the repository; "" for none."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    return path if (ROOT / path).is_file() else ""


def in_site(path: str) -> str:
    """Return where a file of the repository lies in the site."""
    return FRONT.get(path, path.removeprefix("docs/"))


def in_repository(path: str) -> str:
    """Return where a page of the site lies in the repository."""
    known = {page: source for source, page in FRONT.items()}
    return known.get(path) or (path if (ROOT / path).is_file() else f"docs/{path}")
