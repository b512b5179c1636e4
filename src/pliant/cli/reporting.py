"""Where reports go: to stdout as text, to one file of HTML, to a directory as plots.

A report names users and what they did: its files are for their owner alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pliant.cli.output import Column, Style, print_table, say
from pliant.cli.written import check_directory
from pliant.errors import BadInput
from pliant.grammar import quoted

if TYPE_CHECKING:  # the simulator is large, and every `pliant --help` loads this module
    from pliant.simulator.report.page import Page, Table

MODE = 0o600
HTML = click.option(
    "--html", metavar="FILE", default="", help="Write a report there too: one file, mode 0600."
)
PLOTS = click.option(
    "--plots", metavar="DIRECTORY", default="", help="Write plots there too, as PNG."
)
REPORT_OPTIONS = (HTML, PLOTS)


def check_report(html: str, plots: str) -> bool:
    """Return whether plots are to be drawn; nothing is written yet.

    Raises BadInput where plots could not be written, Unavailable where they were asked for and
    matplotlib is not installed. The other files: :func:`pliant.cli.written.check_written`.
    """
    from pliant.simulator.report.plots import check, is_there  # noqa: PLC0415  # large

    if plots:
        path = Path(plots).absolute()
        if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
            raise BadInput(f"--plots: {quoted(plots)}: a directory, or a new one, is expected")
        check_directory("--plots", plots, path if path.exists() else path.parent)
        check()
    return bool(plots) or (bool(html) and is_there())


def write_report(page: Page, html: str, plots: str, *, drawn: bool = True) -> None:
    """Write what was asked for; ``drawn``: the page would have plots. Raises Unavailable."""
    from pliant.cli.install.record import write  # noqa: PLC0415  # only where something is written
    from pliant.simulator.report.html import html as as_html  # noqa: PLC0415  # large
    from pliant.simulator.report.plots import MISSING, is_there  # noqa: PLC0415  # large

    if html:
        note = "" if is_there() or not drawn else f"Plots are left out: {MISSING}."
        write(Path(html), as_html(page, note), MODE)
    for plot in page.plots if plots else ():
        write(Path(plots) / f"{plot.name}.png", plot.png, MODE)


def print_page(page: Page) -> None:
    """Print a page as text, without its plots."""
    for words in page.lead:
        say(words)
    for part in page.parts:
        if not (part.paragraphs or part.items or part.tables):
            continue
        say()
        say(f"{part.title}:")
        for words in part.paragraphs:
            say(words)
        for item in part.items:
            say(f"- {item}")
        for table in part.tables:
            _print_table(table)


def _print_table(table: Table) -> None:
    say()
    if table.title:
        say(table.title)
    if table.note:
        say(table.note)
    columns: list[Column[Any]] = [
        Column(name, _cell(place), right=place >= table.words)
        for place, name in enumerate(table.header)
    ]
    print_table(table.rows, columns, Style())


def _cell(place: int) -> Callable[[Any], str]:
    return lambda row: str(row[place])
