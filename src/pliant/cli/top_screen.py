"""``pliant top`` where a person looks: a whole screen that is drawn anew, and the key q."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import NoReturn

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from pliant.cli.top_fit import GAP, fitted, title
from pliant.cli.top_view import Sheet, View
from pliant.errors import PliantError

_AIRY = 40
"""On a screen of so many lines there is a blank one above each table."""
_KEYS = Text("q ends", style="dim")


def show(ask: Callable[[], View], every_s: float) -> None:
    """Draw what ``ask`` returns every so many seconds, until q or Ctrl-C.

    Once there was an answer, that there is none now is said on the screen. Raises what the first
    ``ask`` raises, before anything of the terminal is changed.
    """
    last, trouble = ask(), ""
    console = Console(highlight=False)
    with _kept(), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(page(last, trouble, console), refresh=True)
            if _pressed(every_s) in {"q", "Q"}:
                return
            try:
                last, trouble = ask(), ""
            except PliantError as error:
                trouble = f"{error}: what is shown is old"


def print_once(view: View) -> None:
    """Print one reading, as wide as the terminal."""
    console = Console(highlight=False)
    for part in _parts(view, console.width, None, airy=True):
        console.print(part)


def can_draw() -> bool:
    """Say whether stdout is a terminal on which text can be drawn over."""
    return not Console().is_dumb_terminal


def page(view: View, trouble: str, console: Console) -> Group:
    """Return what fills a screen: ``trouble`` is why there is nothing newer, "" where there is."""
    head = [Text("".join(c if c.isprintable() else "?" for c in trouble), "red")] if trouble else []
    airy = console.height >= _AIRY
    above = 2 if airy else 1
    room = console.height - len(head) - len(view.head) - 1 - above * len(view.sheets)
    return Group(*head, *_parts(view, console.width, room, airy=airy), _KEYS)


def _parts(view: View, width: int, room: int | None, *, airy: bool) -> Iterator[Text | Table]:
    """Yield the lines and tables; these have ``room`` for so many rows, or for all."""
    for line in view.head:
        yield Text(line, overflow="ellipsis", no_wrap=True)
    for sheet, rows in zip(view.sheets, _rows(view.sheets, room), strict=True):
        if airy:
            yield Text()
        yield _table(replace(sheet, cells=sheet.cells[:rows]), width)
        if left := len(sheet.cells) - rows + sheet.more:
            yield Text(f"{left} more", style="dim")


def _rows(sheets: Sequence[Sheet], room: int | None) -> list[int]:
    """Return how many rows of each table are shown: all, or as many as of others that have more."""
    wanted = [len(sheet.cells) for sheet in sheets]
    marked = sum(sheet.more > 0 for sheet in sheets)
    if room is None or sum(wanted) + marked <= room:
        return wanted
    left, found = room - len(sheets), [1] * len(sheets)  # a line for how many more, of each
    left -= len(sheets)
    while left > 0 and found != wanted:
        least = min(rows for rows, most in zip(found, wanted, strict=True) if rows < most)
        place = next(p for p, rows in enumerate(found) if rows == least and rows < wanted[p])
        found[place] += 1
        left -= 1
    return found


def _table(sheet: Sheet, width: int) -> Table:
    table = Table(box=None, header_style="bold reverse", padding=(0, GAP, 0, 0), pad_edge=False)
    shown = fitted(sheet, width)
    for column in sheet.columns:
        if column.name in shown:
            table.add_column(
                title(column.name),
                justify="right" if column.right else "left",
                overflow="ellipsis",
                no_wrap=True,
                width=shown[column.name],
            )
    for line in sheet.cells:
        cells = zip(sheet.columns, line, strict=True)
        table.add_row(*(Text(cell) for column, cell in cells if column.name in shown))
    return table


@contextmanager
def _kept() -> Iterator[None]:
    """Read keys without a return; at the end, whatever ends it, leave the terminal as it was.

    A stopped program (Ctrl-Z) would leave its screen to the shell: that key does nothing here.
    """
    before = {
        number: signal.signal(number, _leave) for number in (signal.SIGTERM, signal.SIGHUP)
    } | {signal.SIGTSTP: signal.signal(signal.SIGTSTP, signal.SIG_IGN)}
    keys = sys.stdin is not None and sys.stdin.isatty()
    mode = termios.tcgetattr(sys.stdin) if keys else None
    try:
        if keys:
            tty.setcbreak(sys.stdin)
        yield
    finally:
        if mode is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, mode)
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _pressed(within_s: float) -> str:
    """Return the key that was pressed; "" for none within so many seconds."""
    keys = [sys.stdin] if sys.stdin is not None and sys.stdin.isatty() else []
    if not select.select(keys, [], [], within_s)[0]:
        return ""
    return os.read(sys.stdin.fileno(), 1).decode(errors="replace") or "q"  # the terminal has gone
