"""docs/mutants.md: what noticed each function's decisions where they were missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "mutants.md"
MOST_S, TEST_S, WAITS = 1_200, 120, 20
"""CPU seconds after which a mutant, and a test with it, has no end; by the clock so many times that.

By the clock all is slow where others are at work too. With nothing wrong all tests and explorations
of a mutant take some 250 CPU seconds, and a test a few. One that waits for ever uses none.
"""
MOST = 200_000
"""States after which an exploration has no end; the largest has less than half as many."""
_HEAD = f"""\
# Each decision of a hand-over, and what notices it where it is missing

`make prove-mutants` takes each decision out in turn: a statement, a condition, a part of one, a case, one
argument of `min` or `max`. Then a unit test must fail, or the exploration must find something wrong. It writes
this page after each function, and begins with what it does not say yet: a function that is not listed, or is not
as it was when it was tried (`of` tells it from any other), or of which something was not noticed. `ALL=1` tries all
once more, `MODULES=` some modules alone. Named is what failed first, so others may fail too.

Without a decision a loop may run for ever, which counts as noticed, and is named as `no end`: a test had used
{TEST_S} CPU seconds, where it takes a few, or all tests and explorations {MOST_S:,}, where they take some 250; or an
exploration had come to {MOST:,} states. What only waits is ended after {WAITS} times as many seconds by the clock.
"""
_COLUMNS = ("decisions", "noticed", "no difference", "not noticed")
_ROW = re.compile(r"\| `([\w.]+)` \|" + r" (\d+) \|" * 4 + r" (.*) \| (?:`(\w+)`)? \|")
_TEST = re.compile(r"`(test_\w+\.py)`|`(test_\w+)`")
_EXPLORED = "the exploration"
_IN_WORDS = re.compile(
    rf"{_EXPLORED}|it dies|no end(?: of a test)? in [\d,]+ (?:CPU seconds|seconds|states)"
)
_MISSED = re.compile(r"- (`([\w.]+): .*`, line \d+)")


@dataclass(frozen=True, slots=True)
class Noted:
    """One function: how many decisions were noticed, need not be, or were not; and by what."""

    name: str
    noticed: int = 0
    unneeded: int = 0
    missed: int = 0
    by: Sequence[str] = ()  # as test_file.py::test_name, or in other words
    unnoticed: Sequence[str] = ()  # those that were not noticed, as the page says it
    of: str = ""  # the function as it was tried

    @property
    def counts(self) -> tuple[int, ...]:
        """What the columns say."""
        every = self.noticed + self.unneeded + self.missed
        return (every, self.noticed, self.unneeded, self.missed)


def noted_of(name: str, told: Iterable[tuple[str, str, str]], of: str = "") -> Noted:
    """Return what is noted of a function: of each mutant its name, what noticed it, why none need."""
    told = tuple(told)
    by = [_plain(by) for _, by, _ in told if by]
    missed = [which for which, by, reason in told if not by and not reason]
    unneeded = len(told) - len(by) - len(missed)
    return Noted(name, len(by), unneeded, len(missed), tuple(dict.fromkeys(by)), tuple(missed), of)


def decision_at(decision: str, line: int) -> str:
    """Name a decision that nothing noticed."""
    return f"`{decision}`, line {line}"


def _plain(by: str) -> str:
    """The test without its parameters, and without where it lies."""
    if "::" not in by:
        return _EXPLORED if "explored" in by else by
    return by.rpartition("/")[2].partition("[")[0]


def read_page(page: Path = PAGE) -> Iterator[Noted]:
    """Yield what the page says as it is."""
    lines = page.read_text().splitlines() if page.exists() else []
    missing = [found.groups() for line in lines if (found := _MISSED.fullmatch(line))]
    module = ""
    for line in lines:
        module = line.removeprefix("## ") if line.startswith("## ") else module
        if (row := _ROW.fullmatch(line)) and module:
            name, by = f"{module}.{row[1]}", tuple(_named(row[6]))
            missed = tuple(which for which, where in missing if where == name)
            yield Noted(name, int(row[3]), int(row[4]), int(row[5]), by, missed, row[7] or "")


def _named(words: str) -> Iterator[str]:
    file = ""
    for found in _TEST.finditer(words):
        file = found[1] or file
        if found[2]:
            yield f"{file}::{found[2]}"
    yield from _IN_WORDS.findall(words)


def write_page(
    modules: Sequence[str], noted: Iterable[Noted], unneeded: Mapping[str, str], page: Path = PAGE
) -> None:
    """Write the page anew, by module and function."""
    parts = {one: [each for each in noted if each.name.startswith(f"{one}.")] for one in modules}
    lines = [_HEAD, _columns("module"), "|---|---|---|---|---|"]
    lines += [_row(name, _summed(some)) for name, some in parts.items() if some]
    for module, some in parts.items():
        if some:
            lines += [
                "",
                f"## {module}",
                "",
                f"{_columns('function')} by | of |",
                "|---|---|---|---|---|---|---|",
            ]
            lines += [
                f"{_row(one.name.removeprefix(f'{module}.'), one.counts)} {_said(one.by)} | {_code(one.of)} |"
                for one in some
            ]
    lines += ["", "## Not noticed", ""]
    lines += [f"- {which}" for some in parts.values() for one in some for which in _missed(one)]
    lines += ["", "## Known to make no difference", ""]
    lines += [f"- `{name}`: {reason}." for name, reason in sorted(unneeded.items())]
    page.write_text("\n".join(lines) + "\n")


def _missed(one: Noted) -> Iterator[str]:
    """Name what was not noticed; of what was tried before it was named there is the count alone."""
    yield from one.unnoticed
    if unnamed := one.missed - len(one.unnoticed):
        yield f"`{one.name}`: {unnamed}, to be tried again: not named before"


def _columns(first: str) -> str:
    return f"| {first} | {' | '.join(_COLUMNS)} |"


def _row(name: str, counts: Sequence[int]) -> str:
    return f"| `{name}` | {' | '.join(map(str, counts))} |"


def _code(word: str) -> str:
    return f"`{word}`" if word else ""


def _summed(some: Iterable[Noted]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*(one.counts for one in some), strict=True)))


def _said(by: Sequence[str]) -> str:
    """Name the tests, each file once."""
    tests = sorted(tuple(one.split("::")) for one in by if "::" in one)
    files = [
        f"`{file}`: {', '.join(f'`{name}`' for _, name in some)}"
        for file, some in groupby(tests, key=lambda test: test[0])
    ]
    return "; ".join((*files, *sorted(one for one in by if "::" not in one)))
