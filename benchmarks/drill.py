"""Hand-overs on a real Slurm into which one fault each is injected.

``python -m benchmarks.drill [--runs N] [--at-once K] [--seed S] [--only WORDS]`` writes
docs/drill.md: what was lost, stuck or left over, by kind of fault.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from queue import SimpleQueue

from benchmarks import machine
from benchmarks.drill_admin import Admin
from benchmarks.drill_faults import FAULTS, UNHALTED_S, Fault
from benchmarks.drill_field import COME_S, STEPS, Field, checksum, install
from benchmarks.section import Section, verdict
from pliant.errors import PliantError
from pliant.handover import Outcome

DOCUMENT = Path(__file__).parents[1] / "docs" / "drill.md"
QUIET_S = 90.0
END_S = 120.0
UNPINNED_S = 6.0
"""How long after its start a job may still carry its pin: the next look takes it."""
_SAID = re.compile("(INFO|WARNING|ERROR) pliant")
_ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


@dataclass(slots=True)
class Seen:
    """What one run showed; the goal of each count is 0; told only are ``redone`` in
    steps, and what Slurm did itself: ``first``, and ``righted`` by hand."""

    fault: str
    moment: str
    lost: int = 0
    steps_lost: int = 0
    redone: int = 0
    stuck: int = 0
    slipped: int = 0
    first: int = 0
    righted: int = 0
    fences: int = 0
    pins: int = 0
    seconds: float = 0.0
    words: list[str] = field(default_factory=list)
    said: str = ""

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, stuck or left."""
        counts = (self.lost, self.steps_lost, self.stuck, self.slipped, self.fences, self.pins)
        return not any(counts) and not self.words


def run(area: Field, fault: Fault, place: Path, draw: random.Random) -> Seen:
    """Make one hand-over with one fault in it; leave the sandbox whole and empty."""
    seen = Seen(fault.name, draw.choice(fault.moments))
    since_s = time.monotonic()
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    area.place, area.job, area.ends = place, 0, (fault.ends,)
    area.told = ()
    area.sandbox.stop("pliantd")
    said = len(area.said())
    try:
        with fault.around(area):
            try:
                _run(area, fault, seen, draw)
            except TimeoutError as error:
                seen.words.append(f"{error}: {area.trouble}")
                seen.stuck += 1
            finally:
                area.skew_s = 0
                area.restore()
                area.clear()
                area.sandbox.stop("pliantd")
    except (PliantError, OSError) as error:
        seen.words.append(f"{type(error).__name__}: {error}")
    lines = area.said(said).splitlines()
    seen.said = "\n".join(dict.fromkeys(line for line in lines if _SAID.match(line)))
    seen.seconds = time.monotonic() - since_s
    return seen


def _run(area: Field, fault: Fault, seen: Seen, draw: random.Random) -> None:
    area.deciding("fitgpp" if fault.guest else "easy-backfill")
    moment = "never" if seen.moment in UNHALTED_S else seen.moment
    area.skew_s = min(0, fault.skew_s)
    area.pliantd(moment)
    _begin(area, fault, moment, seen)
    _ask(area, fault, draw)
    if seen.moment in UNHALTED_S:
        time.sleep(draw.uniform(*UNHALTED_S[seen.moment]))
    else:
        area.wait((area.place / "reached").exists, f"{seen.moment} to come", COME_S)
    fault.inject(area)
    (area.place / "go").touch()
    time.sleep(draw.uniform(0.2, 1.5))
    area.restore()
    _until_quiet(area, seen)
    _stands(area, fault, seen)
    fault.after(area)
    _until_ended(area, fault, seen)


def _begin(area: Field, fault: Fault, moment: str, seen: Seen) -> None:
    """Let the job run."""
    malleable = f"--malleable=grace={fault.grace_s}"
    if fault.checkpoint:
        (area.place / "how").write_text(fault.checkpoint)
    own = "--class=best-effort" if fault.guest else "--moldable=gpus=1:2:4"
    area.submit(own, malleable)
    admin = Admin(area)  # of an earlier run Slurm may have kept something
    try:
        area.wait(lambda: admin.tend()[0].get("JobState") == "RUNNING", "the job to run", COME_S)
    except TimeoutError as error:
        raise TimeoutError(f"{error}: {_told(area.show(area.job))}") from None
    finally:
        seen.righted += admin.did
    area.wait((area.place / "done").exists, "the program to work", COME_S)
    if fault.skew_s > 0:  # by such a clock it would have been launching for 30 s
        time.sleep(3.0)
        area.sandbox.stop("pliantd")
        area.skew_s = fault.skew_s
        area.pliantd(moment)


