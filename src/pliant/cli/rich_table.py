"""A table where a person looks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pliant.cli.output import Column


def print_rich(columns: Sequence[Column[Any]], cells: list[list[str]], header: bool) -> None:
    """Print cells, already printable, as wide as the terminal; long cells are folded."""
    table = Table(box=box.SIMPLE_HEAD, show_header=header, show_edge=False, header_style="bold")
    table.pad_edge = False
    for column in columns:
        title = column.name.replace("_", " ").capitalize()
        justify = "right" if column.right else "left"
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    Console(highlight=False).print(table)
