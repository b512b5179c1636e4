"""From what each job should have to what can be done now, where GPUs are just a number.

The steps are those of :mod:`pliant.policies.steps`, over :mod:`pliant.policies.crowd`: ``now`` is
what is free now, ``final`` what is free once all is done.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from pliant.model import Job
from pliant.placement import limit_s
from pliant.placement.profiles import Ladder
from pliant.placement.queue import Alike
from pliant.plan import Claim, Plan, Reshape, Start
from pliant.policies.crowd import Crowd, Standing
from pliant.policies.reasons import FIRST, LEFT_OVER
from pliant.policies.split import Given, Split, Waiting

Rule = Callable[[Crowd, Sequence[Standing]], Split]
_Change = tuple[Standing, Given]
"""A running job and what it should become."""
NOTHING = Plan()
ROUNDS = 4
"""How often goals are set anew without the jobs that turned out not to be changeable."""


def changed(crowd: Crowd, rule: Rule, least_left_s: float) -> Plan:
    """Return what can be done now about what jobs should have by a rule.

    Running jobs with no more than ``least_left_s`` of their work left stay as they are.
    """
    now_s = crowd.now_s
    rows = [row for row in crowd.rows if row.left_s(now_s) > least_left_s]
    first: dict[str, int] | None = None  # what running jobs should have had before any was stuck
    for _ in range(ROUNDS):
        split = rule(crowd, rows)
        if not rows:
            return split.plan()
        if first is not None:
            split.given = [one for one in split.given if _leads(one, first)]
        if not (crowd.queue or any(one.gpus != one.member.gpus for one in split.given)):
            return NOTHING
        steps = _Steps(crowd, split)
        plan = steps.plan()
        if not steps.stuck:
            return plan
        first = first or {one.member.arrival[1]: one.gpus for one in split.given}
        rows = [row for row in rows if row.job.id not in steps.stuck]
    return rule(crowd, ()).plan()


def _leads(given: Given, first: Mapping[str, int]) -> bool:
    """Whether a job waits, or what it is given lies between what it has and its first goal."""
    if isinstance(given.member, Waiting):
        return True
    has, may = given.member.gpus, first.get(given.member.arrival[1])
    return may is not None and (has < given.gpus <= may or may <= given.gpus < has)


class _Steps:
    """One decision."""

    def __init__(self, crowd: Crowd, split: Split) -> None:
        self._crowd, self._split = crowd, split
        self._now, self._final = crowd.room(), crowd.room()
        self._shrinking: list[_Change] = []
        self._growing: list[_Change] = []
        self._goals: dict[str, Given] = {}  # of those that wait
        for one in split.given:
            row, gpus = one.member, one.gpus
            if isinstance(row, Waiting):
                self._goals[row.job.id] = one
            elif gpus > row.gpus:
                self._growing.append((row, one))
            elif gpus < row.gpus:
                self._shrinking.append((row, one))
        self._growing.sort(key=_arrival)
        self._shrinking.sort(key=_arrival)
        self._starts: dict[str, Start] = {}
        self._given: list[tuple[float, int]] = []  # what starts gives back, and when
        self._placed: list[tuple[float, int]] = []  # the same of all that wait, in the end
        self._later: set[str] = set()  # waiting jobs that are placed where nothing is free yet
        self._claim: Claim | None = None
        self._reshapes: list[Reshape] = []
        self.stuck: set[str] = set()  # running jobs that cannot be changed so

    def plan(self) -> Plan:
        """Return the first steps; they count only if nobody is stuck."""
        self._final.free += sum([row.gpus - to.gpus for row, to in self._shrinking])
        if self._crowd.queue:
            self._serve()
        for row, to in self._growing:
            self._grow(row, to)
        self._use_up()
        self._shrink()
        queue = self._crowd.queue
        starts = sorted(self._starts.values(), key=lambda start: queue.place(start.job.id))
        claims = () if self._claim is None else (self._claim,)
        return Plan(tuple(starts), claims, reshapes=tuple(self._reshapes))

    # --- jobs that wait -----------------------------------------------------------------------

    def _serve(self) -> None:
        """Give those that should have something their room; the first that waits its opening."""
        goals = self._goals
        for job, profile in self._crowd.queue.turns(set()):
            goal = goals.pop(job.id, None)
            ladder = profile.ladder
            if ladder is not None and (goal is not None or self._claim is None):
                self._serve_one(job, ladder, goal)
            if not goals and self._claim is not None:
                return

    def _serve_one(self, job: Job, ladder: Ladder, goal: Given | None) -> None:
        limit = limit_s(job)
        placed, level = False, -1
        if goal is not None:
            level = min(goal.level, _level(ladder, self._final.has(limit)))
            placed = level >= 0
            if placed and ladder.amounts[level] <= self._now.has(limit):
                self._start(job, ladder, level, self._split.why(goal))
                return
            if placed:
                self._final.take(ladder.amounts[level], limit)
                self._placed.append((self._crowd.now_s + limit, ladder.amounts[level]))
                self._later.add(job.id)
        elif self._start_somehow(job, ladder):
            return
        if self._claim is None:
            self._keep(job, ladder, placed=placed)

    def _start(self, job: Job, ladder: Ladder, level: int, reason: str) -> None:
        limit, gpus = limit_s(job), ladder.amounts[level]
        self._now.take(gpus, limit)
        self._final.take(gpus, limit)
        end = (self._crowd.now_s + limit, gpus)
        self._given.append(end)
        self._placed.append(end)
        nodes = (self._crowd.node,)
        self._starts[job.id] = Start(job, ladder.shapes[level], nodes, reason)

    def _start_somehow(self, job: Job, ladder: Ladder) -> bool:
        limit = limit_s(job)
        least = ladder.amounts[0]
        if least > self._now.has(limit) or least > self._final.has(limit):
            return False
        self._start(job, ladder, 0, LEFT_OVER)
        return True

    def _keep(self, job: Job, ladder: Ladder, *, placed: bool) -> None:
        """Let the first job that does not start keep its earliest opening."""
        gpus = self._now.claim(ladder.amounts, self._crowd.ends(self._given))
        if gpus is None:
            return
        shape = ladder.shapes[ladder.amounts.index(gpus)]
        self._claim = Claim(job, shape, self._now.claim_s, (self._crowd.node,), FIRST)
        if not placed:
            now_s = self._crowd.now_s
            given = [(max(now_s, row.over_s), row.gpus) for row, _ in self._growing]
            given += [(now_s + row.limit_s, to.gpus) for row, to in self._shrinking]
            gone = [row.job.id for row, _ in (*self._growing, *self._shrinking)]
            self._final.claim(ladder.amounts, self._crowd.ends([*given, *self._placed], gone))

    def _use_up(self) -> None:
        """Start on what is left over who has nothing yet."""
        if not self._now.free:
            return
        busy = self._later.union(self._starts)
        if self._claim is not None:
            busy.add(self._claim.job.id)
        passed: set[Alike] = set()
        for job, profile in self._crowd.queue.turns(passed):
            if job.id not in busy and (
                profile.ladder is None or not self._start_somehow(job, profile.ladder)
            ):
                passed.add((profile, job.time_limit_s))

    # --- running jobs -------------------------------------------------------------------------

    def _grow(self, row: Standing, to: Given) -> None:
        """Let a job grow now, or keep its room until somebody has left it."""
        final, amounts = self._final, row.ladder.amounts
        held, limit = row.gpus, row.limit_s
        final.take(-held, limit)
        has = self._now.has_instead(held, limit, row.over_s)
        level = min(to.level, _level(row.ladder, final.has(limit)))
        if level >= 0 and amounts[level] > has and not self._shrinking:
            level = min(level, _level(row.ladder, has))
        if level < 0 or amounts[level] <= held:
            final.take(held, limit)  # as it is
            return
        final.take(amounts[level], limit)
        if amounts[level] <= has:
            self._reshape(row, to, level)

    def _shrink(self) -> None:
        """Make those smaller whose GPUs somebody needs."""
        final, needed = self._final, []
        for row, to in reversed(self._shrinking):
            held, limit = row.gpus, row.limit_s
            final.take(-to.gpus, limit)
            if held <= final.has(limit):
                final.take(held, limit)
            else:
                final.take(to.gpus, limit)
                needed.append((row, to))
        alone = self._claim is not None and self._claim.job.id in self._later
        for row, to in reversed(needed):
            if to.gpus > self._now.has_instead(row.gpus, row.limit_s, row.over_s, alone=alone):
                self.stuck.add(row.job.id)
            else:
                self._reshape(row, to, to.level)

    def _reshape(self, row: Standing, to: Given, level: int) -> None:
        shape = row.ladder.shapes[level]
        self._now.trade(row.gpus, row.ladder.amounts[level], row.limit_s, row.over_s)
        self._reshapes.append(self._crowd.reshape(row, shape, self._split.why(to)))


def _level(ladder: Ladder, gpus: int) -> int:
    """The largest level with no more GPUs; -1: there is none."""
    return bisect_right(ladder.amounts, gpus) - 1


def _arrival(change: _Change) -> tuple[float, str]:
    return change[0].arrival