def _ask(area: Field, fault: Fault, draw: random.Random) -> None:
    """Ask for a resize or a preemption, and let another job wait."""
    if fault.guest:
        trial = ("--gres=gpu:4", "--class=trial", "--time=2")
        area.guest = area.sbatch(None, "sleep 2", *trial)
    if fault.rival:
        area.submit_rival()
    if fault.guest:
        area.wait(lambda: _overs(area) > 0, "the job to be asked to make room", COME_S)
    else:
        wish = {"job": str(area.job), "shape": draw.choice(("1", "2"))}
        area.wait(lambda: bool(area.ask("resize", **wish)), "the wish", COME_S)


def _overs(area: Field) -> int:
    told = area.history()
    return len(told.handovers) if told else 0


def _until_quiet(area: Field, seen: Seen) -> None:
    """Wait until pliantd has nothing under way, and count what it left."""

    admin = Admin(area)

    def quiet() -> bool:
        admin.tend()
        told = area.history()
        if told is None or not all(row.outcome for row in told.handovers):
            return False
        waits = area.state(area.job) == "PENDING"  # it keeps its pin until it has started
        return not area.fences() and (waits or not area.pins())

    try:
        area.wait(quiet, "quiet", QUIET_S)
    except TimeoutError:
        told = area.history()
        rows = [f"{r.run} {r.outcome or 'under way'}" for r in told.handovers] if told else "?"
        seen.words.append(f"not quiet: {rows}")
    seen.fences = area.fences()
    seen.righted += admin.did


def _stands(area: Field, fault: Fault, seen: Seen) -> None:
    """Say what the job's user changed and something else has changed since."""
    name, value = fault.stands[0], fault.stands[1].format(rival=area.rival)
    found = area.show(area.job).get(name, "").replace("gres/", "gres:")  # from 23.02 on
    if found != value:
        seen.words.append(f"{name}={value} does not stand: {_told(area.show(area.job))}")


def _until_ended(area: Field, fault: Fault, seen: Seen) -> None:
    """Wait for the jobs' ends, without the two minutes that Slurm makes them wait, and count."""
    admin, runs_s = Admin(area, hurries=True), list[float]()

    def ended() -> bool:
        rival = area.state(area.rival) if area.rival else ""  # first: it may start at the job's end
        every = admin.tend()
        state = every[0].get("JobState", "")
        if area.rival and rival not in _ENDED and (state in _ENDED or rival == "RUNNING"):
            area.sandbox.run(["scancel", str(area.rival)])
        if state not in _ENDED and rival == "RUNNING" and not seen.first + seen.slipped:
            by_slurm = fault.first or _was_not_launched(area)
            seen.first, seen.slipped = (1, 0) if by_slurm else (0, 1)
            seen.words += [] if by_slurm else [f"slipped in before {_told(every[0])}"]
        if state == "RUNNING" and not (area.place / "hurry").exists():
            runs_s.append(time.monotonic())
            pins = area.pins()
            if not pins or time.monotonic() - runs_s[0] > UNPINNED_S:
                seen.pins = pins
                (area.place / "hurry").touch()
        return all(shown.get("JobState") in _ENDED for shown in every)

    try:
        area.wait(ended, "the jobs' ends", END_S)
    except TimeoutError:
        seen.words.append(f"stuck: {[_told(shown) for shown in admin.tend()]}")
        seen.stuck += 1
        return
    finally:
        seen.righted += admin.did
    state = area.state(area.job)
    out = area.place / "out"
    last = out.read_text().splitlines()[-1:] if out.exists() else []
    right = state != "COMPLETED" or last == [checksum(STEPS)]
    if state == "FAILED" and state not in area.ends and area.is_forgotten():
        seen.first += 1
    elif state not in area.ends or not right:
        seen.lost = 1
        seen.words.append(f"ended {state} {last}")
    words = (out.read_text() if out.exists() else "") + area.said()
    if state == "FAILED" and area.told and not any(line in words for line in area.told):
        seen.words.append("nobody says why it failed")
    seen.lost += bool(area.guest) and area.state(area.guest) != "COMPLETED"
    _lost_work(area.place / "log", seen)


def _was_not_launched(area: Field) -> bool:
    """Whether Slurm, which had forgotten that it runs, started it twice and then held it."""
    told = area.history()
    return told is not None and told.handovers[-1].outcome == Outcome.NOT_LAUNCHED


def _told(shown: Mapping[str, str]) -> str:
    names = ("JobId", "JobState", "Reason", "Priority", "Restarts", "TresPerNode", "EligibleTime")
    return " ".join(f"{name}={shown.get(name)}" for name in names)


def _lost_work(log: Path, seen: Seen) -> None:
    """Compare where each run began with what was saved and done before."""
    saved = 0
    for line in log.read_text().splitlines():
        what, *numbers = line.split()
        step, *done = map(int, numbers)
        if what == "saved":
            saved = step
        else:
            seen.steps_lost += max(0, saved - step)
            seen.redone += max(0, done[0] - step)


