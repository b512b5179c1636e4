"""A workload, replayed event by event under a policy.

At every instant at which something happens (jobs arrive, end, have saved, or may be changed again)
the policy is asked once, by the same :func:`pliant.cycle.cycle` that pliantd calls, and what it
says is carried out at once. The same workload and policy give the same replay.

What a change costs is the job's: from being told until it holds nothing any more ``save_s``, in
which it makes no progress; then ``launch_s`` at every start and ``restart_s`` more at every start
but its first. Nothing may be taken from a job for three times its launch (paper 003), nor while its
owner's max-resizes or min-run keep it. A time limit
counts from each start, and ends a job that is still saving as it ends any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from heapq import heapify, heappop, heappush
from itertools import chain

from pliant.cycle import cycle
from pliant.lifecycle import PROTECTION
from pliant.model import Job, Shape
from pliant.plan import Plan, Policy, Preempt, Reshape, Start
from pliant.simulator.cluster import Cluster
from pliant.simulator.company import Shared
from pliant.simulator.metrics import Span, Task
from pliant.simulator.running import History, Run
from pliant.simulator.workload import Workload

ALL = 1_000_000_000
"""How many changes one cycle may make: there is no batch system to be spared."""
NEVER_S = float("inf")
FEW = 1_000
"""How many events may lie ahead before those are left out that can happen no more."""
Watch = Callable[[float, Cluster], None]
Over = Callable[[float, Run], None]


class _What(IntEnum):
    """What happens to a run; of what happens at once, in this order."""

    END = 0
    SAVED = 1
    MATURE = 2


_Event = tuple[float, int, int, Run]
"""When, what, the run's number, and the run."""


