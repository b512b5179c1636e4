"""One run of the drill: a job that is handed over again and again with a fault in each."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from benchmarks.drill.fault import UNHALTED_S, Fault
from benchmarks.drill.field import (
    COME_S,
    ENDED,
    GPUS,
    LOOK_S,
    SHAPES,
    STEPS,
    Admin,
    Field,
    checksum,
)
from benchmarks.drill.work import Work
from pliant.batch.slurm.values import duration_s
from pliant.handover import Outcome

log = logging.getLogger("pliant.drill")

QUIET_S = 200.0
"""A job whose slurmd was killed between its step's end and its own word of that stays COMPLETING
until Slurm sends the kill again: after KillWait and twice MessageTimeout, looked at once a minute.
"""
END_S = 900.0
"""Slurm took six minutes to miss a job whose node was back at once, and two to start it again."""
LEFT_S = 30.0
"""How long a fence may stand whose job waits or is in no hand-over any more, or a pin be left.

Much less than a fence that nobody ends, which stands for two minutes.
"""
UNPINNED_S = 6.0
"""How long after its start a job may still carry its pin: the next look takes it."""
RESTS_S = 10.0
PASSED_BY = "passed by"
SLIPPED = "slipped in before"
"""The moment of a hand-over that ended without having come to the one that it was to halt at."""
_RESTS = ("saved in vain", "it was tried before, and refused", "a `pliant run` of it was lost")
"""What pliantd says of a job that it does not ask again for a while, or in this run, or of a shape.

The fault of a hand-over that was done by then has met the wrapper of the next run.
"""
_SAID = re.compile("(INFO|WARNING|ERROR) pliant")


@dataclass(slots=True)
class Seen:
    """What one hand-over showed; the goal of each count is 0; told only are ``redone`` in
    steps, which the words name where the fault gives no cause for them, and what Slurm did itself:
    ``first``, and ``righted`` by hand; and what it came to where it was ``unmade``: the job did not
    get what was asked for it."""

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
    unmade: str = ""
    words: list[str] = field(default_factory=list)

    @property
    def not_made(self) -> int:
        """Whether it was not, as a number."""
        return int(self.unmade != "")

    @property
    def is_faulty(self) -> bool:
        """Whether the fault was injected: two of pliantd's threads may do what one step is for."""
        return self.moment != PASSED_BY

    @property
    def is_good(self) -> bool:
        """Whether nothing was lost, stuck or left."""
        counts = (self.lost, self.steps_lost, self.stuck, self.slipped, self.fences, self.pins)
        return not any(counts) and not self.words


@dataclass(slots=True)
class Ran:
    """What one run showed, hand-over by hand-over, and what pliantd ``said`` in it.

    What is wrong only at the job's end, or keeps the run from going on, is its last hand-over's.
    """

    fault: str
    seen: list[Seen]
    seconds: float = 0.0
    said: str = ""

    @property
    def faults(self) -> int:
        """In how many of them the fault was injected."""
        return sum(one.is_faulty for one in self.seen)

    @property
    def is_good(self) -> bool:
        """Whether all of them were."""
        return all(one.is_good for one in self.seen)


def run(area: Field, fault: Fault, place: Path, draw: random.Random) -> Ran:
    """Hand a job over with the fault at each of some moments; leave the sandbox whole and empty."""
    moments, since_s = drawn(fault, draw), time.monotonic()
    ran = Ran(fault.name, [Seen(moments[0])])
    said = len(area.said())
    try:
        area.begin(place, fault.ends)
        with fault.around(area):
            _run(area, fault, moments, ran, draw)
    except Exception as error:  # else the record would lack just the runs that went wrong
        log.exception("%s: this run is not good", fault.name)
        ran.seen[-1].words.append(f"{type(error).__name__}: {error}")
    lines = area.said(said).splitlines()
    ran.said = "\n".join(line for line, _ in groupby(filter(_SAID.match, lines)))
    ran.seconds = time.monotonic() - since_s
    return ran


def _run(area: Field, fault: Fault, moments: Sequence[str], ran: Ran, draw: random.Random) -> None:
    """Make the hand-overs for as long as the job goes on, and clear up."""
    work = Work(area.place / "log")
    try:
        _begin(area, fault, draw)
        while not area.has_ended:
            last = len(ran.seen) == len(moments)
            asked = _asked(area, fault, ran.seen[-1], draw, again=len(ran.seen) > 1)
            if asked:
                _hand_over(area, fault, ran.seen[-1], draw, asked, last=last)
            else:
                ran.seen.pop()
                _until_over(area, fault, ran.seen[-1], last=True)
            count_work(fault, ran, work)
            if not area.has_ended:
                ran.seen[-1].righted += area.recount()
                ran.seen.append(Seen(moments[len(ran.seen)]))
    except TimeoutError as error:
        ran.seen[-1].words.append(f"{error}: {area.trouble}")
        ran.seen[-1].stuck += 1
    finally:
        with ExitStack() as after:  # also where one of these fails
            after.callback(area.stop_pliantd)
            after.callback(area.clear)
            after.callback(area.restore)
            after.callback(area.have_passed)
            area.skew_s = 0
            area.let_go()


