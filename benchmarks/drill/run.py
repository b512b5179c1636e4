"""One run of the drill: a hand-over on a real Slurm into which one fault is injected."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.drill.admin import Admin
from benchmarks.drill.faults import UNHALTED_S, Fault
from benchmarks.drill.field import COME_S, STEPS, Field, checksum
from pliant.errors import PliantError
from pliant.handover import Outcome

QUIET_S = 90.0
END_S = 400.0
"""Slurm took three minutes to miss a job whose node was rebooted, and two to start it again."""
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
                area.have_passed()
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
    area.submit(own, malleable, *fault.options)
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
