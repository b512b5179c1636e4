"""The jobs that use Pliant's options, listed before the options go away."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from pliant.batch.slurm import Commands, Slurm
from pliant.batch.slurm.job_rows import JobRow, job_format, parse_jobs
from pliant.batch.slurm.site import version_of
from pliant.cli.install.site import Site
from pliant.cli.output import Column, Style, print_table
from pliant.errors import PliantError
from pliant.grammar import find_token, request_text
from pliant.grammar.token import COMMENT

OPTION, BY_COMMENT = "option", "comment"


BREAKS = """Those that wait will run, and those that run go on, also
once requeued. But without the SPANK plugin sbatch refuses every script that says
`#SBATCH --moldable`, also one that a running job submits; what is said by a comment is taken.
To switch off and keep the options, take out --part daemon and --part lua alone."""


@dataclass(frozen=True, slots=True)
class Flagged:
    """One job, and how it said its request: a comment is taken without the plugin too."""

    job: str
    user: str
    state: str
    request: str
    said_by: str


COLUMNS: list[Column[Flagged]] = [
    Column("job", lambda row: row.job),
    Column("user", lambda row: row.user),
    Column("state", lambda row: row.state),
    Column("request", lambda row: row.request),
    Column("said by", lambda row: row.said_by),
]


def flagged(rows: Iterable[JobRow]) -> list[Flagged]:
    """Return every job that carries a token, the waiting ones first."""
    found = []
    for row in sorted(rows, key=lambda row: not row.waits):
        spec = find_token(row.admin_comment)
        if spec is not None:
            by = BY_COMMENT if row.comment.startswith(COMMENT) else OPTION
            said = request_text(spec.request)
            found.append(Flagged(row.key, row.user, row.state.lower(), said, by))
    return found


def warn_of_jobs(site: Site, yes: bool) -> bool:
    """List the jobs whose scripts sbatch will not know any more; say whether to go on."""
    # An image has no jobs; where slurmctld does not run, those that wait are not known.
    rows = _jobs(site) if site.version else None if site.root == Path("/") else []
    if rows is None:
        click.echo("squeue does not answer: which jobs use Pliant's options is not known")
    elif rows:
        print_table(rows, COLUMNS, Style())
        click.echo(f"Jobs that use Pliant's options: {len(rows)}. {BREAKS}")
    if yes or (rows is not None and all(row.said_by == BY_COMMENT for row in rows)):
        return True
    if not sys.stdin.isatty():
        click.echo("nothing was changed: say --yes to remove it all the same", err=True)
        return False
    return click.confirm("Remove it all the same?")


def give_back(site: Site) -> None:
    """Let no job keep what a hand-over gave it or took: nobody would take it back later."""
    if not site.version or site.root != Path("/"):
        return  # an image has no jobs, and a Slurm that was not asked is not asked now
    try:
        told = Slurm(Commands()).release()
    except PliantError as error:
        told = {}
        click.echo(f"what jobs have of hand-overs is left, if there is any: {error}", err=True)
    for job, words in told.items():
        click.echo(f"job {job}: {words or 'it has nothing of a hand-over any more'}")


def _jobs(site: Site) -> list[Flagged] | None:
    nonce = f"N{secrets.token_hex(8)}"
    try:
        version = version_of(site.version)
        done = Commands().run(
            ("squeue", "-h", "-a", "--local"),
            env={"SQUEUE_FORMAT2": job_format(nonce, version)},
        )
        return flagged(parse_jobs(done.out, nonce, version)) if done.status == 0 else None
    except PliantError:
        return None
