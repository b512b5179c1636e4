"""Both rounds of the demonstration, and what is said about them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from types import FrameType
from typing import NoReturn

from pliant.demo import report
from pliant.demo.dry import dry_round
from pliant.demo.idle import idle
from pliant.demo.live import Say, live_round
from pliant.demo.mix import GPUS, NODES, USERS, Submission, mix
from pliant.demo.run import Run, mean_flow_s
from pliant.demo.users import users
from pliant.errors import Unavailable
from pliant.sandbox.programs import require

CLUSTER = {f"n{number + 1}": GPUS for number in range(NODES)}

_Round = Callable[[str, Sequence[Submission], Say], Sequence[Run]]

_MIX = """\
{jobs} jobs of two users: ranges, lists, shares of a GPU, numbers of nodes, CPU or GPU, and rigid.
The kinds are fixed; order, arrivals, owners, programs and run times are drawn with seed {seed}.
Both rounds submit exactly the same, flags included; with Pliant off every job runs as its user's
own request says. A job does a fixed amount of work: on g GPUs its speed is g^0.9 (vision), g^0.8
(language) or g^0.65 (search), a tenth less across nodes, and a quarter of one GPU's on CPUs."""

_WORDS = """\
asked: the user's own request, then what else Pliant may choose. Flow: from submission to end.
Avoidably idle: free while a job waits that has an allowed shape which fits there and would not
have delayed the first waiting job; what a round takes to react is part of it."""


def why_not_live() -> str:
    """Return why there can be no real Slurm here, "" where there can."""
    if os.geteuid() != 0:
        return "not root"
    try:
        require("slurmctld", "slurmd", "munged", "sbatch", "useradd")
    except Unavailable as missing:
        return str(missing)
    return ""


def play_live(name: str, seed: int, say: Say) -> None:
    """Run both rounds on a real Slurm in a sandbox; leave nothing behind, whatever happens."""
    say(
        f"A real Slurm, private to this machine: {NODES} nodes with {GPUS} GPUs each.\n"
        "Fake are the GPUs, so a job computes nothing: it sleeps as long as its work would take."
    )
    with _leaving(), users(USERS):
        _play(lambda mode, jobs, tell: live_round(name, mode, jobs, tell), seed, say)


def play_dry(reason: str, seed: int, say: Say) -> None:
    """Run both rounds on the simulated cluster."""
    say(
        f"SIMULATED, no real Slurm ({reason}): "
        f"{NODES} nodes with {GPUS} GPUs each, their time simulated too."
    )
    _play(dry_round, seed, say)


def _play(one_round: _Round, seed: int, say: Say) -> None:
    jobs = mix(seed)
    say(_MIX.format(jobs=len(jobs), seed=seed))
    rounds = []
    for number, (mode, words) in enumerate((("off", "off"), ("enforce", "enforcing")), start=1):
        say(f"\nRound {number}, Pliant {words}:")
        rounds.append(one_round(mode, jobs, lambda line: say(f"  {line}")))
    off, on = rounds
    say("")
    for line in report.table(off, on):
        say(line)
    say("")
    for line in report.means(off, on, (idle(off, CLUSTER), idle(on, CLUSTER))):
        say(line)
    say("")
    say(_WORDS)
    say("")
    say(other_seeds())


def other_seeds(seeds: Sequence[int] = range(1, 21)) -> str:
    """Return how the mean flow time changes over other draws of the mix, all simulated."""
    changes = sorted(flow_change(seed) for seed in seeds)
    least, middle, most = (
        f"{100 * change:+.0f} %" for change in (changes[0], median(changes), changes[-1])
    )
    return (
        f"One draw says little. Simulated, over the {len(changes)} mixes of seeds {seeds[0]} to "
        f"{seeds[-1]}, the mean flow\ntime changes by {middle} (median), from {least} to {most}."
    )


def flow_change(seed: int) -> float:
    """Return by what part Pliant changes a mix's mean flow time on the simulated cluster."""
    jobs = mix(seed)
    off, on = (mean_flow_s(dry_round(mode, jobs, _silent)) for mode in ("off", "enforce"))
    return on / off - 1


def _silent(_line: str) -> None:
    pass


@contextlib.contextmanager
def _leaving() -> Iterator[None]:
    """Let a SIGTERM or SIGHUP leave through everything that cleans up, as Ctrl-C does."""
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, _leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
