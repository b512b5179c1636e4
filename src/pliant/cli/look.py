"""``pliant status``: how Pliant is."""

from __future__ import annotations

import click

from pliant.cli.door import ask
from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.daemon.answers import NOT_SHOWN, PartitionRow, StatusAnswer
from pliant.figures import duration


def _number(number: int) -> str:
    return "-" if number == NOT_SHOWN else str(number)


PARTITION_COLUMNS: list[Column[PartitionRow]] = [
    Column("partition", lambda row: row.name),
    Column("mode", lambda row: row.mode),
    Column("up", lambda row: "yes" if row.up else "no"),
    Column("nodes", lambda row: _number(row.nodes), right=True),
    Column("gpus", lambda row: _number(row.gpus), right=True),
    Column("free", lambda row: _number(row.gpus_free), right=True),
]


@click.command(short_help="How pliantd is, and its mode in each partition.")
@json_option
def status(as_json: bool) -> None:
    """Show how pliantd is and what it may do in each partition.

    Exit 1: it runs, but something is wrong now (the lines that begin with "trouble").
    """
    answer = ask(StatusAnswer, "status")
    if as_json:
        print_json(answer)
    else:
        _print_status(answer)
    if answer.troubles:
        raise click.exceptions.Exit(1)


def _print_status(answer: StatusAnswer) -> None:
    say(
        f"pliantd {answer.version} on {answer.host}, up {duration(answer.now_s - answer.started_s)}"
        f", policy {answer.policy}" + (", PAUSED: no job is changed" if answer.paused else "")
    )
    if answer.observed_s:
        say(
            f"last look {duration(answer.now_s - answer.observed_s)} ago: read in "
            f"{answer.observe_took_s * 1000:.0f} ms, decided in {answer.cycle_took_s * 1000:.0f} ms"
        )
        say(
            f"jobs: {answer.waiting} waiting, {answer.waiting_flagged} of them with Pliant's "
            f"options; {answer.running} running"
        )
    say(
        f"since the start: {answer.submissions} submissions answered, "
        + (f"{answer.unanswered} unanswered, " if answer.unanswered else "")
        + f"{answer.updates} changes, "
        f"{answer.failures} refused" + (f"; {answer.deferred} put off" if answer.deferred else "")
    )
    if answer.refused_credentials:
        refused = sorted(answer.refused_credentials.items())
        kinds = ", ".join(f"{count} {kind}" for kind, count in refused)
        say(f"munge credentials refused: {kinds}")
    if answer.stands_by:
        say(answer.stands_by)
    for trouble in answer.troubles:
        say(f"trouble: {trouble}")
    if answer.partitions:
        click.echo()
        print_table(answer.partitions, PARTITION_COLUMNS, Style())
