"""Which run this is, as the environment of a job tells it.

sbatch in a job passes the job's variables on, and Slurm sets anew only what the new job has: in one
that is no task of an array, was never restarted and is no step, SLURM_ARRAY_*, SLURM_RESTART_COUNT
and SLURM_STEP_* may be another job's. SLURM_JOB_ID never is.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pliant.errors import BadInput, BadSpec
from pliant.node import pbs
from pliant.node.ancestors import is_batch

MALLEABLE = "SLURM_SPANK__SLURM_SPANK_OPTION_pliant_malleable"
"""What ``--malleable=`` said, where Slurm hands it into the job (facts of spank(7))."""
DIRECTORY = "PLIANT_CHECKPOINT_DIR"
CHOSEN = "PLIANT_CHECKPOINT_DIR_OF"
"""JOB:DIRECTORY, where a job's `pliant run` set that one: no job that it submits takes it."""
REQUESTED = "PLIANT_CHECKPOINT_REQUESTED"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job; ``job`` is its own number, SLURM_JOB_ID or PBS_JOBID's, "" outside."""

    job: str = ""
    called: str = ""  # what scontrol and squeue take for this job alone
    step: str = ""
    restarts: int = 0  # as far as its environment tells
    host: str = ""
    rank: int = 0
    ranks: int = 1  # tasks of this step, each with a wrapper
    grace_s: int = 0  # as said to `pliant run`: what the job said pliantd knows
    signal: int = 0
    typed: bool = False  # that signal was said to `pliant run`: it wins over what pliantd knows
    directory: Path | None = None  # for checkpoints
    chosen: bool = True  # by us, for this job alone: its owner named none in its environment
    returns: bool = False  # see pliant.node.words.State
    otherwise: Path | None = None  # where another user has made that one; None: it was named

    @property
    def leads(self) -> bool:
        """Whether this task speaks with pliantd."""
        return self.rank == 0


def from_environment(
    environ: Mapping[str, str], *, grace_s: int = 0, signal_name: str = "", directory: str = ""
) -> Run:
    """Return which run this is; what was said to ``pliant run`` wins over what the job said.

    Raises BadInput for an unknown signal.
    """
    on_pbs = pbs.is_here(environ)
    job = pbs.job_of(environ) if on_pbs else environ.get("SLURM_JOB_ID", "")
    # srun alone sets this one: in a batch script SLURM_PROCID and SLURM_NTASKS stand as well
    ranks = _number(environ, "SLURM_STEP_NUM_TASKS", 1) if job and not on_pbs else 1
    ranks = 1 if ranks > 1 and is_batch(job) else ranks
    told = _named(environ, job)
    named = directory or told
    return Run(
        job=job,
        called=_called(environ, job),
        step=environ.get("SLURM_STEP_ID", "") if ranks > 1 else "",
        restarts=_number(environ, pbs.RESTARTS if on_pbs else "SLURM_RESTART_COUNT", 0),
        host=socket.gethostname(),
        rank=_number(environ, "SLURM_PROCID", 0) if ranks > 1 else 0,
        ranks=ranks,
        grace_s=grace_s,
        signal=signal_number(signal_name or _said(environ.get(MALLEABLE, ""))),
        typed=signal_name != "",
        directory=Path(named).absolute() if named else _beside(environ, job),
        chosen=directory != "" or not told,
        returns=pbs.returns(environ),
        otherwise=_at_home(environ, job) if job and not named else None,
    )


def _called(environ: Mapping[str, str], job: str) -> str:
    """Return what names this job alone: one task of an array has the number of the whole array."""
    array, task = (environ.get(f"SLURM_ARRAY_{name}_ID", "") for name in ("JOB", "TASK"))
    return f"{array}_{task}" if job and array == job and task else job


def _named(environ: Mapping[str, str], job: str) -> str:
    """Return the directory that the job's owner named in its environment."""
    directory = environ.get(DIRECTORY, "")
    of, _, chosen = environ.get(CHOSEN, "").partition(":")
    return "" if chosen == directory and of != job else directory


def signal_number(name: str) -> int:
    """Return a signal's number; 0 for none.

    Raises BadInput.
    """
    from pliant.grammar import SIGNALS, quoted  # noqa: PLC0415  # not before it is needed

    plain = name.upper().removeprefix("SIG")
    if not plain:
        return 0
    if plain not in SIGNALS:
        raise BadInput(f"signal: {quoted(name)}: one of {', '.join(SIGNALS)} is expected")
    return int(signal.Signals[f"SIG{plain}"])


def _said(text: str) -> str:
    """Return the signal of ``--malleable=``; a broken one says none.

    It may be that of the job that submitted this one. pliantd puts that right once it is heard.
    """
    if not text or text == "(null)":
        return ""
    from pliant.grammar import parse_option  # noqa: PLC0415  # seldom needed
    from pliant.model import Request  # noqa: PLC0415  # seldom needed

    try:
        said = parse_option(Request(), "malleable", text).malleable
    except BadSpec:
        return ""
    return said.signal if said else ""


def _beside(environ: Mapping[str, str], job: str) -> Path | None:
    if not job:
        return None
    return _submitted(environ) / f"pliant-{job}"


def _submitted(environ: Mapping[str, str]) -> Path:
    """Return where the job was submitted."""
    name = pbs.WORKDIR if pbs.is_here(environ) else "SLURM_SUBMIT_DIR"
    return Path(environ.get(name) or ".").absolute()


def _at_home(environ: Mapping[str, str], job: str) -> Path:
    """Return where else; beside the first, by another name, for a user without a home."""
    try:
        return Path.home() / f"pliant-{job}"
    except RuntimeError:
        return _submitted(environ) / f"pliant-{job}-{os.geteuid()}"


def _number(environ: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() else otherwise