class Replay:
    """One workload under one policy.

    ``watch`` is shown the cluster at every instant at which something has happened, once all that
    was decided then is carried out; it may try things out there as a policy may. ``over`` is shown
    every run when it is over, whether its job has ended or goes on as another run.
    """

    def __init__(
        self,
        workload: Workload,
        policy: Policy,
        watch: Watch | None = None,
        over: Over | None = None,
    ) -> None:
        self.workload, self.policy = workload, policy
        self._company = Shared(workload, workload.beside) if workload.beside else None
        self.cluster = self._company or Cluster(workload)
        self._watch, self._over = watch, over
        self._progress = getattr(policy, "by_progress", policy.resizes)
        self.now_s = 0.0
        self.cycles = 0
        self.finished = 0
        self.refused = 0  # what was decided and did not fit: a policy gave out what is not there
        self._known: dict[str, History] = {}
        self._events: list[_Event] = []
        self._most_events = FEW
        self._ended: list[Task] = []
        self._tasks: dict[str, int] = {}  # how many tasks of an array have started

    def run(self) -> Iterator[Task]:
        """Let all jobs come to their ends; yield each as it ends.

        Those that no node could ever hold, and those that the policy never starts, wait for ever:
        they are what is left in ``cluster.queue``.
        """
        arrivals = iter(self.workload.arrivals)
        coming = next(arrivals, None)
        while coming is not None or self._events:
            event_s = self._events[0][0] if self._events else NEVER_S
            self.now_s = min(event_s, coming.job.submit_s if coming is not None else NEVER_S)
            happened = False
            while self._events and self._events[0][0] <= self.now_s:
                happened = self._happen(heappop(self._events)) or happened
            while coming is not None and coming.job.submit_s <= self.now_s:
                self._known[coming.job.id] = History(coming)
                self.cluster.queue.append(coming.job)
                coming, happened = next(arrivals, None), True
            if happened:
                self._decide()
                if self._company is not None:
                    self._change_paces(self._company)
                if self._watch is not None:
                    self._watch(self.now_s, self.cluster)
            if self._ended:
                yield from self._ended
                self._ended.clear()

    # --- what happens -----------------------------------------------------------------------

    def _at(self, at_s: float, what: _What, run: Run) -> None:
        heappush(self._events, (at_s, what, run.number, run))
        if len(self._events) > self._most_events:
            self._events[:] = [event for event in self._events if self._is_ahead(event)]
            heapify(self._events)
            self._most_events = 2 * len(self._events) + FEW

    def _is_ahead(self, event: _Event) -> bool:
        """Whether something is still to happen: its run has not ended, or gone on as another."""
        at_s, what, number, run = event
        if run.number != number or self.cluster.running.get(run.job.id) is not run:
            return False
        return what != _What.END or at_s == run.end_s

    def _happen(self, event: _Event) -> bool:
        """Let something happen; False where nothing has."""
        if not self._is_ahead(event):
            return False
        _, what, _, run = event
        if what == _What.SAVED:
            self._saved(run)
        elif what == _What.END:
            self._end(run)
        return True

    def _end(self, run: Run) -> None:
        self.cluster.stop(run)
        self._note(run)
        history = self._known.pop(run.job.id)
        arrival = history.arrival
        self._ended.append(
            Task(
                run.job.id,
                arrival.job.user,
                arrival.job.submit_s,
                arrival.volume_s,
                tuple(history.spans),
                history.preemptions,
                run.timed_out,
                _class(arrival.job),
            )
        )
        self.finished += 1

    def _note(self, run: Run) -> None:
        """Write down what a run was, now that it is over."""
        worked_s = max(0.0, min(run.saving_s or self.now_s, self.now_s) - run.works_s)
        lost_s = self.now_s - run.start_s - worked_s
        gpus = run.shape.nodes * run.shape.gpus / run.shape.share
        run.of.spans.append(Span(run.start_s, self.now_s, gpus, lost_s, bool(run.room_for)))
        if self._over is not None:
            self._over(self.now_s, run)

    def _saved(self, run: Run) -> None:
        """A run has saved and is gone: it goes on as another shape, or back to the queue's head."""
        history, shape = run.of, run.next_shape
        history.done = run.done_at(self.now_s)
        self._note(run)
        if self.cluster.change(run):
            self._begin(run)
            return
        self.cluster.stop(run)
        if shape is not None:
            names = self.cluster.names(run.next_places)
            if self._start(run.job, history, shape, names):
                return
        back = replace(run.job, progress=history.done, restarts=len(history.spans))
        if run.room_for:
            history.preemptions += 1
            room_for = run.room_for if run.room_for in self._known else ""
            back = replace(back, preempted=history.preemptions, room_for=room_for)
        self.cluster.queue.push(back)

    # --- what is decided --------------------------------------------------------------------

    def _decide(self) -> None:
        if not (self.cluster.queue or self.policy.resizes):
            return  # a policy that leaves alone what runs has nothing to say
        self.cycles += 1
        plan = cycle(self.cluster.snapshot(self.now_s, progress=self._progress), self.policy, ALL)
        self.cluster.ground.restored()
        self._carry_out(plan)

    def _carry_out(self, plan: Plan) -> None:
        for start in self._in_order(plan.starts):
            self._start_all(start)
        for reshape in plan.reshapes:
            self._reshape(reshape)
        for preempt in plan.preempts:
            self._preempt(preempt)

    def _in_order(self, starts: Sequence[Start]) -> Sequence[Start]:
        """Return what was decided in an order in which all of it fits.

        A plan names nodes and not GPUs: which those are follows from who comes first.
        """
        usual = sorted(starts, key=_larger_shares_first)
        if len(starts) < 2 or not self.cluster.has_several_gpus:
            return usual
        others = (sorted(starts, key=key) for key in (_more_memory_first, _named_types_first))
        orders = chain((usual, starts), others)
        return next((order for order in orders if self.cluster.fits_all(order)), usual)

    def _start_all(self, start: Start) -> None:
        """Start a job, or as many tasks of an array as the plan says."""
        queue, job = self.cluster.queue, start.job
        history = self._known[job.id]
        if job.tasks_waiting == 1 and job.id not in self._tasks:
            if self._start(job, history, start.shape, start.nodes):
                queue.remove(job.id)
            return
        left = job.tasks_waiting
        for nodes in start.all_nodes:
            task = self._tasks.get(job.id, 0)
            one = replace(job, id=f"{job.id}_{task}", tasks_waiting=1)
            of = History(history.arrival)
            if self._start(one, of, start.shape, nodes):
                self._tasks[job.id] = task + 1
                self._known[one.id] = of
                left -= 1
        if left:
            queue.replace(replace(job, tasks_waiting=left))
        else:
            queue.remove(job.id)
            del self._known[job.id], self._tasks[job.id]

    def _start(self, job: Job, of: History, shape: Shape, nodes: tuple[str, ...]) -> bool:
        run = self.cluster.start(job, of, shape, nodes)
        if run is None:
            self.refused += 1
            return False
        self._begin(run)
        return True

    def _begin(self, run: Run) -> None:
        """Let a run work and end."""
        of, arrival, now_s = run.of, run.of.arrival, self.now_s
        again_s = arrival.restart_s if of.spans else 0.0
        run.works_s = now_s + arrival.launch_s + again_s
        run.done, run.since_s, run.run_s = of.done, run.works_s, arrival.run_s(run.shape)
        if arrival.launch_s:
            run.protected_s = run.works_s + PROTECTION * arrival.launch_s
            self._at(run.protected_s, _What.MATURE, run)
        self.cluster.begins(run, now_s)
        if now_s < run.rests_s < NEVER_S:
            self._at(run.rests_s, _What.MATURE, run)
        self._goes_on(run)

    def _goes_on(self, run: Run) -> None:
        """Let a run end when its work is done as fast as it is now, or at its time limit."""
        left = 1.0 - run.done
        run.end_s = run.since_s + left * run.run_s if left else run.since_s
        limit_s = run.job.time_limit_s
        run.timed_out = bool(limit_s) and run.end_s > run.start_s + limit_s
        if run.timed_out:
            run.end_s = run.start_s + limit_s
        if run.end_s < NEVER_S:
            self._at(run.end_s, _What.END, run)

    def _change_paces(self, company: Shared) -> None:
        """Let those beside whom others came or went keep what is done, and go on as they can."""
        for run in company.new_paces():
            if not run.saving_s:
                run.done, run.since_s = run.done_at(self.now_s), max(self.now_s, run.works_s)
                alone_s = run.of.arrival.run_s(run.shape)
                run.run_s = alone_s / run.pace if run.pace > 0 else NEVER_S
                self._goes_on(run)

    def _reshape(self, reshape: Reshape) -> None:
        """Tell a run to save and go on as another shape, where what that takes beyond is free."""
        run = self.cluster.running[reshape.job_id]
        if self.cluster.keep_extra(run, reshape.shape, reshape.nodes):
            self._save(run)
        else:
            self.refused += 1

    def _preempt(self, preempt: Preempt) -> None:
        """Tell a run to save and make room."""
        run = self.cluster.running[preempt.job.id]
        run.room_for, run.seen, run.free_s = preempt.room_for, None, NEVER_S
        self._save(run)

    def _save(self, run: Run) -> None:
        """Let a run save; one whose time limit comes before it has saved is ended by that."""
        run.saving_s, run.end_s = self.now_s, NEVER_S
        saved_s = self.now_s + run.of.arrival.save_s
        limit_s = run.start_s + (run.job.time_limit_s or NEVER_S)
        run.timed_out = limit_s < saved_s
        if run.timed_out:
            run.end_s = limit_s
            self._at(limit_s, _What.END, run)
        else:
            self._at(saved_s, _What.SAVED, run)


def _class(job: Job) -> str:
    named = job.spec.request.job_class if job.spec is not None else None
    return named.value if named is not None else ""


def _larger_shares_first(start: Start) -> int:
    return start.shape.share


def _more_memory_first(start: Start) -> tuple[bool, int]:
    spec = start.job.spec
    return (start.shape.is_share, -(spec.request.gpu_mem_mib if spec is not None else 0))


def _named_types_first(start: Start) -> tuple[bool, int]:
    return (start.shape.gpu_type == "", start.shape.share)
