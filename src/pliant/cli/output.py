"""What commands print: a rich table on a terminal, aligned columns elsewhere, JSON for programs."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, TypeVar

import click
import msgspec

from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted

T = TypeVar("T")
Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its name (also for -o) and its text for a row.

    ``right``: a number. ``usual``: shown where -o says nothing.
    """

    name: str
    text: Callable[[T], str]
    right: bool = False
    usual: bool = True


@dataclass(frozen=True, slots=True)
class Style:
    """How the user wants a table: as --json, --noheader and -o said."""

    as_json: bool = False
    header: bool = True
    fields: str = ""


def json_option(command: Command) -> Command:
    """Add ``--json`` to a command, as ``as_json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def table_options(columns: Sequence[Column[Any]]) -> Callable[[Command], Command]:
    """Add ``--json``, ``--noheader`` and ``-o`` to a command, which gets them as ``style``."""

    def add(command: Command) -> Command:
        @functools.wraps(command)
        def with_style(*args: Any, as_json: bool, noheader: bool, fields: str, **rest: Any) -> Any:
            _chosen(columns, fields)  # an unknown one is told before anybody is asked
            return command(*args, style=Style(as_json, not noheader, fields), **rest)

        names = ", ".join(column.name for column in columns)
        listed = click.option(
            "-o", "--output", "fields", metavar="FIELDS", default="", help=f"Columns: {names}."
        )(with_style)
        bare = click.option("--noheader", is_flag=True, help="Leave out the line of titles.")
        return json_option(bare(listed))

    return add


def print_json(value: Any) -> None:
    """Print dataclasses and builtins as indented JSON."""
    raw = msgspec.json.encode(value, enc_hook=_encode)
    click.echo(msgspec.json.format(raw, indent=2).decode())


def print_table(rows: Sequence[T], columns: Sequence[Column[T]], style: Style) -> None:
    """Print rows: with rich on a terminal, else as plain aligned columns.

    Raises BadInput for an unknown field.
    """
    chosen = _chosen(columns, style.fields)
    cells = [[printable(column.text(row)) for column in chosen] for row in rows]
    if on_terminal():
        from pliant.cli.rich_table import print_rich  # noqa: PLC0415  # slow to import

        print_rich([(column.name, column.right) for column in chosen], cells, style.header)
    else:
        click.echo(plain_table(chosen, cells, style.header), nl=False)


def plain_table(columns: Sequence[Column[T]], cells: list[list[str]], header: bool) -> str:
    """Return aligned columns, two blanks apart, without trailing blanks."""
    lines = [[column.name.upper() for column in columns], *cells] if header else cells
    widths = [max(map(len, line), default=0) for line in zip(*lines, strict=True)]
    text = ""
    for line in lines:
        padded = (
            cell.rjust(width) if column.right else cell.ljust(width)
            for cell, width, column in zip(line, widths, columns, strict=True)
        )
        text += "  ".join(padded).rstrip() + "\n"
    return text


def printable(text: str) -> str:
    """Return user text with everything that a terminal might obey as ``?``."""
    return "".join(char if char.isprintable() else "?" for char in text)


def on_terminal() -> bool:
    """Say whether a person looks. Raises Unavailable where stdout is closed."""
    if sys.stdout is None:
        raise Unavailable("stdout is closed: nothing can be printed")
    return sys.stdout.isatty()


@contextmanager
def solvers_on_stderr() -> Iterator[None]:
    """Keep stdout for the answer: HiGHS now and then prints a line there, whatever it is told."""
    if sys.stdout is None or sys.stderr is None:  # 1 and 2 may be any other file then
        yield
        return
    sys.stdout.flush()
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what C still holds back would come when the process ends
        os.dup2(stdout, 1)
        os.close(stdout)


def say(*words: str) -> None:
    """Print one line for a person on stdout."""
    click.echo(printable(" ".join(words)))


def _chosen(columns: Sequence[Column[T]], fields: str) -> Sequence[Column[T]]:
    if not fields:
        return [column for column in columns if column.usual]
    by_name = {column.name: column for column in columns}
    for name in fields.split(","):
        if name not in by_name:
            raise BadInput(f"-o: {quoted(name)}: one of {', '.join(by_name)} is expected")
    return [by_name[name] for name in fields.split(",")]


def _encode(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")
