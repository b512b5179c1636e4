"""`pliant sandbox`: a private Slurm to try Pliant in."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from pliant.cli.policy_options import policy_options
from pliant.errors import BadInput
from pliant.policies import DEFAULT
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.accounts import person
from pliant.sandbox.options import MODES, SCHEDULER_PARAMETERS

_name = click.option(
    "--name", default="default", show_default=True, help="Which sandbox; several may run at once."
)


@click.group(short_help="A private Slurm with fake GPUs, to try Pliant in.")
def sandbox() -> None:
    """Run a private Slurm on this machine, with fake GPUs, and Pliant in it."""


@sandbox.command(short_help="Bring a sandbox up.")
@_name
@click.option("--nodes", default=2, show_default=True, help="How many nodes.")
@click.option("--gpus", default=4, show_default=True, help="How many fake GPUs on each node.")
@click.option("--cpus", default=0, help="CPUs of a node.  [default: 4 per GPU, at least 16]")
@click.option("--shards", default=4, show_default=True, help="Shares of each GPU (gres/shard).")
@click.option(
    "--gpu-type", default="a100", show_default=True, help="Type of GPU; a100:h100: in turns."
)
@click.option("--accounting", is_flag=True, help="With slurmdbd and a private MariaDB.")
@click.option(
    "--users", default="", help="Users of this machine, a,b, whom the accounting knows beside you."
)
@click.option(
    "--mode",
    default="enforce",
    show_default=True,
    help=f"Pliant's mode: {', '.join(MODES)} (none: plain Slurm, no part of Pliant).",
)
@click.option("--policy", default=DEFAULT, show_default=True, help="Pliant's policy.")
@click.option(
    "--with",
    "chosen",
    metavar="OPTION=VALUE",
    multiple=True,
    help="An option of the policy; may stand several times.",
)
@click.option(
    "--scheduler-parameters",
    default=SCHEDULER_PARAMETERS,
    help="SchedulerParameters of slurm.conf.  [default: those that answer at once]",
)
def up(  # noqa: PLR0917 - click passes them by name
    name: str,
    nodes: int,
    gpus: int,
    cpus: int,
    shards: int,
    gpu_type: str,
    accounting: bool,
    users: str,
    mode: str,
    policy: str,
    chosen: tuple[str, ...],
    scheduler_parameters: str,
) -> None:
    """Bring a sandbox up."""
    options = Options(
        nodes=nodes,
        gpus=gpus,
        cpus=cpus,
        shards=shards,
        gpu_types=tuple(gpu_type.split(":")),
        accounting=accounting,
        users=tuple(user for user in users.split(",") if user),
        mode=mode,
        policy=policy,
        policy_with=policy_options(chosen),
        scheduler_parameters=scheduler_parameters,
    )
    wanted = Sandbox(name, options)
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that a half-made sandbox is removed
        signal.signal(number, _leave)
    began = time.monotonic()
    wanted.up()
    click.echo(
        f"sandbox {name} is up after {time.monotonic() - began:.1f} s: {nodes} nodes with {gpus} "
        f"fake GPUs each, mode {mode}\ntry: pliant sandbox shell --name {name}"
    )


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


@sandbox.command(short_help="End a sandbox and remove all that it left.")
@_name
def down(name: str) -> None:
    """End a sandbox and remove all that it left, jobs included; also after a crash."""
    existed = Sandbox(name).down()
    click.echo(f"sandbox {name} is down" if existed else f"no sandbox {name}")


@sandbox.command(short_help="What of a sandbox runs.")
@_name
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(name: str, as_json: bool) -> None:
    """Say what of a sandbox runs; exit 1 unless all of it does."""
    state = Sandbox(name).status()
    if as_json:
        click.echo(json.dumps(state, indent=2))
    else:
        click.echo(f"sandbox {name} ({state['directory']}): {state['state']}")
        for part, pid in state["parts"].items():
            click.echo(f"  {part:<12} {pid or 'not running'}")
    sys.exit(0 if state["state"] == "up" else 1)


@sandbox.command(
    "exec",
    short_help="Run a command in a sandbox.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@_name
@click.option("--user", help="Run as this user of the machine (root only).")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(name: str, user: str | None, command: tuple[str, ...]) -> None:
    """Run COMMAND in a sandbox; its exit code is ours: exec --name N -- sinfo."""
    _become(Sandbox(name), user, command)


@sandbox.command(short_help="Open a shell in a sandbox.")
@_name
@click.option("--user", help="Be this user of the machine (root only).")
def shell(name: str, user: str | None) -> None:
    """Open a shell whose sbatch, squeue and pliant speak to a sandbox."""
    words = f"in sandbox {name}; sbatch, squeue, scontrol and pliant are its own; exit leaves"
    _become(Sandbox(name), user, [os.environ.get("SHELL", "/bin/sh")], words)


def _become(found: Sandbox, user: str | None, command: Sequence[str], words: str = "") -> NoReturn:
    """Replace this process by the command: signals, terminal and exit code are then its own.

    ``words`` are printed before.
    """
    _ = found.record  # there is such a sandbox
    env = found.env
    if user is not None:
        if os.geteuid() != 0:
            raise BadInput(f"--user {user}: only root may run commands as another user")
        whom = person(user)
        env = whom.environment(env)
        place = whom.directory()
        whom.become()
        os.chdir(place)
    if words:
        click.echo(words)
    try:
        sys.stdout.flush()
        os.execvpe(command[0], list(command), env)  # noqa: S606 - no shell is what we want
    except OSError as error:
        click.echo(f"pliant: {command[0]}: {error.strerror}", err=True)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)
