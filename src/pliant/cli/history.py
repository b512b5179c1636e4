"""``pliant history JOB``: every run of a job, what changed it, and what that cost."""

from __future__ import annotations

import click

from pliant.cli.door import ask
from pliant.cli.job_number import job_argument
from pliant.cli.output import Column, Style, duration, json_option, print_json, print_table, say
from pliant.cli.why import DECISION_COLUMNS, clock
from pliant.daemon.answers import HandOverHistory, HistoryAnswer, RunHistory


def _launch(row: RunHistory) -> str:
    return duration(row.launched_s - row.start_s) if row.launched_s and row.start_s else ""


def _cost(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds else ""


RUN_COLUMNS: list[Column[RunHistory]] = [
    Column("run", lambda row: str(row.run), right=True),
    Column("started", lambda row: clock(row.start_s)),
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
    Column("came of it", lambda row: row.outcome or "under way"),
    Column("reason", lambda row: row.reason),
]


@click.command(short_help="Every run of a job, what changed it, and what that cost.")
@job_argument
@json_option
def history(job: str, as_json: bool) -> None:
    """Tell what became of JOB: its runs, what changed it while it ran, what was decided.

    Also of a job that has ended, for as long as Pliant keeps its history.
    """
    answer = ask(HistoryAnswer, "history", job=job)
    if as_json:
        print_json(answer)
    else:
        print_history(answer)


def print_history(answer: HistoryAnswer) -> None:
    """Print an answer for a person."""
    first = f", first submitted {clock(answer.submit_s)}" if answer.submit_s else ""
    say(f"job {answer.job} of {answer.user}{first}")
    if answer.handovers:
        resized = sum(not row.guest and row.outcome == "done" for row in answer.handovers)
        made_room = sum(bool(row.guest and row.saved_s) for row in answer.handovers)
        say(f"resized {resized} times, made room {made_room} times: {answer.lost_s:.1f} s lost")
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
