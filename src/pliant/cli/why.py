"""``pliant why JOB``: why a job waits, as what it could start, and when."""

from __future__ import annotations

import time

import click

from pliant.cli.door import ask
from pliant.cli.job_number import job_argument
from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.daemon.answers import ClaimRow, CostRow, DecisionRow, ShapeRow, WhyAnswer
from pliant.daemon.flagged import JobRow
from pliant.figures import duration, gpu_hours


def _starts(row: ShapeRow, now_s: float) -> str:
    if row.now:
        return "now"
    return f"in {duration(row.at_s - now_s)}" if row.at_s else "not known"


def shape_columns(now_s: float) -> list[Column[ShapeRow]]:
    """Return the columns of the shapes tried, as they read at ``now_s``."""
    return [
        Column("shape", lambda row: row.shape),
        Column("starts", lambda row: _starts(row, now_s)),
        Column("nodes", lambda row: ",".join(row.nodes)),
        Column("why", lambda row: row.reason),
    ]


def claim_columns(now_s: float) -> list[Column[ClaimRow]]:
    """Return the columns of what is kept for first waiting jobs, as they read at ``now_s``."""
    return [
        Column("job", lambda row: row.id),
        Column("user", lambda row: row.user),
        Column("shape", lambda row: row.shape),
        Column("starts", lambda row: f"in {duration(row.at_s - now_s)}"),
        Column("nodes", lambda row: ",".join(row.nodes)),
        Column("reason", lambda row: row.reason),
    ]


DECISION_COLUMNS: list[Column[DecisionRow]] = [
    Column("at", lambda row: clock(row.at_s)),
    Column("what", lambda row: row.what),
    Column("shape", lambda row: row.shape),
    Column("reason", lambda row: row.reason),
]


def clock(at_s: float) -> str:
    """Write an instant in local time."""
    return time.strftime("%m-%d %H:%M:%S", time.localtime(at_s))


@click.command(short_help="Why a job waits, and as what it would start when.")
@job_argument
@json_option
def why(job: str, as_json: bool) -> None:
    """Say why JOB waits: the shapes tried, what could start now, and when each would.

    JOB is a number as squeue or qstat shows it: 4711, of an array 4711_3, on PBS 4711[3]. Of a
    running job it says why it is not resized, and what resizing has cost it so far.
    """
    answer = ask(WhyAnswer, "why", job=job)
    if as_json:
        print_json(answer)
    else:
        print_why(answer)


def print_why(answer: WhyAnswer) -> None:
    """Print an answer for a person."""
    for line in headline(answer.job):
        say(line)
    if answer.text:
        say(answer.text)
    if answer.left and answer.job.state == "waiting":
        say(f"its shape is not changed: {answer.left}")
    if answer.cost.asked:
        say(cost_line(answer.cost))
    for row in answer.cannot:
        say(f"it cannot become {', '.join(row.shapes)}: {row.reason}")
    if answer.shapes:
        click.echo()
        print_table(answer.shapes, shape_columns(answer.observed_s), Style())
    if answer.before:
        click.echo()
        say("kept for jobs that stand before it:")
        print_table(answer.before, claim_columns(answer.observed_s), Style())
    if answer.decisions:
        click.echo()
        say("decided so far, the latest first:")
        print_table(answer.decisions, DECISION_COLUMNS, Style())


def cost_line(cost: CostRow) -> str:
    """Return how often a job was changed, and what that has cost it so far."""
    gpus = f", {gpu_hours(cost.lost_gpu_s)}" if cost.lost_gpu_s else ""
    lost = f"{cost.lost_s:.1f} s lost{gpus}"
    return f"resized {cost.resized} times, made room {cost.made_room} times: {lost}"


def headline(row: JobRow) -> list[str]:
    """Return what a job is and what its owner said."""
    words = [f"job {row.id}", f"of {row.user}", f"in {','.join(row.partitions)}: {row.state}"]
    words.append(f"as {row.carried}")
    if row.own and row.own != row.carried:
        words.append(f"(its own shape is {row.own})")
    if row.reason and row.state == "waiting":
        words.append(f"for {row.reason}")
    lines = [" ".join(words)]
    if row.request:
        lines.append(f"it says {row.request}")
        if row.state == "waiting" and row.mode == "observe":
            lines.append("Pliant observes in its partition: what follows is not done")
    return lines
