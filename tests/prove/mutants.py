"""Code of Pliant with one decision taken out, in place, and put back.

Taken out is, in turn: a statement that has an effect, a whole ``if`` or only its condition, one
part of an ``and`` or ``or``, one side of a choice, one case of a ``match`` or one of its patterns, one
argument of ``min`` or ``max``, a comparison that a function returns or hands on, and one entry of
what something is looked for in, of a set, or of a table: of a function or of the module.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any
from unittest.mock import patch

Place = tuple[str | int, ...]
"""The way from a function's node to one below it, by names of fields and numbers in lists."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One decision that is taken out of a function or a constant: ``what`` says which.

    ``left``: its code without; of a constant its value, and those of what is made of it, by name.
    ``of``: what tells the function or constant as it is from any other, whatever its comments say.
    """

    module: ModuleType
    function: str
    line: int
    what: str
    left: CodeType | Mapping[str, object]
    of: str

    @property
    def where(self) -> str:
        """The function or constant, with its module."""
        return f"{self.module.__name__}.{self.function}"

    @property
    def name(self) -> str:
        """Where it is, and what is taken out."""
        return f"{self.where}: {self.what}"

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Let the function, or the constant for all who have it, be without it."""
        with contextlib.ExitStack() as stack:
            if isinstance(self.left, CodeType):
                stack.enter_context(_but_its_code(_function(self.module, self.function), self.left))
            else:
                for name, left in self.left.items():
                    stack.enter_context(_but_its_value(self.module, name, left))
            yield


@contextlib.contextmanager
def _but_its_code(function: FunctionType, code: CodeType) -> Iterator[None]:
    whole = function.__code__
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = whole


@contextlib.contextmanager
def _but_its_value(module: ModuleType, name: str, value: object) -> Iterator[None]:
    """Let a constant be so for all who have imported it."""
    whole = vars(module)[name]
    with contextlib.ExitStack() as stack:
        for place in [*sys.modules.values()]:
            if vars(place).get(name) is whole:
                stack.enter_context(patch.object(place, name, value))
        yield


def mutants(module: ModuleType, only: Sequence[str] = ()) -> Iterator[Mutant]:
    """Yield what may be taken out of a module's functions, of ``only`` these where any are named."""
    tree = ast.parse(inspect.getsource(module))
    for name, at in _functions(tree):
        node = _below(tree, at)
        of = _digest(node)
        if (not only or name in only) and not _is_abstract(node):
            for line, what, less in _without(node):
                other = _with(tree, at, less)
                ast.fix_missing_locations(other)
                yield Mutant(module, name, line, what, _code(module, other, name), of)
    constants = dict(_constants(tree))
    for name, value in () if only else constants.items():
        for line, what, less in _less_of(value):
            left = {name: _value(module, less, {})}
            for other, made in constants.items():
                if any(isinstance(one, ast.Name) and one.id in left for one in ast.walk(made)):
                    left[other] = _value(module, made, left)
            yield Mutant(module, name, line, f"{what} in {name}", left, _digest(value))


def _digest(node: ast.AST) -> str:
    return hashlib.sha256(ast.unparse(node).encode()).hexdigest()[:8]


def _constants(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a module's names are, in order; what is said of types is none."""
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.expr() as value) | ast.AnnAssign(
                ast.Name(name), _, ast.expr() as value
            ) if not isinstance(value, ast.Subscript):
                yield name, value


def _less_of(value: ast.expr) -> Iterator[tuple[int, str, ast.expr]]:
    """Yield a constant that lacks one entry: of which line, which, and what is left."""
    for at, node in _all(ast.Expression(value), ()):
        if isinstance(node, ast.Tuple | ast.Set) and len(node.elts) > 1:
            for one, rest in _one_less(node.elts):
                yield node.lineno, ast.unparse(one), _with(value, at[1:], _but(node, "elts", rest))


def _value(module: ModuleType, value: ast.expr, others: Mapping[str, object]) -> object:
    code = compile(ast.Expression(value), str(module.__file__), "eval")
    return eval(code, {**vars(module), **others})  # noqa: S307  # Pliant's own source


def _functions(tree: ast.AST) -> Iterator[tuple[str, Place]]:
    for number, node in enumerate(tree.body):  # type: ignore[attr-defined]  # of a module or class
        if isinstance(node, ast.FunctionDef):
            yield node.name, ("body", number)
        elif isinstance(node, ast.ClassDef):
            for name, at in _functions(node):
                yield f"{node.name}.{name}", ("body", number, *at)


def _is_abstract(node: Any) -> bool:
    return all(isinstance(one, ast.Expr) for one in node.body)


# --- what is taken out ---------------------------------------------------------------------


def _without(function: Any) -> Iterator[tuple[int, str, Any]]:
    """Yield each function that lacks one thing: of which line, what, and what is left."""
    for at, node in _all(function, ()):
        for what, instead in _instead(node):
            yield _line(function, at), what, _with(function, at, instead)


def _all(node: Any, at: Place) -> Iterator[tuple[Place, Any]]:
    """Yield all that is in a function's body."""
    for name, value in ast.iter_fields(node):
        if not at and name != "body":
            continue
        several = isinstance(value, list)
        for number, one in enumerate(value if several else [value]):
            if isinstance(one, ast.AST):
                here = (*at, name, number) if several else (*at, name)
                yield here, one
                yield from _all(one, here)


