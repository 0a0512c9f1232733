"""Small changes to Python sources, each of which a test should notice.

Left alone: annotations, decorators, f-strings and other messages, logging, `__repr__`, and code for type checkers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
LOGGING = ("debug", "info", "warning", "error", "exception", "log", "warn")
NOT_DECIDING = (
    "annotation",
    "returns",
    "decorator_list",
    "type_params",
    "bases",
    "keywords",
)  # of a class, the last two


class Mutant(NamedTuple):
    path: str
    line: int
    start: int
    """The first byte that is replaced."""
    end: int
    before: str
    after: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"

    def of(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Yield all changes of a file, one at a time."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    tree = ast.parse(source)
    tests = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.While | ast.IfExp)}
    for node in deciding(tree):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        for new in negated(node) if id(node) in tests else changed(node):
            after = f"({ast.unparse(new)})" if isinstance(node, ast.expr) else ast.unparse(new)
            yield Mutant(path, node.lineno, start, end, ast.unparse(node), after)


def deciding(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the parts of a node that decide what the program does."""
    for name, value in ast.iter_fields(node):
        if name in NOT_DECIDING and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not ignored(child):
                if isinstance(child, ast.expr | ast.stmt):
                    yield child
                if not isinstance(child, ast.Raise):  # its message
                    yield from deciding(child)


def ignored(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="logger" | "warnings")))):
            return name in LOGGING
        case ast.Compare(left=ast.Attribute(value=ast.Name(id="os" | "sys"))):  # the system that this runs on
            return True
        case ast.If(test=test, body=body, orelse=other):
            only_logs = not other and all(isinstance(part, ast.Expr) and ignored(part) for part in body)
            return only_logs or any(name in ast.unparse(test) for name in ("TYPE_CHECKING", "__name__"))
    return False


def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield replacements for a node."""
    match node:
        case ast.Compare(ops=[operator], left=left, comparators=others):
            yield from (ast.Compare(left, [other()], others) for other in COMPARISONS[type(operator)])
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            if not any(isinstance(part, ast.JoinedStr) or is_text(part) for part in (left, right)):
                yield ast.BinOp(left, OPERATORS[type(operator)](), right)
        case ast.AugAssign(target=target, op=operator, value=value) if type(operator) in OPERATORS:
            yield ast.AugAssign(target, OPERATORS[type(operator)](), value)
        case ast.BoolOp(op=operator, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.Return(value=ast.expr() as value) if not is_none(value):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise():
            yield ast.Pass()
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()


def negated(condition: ast.AST) -> Iterator[ast.AST]:
    """Yield the changes of a condition; negate one that has none in itself."""
    if isinstance(condition, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr | ast.Subscript):
        yield ast.UnaryOp(ast.Not(), condition)
    else:
        yield from changed(condition)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
