"""``pliant top``: nodes, the queue, resizes and running jobs, live."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from pliant.cli.door import ask
from pliant.cli.output import json_option, on_terminal, print_json
from pliant.cli.seconds import Seconds
from pliant.daemon.watched import TopAnswer

if TYPE_CHECKING:
    from pliant.cli.top_view import View

EVERY_S = 2.0


@click.command(short_help="Nodes, queue, resizes and running jobs, live.")
@click.option("--once", is_flag=True, help="Print one reading and end.")
@json_option
@click.option(
    "--every",
    "every_s",
    type=Seconds(min=0.2, max=3600),
    default=EVERY_S,
    show_default=True,
    metavar="SECONDS",
    help="The time from reading to reading.",
)
def top(once: bool, as_json: bool, every_s: float) -> None:
    """Show nodes, the queue, resizes and running jobs, again and again until q or Ctrl-C.

    In a pipe it is plain text; --json prints one reading. Speeds and the use of GPUs are what the
    nodes' monitors have reported, about once a minute, and steps per second what programs under
    pliant run have told. Of waiting jobs those with Pliant's options are listed, in queue order. On
    a narrow terminal columns are left out; no number is cut.

    \b
    resizing   running jobs that are changed now: saving (and how long they still may), saved,
               requeued, or started again
    waiting    why the batch system lets a job wait, what else it may run as (allowed), and what
               Pliant decided last (note), or why it leaves the job alone
    busy %     for each GPU, how much of the time kernels ran
    tier       how the speed was measured: 1 counters (instructions per second), 2 the program's own
               steps per second, 3 CPU seconds per second. Never compare two tiers
    cpu        CPU seconds per second, of how many CPUs
    idle gpus  how many GPUs the job holds and has had no process on for 5 minutes or more, and how
               long that is so of all of them
    with       jobs that share a node with it; +2: and two more
    """
    if as_json:
        print_json(ask(TopAnswer, "top"))
        return
    try:
        from pliant.cli import top_screen  # noqa: PLC0415  # slow to import, and rich may be missing
    except ImportError:
        top_screen = None  # type: ignore[assignment]  # then it is plain text
    drawn = top_screen is not None and on_terminal() and top_screen.can_draw()
    try:
        if once:
            top_screen.print_once(_view()) if drawn else _print_plain(_view())
        elif drawn:
            top_screen.show(_view, every_s)
        else:
            _print_again_and_again(every_s)
    except KeyboardInterrupt:
        pass  # the way to end it, and no failure


def _view() -> View:
    from pliant.cli.top_view import view  # noqa: PLC0415  # --json needs none of it

    return view(ask(TopAnswer, "top"))


def _print_plain(view: View) -> None:
    click.echo(view.plain(), nl=False)


def _print_again_and_again(every_s: float) -> None:
    while True:
        _print_plain(_view())
        click.echo()
        time.sleep(every_s)
