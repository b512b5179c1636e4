"""``pliant pause`` and ``resume``, the administrator's switch without a restart; ``forget``."""

from __future__ import annotations

import click

from pliant.cli.door import ask_each
from pliant.cli.output import json_option, printable
from pliant.cli.owner import tell
from pliant.daemon.answers import DoneAnswer


@click.command(short_help="Change no job until `pliant resume`.")
@json_option
def pause(as_json: bool) -> None:
    """Change no job until `pliant resume`: pliantd still watches and explains.

    Waiting jobs keep the shape that they carry. Only an administrator may: root, SlurmUser, or one
    of admins in pliant.toml. It stays so over a restart of pliantd. With backup controllers each
    host's pliantd is told; of one that is not reached it is said.
    """
    _tell_each("pause", as_json)


@click.command(short_help="Let Pliant change jobs again.")
@json_option
def resume(as_json: bool) -> None:
    """Let Pliant change jobs again, where the partitions' modes allow it."""
    _tell_each("resume", as_json)


@click.command(short_help="Forget what is kept of a user's jobs.")
@click.argument("user")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@json_option
def forget(user: str, yes: bool, as_json: bool) -> None:
    """Forget what Pliant's history keeps of USER's jobs that have ended: it cannot be undone.

    Jobs that wait or run stay known, and so does how fast the user's programs run: that is
    forgotten keep_days after the last run. Slurm's own accounting is not touched.
    """
    if not yes:
        click.confirm(f"forget all ended jobs of {printable(user)}?", abort=True, err=True)
    _tell_each("forget", as_json, user=user)


def _tell_each(verb: str, as_json: bool, **fields: str) -> None:
    """Tell every pliantd, so that it is so after a failover too."""
    answer, missing = ask_each(DoneAnswer, verb, **fields)
    tell(answer, as_json)
    for trouble in missing:
        click.echo(f"pliant: {trouble}: {verb} again when it runs", err=True)
