"""``pliant jobs``: the jobs that say something to Pliant, one line each."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from pliant.cli.door import ask
from pliant.cli.one_line import lines
from pliant.cli.output import Column, Style, on_terminal, print_json, print_table, table_options
from pliant.cli.pager import height, paged, width
from pliant.daemon.answers import JobsAnswer
from pliant.daemon.flagged import JobRow
from pliant.errors import BadInput
from pliant.figures import duration
from pliant.grammar import quoted

STATES = ("waiting", "running", "ending")
SPARED = ("partition", "allowed", "own", "for", "user", "reason")
"""The columns that a narrow terminal leaves out, in this order; the note stays."""


def _waits(row: JobRow, now_s: float) -> str:
    since = row.submitted_s if row.state == "waiting" else row.started_s
    return duration(now_s - since) if since else ""


def job_columns(now_s: float) -> list[Column[JobRow]]:
    """Return the columns of ``pliant jobs`` as they read at ``now_s``."""
    return [
        Column("job", lambda row: row.id),
        Column("user", lambda row: row.user),
        Column("partition", lambda row: ",".join(row.partitions)),
        Column("state", lambda row: row.state),
        Column("for", lambda row: _waits(row, now_s), right=True),
        Column("tasks", lambda row: str(row.tasks), right=True, usual=False),
        Column("own", lambda row: row.own),
        Column("now", lambda row: row.carried),
        Column("allowed", lambda row: " ".join(row.allowed)),
        Column("request", lambda row: row.request, usual=False),
        Column("reason", lambda row: row.reason),
        Column("mode", lambda row: row.mode, usual=False),
        Column("nodes", lambda row: ",".join(row.nodes), usual=False),
        Column("note", lambda row: row.note),
    ]


_DIGITS = re.compile(r"([0-9]+)")


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Order 9 before 10, and 7_9 before 7_10."""
    parts = _DIGITS.split(text)
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)


SORTS: dict[str, Callable[[JobRow], Any]] = {
    "job": lambda row: _natural(row.id),
    "user": lambda row: row.user,
    "partition": lambda row: row.partitions,
    "state": lambda row: STATES.index(row.state) if row.state in STATES else len(STATES),
    "for": lambda row: -(row.submitted_s if row.state == "waiting" else row.started_s),
    "tasks": lambda row: row.tasks,
}


@click.command(short_help="The jobs that carry Pliant's options.")
@click.option("--mine", is_flag=True, help="Only your own.")
@click.option("--user", metavar="USER,...", default="", help="Only these users'.")
@click.option("-p", "--partition", metavar="NAME,...", default="", help="Only in these.")
@click.option(
    "--state", metavar="STATE,...", default="", help="Only waiting, running or ending ones."
)
@click.option("--sort", metavar="[-]FIELD", default="", help=f"By {', '.join(SORTS)}; -: reversed.")
@click.option("-n", "most", type=click.IntRange(min=1), metavar="N", help="The first N only.")
@table_options(job_columns(0.0))
def jobs(
    *,
    style: Style,
    mine: bool,
    user: str,
    partition: str,
    state: str,
    sort: str,
    most: int | None,
) -> None:
    """List the jobs that carry Pliant's options, waiting ones in queue order, then running ones.

    On a terminal each job is one line: a narrow one leaves out columns, and cuts the note at its
    end; pliant why JOB has it whole. More lines than it has go through $PAGER, or less.

    \b
    own      the shape that its owner wrote without Pliant
    now      the shape that it waits with or runs as
    allowed  all that it may run as
    """
    users = _names(user) | ({_me()} if mine else frozenset())
    states, partitions = _states(state), _names(partition)
    key, downwards = _sorted_by(sort)
    answer = ask(JobsAnswer, "jobs")
    found = [
        row
        for row in answer.jobs
        if (not users or row.user in users)
        and (not states or row.state in states)
        and (not partitions or not partitions.isdisjoint(row.partitions))
    ]
    if key:
        found.sort(key=SORTS[key], reverse=downwards)
    _print(answer, found[:most], style)


def _print(answer: JobsAnswer, found: Sequence[JobRow], style: Style) -> None:
    if style.as_json:
        print_json(JobsAnswer(answer.observed_s, tuple(found), answer.more))
        return
    if not found and style.header:
        some = "such job carries" if answer.jobs else "job carries"
        click.echo(f"no {some} Pliant's options now", err=True)
        return
    columns = job_columns(answer.observed_s)
    if on_terminal() and not style.fields:
        shown = [column for column in columns if column.usual]
        cells = [[column.text(row) for column in shown] for row in found]
        paged(lines(shown, cells, SPARED, width(), header=style.header), height())
    else:
        print_table(found, columns, style)
    if answer.more:
        click.echo(f"{answer.more} more jobs are not shown", err=True)


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in text.split(",") if name)


def _me() -> str:
    """Return who asks, as pliantd knows jobs: by number where there is no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _states(text: str) -> frozenset[str]:
    names = _names(text)
    _check("--state", names, STATES)
    return names


def _sorted_by(text: str) -> tuple[str, bool]:
    key = text.removeprefix("-")
    _check("--sort", [key] if text else [], SORTS)
    return key, text.startswith("-")


def _check(option: str, names: Iterable[str], known: Iterable[str]) -> None:
    for name in names:
        if name not in known:
            raise BadInput(f"{option}: {quoted(name)}: one of {', '.join(known)} is expected")
