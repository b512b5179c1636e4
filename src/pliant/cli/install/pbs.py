"""``pliant install pbs``: resources and hooks of a PBS server, shown, made, and taken away."""

from __future__ import annotations

import json
import pwd
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from socket import gethostname

import click

from pliant.batch.clients import Runs
from pliant.batch.pbs import Commands
from pliant.batch.pbs.fences import Fences
from pliant.batch.pbs.queries import Queries
from pliant.cli.install.pbs_held import held_jobs, release
from pliant.cli.install.pbs_parts import (
    Found,
    Statement,
    config_text,
    foreign,
    found_in,
    resources_wanted,
    to_install,
    to_remove,
    turned,
)
from pliant.cli.install.pbs_sched import to_write
from pliant.daemon.config import Config, config_path, fences_file, load, taken_file
from pliant.errors import BadAnswer, BadInput, Refused, Unavailable
from pliant.filter.pbs.names import SENDS_BACK
from pliant.filter.pbs.schedulers import LIST, listed
from pliant.grammar import quoted
from pliant.hooks import FORMER, HOOKS, hook_text
from pliant.model import jobs_text

RECORD = "/etc/pliant/pbs_resources.json"
"""Which resources are ours: PBS does not say who made one."""


@click.command("pbs", short_help="Install into PBS, or take out again.")
@click.option("--print", "shows", is_flag=True, help="Show what qmgr would be told; default.")
@click.option("--apply", "applies", is_flag=True, help="Tell it.")
@click.option("--remove", "removes", is_flag=True, help="Take our hooks and resources away.")
@click.option("--user", default="root", show_default=True, help="The user of pliantd.")
@click.option(
    "--record", default=RECORD, show_default=True, help="Where it is kept which resources are ours."
)
def pbs(shows: bool, applies: bool, removes: bool, user: str, record: str) -> None:
    """Install Pliant into a PBS server: show the statements (--print), make or take them back.

    It is run as root on the server's host, or where a manager may run qmgr. pliant.toml says where
    PBS's commands lie. Only the resources and hooks that differ from what is wanted are touched.
    Where the scheduler does not count GPUs, the line is shown that its sched_config is to have.
    Jobs that the hook of 0.1.0 holds between two runs are named, and released by --apply.
    """
    if shows + applies + removes > 1:
        raise BadInput("--print, --apply, --remove: one of them is expected")
    if not Path(record).is_absolute():
        raise BadInput(f"--record: {quoted(record)}: an absolute path is expected")
    config = _config()
    commands = Commands(config.pbs.bin_dir, config.pbs.timeout_s, server=config.pbs.server)
    found, kept = look(commands), Record(Path(record))
    if removes:
        _take_out(commands, config, found, kept)
    else:
        _put_in(commands, config, found, kept, user, applies=applies)


def _put_in(
    commands: Runs, config: Config, found: Found, kept: Record, user: str, *, applies: bool
) -> None:
    """Show what is to be told, and tell it where it ``applies``; say what is left to a person."""
    other = foreign(found, kept.names())
    if other:
        raise Refused(f"{other}; nothing was changed")
    hooks = {event: hook_text(event).encode() for event in HOOKS}
    statements = to_install(found, hooks, config_text(settings(config, user)), FORMER)
    if applies:
        kept.add([name for name in resources_wanted() if not found.has("resource", name)])
    for statement in statements:
        trouble = tell(commands, statement) if applies else ""
        if trouble:
            raise Refused(f"{statement.words}: {trouble}")
        click.echo(statement.words)
    if not statements:
        click.echo("all is installed")
    for line in to_write(listed(commands.run(("qmgr", *LIST)).out), config, gethostname()):
        click.echo(line)
    _release_held(commands, applies=applies)
    if applies and statements:
        click.echo(
            'start pliantd with [daemon] batch = "pbs"; it observes until [partitions] says more'
        )


def _release_held(commands: Runs, *, applies: bool) -> None:
    """Release whom the hook of 0.1.0 holds, once none of our hooks holds anybody any more."""
    for job in held_jobs(commands):
        if applies:
            release(commands, job)
        click.echo(f"qrls -h s {job}: the hook of 0.1.0 holds job {job}")


