"""Long lists on a terminal: through a pager, as git does it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence

import click

PAGER = "less -FRX"
"""It ends by itself where all fits, and leaves the list on the screen."""


def width() -> int:
    """Return how many letters a line of the terminal has; $COLUMNS says another number."""
    return shutil.get_terminal_size().columns


def height() -> int:
    """Return how many lines the terminal has; $LINES says another number."""
    return shutil.get_terminal_size().lines


def paged(lines: Sequence[str], most: int) -> None:
    """Print lines, by $PAGER (or less) where there are more than ``most``; no shell reads it."""
    text = "".join(f"{line}\n" for line in lines)
    argv = _pager() if len(lines) >= most else []
    if not argv:
        click.echo(text, nl=False)
        return
    subprocess.run(argv, input=text, text=True, check=False)


def _pager() -> list[str]:
    """Return the pager's words; none where it is not there, or $PAGER is empty.

    Nor on a terminal that cannot be drawn on: less waits for a key there before it shows anything.
    """
    if os.environ.get("TERM", "") in {"", "dumb"}:
        return []
    try:
        argv = shlex.split(os.environ.get("PAGER", PAGER))
    except ValueError:
        return []
    return argv if argv and shutil.which(argv[0]) else []