def count_work(fault: Fault, ran: Ran, work: Work) -> None:
    """Count what of the program's work is lost since the last hand-over.

    A run that the fault has ended may show only in the next hand-over: it excuses those too.
    """
    seen, (lost, redone) = ran.seen[-1], work.lost()
    seen.steps_lost, seen.redone = seen.steps_lost + lost, seen.redone + redone
    if redone and not (fault.redoes and ran.faults):
        seen.words.append(f"lost work: {redone} steps that were not saved are done again")


def drawn(fault: Fault, draw: random.Random) -> Sequence[str]:
    """Return the moments of a run, different ones where the fault has so many."""
    moments: list[str] = []
    while len(moments) < fault.hand_overs:
        moments += draw.sample(fault.moments, len(fault.moments))
    return moments[: fault.hand_overs]


def _begin(area: Field, fault: Fault, draw: random.Random) -> None:
    """Let the job run; one of two is submitted before pliantd may be asked about it.

    What is put right before that is of an earlier run.
    """
    area.deciding("fitgpp" if fault.guest else "easy-backfill", *(["p = 9"] if fault.guest else []))
    area.skew_s = min(0, fault.skew_s)
    area.pliantd()
    if draw.random() < 0.5:
        area.wait(area.answers, "pliantd to be asked", COME_S)
    if fault.checkpoint:
        (area.place / "how").write_text(fault.checkpoint)
    area.submit(fault.options, best_effort=fault.guest, grace_s=fault.grace_s)
    admin = area.admin()
    try:
        area.wait(lambda: admin.tend()[0].get("JobState") == "RUNNING", "the job to run", COME_S)
    except TimeoutError as error:
        raise TimeoutError(f"{error}: {_told(area.show(area.job))}") from None
    area.wait((area.place / "done").exists, "the program to work", COME_S, LOOK_S)
    if fault.skew_s > 0:  # by such a clock it would have been launching for 30 s
        time.sleep(3.0)
        area.stop_pliantd()
        area.skew_s = fault.skew_s
        area.pliantd()


def _asked(area: Field, fault: Fault, seen: Seen, draw: random.Random, *, again: bool) -> str:
    """Ask for a resize or a preemption, and let another job wait; pliantd halts where it is to.

    Return how many GPUs the job is to have then; "" for one that is not to be asked ``again`` so
    soon.
    """
    if seen.moment not in UNHALTED_S:
        area.halt_at(seen.moment)
    before = _overs(area)
    if fault.guest:
        if area.rival:  # which would be before the guest
            area.cancel(area.rival)
            area.rival = ""
        area.submit_guest()
    if fault.rival and not area.rival:
        area.submit_rival()
    if fault.guest:
        halts = area.is_halted  # it answers nobody then
        what = "the job to be asked to make room"
        try:
            area.wait(lambda: halts() or _overs(area) > before, what, COME_S)
        except TimeoutError:  # one that has saved in vain is not asked for five minutes
            told = area.history()
            if not (again and told and told.handovers[-1].outcome == Outcome.STAYS):
                raise
            area.cancel(area.guest)  # room is made for it of itself
            area.guest = ""
            return ""
        return str(GPUS)
    shapes, since_s, asked = draw.sample(SHAPES, len(SHAPES)), time.monotonic(), ""
    admin = area.admin(hurries=True)

    def is_asked() -> bool:
        nonlocal asked
        _tended(area, fault, seen, admin)  # it may be on its way back, without pliantd
        others = (one for one in shapes if int(one) != area.gpus())
        took = (one for one in others if area.ask("resize", job=area.number, shape=one))
        asked = next(took, "")
        return asked != ""

    def rests() -> bool:
        says_so = any(words in area.trouble for words in _RESTS)
        return says_so and time.monotonic() - since_s > RESTS_S and not area.is_under_way()

    try:
        area.wait(lambda: (again and rests()) or is_asked(), "the wish", COME_S)
    finally:
        _note(fault, seen, admin)
    return asked