def _take_out(commands: Runs, config: Config, found: Found, kept: Record) -> None:
    statements = to_remove(found, kept.names(), (*HOOKS, *FORMER))
    if not statements:
        click.echo("nothing is installed")
        return
    if found.has("hook", SENDS_BACK):
        _let_nobody_save(commands, config, found)
    try:
        _remove(commands, statements, kept)
    finally:
        with suppress(OSError):  # it is root's, and on the server's host
            taken_file(config).unlink(missing_ok=True)


def _let_nobody_save(commands: Runs, config: Config, found: Found) -> None:
    """Disable the hook that sends jobs back: then pliantd asks none for its checkpoint any more.

    Raises Refused where one is on its way already: without our hooks it would be lost, or go back
    after each of its runs.
    """
    _must_be_at_rest(commands, config)
    was = found.attributes["hook", SENDS_BACK].get("enabled", "")
    for statement in turned(was, "false"):
        tell(commands, statement)
    try:
        _must_be_at_rest(commands, config)
    except (Refused, Unavailable, BadAnswer):
        for statement in turned("false", was):
            tell(commands, statement)
        raise


def _must_be_at_rest(commands: Runs, config: Config) -> None:
    rows = Queries(commands).jobs()
    fenced = Fences(fences_file(config), time.time).standing()
    jobs = sorted({row.id for row in rows if row.is_between_runs} | fenced.keys())
    if jobs:
        words = f"{jobs_text(jobs)} {'is' if len(jobs) == 1 else 'are'} between two runs"
        raise Refused(f"{words}: nothing was removed; run this again later")


def _remove(commands: Runs, statements: Sequence[Statement], kept: Record) -> None:
    """Take away what can be; exit with 1 where something is left."""
    left = False
    for statement in statements:
        trouble = tell(commands, statement)
        left |= bool(trouble)
        click.echo(f"left: {statement.words}: {trouble}" if trouble else statement.words)
    if not left:
        kept.forget()
        return
    click.echo("run this again once no job has them: `qstat -x` shows those that have ended too")
    raise click.exceptions.Exit(1)


class Record:
    """The names of the resources that we created."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> list[str]:
        """Return them; none where nothing was noted."""
        try:
            said = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return []
        known = resources_wanted()
        return [name for name in said if name in known] if isinstance(said, list) else []

    def add(self, names: Sequence[str]) -> None:
        """Note some more.

        Raises Unavailable.
        """
        if not names:
            return
        text = json.dumps([*dict.fromkeys((*self.names(), *names))]) + "\n"
        other = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            other.write_text(text)
            other.rename(self._path)
        except OSError as error:
            raise Unavailable(f"{self._path}: {error.strerror}") from None

    def forget(self) -> None:
        """Forget all of them."""
        self._path.unlink(missing_ok=True)


def settings(config: Config, user: str) -> dict[str, object]:
    """Return the hooks' configuration.

    Raises BadInput.
    """
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        raise BadInput(f"--user: {quoted(user)}: the name of a user here is expected") from None
    bin_dir = config.pbs.bin_dir or "/opt/pbs/bin"
    fences = str(fences_file(config))
    return {
        "state": config.pbs.state,
        "fences": fences,
        "taken": str(taken_file(config)),
        "owner": uid,
        "qalter": f"{bin_dir}/qalter",
        "qmgr": f"{bin_dir}/qmgr",
        "gpu_vnode": config.pbs.gpu_vnode,
        "type_resource": config.pbs.type_resource,
        "share_resource": config.pbs.share_resource,
        "wait_s": config.pbs.wait_s,
    }


def look(commands: Runs) -> Found:
    """Return what the server has.

    Raises Unavailable, Refused.
    """
    return found_in(printed(commands, "resource") + printed(commands, "hook"))


def printed(commands: Runs, kind: str) -> str:
    """Return what qmgr prints of all resources or hooks.

    Raises Unavailable, Refused.
    """
    answer = commands.run(("qmgr", "-c", f"print {kind}"))
    if answer.status:
        raise Refused(f"qmgr: {answer.words}; a manager of PBS is expected")
    return answer.out


def tell(commands: Runs, statement: Statement) -> str:
    """Tell qmgr one statement; return what it says against it, "" for nothing.

    Raises Unavailable.
    """
    answer = commands.run(("qmgr",), stdin=statement.text + "\n")
    return answer.words if answer.status else ""


def _config() -> Config:
    """Return pliant.toml; as if it were empty where there is none."""
    path = config_path()
    return load(path) if path.exists() else Config()
