"""``pliant run -- COMMAND``: a malleable job's program, with somebody beside it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress

import click

from pliant.node import pbs, slurm
from pliant.node.bystander import become
from pliant.node.files import is_wrapped
from pliant.node.launch import run
from pliant.node.run import REQUESTED, from_environment
from pliant.node.saying import say
from pliant.node.wrapper import Outside
from pliant.wire.runs import RunAnswer


@click.command(
    "run",
    short_help="Run a program that may be checkpointed and resized.",
    context_settings={"allow_interspersed_args": False},
)
@click.option(
    "--signal",
    "signal_name",
    metavar="NAME",
    default="",
    help="Send the program this signal when a checkpoint is wanted (none: it looks at the file).",
)
@click.option(
    "--grace",
    metavar="TIME",
    default="",
    help="How long a checkpoint takes: 2m, 90s; no longer than the job itself says, if it does.",
)
@click.option(
    "--checkpoint-dir",
    metavar="DIRECTORY",
    default="",
    help="Where it saves: a directory that all nodes share (default: pliant-JOB beside the job).",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run_command(
    command: tuple[str, ...],
    signal_name: str,
    grace: str,
    checkpoint_dir: str,
) -> None:
    """Run COMMAND so that Pliant may ask it for a checkpoint, and requeue the job.

    In a malleable job the program is told by the file $PLIANT_CHECKPOINT_REQUESTED, by
    pliant.checkpoint_wanted() in Python, or by a signal. When it has saved it exits 85, "run me
    again": the job is requeued, and starts at another shape. Outside a job, or where Pliant is
    not there, the program runs as if it had been started by itself.

    Where the job says --malleable=checkpoint=PATH, that file or directory must be new and not empty
    by then; else one line says so, and the program is started again in place.

    Where `pliant run` itself is killed, the program runs on unmanaged, and the job ends with its
    exit code; where it had saved, the job is requeued.

    On PBS the job's script must end with it, best as `exec pliant run ...`: the job goes back to
    the queue by that exit code.

    \b
    pliant run -- python train.py
    srun pliant run -- python train.py
    pliant run --signal USR1 -- srun python train.py

    The exit code is the program's own, 128+n where signal n ended it.
    """
    this = from_environment(
        os.environ,
        grace_s=_seconds(grace),
        signal_name=signal_name,
        directory=checkpoint_dir,
    )
    if is_wrapped(os.environ.get(REQUESTED, ""), this.job):
        _become(command)
    system = pbs if pbs.is_here(os.environ) else slurm
    outside = Outside(_ask, system.requeue, system.why_ended)
    _leave(run(command, this, outside, os.environ))


def _seconds(text: str) -> int:
    if not text:
        return 0
    from pliant.grammar.values import read_time_s  # noqa: PLC0415  # seldom needed

    return read_time_s("grace", text)


def _become(command: tuple[str, ...]) -> None:
    try:
        become(command, os.environ)
    except OSError as error:
        say(f"{command[0]}: {error.strerror}")
        _leave(127 if isinstance(error, FileNotFoundError) else 126)


def _ask(verb: str, fields: Mapping[str, str], timeout_s: float) -> RunAnswer:
    """Ask pliantd; what that takes is imported in the thread that asks, not before the program."""
    from pliant.cli.run_door import DOOR  # noqa: PLC0415  # in jobs alone

    return DOOR.ask(verb, fields, timeout_s)


def _leave(code: int) -> None:
    """End at once: a thread that waits for pliantd must not trouble Python's own way out.

    Nor must a stdout or stderr that is closed (None here) or that takes nothing: Python's own way
    out makes 120 of the program's exit code then.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):
            stream.flush()
    os._exit(code)