def _hand_over(
    area: Field, fault: Fault, seen: Seen, draw: random.Random, asked: str, *, last: bool
) -> None:
    """Inject the fault, and wait until the job works again or has ended."""
    came = False
    if seen.moment in UNHALTED_S:
        time.sleep(draw.uniform(*UNHALTED_S[seen.moment]))
    elif not _has_come(area, seen.moment):
        seen.moment = PASSED_BY
    if seen.is_faulty:
        area.passed_by = False
        fault.inject(area)
        came, seen.moment = True, PASSED_BY if area.passed_by else seen.moment
        area.let_go()
        time.sleep(draw.uniform(0.2, 1.5))
        area.restore()
    left_s = LEFT_S + abs(fault.skew_s)  # by a wrong clock it may begin so late
    until_quiet(area, fault, seen, left_s)
    seen.unmade = _unmade(area) or _other_shape(area, asked)
    if (fault.made and seen.unmade) or (seen.unmade == Outcome.AS_WAS and not fault.as_was):
        seen.words.append(f"it was not made: {seen.unmade}")
    if seen.is_faulty:
        stands(area, fault, seen)
    if came:
        fault.after(area)
    _until_over(area, fault, seen, last=last)
    if fault.made and seen.righted:
        seen.words.append("it was put right by hand, which this fault gives no cause for")


def _has_come(area: Field, moment: str) -> bool:
    """Wait until pliantd halts at this moment; False where the hand-over ended without it."""
    looked_s = time.monotonic()

    def halts_or_ended() -> bool:
        nonlocal looked_s
        if area.is_halted() or time.monotonic() - looked_s < 1.0:
            return area.is_halted()
        looked_s = time.monotonic()
        return area.is_over()

    area.wait(halts_or_ended, f"{moment} to come", COME_S, LOOK_S)
    came = area.is_halted()
    if not came:
        area.let_go()
    return came


def _overs(area: Field) -> int:
    told = area.history()
    return len(told.handovers) if told else 0


def until_quiet(area: Field, fault: Fault, seen: Seen, left_s: float) -> None:
    """Wait until pliantd has nothing under way, and count what it leaves for so long."""
    admin, since_s = area.admin(), time.monotonic()

    def quiet() -> bool:
        nonlocal since_s
        admin.tend()
        over, state = area.is_over(), area.state_of(area.job)
        left, now_s = _left(area, over=over, waits=state == "PENDING"), time.monotonic()
        since_s = since_s if any(left) and not area.is_disturbed else now_s
        if now_s - since_s > left_s:
            seen.fences, seen.pins = left
            seen.words.append(f"left for {left_s:.0f} s: {left[0]} fences, {left[1]} pins")
            return True
        return over and state != "" and not any(left)

    try:
        area.wait(quiet, "quiet", QUIET_S)
    except TimeoutError:
        told = area.history()
        rows = [f"{r.run} {r.outcome or 'under way'}" for r in told.handovers] if told else "?"
        seen.words.append(f"not quiet: {rows}")
    _note(fault, seen, admin)


def _note(fault: Fault, seen: Seen, admin: Admin) -> None:
    """Note what was put right by hand, and a time to begin that nobody but Pliant can have set."""
    seen.righted += admin.did
    if admin.late and fault.stands[0] != "EligibleTime":
        seen.words.append(f"a time to begin is left: {admin.late}")


def _left(area: Field, *, over: bool, waits: bool) -> tuple[int, int]:
    """Return how many fences and pins there are that are to go at once.

    Behind a fence a job that ``waits`` begins within seconds. It keeps its pin until it has
    started, unless somebody has changed it.
    """
    keeps = waits and _unmade(area) != Outcome.CHANGED
    jobs = (area.rival, area.guest) if keeps else (area.job, area.rival, area.guest)
    return area.fences() if over or waits else 0, area.pins(*jobs) if over else 0


def _unmade(area: Field) -> str:
    """What the last hand-over came to; "" where it was made."""
    told = area.history()
    outcome = told.handovers[-1].outcome if told and told.handovers else "not known"
    return "" if outcome == Outcome.DONE else outcome


def _other_shape(area: Field, asked: str) -> str:
    """What the batch system shows of a job that pliantd calls made; "" where that was asked."""
    area.wait(lambda: area.show(area.job) != {}, "an answer", COME_S)
    has = area.show(area.job).get("TresPerNode", "").rpartition(":")[2]
    return "" if has == asked else f"it has {has} GPUs, not {asked}"


def stands(area: Field, fault: Fault, seen: Seen) -> None:
    """Say what the job's user changed or held, and something else has changed or ended since."""
    name, value = fault.stands[0], fault.stands[1].format(rival=area.rival)
    shown = area.show(area.job)
    if shown.get(name, "") != value:
        seen.words.append(f"{name}={value} does not stand: {_told(shown)}")
    if fault.limit_s and duration_s(shown.get("TimeLimit", "")) > fault.limit_s:
        seen.words.append(f"its owner's time limit does not stand: {shown.get('TimeLimit')}")
    if fault.held and not area.is_held(shown):
        seen.words.append(f"its owner's hold does not stand: {_told(shown)}")


