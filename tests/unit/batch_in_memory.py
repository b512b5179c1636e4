"""A small batch system that exists only in memory: waiting jobs carry a request, and are molded.

It knows its single GPUs, starts what it is told to where that is free, ends jobs when their run
time or time limit is over, and shows itself as the same snapshot that a real cluster gives: with
reasons, reservations, and what of a request can be changed. (The simulator, for replays, has none
of these: there jobs start as what the plan says.) It decides nothing: a plan is applied to it, as
by a batch system that starts each job of the plan at once. Running jobs change and make room at once too, with no grace period and no protected time;
each such restart costs them their ``restart_s``, in which they hold what they have and do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from pliant.cycle import allowed_shapes, cycle
from pliant.model import (
    Abilities,
    Job,
    JobClass,
    JobState,
    Node,
    Partition,
    Reservation,
    Shape,
    Snapshot,
)
from pliant.placement.needs import Need, find, need_key
from pliant.placement.states import (
    NodeKind,
    Receipt,
    State,
    node_in,
    pool_kind,
    returned,
    state_of,
    taken,
)
from pliant.plan import Plan, Policy

RunTime = Callable[[Shape], float]
"""How many seconds a job runs as a shape."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run that is over. ``timed_out``: its time limit ended it."""

    id: str
    user: str
    shape: Shape
    nodes: tuple[str, ...]
    submit_s: float
    start_s: float
    end_s: float
    timed_out: bool = False


@dataclass(slots=True)
class _Running:
    job: Job
    receipts: tuple[Receipt, ...]
    run_time: RunTime
    works_s: float  # since when it makes progress, after a restart
    end_s: float

    def at(self, now_s: float) -> Job:
        """The job with what it has done by ``now_s``."""
        part = max(0.0, now_s - self.works_s) / max(1e-9, self.run_time(self.job.shape))
        return replace(self.job, progress=min(1.0, self.job.progress + part))


@dataclass(slots=True)
class _Node:
    node: Node
    kind: NodeKind
    state: State


