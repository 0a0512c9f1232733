"""Find the modules, rooms and imports of the package. `python tests/house.py` prints a line for each file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "scrapy_neardup"
ROOMS = (
    *("native", "files", "text", "fingerprints", "settings", "signature", "verdict", "facts", "document", "items"),
    *("stats", "row_index", "papers", "detectors", "processes", "feeds", "hosts", "store", "matching", "mirrors"),
    *("deduplicator", "quality", "report", "crawl", "commands", "spark", "contrib"),
)
"""The rooms (subpackages and modules in the root) in order: each imports only from those before it."""


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its name within the package, such as `store.runs`; "" for __init__."""
    return {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """Return the room of a module; a module of the root is its own room."""
    return module.partition(".")[0]


@cache
def imports(module: str, *, late: bool = False) -> set[str]:
    """Return the modules of the package that a module imports; with `late`, also in functions and for types only."""
    return {target for node in _statements(modules()[module], late) for target in _targets(module, node)} - {module}


@cache
def outside(module: str, *, late: bool = True) -> set[str]:
    """Return the other packages that a module imports; with `late`, also in functions and for types only."""
    found = list(_statements(modules()[module], late))
    names = [alias.name for node in found if isinstance(node, ast.Import) for alias in node.names]
    names += [str(node.module) for node in found if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def _statements(tree: ast.AST, late: bool) -> Iterator[ast.ImportFrom | ast.Import]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.ImportFrom, ast.Import)):
            yield node
        elif isinstance(node, ast.If) and not late and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from (each for other in node.orelse for each in _statements(ast.Module([other], []), late))
        elif late or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _statements(node, late)


def _targets(module: str, node: ast.ImportFrom | ast.Import) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (name for alias in node.names if (name := alias.name.removeprefix("scrapy_neardup.")) in modules())
        return
    is_package = (PACKAGE / module.replace(".", "/") / "__init__.py").is_file()
    parts = module.split(".") if module else []
    base = parts[: len(parts) - node.level + is_package] if node.level else []
    if not node.level and node.module != "scrapy_neardup":
        return
    path = ".".join([*base, *filter(None, [node.module])])
    for alias in node.names:
        inner = f"{path}.{alias.name}".lstrip(".")
        yield inner if inner in modules() else path


def chain() -> list[str]:
    """Return the longest chain of imports. Raise ValueError for a circle."""

    @cache
    def longest(module: str) -> list[str]:
        if module in under_way:
            raise ValueError(f"a circle of imports: {[*under_way[under_way.index(module) :], module]}")
        under_way.append(module)
        rest = max((longest(each) for each in sorted(imports(module))), key=len, default=[])
        under_way.remove(module)
        return [module, *rest]

    under_way: list[str] = []
    return max((longest(module) for module in modules()), key=len)


def main() -> None:
    """Print a line for each file of the package, and the totals."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _files()}
    for path, count in lines.items():
        first = (ast.get_docstring(modules()[_name(path)]) or "").partition("\n")[0] if path.suffix == ".py" else ""
        print(f"{count:5} {path.relative_to(PACKAGE)}  {first}")
    root = [path for path in lines if path.parent == PACKAGE]
    print(f"{len(lines)} files, {sum(lines.values())} lines, {len(root)} modules in the root")
    print(f"longest chain of imports: {len(chain())}: {' > '.join(chain())}")


def _files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".lua", ".c", ".h"))


if __name__ == "__main__":
    sys.exit(main())
