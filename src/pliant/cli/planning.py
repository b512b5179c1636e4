"""``pliant plan``: what would be done now, by pliantd or, on a file's snapshot, by ourselves."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import click

from pliant.batch.slurm import Commands, Slurm
from pliant.batch.snapshot_file import read_snapshot, write_snapshot
from pliant.cli.door import ask
from pliant.cli.install.record import write
from pliant.cli.output import (
    Column,
    Style,
    json_option,
    print_json,
    print_table,
    say,
)
from pliant.cli.policy_options import policy_options
from pliant.cli.why import claim_columns
from pliant.cycle import cycle
from pliant.daemon import rows
from pliant.daemon.answers import ChangeRow, PlanAnswer, StartRow
from pliant.errors import BadInput, Unavailable
from pliant.grammar import quoted
from pliant.model import Snapshot
from pliant.plan import Policy
from pliant.policies import DEFAULT, by_name, live_options

T = TypeVar("T")

MAX_BYTES = 512 << 20
"""Of a snapshot in a file; 10,000 nodes and 50,000 jobs take 130 MiB."""

START_COLUMNS: list[Column[StartRow]] = [
    Column("job", lambda row: row.id + (f" x{row.tasks}" if row.tasks > 1 else "")),
    Column("user", lambda row: row.user),
    Column("now", lambda row: row.carried),
    Column("starts_as", lambda row: row.shape),
    Column("nodes", lambda row: ",".join(row.nodes)),
    Column("reason", lambda row: row.reason),
]
CHANGE_COLUMNS: list[Column[ChangeRow]] = [
    Column("job", lambda row: row.id),
    Column("user", lambda row: row.user),
    Column("from", lambda row: row.carried),
    Column("to", lambda row: row.shape or "-"),
    Column("done", lambda row: "yes" if row.done else "no"),
    Column("reason", lambda row: row.reason),
]


@click.command("plan", short_help="What would be done now.")
@click.option("--file", default="", help="Plan on a snapshot in JSON: no Slurm, no pliantd needed.")
@click.option("--live", is_flag=True, help="Look at Slurm ourselves: no pliantd needed.")
@click.option("--save", default="", help="With --live: write the snapshot here, for --file.")
@click.option("--policy", default="", help=f"With these: the policy.  [default: {DEFAULT}]")
@click.option(
    "--with",
    "options",
    multiple=True,
    metavar="OPTION=VALUE",
    help="With these: an option of the policy; may stand several times.",
)
@json_option
def plan_command(  # noqa: PLR0917  # click passes them by name
    file: str, live: bool, save: str, policy: str, options: tuple[str, ...], as_json: bool
) -> None:
    """Show what would be done now: starts, what is kept for first jobs, changes.

    Without --file or --live it is pliantd's last decision; a user who may not see others' jobs
    sees the own ones. --file and --live only decide: nothing is changed, every partition counts
    as enforced, and --live needs no more rights than squeue.
    """
    _check_options(file, live, save, bool(policy or options))
    if file or live:
        name = policy or DEFAULT
        chosen = by_name(name, **{**live_options(name), **policy_options(options)})
        answer = decided(_observed(save) if live else _snapshot(Path(file)), chosen)
    else:
        answer = ask(PlanAnswer, "plan")
    if as_json:
        print_json(answer)
    else:
        print_plan(answer)


def _check_options(file: str, live: bool, save: str, chosen: bool) -> None:
    if file and live:
        raise BadInput("--file and --live exclude each other")
    if save and not live:
        raise BadInput("--save goes with --live")
    if save and not Path(save).absolute().parent.is_dir():
        raise BadInput(f"--save: {quoted(save)}: its directory is not there")
    if chosen and not (file or live):
        raise BadInput("--policy and --with go with --file or --live: pliantd has its own policy")


def decided(snapshot: Snapshot, policy: Policy) -> PlanAnswer:
    """Decide on a snapshot, as pliantd would answer it; nothing is done about it."""
    plan = cycle(snapshot, policy)
    return PlanAnswer(
        observed_s=snapshot.now_s,
        policy=policy.name,
        paused=False,
        starts=tuple(rows.start_row(start, acting=False) for start in plan.starts),
        claims=tuple(rows.claim_row(claim) for claim in plan.claims),
        changes=(
            *(rows.change_row(mold, acting=False) for mold in plan.actions),
            *rows.running_rows(plan),
        ),
        deferred=plan.deferred,
    )


def print_plan(answer: PlanAnswer) -> None:
    """Print a plan for a person."""
    say(f"policy {answer.policy}" + (", PAUSED: no job is changed" if answer.paused else ""))
    if not (answer.starts or answer.claims or answer.changes):
        say("nothing can start now, and nothing is to be changed")
    claims = claim_columns(answer.observed_s)
    _print_part("can start now:", answer.starts, START_COLUMNS)
    _print_part("kept for the first waiting jobs:", answer.claims, claims)
    _print_part("changes:", answer.changes, CHANGE_COLUMNS)
    if answer.deferred:
        say(f"{answer.deferred} changes are put off to the next cycle")
    if answer.more:
        click.echo(f"{answer.more} more rows are not shown", err=True)


def _print_part(title: str, rows: Sequence[T], columns: Sequence[Column[T]]) -> None:
    if rows:
        click.echo()
        say(title)
        print_table(rows, columns, Style())


def _snapshot(path: Path) -> Snapshot:
    try:
        return read_snapshot(_bytes(path))
    except OSError as wrong:
        raise Unavailable(f"{path}: {wrong.strerror}") from wrong
    except BadInput as wrong:
        raise BadInput(f"{path}: {wrong}") from wrong


def _bytes(path: Path) -> bytes:
    """Read a file or a pipe; a device may never end.

    Raises OSError, BadInput.
    """
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        raise BadInput("a regular file or a pipe is expected")
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise BadInput(f"more than {MAX_BYTES >> 20} MiB: no snapshot is as large")
    return text


def _observed(save: str) -> Snapshot:
    snapshot = Slurm(Commands()).observe()
    if save:
        write(Path(save), write_snapshot(snapshot).decode(), 0o600)
    return snapshot
