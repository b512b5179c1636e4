"""``pliant history JOB``: every run of a job, what changed it, and what that cost."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pliant.cli.door import ask
from pliant.cli.job_number import job_argument
from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.cli.why import DECISION_COLUMNS, clock, cost_line
from pliant.daemon.answers import CostRow, HandOverHistory, HistoryAnswer, RunHistory
from pliant.figures import duration, gpu_hours


def _launch(row: RunHistory) -> str:
    return duration(row.launched_s - row.start_s) if row.launched_s and row.start_s else ""


def _ran(row: RunHistory) -> str:
    return duration(row.end_s - row.start_s) if row.end_s and row.start_s else ""


def _gpu_cost(row: HandOverHistory) -> str:
    return gpu_hours(row.lost_gpu_s) if row.lost_gpu_s else ""


def _cost(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds else ""


RUN_COLUMNS: list[Column[RunHistory]] = [
    Column("run", lambda row: str(row.run), right=True),
    Column("started", lambda row: clock(row.start_s)),
    Column("ran", _ran, right=True),
    Column("shape", lambda row: row.shape),
    Column("nodes", lambda row: ",".join(row.nodes)),
    Column("launch", _launch, right=True),
    Column("step", lambda row: str(row.step) if row.step else "", right=True),
    Column("steps/s", lambda row: f"{row.rate:.3g}" if row.rate else "", right=True),
    Column("saved in", lambda row: _cost(row.saved_took_s), right=True),
    Column("exit", lambda row: "" if row.code is None else str(row.code), right=True),
]

CHANGE_COLUMNS: list[Column[HandOverHistory]] = [
    Column("asked", lambda row: clock(row.at_s)),
    Column("from", lambda row: row.before),
    Column("to", lambda row: row.after),
    Column("for", lambda row: row.guest),
    Column("lost", lambda row: _cost(row.lost_s), right=True),
    Column("cost", _gpu_cost, right=True),
    Column("came of it", lambda row: row.outcome or "under way"),
    Column("reason", lambda row: row.reason),
]


@click.command(short_help="Every run of a job, what changed it, and what that cost.")
@job_argument
@json_option
def history(job: str, as_json: bool) -> None:
    """Tell what became of JOB: what was set at its submission, its runs, what changed it, and why.

    Also of a job that has ended, for as long as Pliant keeps its history. What a resize costs is
    the time for its checkpoint and until the program works again, times the job's GPUs.
    """
    answer = ask(HistoryAnswer, "history", job=job)
    if as_json:
        print_json(answer)
    else:
        print_history(answer)


def _story(answer: HistoryAnswer) -> Iterator[str]:
    """Yield what was asked and set at its submission, how long it waited, and how it ended."""
    if answer.request:
        yield f"it says {answer.request}"
    if answer.filtered:
        yield f"submitted as {answer.filtered}, in place of {answer.own}"
    elif not answer.answered:
        yield f"submitted as {answer.own}: Pliant gave no answer in time"
    if answer.would:
        yield f"it would have started as {answer.would} at {clock(answer.would_s)}: Pliant observes"
    if answer.start_s and answer.submit_s:
        yield f"it waited {duration(answer.start_s - answer.submit_s)}"
    if answer.tasks:
        yield answer.tasks
    elif answer.end_s:
        yield f"it ended {clock(answer.end_s)}: {answer.exit or 'how is not known'}"


def print_history(answer: HistoryAnswer) -> None:
    """Print an answer for a person."""
    first = f", first submitted {clock(answer.submit_s)}" if answer.submit_s else ""
    where = f" in {answer.partition}" if answer.partition else ""
    over = answer.tasks and answer.end_s  # of an array: its tasks may still run
    state = f": {answer.state}" if answer.state and not over else ""
    say(f"job {answer.job} of {answer.user}{where}{state}{first}")
    for line in _story(answer):
        say(line)
    if answer.handovers:
        resized = sum(not row.guest and row.outcome == "done" for row in answer.handovers)
        made_room = sum(bool(row.guest and row.saved_s) for row in answer.handovers)
        cost = (resized, made_room, answer.lost_s, answer.lost_gpu_s)
        say(cost_line(CostRow(len(answer.handovers), *cost)))
    if answer.runs:
        click.echo()
        print_table(answer.runs, RUN_COLUMNS, Style())
    if answer.handovers:
        click.echo()
        print_table(answer.handovers, CHANGE_COLUMNS, Style())
    if answer.decisions:
        click.echo()
        say("decided so far, the latest first:")
        print_table(answer.decisions, DECISION_COLUMNS, Style())