def _instead(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield what may stand in a node's place, each with what is missing then."""
    match node:
        case ast.stmt():
            yield from _of_statement(node)
        case ast.IfExp():
            yield from _decided(node)
        case ast.BoolOp():
            for one, rest in _one_less(node.values):
                yield ast.unparse(one), rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.Call(ast.Name("min" | "max" as name), [_, _, *_]):
            for one, rest in _one_less(node.args):
                least = rest[0] if len(rest) == 1 else ast.Call(node.func, rest, node.keywords)
                yield f"{ast.unparse(one)} in {name}", least
        case ast.match_case() if not _takes_all(node.pattern):
            never = ast.match_case(node.pattern, ast.Constant(False), node.body)
            yield f"case {ast.unparse(node.pattern)}", never
        case ast.comprehension(ifs=[first, *rest]):
            every = ast.comprehension(node.target, node.iter, rest, node.is_async)
            yield f"for ... if {ast.unparse(first)}", every
        case ast.keyword(value=ast.Compare()):
            yield from _compared(node)
        case _:
            yield from _of_several(node)


def _of_several(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield what has entries, each without one."""
    match node:
        case ast.MatchOr(patterns):
            for one, rest in _one_less(patterns):
                less = rest[0] if len(rest) == 1 else ast.MatchOr(rest)
                yield f"case ... | {ast.unparse(one)}", less
        case ast.Compare(_, [ast.In() | ast.NotIn()], [ast.Tuple() | ast.List() as several]):
            for one, rest in _one_less(several.elts):
                less = _but(node, "comparators", [_but(several, "elts", rest)])
                yield f"{ast.unparse(one)} in {ast.unparse(node)}", less
        case ast.Call(ast.Name("all" | "any" as name), [ast.Tuple() | ast.List() as several]):
            for one, rest in _one_less(several.elts):
                yield (
                    f"{ast.unparse(one)} of {name}",
                    _but(node, "args", [_but(several, "elts", rest)]),
                )
        case (
            ast.Set([_, _, *_])
            | ast.Tuple([ast.Tuple(), ast.Tuple(), *_], ast.Load())
            | ast.Tuple([ast.Compare(), _, *_])
        ):
            for one, rest in _one_less(node.elts):
                yield f"{ast.unparse(one)} of several", _but(node, "elts", rest)


def _of_statement(node: Any) -> Iterator[tuple[str, Any]]:
    match node:
        case ast.Expr(ast.Constant() | ast.Call(ast.Attribute(ast.Name("log")))):
            return  # a docstring, or what is only logged
        case ast.Expr() | ast.AugAssign() | ast.Delete():
            yield ast.unparse(node), ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.unparse(node), ast.Pass()
        case ast.If():
            yield from _decided(node)
        case ast.Return(ast.Compare()):
            yield from _compared(node)


def _decided(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield a choice that is made."""
    for name, value in (("never", False), ("always", True)):
        yield f"if {ast.unparse(node.test)}: {name}", _but(node, "test", ast.Constant(value))


def _compared(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield what has the same result however two things compare."""
    for value in (True, False):
        yield f"{ast.unparse(node.value)}: {value}", _but(node, "value", ast.Constant(value))


def _one_less(every: Sequence[Any]) -> Iterator[tuple[Any, list[Any]]]:
    for number, one in enumerate(every):
        yield one, [*every[:number], *every[number + 1 :]]


def _takes_all(pattern: Any) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


# --- trees and code ------------------------------------------------------------------------


def _below(node: Any, at: Place) -> Any:
    for step in at:
        node = node[step] if isinstance(step, int) else getattr(node, step)
    return node


def _line(node: Any, at: Place) -> int:
    """The line of what is there, or of the nearest above that has one."""
    return next(
        line
        for end in range(len(at), -1, -1)
        if (line := getattr(_below(node, at[:end]), "lineno", 0))
    )


def _with(node: Any, at: Place, instead: Any) -> Any:
    """Return the same tree with something else in that place; what is beside it is shared."""
    if not at:
        return ast.copy_location(instead, node) if isinstance(instead, ast.stmt) else instead
    step, *rest = at
    if isinstance(step, int):
        return [*node[:step], _with(node[step], tuple(rest), instead), *node[step + 1 :]]
    return _but(node, step, _with(getattr(node, step), tuple(rest), instead))


def _but(node: Any, name: str, value: Any) -> Any:
    """Return the same node, but for one of its fields."""
    other = copy.copy(node)
    setattr(other, name, value)
    return other


def _code(module: ModuleType, tree: ast.Module, name: str) -> CodeType:
    whole = compile(tree, str(module.__file__), "exec")
    for part in name.split("."):
        whole = next(
            one for one in whole.co_consts if isinstance(one, CodeType) and one.co_name == part
        )
    return whole


def _function(module: ModuleType, name: str) -> FunctionType:
    found: Any = module
    for part in name.split("."):
        found = vars(found)[part]
    found = getattr(found, "fget", None) or getattr(found, "__wrapped__", found)
    found = getattr(found, "__func__", found)
    assert isinstance(found, FunctionType), (name, found)
    return found
