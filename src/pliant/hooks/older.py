"""Python as Pliant is written, in the words of Python 3.6.

Annotations go (those of a dataclass become text), ``match`` on plain values becomes ``if``, methods
of strings that are younger become calls of the prelude's functions, and f-strings calls of
format(): from 3.12 on Python writes them with quotes that 3.6 does not read. What else 3.6 does not
know is refused here, so that it is seen when a hook is built and not when PBS reads it.
"""

from __future__ import annotations

import ast

VERSION = (3, 6)
METHODS = ("removeprefix", "removesuffix", "isascii")
"""Methods of str that plugins/pbs/prelude.py has as functions."""


class TooNew(Exception):
    """A module uses what cannot be said in Python 3.6."""


def translated(tree: ast.Module) -> ast.Module:
    """Return a module without what is newer than 3.6.

    Raises TooNew.
    """
    older: ast.Module = _Older().visit(tree)
    return ast.fix_missing_locations(older)


class _Older(ast.NodeTransformer):
    def __init__(self) -> None:
        self.in_class = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:  # ast's names
        outer, self.in_class = self.in_class, True
        self.generic_visit(node)
        self.in_class = outer
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, self.in_class = self.in_class, False
        node.returns = None
        self.generic_visit(node)
        self.in_class = outer
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        if node.posonlyargs:
            raise TooNew("arguments by position alone")
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if self.in_class:
            node.annotation = ast.Constant(ast.unparse(node.annotation))
            return node
        if node.value is None:
            return None
        assigned: ast.AST = self.visit(ast.Assign([node.target], node.value))
        return assigned

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            name = ast.Name(node.func.attr, ast.Load())
            return ast.Call(name, [node.func.value, *node.args], node.keywords)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        values: list[ast.expr] = []
        text = "".join(_field(part, values) for part in node.values)
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, [])

    def visit_Match(self, node: ast.Match) -> list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.subject, ast.Name):
            raise TooNew("match on what has no name")
        rest: list[ast.stmt] = []
        for case in reversed(node.cases):
            if case.guard:
                raise TooNew("match with if")
            test = _test(node.subject, case.pattern)
            rest = [ast.If(test, case.body, rest)] if test else case.body
        return rest

    def visit_NamedExpr(self, _node: ast.NamedExpr) -> ast.AST:
        raise TooNew(":=")

    def visit_TryStar(self, _node: ast.AST) -> ast.AST:
        raise TooNew("except*")


def _field(part: ast.expr, values: list[ast.expr]) -> str:
    """Return what a part of an f-string is for format(), and note the value that it names."""
    if isinstance(part, ast.Constant):
        return str(part.value).replace("{", "{{").replace("}", "}}")
    assert isinstance(part, ast.FormattedValue)  # noqa: S101  # there is nothing else in one
    values.append(part.value)
    how = f"!{chr(part.conversion)}" if part.conversion >= 0 else ""
    if part.format_spec is None:
        return f"{{{how}}}"
    spec = part.format_spec  # an f-string, translated by now
    assert isinstance(spec, ast.Call)  # noqa: S101  # as visit_JoinedStr makes it
    assert isinstance(spec.func, ast.Attribute)  # noqa: S101  # as above
    if spec.args:
        raise TooNew("a value within the format of another")
    return f"{{{how}:{ast.literal_eval(spec.func.value)}}}"


def _test(subject: ast.Name, pattern: ast.pattern) -> ast.expr | None:
    """Return the condition that a pattern stands for; None: it always holds."""
    if isinstance(pattern, ast.MatchAs) and pattern.pattern is None and pattern.name is None:
        return None
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(ast.Name(subject.id, ast.Load()), [ast.Eq()], [pattern.value])
    raise TooNew(f"match with {type(pattern).__name__}")