def drilled(faults: Sequence[Fault], seed: int, at_once: int = 1) -> Iterator[Seen]:
    """Run faults, some at once, each in a sandbox of its own; yield what was seen."""
    top = Path(tempfile.mkdtemp(prefix="pliant-drill-", dir="/tmp"))
    top.chmod(0o755)
    try:
        lib = install(top)
        free: SimpleQueue[Field] = SimpleQueue()
        names = [f"drill-{os.getpid()}-{number}" for number in range(at_once)]
        areas = [Field.up(name, lib) for name in names]
        try:
            for area in areas:
                free.put(area)

            def one(number: int, fault: Fault) -> Seen:
                area = free.get()
                try:
                    return run(area, fault, top / str(number), random.Random(seed + number))
                finally:
                    free.put(area)

            with ThreadPoolExecutor(at_once) as pool:
                yield from pool.map(one, range(len(faults)), faults)
        finally:
            for area in areas:
                area.sandbox.down()
    finally:
        shutil.rmtree(top, ignore_errors=True)


_HEADER = (
    *("fault", "the job ends", "runs", "jobs lost", "steps lost", "stuck", "slipped in"),
    *("fences", "pins", "ended or requeued by Slurm itself first", "Slurm put right by hand"),
    *("steps done again", "median s"),
)


def table(seen: Sequence[Seen]) -> Iterator[Sequence[str]]:
    """Yield a row for each kind of fault, and one for all."""
    kinds = list(dict.fromkeys(one.fault for one in seen))
    for kind in kinds:
        yield _row(kind, [one for one in seen if one.fault == kind])
    yield _row("all", seen)


def _row(name: str, seen: Sequence[Seen]) -> Sequence[str]:
    def total(what: str) -> str:
        return str(sum(getattr(one, what) for one in seen))

    median = sorted(one.seconds for one in seen)[len(seen) // 2]
    goals = ("lost", "steps_lost", "stuck", "slipped", "fences", "pins")
    counts = (*goals, "first", "righted", "redone")
    ends = next((kind.ends.lower() for kind in FAULTS if kind.name == name), "")
    return (name, ends, str(len(seen)), *map(total, counts), f"{median:.0f}")


_HEAD = """\
# Hand-overs with faults

Written by `make drill`; every number below was counted by that run. GPUs are fake; Slurm is real.
"""

_HOW = """\
In each run a job that counts (docs/examples/count.py, its checkpoint made to take a second, \
its protected time cut short) is \
resized, or preempted for a trial job, while another waits for all GPUs of its node, and one \
fault is injected at a moment drawn by the seed. What died is started again within 1.5 s, and what \
is left is counted once pliantd has nothing under way. A slurmctld that is killed forgets its last \
seconds, with or without Pliant: a job that it had started in them it starts again, its node \
refuses that, and Slurm holds the job and drains the node; or it takes GPUs for used until it is \
reconfigured. The drill then does what an administrator would, which is counted apart. Or it ends \
the run that it has forgotten ("Registered PENDING") and starts the job again within the same \
second, for which the node has just revoked the job's credential: the job has FAILED, as a plain \
one would have; it is counted as ended by Slurm itself."""


def main() -> None:
    """Run it and write the document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.drill", description=__doc__)
    parser.add_argument("--runs", type=int, default=0, help="how many; each kind once by default")
    parser.add_argument("--at-once", type=int, default=max(1, (os.cpu_count() or 2) // 2))
    parser.add_argument("--seed", type=int, default=0, help="drawn where it is 0, and printed")
    parser.add_argument("--only", default="", help="kinds with these words, split by commas")
    parser.add_argument("--out", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    seed = chosen.seed or random.SystemRandom().randrange(1, 2**31)
    print(f"seed {seed}", flush=True)
    kinds = [one for one in FAULTS if any(word in one.name for word in chosen.only.split(","))]
    faults = list(islice(cycle(kinds), chosen.runs or len(kinds)))
    random.Random(seed).shuffle(faults)
    head = [_HEAD, *machine.lines(), ""]
    seen = []
    for one in drilled(faults, seed, chosen.at_once):
        seen.append(one)
        mark = "ok " if one.is_good else "NOT"
        print(f"{mark} {one.seconds:4.0f} s  {one.fault} ({one.moment}) {one.words}", flush=True)
        if not one.is_good:
            print(f"    {replace(one, said='')}\n{one.said}", flush=True)
    seen.sort(key=lambda one: [kind.name for kind in FAULTS].index(one.fault))
    bad = [f"- {one.fault} ({one.moment}): {one.words}" for one in seen if not one.is_good]
    words = f"Seed {seed}. Nothing lost, stuck or left: {verdict(not bad)}."
    section = Section("What was seen", _HOW, _HEADER, [*table(seen)], words)
    chosen.out.write_text("\n".join([*head, *section.markdown(), *bad]).rstrip() + "\n")


if __name__ == "__main__":
    main()
