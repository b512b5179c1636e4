"""Slurmctld and its nodes: the fake of Slurm, whose jobs start, run and end by themselves.

Its main scheduler starts jobs in the order of their priorities and stops at the first that has no
room; backfill goes by the time limits: who is next loses nothing by those that go before. A pass
comes shortly after each submission and each end, and every few seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from pliant.batch.slurm.commands import Answer
from pliant.handover import OURS
from prove.fake_slurm import (
    CLEANING_S,
    HELD,
    KILLED,
    KILLS_S,
    THROTTLE,
    FakeSlurm,
    Jobs,
    Record,
    array_task,
)
from prove.seeds.loops import Time

REMEMBERED_S = 300.0
"""For how long it tells of a job that has ended: MinJobAge. No pliantd is away for longer."""
FORGETS_S = 5.0
"""How much it may forget where it is killed."""
Changed = Callable[[Record | None, Record], None]
"""Is told of each job that has become another: as it was, and as it is."""


class Cluster(FakeSlurm):
    """A cluster of ``many`` nodes, by the time of ``time``."""

    def __init__(self, time: Time, many: int, random: Random) -> None:
        nodes = [f"n{number}" for number in range(1, many + 1)]
        super().__init__(Jobs({}, {}), time.now_s, nodes)
        self._time, self._random = time, random
        self.every_s, self.backfill_s = random.uniform(3, 10), random.uniform(10, 30)
        self.changed: Changed = lambda _before, _now: None
        self.passed: Callable[[], None] = lambda: None
        self.start_failed: Callable[[str], None] = lambda _how: None
        self.slurmds = dict.fromkeys(nodes, time.now_s - 10_000)  # since when each runs
        self.late_kills = set[int]()  # the jobs whose next start may be met by a kill of before
        self.away_until_s = 0.0  # until when slurmctld does not run
        self._earlier: deque[tuple[float, Jobs]] = deque(maxlen=200)
        self._is_due = False
        self.last = 0  # the number that was given last
        time.after(self.every_s, self._regularly)
        time.after(self.backfill_s, self._backfills)

    # --- what is asked and told ------------------------------------------------------------

    def now(self) -> None:
        """Be as it is now."""
        self.pass_to(self._time.now_s)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        self.now()
        return super().run(argv, env=env, stdin=stdin)

    def tell(self, *words: str, by_owner: bool = True) -> None:
        """Tell scontrol something. Raises Rejected."""
        self.now()
        self.told(words, by_owner=by_owner)
        self.soon()

    def number_of(self, name: str) -> int:
        """The number of the record of that name; of a task without one that of its array."""
        job = self._named(name)
        return job.number if job is not None else int(name.partition("_")[0])

    def submit(self, job: Record, tasks: int = 1, at_once: int = 0) -> Record:
        """Put a job into the queue, or an array of so many; return it with its number."""
        self.now()
        number, second = self.next_number(), float(int(self.now_s))
        if tasks > 1:
            limit = f"%{at_once}" if at_once else ""
            shown = (("ArrayJobID", f"{number}"), ("ArrayTaskID", f"1-{tasks}{limit}"))
            job = replace(job, also=(*shown, *([(THROTTLE, f"{at_once}")] if at_once else ())))
        job = replace(job, number=number, submit_s=second, begin_s=second, reason="Priority")
        self._keep(job)
        self.soon()
        return job

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def cancel(self, number: int) -> None:
        """Do what scancel does."""
        self.now()
        super().cancel(number)

    def exits(self, number: int, code: int) -> None:
        """Let a job's script end with an exit code."""
        self.now()
        job = self.state.jobs[number]
        if job.state == "RUNNING":
            self._ends(job, "FAILED" if code else "COMPLETED", f"{code}:0")

    def _ends(self, job: Record, final: str, code: str) -> None:
        cleaned_s = self.now_s + self._random.uniform(0, 2 * CLEANING_S)
        self._keep(replace(job, state="COMPLETING", cleaned_s=cleaned_s, final=final, code=code))

    # --- what happens by itself ------------------------------------------------------------

    def _keep(self, job: Record) -> None:
        before = self.state.jobs.get(job.number)
        self._remember()
        super()._keep(job)
        if before is None or before.state != job.state:
            self._follow(job)
        self.changed(before, job)

    def _remember(self) -> None:
        self._earlier.append((self.now_s, self.state))

    def _follow(self, job: Record) -> None:
        """Let happen what comes next by itself."""
        if job.state == "COMPLETING":
            self._time.at(job.cleaned_s, self.now)
            self._time.at(job.cleaned_s, self.soon)
        elif job.state == "RUNNING":
            self._time.after(job.limit_min * 60, self._limit, job.number, job.run)
        elif job.is_over:
            self._time.after(REMEMBERED_S, self._forget, job.number)
            self.soon()

    def _limit(self, number: int, run: int) -> None:
        self.now()
        job = self.state.jobs.get(number)
        if job is None or (job.state, job.run) != ("RUNNING", run):
            return
        left_s = job.start_s + job.limit_min * 60 - self.now_s
        if left_s > 0:
            self._time.after(left_s, self._limit, number, run)
        else:
            self._ends(job, "TIMEOUT", KILLED)

    def _forget(self, number: int) -> None:
        job = self.state.jobs.get(number)
        if job is not None and job.is_over and job.end_s + REMEMBERED_S <= self.now_s + 1:
            jobs = {other: one for other, one in self.state.jobs.items() if other != number}
            self.state = replace(self.state, jobs=jobs)

    def soon(self) -> None:
        """Let a pass of the scheduler come."""
        if not self._is_due:
            self._is_due = True
            self._time.after(self._random.uniform(0.05, 2.0), self._passes)

    def _passes(self) -> None:
        self._is_due = False
        if self._time.now_s >= self.away_until_s:
            self.now()
            self.schedule()
        else:
            self._time.at(self.away_until_s, self.soon)

    def _regularly(self) -> None:
        self.soon()
        self._time.after(self.every_s, self._regularly)

    def schedule(self) -> None:
        self._kill_again()
        super().schedule()
        self.passed()

    def start(self, job: Record) -> None:
        """Start a job; of an array its first task, and another one in the next pass."""
        array, tasks, _ = array_task(job)
        if not tasks.isdecimal() and array:
            self._split(f"{array}_{tasks.partition('-')[0].partition(',')[0]}")
            job = replace(self.state.jobs[self.last], on=job.on)
            self.soon()
        how, is_late = self.start_fails.get(job.number), job.number in self.late_kills
        self.late_kills.discard(job.number)
        super().start(job)
        if how == HELD:
            self.start_failed("start refused")
        elif how and is_late:
            self.start_failed("start killed")

    def _may_start(self, job: Record) -> bool:
        array, _, most = array_task(job)
        jobs = self.state.jobs.values()
        run = most and sum(one.has_gpus and array_task(one)[0] == array for one in jobs)
        return super()._may_start(job) and not 0 < most <= run

    def _kill_again(self) -> None:
        """What was to end a run ends the next one there too, if it comes late, or twice.

        As it does beside a slurmd that was started while the run ended (measured).
        """
        if not self.late_kills and max(self.slurmds.values()) < self.now_s - 2 * KILLS_S:
            return
        for job in self.starts():
            there = set(self.state.jobs[job.number].on).intersection(job.on)
            fresh = any(self.slurmds[node] > job.submit_s - KILLS_S for node in there)
            again = job.run and self.now_s < job.submit_s + KILLS_S
            if again and (fresh or job.number in self.late_kills):
                self.start_fails.setdefault(job.number, KILLED)
            else:
                self.late_kills.discard(job.number)

    # --- backfill --------------------------------------------------------------------------

    def _backfills(self) -> None:
        self._time.after(self.backfill_s, self._backfills)
        if self._time.now_s < self.away_until_s:
            return
        self.now()
        self.schedule()
        for job in [*self._before_their_turn()]:
            self.start(job)
        self.passed()

    def _before_their_turn(self) -> Iterator[Record]:
        """Who may go before the first that has no room, which starts no later by that."""
        may = filter(self._may_start, self.state.jobs.values())
        waiting = sorted(may, key=lambda job: -job.priority)
        free, reserved = self.open(), self._reserved(waiting[0]) if waiting else None
        if reserved is None:
            return
        at_s, spare = reserved
        for job in waiting[1:]:
            stays = self.now_s + job.limit_min * 60 > at_s
            room = {n: min(free[n], spare[n]) if stays and n in spare else free[n] for n in free}
            on = _place(room, job)
            if on:
                for node in on:
                    free[node] -= job.gpus
                    if stays and node in spare:
                        spare[node] -= job.gpus
                yield replace(job, on=on)

    def _reserved(self, first: Record) -> tuple[float, dict[str, int]] | None:
        """When a job can start at the latest, and what is left then of the nodes where it will."""
        free, at_s = self.open(), self.now_s
        running = [job for job in self.state.jobs.values() if job.has_gpus]
        ends = sorted((job.start_s + job.limit_min * 60, job.number) for job in running)
        for at_s, number in ends:  # that it has no room now is why there is a first one
            job = self.state.jobs[number]
            for node in job.on:
                if node in free:
                    free[node] += job.gpus
            on = _place(free, first)
            if on:
                return at_s, {node: free[node] - first.gpus for node in on}
        return None

    # --- what goes wrong -------------------------------------------------------------------

    def fails(self, node: str, for_s: float) -> None:
        """Let a node be lost for a while: its jobs go back into the queue."""
        self.now()
        self.state = replace(self.state, down=self.state.down | {node})
        for job in [*self.state.jobs.values()]:
            if job.state == "RUNNING" and node in job.on:
                self.sends_back(job)
        self._time.after(for_s, self._returns, node)

    def _returns(self, node: str) -> None:
        self.state = replace(self.state, down=self.state.down - {node})
        self.slurmds[node] = self._time.now_s
        self.soon()

    def starts_slurmd(self, node: str) -> None:
        """Let a node's slurmd be started again: its jobs run on."""
        self.slurmds[node] = self._time.now_s

    def goes_away(self, for_s: float) -> None:
        """Let slurmctld be killed, forget its last seconds, and be started again.

        What a job's state was, its node tells. That it has begun anew since, on the same nodes, its
        node does not: that run goes by the name of the one before.
        """
        self.now()
        self.away_until_s = self.now_s + for_s
        since_s = self.now_s - self._random.uniform(0, FORGETS_S)
        known = [state for at_s, state in self._earlier if at_s >= since_s]
        if not known:
            return
        then, jobs = known[0], dict(self.state.jobs)
        for number, before in then.jobs.items():
            now = jobs.get(number)
            there = before.state, before.on, before.also
            if now is not None and (now.state, now.on, now.also) == there:
                is_it = now.run == before.run
                if is_it or (now.state == "RUNNING" and self._has_room(jobs, now, before)):
                    jobs[number] = before
        fences = {name: end_s for name, end_s in then.fences.items() if end_s > self.now_s}
        fenced = {name: then.fenced[name] for name in fences}
        before_jobs = self.state.jobs
        self.state = replace(self.state, jobs=jobs, fences=fences, fenced=fenced)
        for number, job in jobs.items():
            if job is not before_jobs[number]:
                self.changed(before_jobs[number], job)

    def _has_room(self, jobs: Mapping[int, Record], now: Record, before: Record) -> bool:
        """Whether its nodes have room for a job as it was before; else others there are aborted.

        ``jobs``: as far as they are what they were before.
        """
        more, there = before.gpus - now.gpus, replace(self.state, jobs=jobs)
        return all(there.free(node) >= more for node in now.on)

    def writes_back(self) -> list[int]:
        """Let backfill write back the priorities that it saw before ours (before 26.05.3)."""
        self.now()
        pinned = [j for j in self.state.jobs.values() if j.waits and j.priority in OURS]
        for job in pinned:
            self._keep(replace(job, priority=job.own_priority))
        return [job.number for job in pinned]

    # --- what is shown ---------------------------------------------------------------------

    def _slurmd(self, node: str) -> str:
        return f"NodeName={node} SlurmdStartTime={self.slurmds[node]:.0f}\n"


def _place(free: Mapping[str, int], job: Record) -> tuple[str, ...]:
    """Where a job has room; nowhere where it has none."""
    on = [node for node, gpus in free.items() if gpus >= job.gpus][: job.nodes]
    return tuple(on) if len(on) == job.nodes else ()
