"""A table where a person looks."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_rich(columns: Sequence[tuple[str, bool]], cells: list[list[str]], header: bool) -> None:
    """Print cells, already printable, as wide as the terminal; long cells are folded.

    ``columns``: each one's name, and whether it stands at the right.
    """
    table = Table(box=box.SIMPLE_HEAD, show_header=header, show_edge=False, header_style="bold")
    table.pad_edge = False
    for name, right in columns:
        title = name.replace("_", " ").capitalize()
        table.add_column(title, justify="right" if right else "left", overflow="fold")
    for line in cells:
        table.add_row(*(Text(cell) for cell in line))
    Console(highlight=False).print(table)
