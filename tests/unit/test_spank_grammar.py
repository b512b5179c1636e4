"""The SPANK plugin's checker and the Python parser: the same verdict in the same words."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from grammar_cases import ANY_BYTES, BAD, GOOD, LONG, NEAR_WORDS, PAIRS, SPEEDS, pairs
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from limits import HANG_S
from pliant.errors import BadSpec
from pliant.grammar import OPTIONS, parse_option
from pliant.model import Request

SPANK = Path(__file__).parents[2] / "spank"


class Checker:
    """The plugin's grammar as a program, built with the sanitizers where the compiler has them."""

    def __init__(self, program: Path) -> None:
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def check(self, option: str, value: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        for text in (option, value):
            self.process.stdin.write(os.fsencode(text) + b"\0")
        self.process.stdin.flush()
        return self.process.stdout.readline().decode("ascii").removesuffix("\n")

    def close(self) -> int:
        """End it and return its exit status: the sanitizers' leak check is part of it."""
        self.process.communicate(timeout=HANG_S)
        return self.process.returncode


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    build = tmp_path_factory.mktemp("spank")
    program = build / "grammar-check-san"
    make = ["make", "-s", "-C", str(SPANK), f"BUILD={build}", f"CC={compiler}"]
    if subprocess.run([*make, str(program)], check=False, timeout=HANG_S).returncode != 0:
        program = build / "grammar-check"  # a compiler without the sanitizers' libraries
        subprocess.run([*make, str(program)], check=True, timeout=HANG_S)
    started = Checker(program)
    yield started
    assert started.close() == 0


def python_says(option: str, value: str) -> str:
    try:
        parse_option(Request(), option, value)
    except BadSpec as error:
        return str(error)
    return "ok"


@pytest.mark.parametrize(("option", "value"), pairs(GOOD))
def test_what_is_right_is_right_for_both(checker: Checker, option: str, value: str) -> None:
    assert (checker.check(option, value), python_says(option, value)) == ("ok", "ok")


@pytest.mark.parametrize(("option", "value"), pairs(BAD))
def test_what_is_wrong_is_said_in_the_same_words(checker: Checker, option: str, value: str) -> None:
    said = python_says(option, value)
    assert said != "ok"
    assert checker.check(option, value) == said


def test_every_value_of_one_option_is_judged_alike_for_every_other(checker: Checker) -> None:
    values = {value for table in (GOOD, BAD) for _, value in pairs(table)}
    for option in OPTIONS:
        for value in sorted(values):
            assert checker.check(option, value) == python_says(option, value)


@settings(
    max_examples=1500,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    option=st.sampled_from(OPTIONS),
    value=st.one_of(PAIRS, SPEEDS, NEAR_WORDS, st.text(max_size=60), ANY_BYTES, LONG),
)
@example(option="throughput", value="4@cpu:both:1")
def test_both_judge_any_text_alike(checker: Checker, option: str, value: str) -> None:
    value = value.replace("\0", "")
    assert checker.check(option, value[:100_000]) == python_says(option, value[:100_000])
