"""The waiting jobs that use Pliant's options, listed before the options go away."""

from __future__ import annotations

import sys

import click

from pliant.cli.commands import run
from pliant.cli.install.site import Site
from pliant.cli.output import Column, Style, print_table
from pliant.errors import Unavailable
from pliant.grammar import find_token, request_text

FIELDS = "JobArrayID:|,UserName:|,admin_comment:|"
"""AdminComment stands last: it may hold anything but a newline."""

COLUMNS: list[Column[tuple[str, str, str]]] = [
    Column("job", lambda row: row[0]),
    Column("user", lambda row: row[1]),
    Column("request", lambda row: row[2]),
]


def flagged(text: str) -> list[tuple[str, str, str]]:
    """Return job, user and request of every line that carries a token."""
    found = []
    for line in text.splitlines():
        job, _, rest = line.partition("|")
        user, _, admin_comment = rest.partition("|")
        spec = find_token(admin_comment.removesuffix("|"))
        if spec is not None:
            found.append((job.strip(), user.strip(), request_text(spec.request)))
    return found


def warn_of_jobs(site: Site, yes: bool) -> bool:
    """List the waiting jobs whose scripts sbatch will not know any more; say whether to go on."""
    rows = _waiting() if site.version else []
    if rows is None:
        click.echo("squeue does not answer: which waiting jobs use Pliant's options is not known")
    elif rows:
        print_table(rows, COLUMNS, Style())
        click.echo(
            f"{len(rows)} waiting jobs use Pliant's options. They will run. But without the SPANK "
            "plugin sbatch\nrefuses every script that says `#SBATCH --moldable`: to switch off and "
            "keep the options, take out\n--part daemon and --part lua alone."
        )
    if rows == [] or yes:
        return True
    if not sys.stdin.isatty():
        click.echo("nothing was changed: say --yes to remove it all the same", err=True)
        return False
    return click.confirm("Remove it all the same?")


def _waiting() -> list[tuple[str, str, str]] | None:
    try:
        done = run(["squeue", "-h", "-a", "-t", "PD", "-O", FIELDS])
    except Unavailable:
        return None
    return flagged(done.out) if done.status == 0 else None