@dataclass(slots=True, repr=False)
class SimulatedCluster:
    """Nodes, partitions, and the jobs on them at ``now_s``."""

    nodes: tuple[Node, ...]
    partitions: tuple[Partition, ...]
    now_s: float = 0.0
    abilities: Abilities = field(default_factory=Abilities)
    reservations: tuple[Reservation, ...] = ()
    finished: list[Run] = field(default_factory=list)
    molds: int = 0
    _at: dict[str, _Node] = field(init=False)
    _waiting: dict[str, tuple[Job, RunTime]] = field(default_factory=dict)
    _running: dict[str, _Running] = field(default_factory=dict)
    _started_tasks: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._at = {node.name: _Node(node, _kind(node), state_of(node)) for node in self.nodes}

    def __repr__(self) -> str:
        """Say in few lines what a failed test needs: what differs from the defaults."""
        snapshot = self.snapshot()
        jobs = (*snapshot.running, *snapshot.waiting)
        rows = (*snapshot.nodes, *snapshot.partitions, *snapshot.reservations, *jobs)
        return "\n".join(_differences(row) for row in rows)

    # --- jobs come and change ---------------------------------------------------------------

    def submit(self, job: Job, run_s: RunTime | float) -> None:
        """Let a job wait from now on; ``run_s``: how long it runs, by shape or in any."""
        run_time = run_s if callable(run_s) else lambda _: run_s
        self._waiting[job.id] = (replace(job, submit_s=self.now_s), run_time)

    def job(self, job_id: str) -> Job:
        """Return a waiting job."""
        return self._waiting[job_id][0]

    def withdraw(self, job_id: str) -> None:
        """Take a waiting job out of the queue."""
        del self._waiting[job_id]

    def mold(self, job_id: str, shape: Shape) -> None:
        """Change the shape that a waiting job carries, and note it as set by Pliant."""
        spec = self.job(job_id).spec
        self.put(job_id, shape=shape, spec=replace(spec, set=shape) if spec is not None else None)
        self.molds += 1

    def put(self, job_id: str, **changed: Any) -> None:
        """Let a waiting job be another one from now on."""
        job, run_time = self._waiting[job_id]
        now = replace(job, **changed)
        self._waiting[job_id] = (replace(now, shapes=self._shapes(now)), run_time)

    def _shapes(self, job: Job) -> tuple[Shape, ...]:
        """What the job may still become: some changes of kind are possible one way only."""
        if job.spec is None or job.spec.own is None or not job.spec.request.is_moldable:
            return job.shapes
        request, own = job.spec.request, job.spec.own
        possible = set(allowed_shapes(request, own, job.shape, self.abilities))
        return tuple(shape for shape in job.shapes if shape in possible) or (job.shape,)

    # --- jobs start and end -----------------------------------------------------------------

    def start(self, job_id: str, nodes: Iterable[str]) -> str | None:
        """Start a waiting job (of an array, one task) as the shape it carries.

        Returns the id of what runs; None where it does not fit on these nodes.
        """
        job, run_time = self._waiting[job_id]
        places = tuple(self._at[name] for name in nodes)
        receipts = self._receipts(job, places)
        if receipts is None:
            return None
        run_id = self._leave_queue(job, run_time)
        self._yield_to(job.id)
        self._run(replace(job, id=run_id, tasks_waiting=1), run_time, places, receipts)
        return run_id

    def _run(
        self, job: Job, run_time: RunTime, places: tuple[_Node, ...], receipts: tuple[Receipt, ...]
    ) -> None:
        for place, receipt in zip(places, receipts, strict=True):
            place.state = taken(place.state, receipt)
        works_s = self.now_s + (job.restart_s if job.restarts else 0.0)
        end_s = works_s + (1.0 - job.progress) * run_time(job.shape)
        if job.time_limit_s:
            end_s = min(end_s, self.now_s + job.time_limit_s)
        running = replace(
            job,
            state=JobState.RUNNING,
            start_s=self.now_s,
            nodes=tuple(place.node.name for place in places),
            preemptible=_is_best_effort(job),
            room_for="",
        )
        self._running[job.id] = _Running(running, receipts, run_time, works_s, end_s)

    def _yield_to(self, job_id: str) -> None:
        """Note that a job has started for which others have made room."""
        for name, (job, run_time) in self._waiting.items():
            if job.room_for == job_id:
                self._waiting[name] = (replace(job, room_for=""), run_time)

    def _receipts(self, job: Job, places: tuple[_Node, ...]) -> tuple[Receipt, ...] | None:
        need = Need(*need_key(job, job.shape))
        found = [find(place.kind, place.state, need) for place in places if place.node.up]
        receipts = tuple(receipt for receipt in found if receipt is not None)
        return receipts if len(receipts) == len(places) == job.shape.nodes else None

    def reshape(self, job_id: str, shape: Shape, nodes: Iterable[str]) -> bool:
        """Let a running job go on as another shape; False where it does not fit and runs on."""
        running = self._running[job_id]
        self._give_back(running)
        job = running.at(self.now_s)
        changed = replace(job, shape=shape, restarts=job.restarts + 1)
        places = tuple(self._at[name] for name in nodes)
        receipts = self._receipts(changed, places)
        if receipts is not None:
            self._run(changed, running.run_time, places, receipts)
            return True
        for name, receipt in zip(job.nodes, running.receipts, strict=True):
            self._at[name].state = taken(self._at[name].state, receipt)
        return False

    def preempt(self, job_id: str, room_for: str) -> None:
        """Let a running job go back to the head of the queue, to start after ``room_for``."""
        running = self._running.pop(job_id)
        self._give_back(running)
        job = running.at(self.now_s)
        head = max((other.priority for other, _ in self._waiting.values()), default=0) + 1
        back = replace(
            job,
            state=JobState.WAITING,
            priority=head,
            nodes=(),
            restarts=job.restarts + 1,
            preemptible=False,
            preempted=job.preempted + 1,
            room_for=room_for,
        )
        self._waiting[job_id] = (back, running.run_time)

    def _give_back(self, running: _Running) -> None:
        for name, receipt in zip(running.job.nodes, running.receipts, strict=True):
            place = self._at[name]
            place.state = returned(place.state, receipt)

    def _leave_queue(self, job: Job, run_time: RunTime) -> str:
        """Take a job, or one task of an array, out of the queue; return the id of the run."""
        task = self._started_tasks.get(job.id, 0)
        if job.tasks_waiting == 1:
            del self._waiting[job.id]
        else:
            self._waiting[job.id] = (replace(job, tasks_waiting=job.tasks_waiting - 1), run_time)
        if job.tasks_waiting == 1 and not task:
            return job.id
        self._started_tasks[job.id] = task + 1
        return f"{job.id}_{task}"

    def advance(self, to_s: float) -> None:
        """Let time pass and end what is over by then."""
        for running in sorted(self._running.values(), key=lambda r: (r.end_s, r.job.id)):
            if running.end_s <= to_s:
                self._end(running)
        self.now_s = max(self.now_s, to_s)

    def _end(self, running: _Running) -> None:
        job = running.job
        del self._running[job.id]
        self._give_back(running)
        limit_s = job.start_s + job.time_limit_s
        timed_out = bool(job.time_limit_s) and running.end_s >= limit_s
        self.finished.append(
            Run(
                id=job.id,
                user=job.user,
                shape=job.shape,
                nodes=job.nodes,
                submit_s=job.submit_s,
                start_s=job.start_s,
                end_s=running.end_s,
                timed_out=timed_out,
            )
        )

    @property
    def next_end_s(self) -> float | None:
        """When the next running job ends; None where none runs."""
        return min((running.end_s for running in self._running.values()), default=None)

    @property
    def waiting(self) -> int:
        """How many jobs and arrays wait."""
        return len(self._waiting)

    # --- as the cycle sees it ---------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        """Show the cluster as it is now, as a batch system would."""
        queue = sorted(
            (job for job, _ in self._waiting.values()),
            key=lambda job: (-job.priority, job.submit_s, job.id),
        )
        return Snapshot(
            now_s=self.now_s,
            nodes=tuple(self._node(place) for place in self._at.values()),
            partitions=self.partitions,
            waiting=tuple(_with_reason(job, place) for place, job in enumerate(queue)),
            running=tuple(running.at(self.now_s) for running in self._running.values()),
            reservations=self.reservations,
            abilities=self.abilities,
        )

    def _node(self, place: _Node) -> Node:
        return node_in(place.node, place.state, partial(self._jobs_on, place))

    def _jobs_on(self, place: _Node, index: int, gpu: int) -> int:
        """How many running jobs have a share of one GPU."""
        return sum(
            used_pool == index and any(one == gpu for one, _, _ in gpus)
            for running in self._running.values()
            for name, receipt in zip(running.job.nodes, running.receipts, strict=True)
            if name == place.node.name
            for used_pool, _, gpus in receipt[2]
        )

    # --- a plan is carried out --------------------------------------------------------------

    def change(self, plan: Plan) -> None:
        """Make the plan's changes to waiting jobs."""
        for action in plan.actions:
            self.mold(action.job.id, action.shape)

    def apply(self, plan: Plan) -> tuple[str, ...]:
        """Make the plan's changes, then start what it starts; return the ids of what runs.

        What was to be changed first and was left for a later cycle is not started. What running
        jobs are told to do follows.
        """
        self.change(plan)
        started: list[str] = []
        for start in sorted(plan.starts, key=lambda start: start.shape.share):
            if self.job(start.job.id).shape == start.shape:
                runs = (self.start(start.job.id, nodes) for nodes in start.all_nodes)
                started.extend(run for run in runs if run is not None)
        for reshape in plan.reshapes:
            self.reshape(reshape.job.id, reshape.shape, reshape.nodes)
        for preempt in plan.preempts:
            self.preempt(preempt.job.id, preempt.room_for)
        return tuple(started)

    def settle(self, policy: Policy) -> None:
        """Decide and apply until nothing more happens at this time."""
        while True:
            plan = cycle(self.snapshot(), policy)
            started = self.apply(plan)
            if not (started or plan.actions or plan.changes_running):
                return

    def run(self, policy: Policy) -> tuple[Run, ...]:
        """Let all jobs that wait and run come to their ends under a policy; return all runs."""
        self.settle(policy)
        while (end_s := self.next_end_s) is not None:
            self.advance(end_s)
            self.settle(policy)
        return tuple(self.finished)


def _is_best_effort(job: Job) -> bool:
    return job.spec is not None and job.spec.request.job_class is JobClass.BEST_EFFORT


def _kind(node: Node) -> NodeKind:
    pools = tuple(pool_kind(pool) for pool in node.pools)
    none: frozenset[str] = frozenset()
    return NodeKind(node.cpus, node.mem_mib, pools, none, node.features, none)


def _differences(row: Any) -> str:
    """A row without the fields that have their defaults."""
    words = (
        f"{f.name}={value}" if isinstance(value, Shape) else f"{f.name}={value!r}"
        for f in fields(row)
        if (value := getattr(row, f.name)) != f.default
    )
    return f"{type(row).__name__}({', '.join(words)})"


def _with_reason(job: Job, place: int) -> Job:
    """What the batch system says where nothing else keeps a job from starting."""
    if job.reason:
        return job
    return replace(job, reason="Priority" if place else "Resources")
