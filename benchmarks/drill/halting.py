"""The real pliantd, which halts at a step of a hand-over for as long as it is made to.

``python -m benchmarks.drill.halting DIRECTORY --config FILE``. Where DIRECTORY/halt says
``before:requeue``, ``after:fence`` and so on, that file is renamed to DIRECTORY/reached there, and
pliantd goes on once it is removed: so it halts once, and one that is started anew goes on.
A job's protected time is short, so that nothing waits for its end.
DRILL_SKEW_S is how wrong its clock is, and that of the commands that it runs (by libfaketime).
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

from pliant import lifecycle
from pliant.batch.pbs import Pbs
from pliant.batch.slurm import Commands, Slurm
from pliant.daemon import main as daemon
from pliant.daemon.server import Surroundings
from pliant.handover import HandOver, Step
from pliant.model import Job

HALT, REACHED = "halt", "reached"
END = "end"
"""No step: that the program has saved, and will end now; on PBS it has a fence put up."""
MOST_S = 30.0
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


def halting(batch: type[Slurm] | type[Pbs], directory: Path, **own: Any) -> type:
    """Return the batch system with steps that halt where it is said; ``own``: more for its init."""
    wanted, reached = directory / HALT, directory / REACHED

    def halt(when: str, step: str) -> None:
        if not wanted.exists() or wanted.read_text() != f"{when}:{step}":
            return
        wanted.rename(reached)
        deadline = time.monotonic() + MOST_S
        while reached.exists() and time.monotonic() < deadline:
            time.sleep(0.005)

    def init(self: Any, commands: Any, **rest: Any) -> None:
        batch.__init__(self, commands, **own, **rest)

    def ending(self: Any, over: HandOver, job: Job) -> None:
        halt("before", END)
        batch.before_end(self, over, job)
        halt("after", END)

    def stepping(self: Any, step: Step, over: HandOver, job: Job) -> None:
        halt("before", step.do)
        batch.step(self, step, over, job)
        halt("after", step.do)

    return type(
        f"Halting{batch.__name__}",
        (batch,),
        {"__init__": init, "before_end": ending, "step": stepping},
    )


def skewed(skew_s: int) -> dict[str, str]:
    """Let this process's clock be wrong; return what does so to commands.

    Not by libfaketime here: with it Python's sleep fails (EINVAL of clock_nanosleep).
    """
    if not skew_s:
        return {}
    right = time.time
    vars(time)["time"] = lambda: right() + skew_s
    return {"LD_PRELOAD": FAKETIME, "FAKETIME": f"{skew_s:+d}s"}


def main() -> None:
    """Run pliantd."""
    directory, *arguments = sys.argv[1:]
    passed = skewed(int(os.environ.get("DRILL_SKEW_S", "0")))
    commands = partial(Commands, env=passed)
    vars(lifecycle).update(PROTECTION=0.3)
    slurm = halting(Slurm, Path(directory), clock=time.time)  # as it is now, skewed perhaps
    vars(daemon).update(Slurm=slurm, Pbs=halting(Pbs, Path(directory)), Commands=commands)
    vars(daemon).update(Surroundings=partial(Surroundings, clock=time.time))
    daemon.main(arguments)


if __name__ == "__main__":
    main()
