"""The grammar that the build puts into the hooks for PBS is the grammar: same verdict, same words."""

from __future__ import annotations

import ast
import types
from typing import Any

import pytest
from grammar_cases import BAD, GOOD, NEAR_WORDS, PAIRS, SPEEDS, pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from pliant.errors import BadSpec
from pliant.grammar import OPTIONS, parse_option, request_text, shapes
from pliant.hooks import HOOKS, hook_text
from pliant.hooks.bundle import bundled
from pliant.hooks.older import TooNew, translated
from pliant.model import Request, Shape, shape_text

HOOK = """
from pliant.errors import BadSpec
from pliant.grammar import parse_option, request_text, shapes
from pliant.model import Request, Shape, shape_text

def says(option, value):
    try:
        return seen(Request, parse_option, request_text, shapes, Shape, shape_text, option, value)
    except BadSpec as wrong:
        return str(wrong)

def seen(request, parse, text, every, shape, written, option, value):
    found = parse(request(), option, value)
    few = max(map(len, (found.gpus, found.nodes))) < 20
    return text(found), [written(one) for one in every(found, shape(1, 1))] if few else []
"""


@pytest.fixture(scope="module")
def inside() -> Any:
    """The grammar as a hook has it."""
    text = "\n".join(map(ast.unparse, map(ast.fix_missing_locations, bundled(HOOK + "\nsays\n"))))
    module = types.ModuleType("inside")
    exec(compile(text, "<hook>", "exec"), module.__dict__)  # noqa: S102  # what the build made
    return module


def python_says(option: str, value: str) -> object:
    try:
        request = parse_option(Request(), option, value)
    except BadSpec as wrong:
        return str(wrong)
    few = max(map(len, (request.gpus, request.nodes))) < 20
    found = shapes(request, Shape(1, 1)) if few else ()
    return request_text(request), [shape_text(one) for one in found]


def test_what_is_right_and_what_is_wrong_is_said_in_the_same_words(inside: Any) -> None:
    for option, value in (*pairs(GOOD), *pairs(BAD)):
        assert inside.says(option, value) == python_says(option, value)


@settings(max_examples=60, deadline=None)
@given(
    option=st.sampled_from(OPTIONS),
    value=st.one_of(PAIRS, SPEEDS, NEAR_WORDS, st.text(max_size=60)),
)
def test_both_judge_any_text_alike(inside: Any, option: str, value: str) -> None:
    assert inside.says(option, value) == python_says(option, value)


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_one_file_of_ascii_for_python_3_6_and_its_standard_library(name: str) -> None:
    text = hook_text(name)
    tree = ast.parse(text.encode("ascii"), feature_version=(3, 6))
    imported = {
        f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert imported <= {
        "pbs", "json", "os", "stat", "sys", "types", "enum", "re", "time", "base64", "binascii",
        "zlib", "subprocess", "fractions.Fraction", "functools.lru_cache",
    }  # fmt: skip
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not called & {"removeprefix", "removesuffix", "isascii"}
    # Python 3.12 and later write what is in them as 3.6 cannot read it
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]


@pytest.mark.parametrize(
    "source",
    [
        "if (x := 1): pass",
        "def f(a, /): pass",
        "match x:\n    case [1, 2]: pass",
        "match x:\n    case 1 if y: pass",
        "try: pass\nexcept* ValueError: pass",
        "f'{x:{y}}'",
    ],
)
def test_what_python_3_6_does_not_know_stops_the_build(source: str) -> None:
    with pytest.raises(TooNew):
        translated(ast.parse(source))


def test_two_definitions_of_one_name_stop_the_build() -> None:
    with pytest.raises(TooNew, match="stands in"):
        bundled(
            "from pliant.filter.choose import _distance as one\n"
            "from pliant.filter.pbs.choose import _distance as other\none, other\n"
        )


def test_match_becomes_what_it_means() -> None:
    source = (
        "match x:\n    case 'a': y = 1\n    case 'b': y = 2\n    case _:\n        y = 3\n        z = 4\n"
        "match x:\n    case _:\n        a = 1\n        b = f'{x!r:>5}{{}}'\n"
    )
    for x in "abc":
        new: dict[str, object] = {"x": x}
        old = dict(new)
        exec(compile(source, "new", "exec"), new)  # noqa: S102  # what stands above
        text = ast.unparse(translated(ast.parse(source)))
        assert "match" not in text
        exec(compile(text, "old", "exec"), old)  # noqa: S102  # as above
        for space in (new, old):
            space.pop("__builtins__")
        assert old == new
