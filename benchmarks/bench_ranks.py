"""How far apart the ranks of a step are told, by each form, and how many programs hang by that.

The first is measured: a step of four tasks on a real Slurm notes when each of them gets its signal.
The second is counted in a simulation (rank_world.py): four ranks that work for about 0.2 s a step
and then wait for each other are told so far apart as one of the measured deliveries was. There, as
in reality, a signal that comes while a rank waits in a collective is handled once that is over.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rank_programs import RANKS, RUNS, Program, agrees, hung, saves_in_its_handler
from benchmarks.rank_world import JITTER, STEP_S
from benchmarks.section import Section
from benchmarks.stats import estimate, quantile
from pliant.sandbox import Options, Sandbox
from pliant.wire import Message, ask_over_tcp

_TIMEOUT_S = 120.0
_POLL_S = 0.05
_NOTES = """
import os, pliant, signal, time
told = open("told." + os.environ["SLURM_PROCID"], "a")
signal.signal(signal.SIGUSR1, lambda *_: print(time.time(), file=told, flush=True))
open("ready." + os.environ["SLURM_PROCID"], "w").close()
pliant.heartbeat(1)
while True: signal.pause()
"""
_SCRIPT = """#!/bin/bash
#SBATCH --nodes=1 --ntasks-per-node={ranks} --gres=gpu:{ranks} --time=60 --output=out
#SBATCH --moldable=gpus=1-{ranks} --malleable=grace=10m
export PLIANT_CHECKPOINT_DIR="$PWD/saves"
{command}
"""
_WITHOUT, _ONE, _EACH = (
    "`scancel --signal=USR1`, without Pliant",
    "`pliant run --signal USR1 -- srun …`",
    "`srun pliant run --signal USR1 -- …`",
)


@dataclass(frozen=True, slots=True)
class Form:
    """One way to tell a step."""

    name: str
    command: str  # {run}: pliant run --signal USR1; {python}: the program
    tell: Callable[[Step], None]


class Step:
    """A step of a job that runs, and notes when its ranks are told."""

    def __init__(self, sandbox: Sandbox, place: Path, form: Form) -> None:
        """Submit it, and wait until each rank is ready."""
        self.sandbox, self._place, self._form = sandbox, place, form
        (place / "notes.py").write_text(_NOTES)
        run = f"{Path(sys.executable).with_name('pliant')} run --signal USR1 --"
        command = form.command.format(run=run, python=f"{sys.executable} notes.py")
        script = _SCRIPT.format(ranks=RANKS, command=command)
        argv = ["sbatch", "--parsable", f"--chdir={place}"]
        self.job = int(sandbox.run(argv, stdin=script, check=True).stdout)
        files = [place / f"ready.{rank}" for rank in range(RANKS)]
        _until(lambda: all(file.exists() for file in files), "the ranks to be ready")

    def delivered(self) -> list[float]:
        """Tell it once; return how long after the first one each rank was told."""
        before = len(self._told())
        self._form.tell(self)
        _until(lambda: len(self._told()) > before, "all ranks to be told")
        instants = self._told()[-1]
        return [instant - min(instants) for instant in instants]

    def _told(self) -> list[tuple[float, ...]]:
        """Return the instants of each delivery that has reached all ranks."""
        rows = [(self._place / f"told.{rank}").read_text().split() for rank in range(RANKS)]
        return [tuple(map(float, row)) for row in zip(*rows, strict=False)]

    def asks(self, verb: str, says: str, **fields: str) -> None:
        """Say it to pliantd until it ``says`` so: it may not have seen yet what was done before."""
        port, socket = self.sandbox.record.ports.pliant, self.sandbox.layout.munge_socket
        message = Message(verb, {"job": str(self.job), **fields})

        words = ""

        def is_done() -> bool:
            nonlocal words
            answer = ask_over_tcp("127.0.0.1", port, message, munge_socket=str(socket))
            words = answer.fields.get("json", answer.message)
            return answer.is_ok and says in words

        try:
            _until(is_done, f"{verb} to be done")
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {words}") from None


def _by_scancel(step: Step) -> None:
    step.sandbox.run(["scancel", "--signal=USR1", f"{step.job}.0"], check=True)


def _by_pliantd(step: Step) -> None:
    """Let pliantd want a checkpoint; one of an earlier wish is wanted no more."""
    step.asks("pin", "stays as it is")
    step.asks("unpin", "may change again")
    step.asks("resize", "is asked", shape="2")


FORMS = (
    Form(_WITHOUT, "srun {python}", _by_scancel),
    Form(_ONE, "exec {run} srun {python}", _by_pliantd),
    Form(_EACH, "srun {run} {python}", _by_pliantd),
)


def measure(quick: bool) -> list[Section]:
    """Measure each form, then simulate."""
    deliveries, runs = (2, 20) if quick else (30, RUNS)
    with _sandbox() as sandbox:
        found = {form.name: _deliveries(sandbox, form, deliveries) for form in FORMS}
    rows = [_row(name, seen, runs) for name, seen in found.items()]
    everywhere = [_hung(agrees, seen, name, runs) for name, seen in found.items()]
    rows.insert(0, ["`pliant.checkpoint_wanted_everywhere()`", "", "", "", f"{max(everywhere)}"])
    how = (
        f"A step of {RANKS} tasks on one node, told {deliveries} times by each form: from the "
        f"first to the last rank. Then {runs} simulated runs for each form and program: steps of "
        f"{STEP_S} s with a jitter of {JITTER:.0%}, the wish at any instant of a step, the ranks "
        "told as far apart as in one of the deliveries."
    )
    header = (
        *("how the ranks are told", "apart, ms: median", "95th percentile"),
        *(f"hung of {runs}: saves in its handler", f"hung of {runs}: agrees at the end of a step"),
    )
    return [Section("Ranks that are told to save", how, header, rows)]


def _row(name: str, seen: Sequence[Sequence[float]], runs: int) -> list[str]:
    apart_ms = [1000 * max(one) for one in seen]
    return [
        name,
        estimate(apart_ms).text(1),
        f"{quantile(0.95)(apart_ms):.1f}",
        str(_hung(saves_in_its_handler, seen, name, runs)),
        str(_hung(agrees, seen, name, runs)),
    ]


def _hung(what: Program, seen: Sequence[Sequence[float]], name: str, runs: int) -> int:
    return hung(what, lambda draw: draw.choice(seen), name, runs)


def _deliveries(sandbox: Sandbox, form: Form, count: int) -> list[list[float]]:
    place = Path(tempfile.mkdtemp(prefix="pliant-ranks-", dir="/tmp"))
    try:
        step = Step(sandbox, place, form)
        found = [step.delivered() for _ in range(count)]
        sandbox.run(["scancel", str(step.job)])
        _until(lambda: not sandbox.run(["squeue", "-h"]).stdout, "the job to end")
        return found
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox("bench-ranks", Options(nodes=1, gpus=RANKS))
    sandbox.up()
    try:
        yield sandbox
    finally:
        sandbox.down()


def _until(is_so: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + _TIMEOUT_S
    while not is_so():
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"waited {_TIMEOUT_S:.0f} s for {what}")
        time.sleep(_POLL_S)