def _until_over(area: Field, fault: Fault, seen: Seen, *, last: bool) -> None:
    """Wait until the job works again and its guest has ended, after the last one for all ends.

    Without the two minutes that Slurm makes them wait.
    """
    admin, waited_s = area.admin(hurries=True), time.monotonic()

    def over() -> bool:
        nonlocal waited_s
        rival, states = _tended(area, fault, seen, admin)
        runs = states[0] == "RUNNING" and area.works()
        if not runs:
            waited_s = time.monotonic()
        hurries = (area.place / "hurry").exists()  # to its end, whatever else is done with it
        if runs and not hurries:
            pins = area.pins(area.job, area.rival, area.guest)
            runs = not pins or time.monotonic() - waited_s > UNPINNED_S
            seen.pins = max(seen.pins, pins if runs else 0)
        goes_on = runs and not (last or hurries) and not area.is_under_way()
        if runs and (last or (goes_on and "PENDING" in states[1:])):  # Slurm sent its guest back
            (area.place / "hurry").touch()
        area.has_ended = states[0] in ENDED
        guests_end = all(state in ENDED for state in states[1:])
        return guests_end and (area.has_ended or (goes_on and rival in ("", "PENDING")))

    try:
        area.wait(over, "the jobs' ends", END_S)
    except TimeoutError:
        seen.words.append(f"stuck: {[_told(shown) for shown in admin.tend()]}")
        seen.stuck += 1
        area.has_ended = True
        return
    finally:
        _note(fault, seen, admin)
    if seen.slipped and "slurmctld" in fault.name and area.has_forgotten_a_fence():
        seen.first, seen.slipped = 1, 0
        seen.words = [words for words in seen.words if not words.startswith(SLIPPED)]
    if area.guest:
        ends = {fault.guest_ends, *(["COMPLETED"] if seen.moment == PASSED_BY else [])}
        seen.lost += area.state_of(area.guest) not in ends
    if area.has_ended:
        _judge(area, seen)


def _tended(area: Field, fault: Fault, seen: Seen, admin: Admin) -> tuple[str, Sequence[str]]:
    """Do what an administrator does; return the state of the rival, and of the others."""
    rival = area.state_of(area.rival) if area.rival else ""  # first: it may start at the job's end
    every = admin.tend()
    _look_at_rival(area, fault, seen, rival, every[0])
    return rival, [shown.get("JobState", "") for shown in every]


def _look_at_rival(
    area: Field, fault: Fault, seen: Seen, rival: str, shown: Mapping[str, str]
) -> None:
    """Note one that runs before the job has ended, and end one that has its turn."""
    ended = shown.get("JobState", "") in ENDED
    if rival == "RUNNING" and not ended and not seen.first + seen.slipped:
        by_fault = fault.first and seen.is_faulty
        by_slurm = by_fault or _was_not_launched(area) or area.has_forgotten_a_run(shown)
        seen.first, seen.slipped = (1, 0) if by_slurm else (0, 1)
        seen.words += [] if by_slurm else [f"{SLIPPED} {_told(shown)}"]
    if rival in ENDED:
        area.rival = ""
    elif rival and (ended or rival == "RUNNING"):
        area.cancel(area.rival)


def _judge(area: Field, seen: Seen) -> None:
    """Say how the job ended, if not as it should."""
    state, out = area.state_of(area.job), area.place / "out"
    text = out.read_text() if out.exists() else ""
    last = text.splitlines()[-1:]
    right = state != "COMPLETED" or last == [checksum(STEPS)]
    if state == "FAILED" and state not in area.ends and area.is_forgotten():
        seen.first += 1
    elif state not in area.ends or not right:
        seen.lost = 1
        seen.words.append(f"ended {state} {last}")
    words = text + area.said()
    if state == "FAILED" and area.told and not any(line in words for line in area.told):
        seen.words.append("nobody says why it failed")


def _was_not_launched(area: Field) -> bool:
    """Whether Slurm, which had forgotten that it runs, started it twice and then held it."""
    told = area.history()
    rows = told.handovers if told else ()
    return bool(rows) and rows[-1].outcome == Outcome.NOT_LAUNCHED


def _told(shown: Mapping[str, str]) -> str:
    names = ("JobId", "JobState", "Reason", "Priority", "Restarts", "TresPerNode", "EligibleTime")
    return " ".join(f"{name}={shown.get(name)}" for name in names)
