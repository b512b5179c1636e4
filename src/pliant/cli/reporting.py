"""Where reports go: to stdout as text, to one file of HTML, to a directory as plots.

A report names users and what they did: its files are for their owner alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from pliant.cli.lazy import command_line
from pliant.cli.output import Column, Style, print_table, say
from pliant.cli.written import check_directory
from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.pages.model import Page, Table, plain

MODE = 0o600
HTML = click.option(
    "--html", metavar="FILE", default="", help="Write a report there too: one file, mode 0600."
)
PLOTS = click.option(
    "--plots", metavar="DIRECTORY", default="", help="Write plots there too, as PNG."
)
REPORT_OPTIONS = (HTML, PLOTS)


def check_report(html: str, plots: str) -> bool:
    """Return whether pictures are to be shown; nothing is written yet.

    Raises BadInput where plots could not be written, Unavailable where they were asked for and
    matplotlib is not installed. The other files: :func:`pliant.cli.written.check_written`.
    """
    if plots:
        from pliant.simulator.report.plots import check  # noqa: PLC0415  # large

        path = Path(plots).absolute()
        if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
            raise BadInput(f"--plots: {quoted(plots)}: a directory, or a new one, is expected")
        check_directory("--plots", plots, path if path.exists() else path.parent)
        check()
    return bool(html or plots)


def write_report(page: Page, html: str, plots: str = "") -> None:
    """Write what was asked for. Raises Unavailable."""
    from pliant.cli.install.record import write  # noqa: PLC0415  # only where something is written

    if html:
        from pliant.pages.html import Made  # noqa: PLC0415  # only where a page is written
        from pliant.pages.html import html as as_html  # noqa: PLC0415  # as the last

        made = Made(command_line(), time.strftime("%Y-%m-%d %H:%M %Z"))
        write(Path(html), as_html(page, made), MODE)
    if plots:
        from pliant.simulator.report.plots import png  # noqa: PLC0415  # large

        for picture in page.pictures:
            write(Path(plots) / f"{picture.name}.png", png(picture), MODE)


def print_page(page: Page) -> None:
    """Print a page as text, without its tiles and pictures."""
    for words in (*page.about, *page.lead):
        say(plain(words))
    for part in page.parts:
        if not (part.items or part.tables):
            continue
        say()
        say(f"{part.title}:")
        for words in part.paragraphs:
            say(words)
        for item in part.items:
            say(f"- {plain(item)}")
        for table in part.tables:
            _print_table(table)


def _print_table(table: Table) -> None:
    say()
    if table.title:
        say(table.title)
    if table.note:
        say(table.note)
    columns: list[Column[Any]] = []
    for place, name in enumerate(table.header):
        columns.append(Column(name, _cell(place), right=place not in table.words))
        if any(map(_change(place), table.rows)):
            columns.append(Column("change", _change(place), right=True))
    print_table(table.rows, columns, Style())


def _cell(place: int) -> Callable[[Any], str]:
    return lambda row: plain(row[place])


def _change(place: int) -> Callable[[Any], str]:
    return lambda row: getattr(row[place], "more", "")
