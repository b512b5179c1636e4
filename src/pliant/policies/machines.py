"""Nodes as the machines of co-scheduling: each one's tasks, and its next combination made so.

See :mod:`.cosched` for what is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pliant.cosched import Fits, Knowledge, Strategy
from pliant.model import Combination, Job, JobState, Node, Shape, Snapshot, jobs_text
from pliant.placement import NO_LIMIT_S, Cell, Need, Option
from pliant.placement.giving_up import certain_holders, given_back
from pliant.placement.needs import find
from pliant.placement.states import State, taken
from pliant.plan import Plan, Preempt
from pliant.policies.desk import Desk
from pliant.policies.shapes import FixedShapes
from pliant.speedup import left_s

_LEAST_S = 1.0  # of a job that has outlived what was expected of it


def may_share(job: Job, shape: Shape) -> bool:
    """Whether a job's owner lets it run beside others, and it could as this shape: on one node."""
    said = job.spec.request.colocate if job.spec is not None else None
    return bool(said) and shape.nodes == 1 and job.tasks_waiting == 1 and not job.whole_nodes


@dataclass(slots=True)
class _Machine:
    """A node, the jobs that run there and share, and what could start there."""

    name: str
    place: int
    running: list[Job]
    waiting: list[tuple[Job, Option]]
    movable: list[Job]  # of those that run

    @property
    def now(self) -> Combination:
        """Its combination."""
        return frozenset(job.id for job in self.running)

    @property
    def fixed(self) -> Combination:
        """Those that stay."""
        return self.now - {job.id for job in self.movable}


class Machines:
    """One decision over all nodes."""

    def __init__(self, snapshot: Snapshot, strategy: Strategy, name: str, window: int) -> None:
        """``name``: of the policy; ``window``: how many jobs a node looks at, 0: all."""
        self._snapshot, self._strategy = snapshot, strategy
        self._name, self._window = name, window
        self._table = snapshot.company.table
        self._desk, self._fixed = Desk(snapshot), FixedShapes("own")
        self._waiting: dict[str, tuple[Job, Option]] = {}  # that share, and have no place yet
        self._is_combined = False

    def plan(self) -> Plan:
        """Return the decision: the queue in its order, all that share with the first of them."""
        queue = self._desk.queue()
        alone: dict[str, Option] = {}
        for job in queue:
            option = self._fixed.of(job, self._desk.free.profile(job))
            if option is not None and may_share(job, option[0]):
                self._waiting[job.id] = (job, option)
            elif option is not None:
                alone[job.id] = option
        for job in queue:
            if job.id in alone:
                self._place_alone(job, alone[job.id])
            elif job.id in self._waiting:
                self._combine()
        self._combine()
        return self._desk.plan()

    def _place_alone(self, job: Job, option: Option) -> None:
        """Start a job that does not share where it fits, as EASY backfilling does."""
        given = self._desk.fill(job, self._desk.free.profile(job), option)
        if given:
            self._desk.start(job, given, f"{option[0]} is free")
        if len(given) < job.tasks_waiting:
            self._desk.keep(job, (option[0],))

    def _combine(self) -> None:
        """Choose each node's combination, once."""
        if self._is_combined:
            return
        self._is_combined = True
        here: dict[str, list[Job]] = {}
        for job in self._snapshot.running:
            if may_share(job, job.shape):
                for name in job.nodes:
                    here.setdefault(name, []).append(job)
        for place, node in enumerate(self._snapshot.nodes):
            running = here.get(node.name, [])
            if node.up and (self._waiting or len(running) > 1) and not _is_changing(running):
                self._choose(self._machine(place, node, running))

    def _machine(self, place: int, node: Node, running: list[Job]) -> _Machine:
        """The tasks of one node: those that run there, and the first that could start there."""
        movable = certain_holders(self._snapshot, (job for job in running if job.preemptible))
        waiting: list[tuple[Job, Option]] = []
        for job, option in self._waiting.values():
            if self._window and len(running) + len(waiting) >= self._window:
                break
            if self._admits(job, option, place):
                waiting.append((job, option))
        return _Machine(node.name, place, running, waiting, movable)

    def _admits(self, job: Job, option: Option, place: int) -> bool:
        """Whether a job could lie on a node, whatever is free there now."""
        kind = self._desk.free.cell(place).kind
        scopes = self._desk.free.profile(job).scopes
        return any(s.admits(place, kind) and s.allows(1, option[1].cpus) for s in scopes)

    def _choose(self, machine: _Machine) -> None:
        """Find the strategy's combination, and make the first steps to it."""
        tasks = [(job, job.shape) for job in machine.running]
        tasks += [(job, option[0]) for job, option in machine.waiting]
        volumes = {job.id: _volume_s(job, shape) for job, shape in tasks}
        if not volumes:
            return
        knowledge = Knowledge(volumes, self._table, fits=self._fits(machine))
        ranked = self._strategy.ranked(knowledge, machine.now)
        chosen = next((s.tasks for s in ranked if machine.fixed <= s.tasks), machine.now)
        leaving = [job for job in machine.movable if job.id not in chosen]
        coming = [(job, option) for job, option in machine.waiting if job.id in chosen]
        if leaving:
            if machine.now in knowledge.table:
                self._set_aside(machine, chosen, leaving, coming)
        else:
            for job, option in coming:
                self._start(machine, chosen, job, option)

    def _fits(self, machine: _Machine) -> Fits:
        """What says whether jobs fit on a node together, beside those that stay there."""
        cell = self._desk.free.cell(machine.place)
        held = {job.id: self._desk.free.held(job)[1] for job in machine.movable}
        state = cell.state
        for need in held.values():
            state = given_back(cell.kind, state, need)
        needs = held | {job.id: option[1] for job, option in machine.waiting}
        fixed = machine.fixed

        def fits(tasks: Combination) -> bool:
            if not tasks <= fixed | needs.keys():
                return False
            return _fit_in(cell, state, [needs[task] for task in sorted(tasks - fixed)])

        return fits

    def _start(self, machine: _Machine, chosen: Combination, job: Job, option: Option) -> None:
        free, places = self._desk.free, (machine.place,)
        if free.admits(free.profile(job), option, places, free.bound(job)):
            given = free.take_places(job, option, places)
            self._desk.start(job, [given], self._words(machine, chosen, job))
            del self._waiting[job.id]

    def _words(self, machine: _Machine, chosen: Combination, job: Job) -> str:
        others = jobs_text(sorted(chosen - {job.id}))
        return f"{self._name} runs it {f'with {others}' if others else 'alone'} on {machine.name}"

    def _set_aside(
        self,
        machine: _Machine,
        chosen: Combination,
        leaving: list[Job],
        coming: Sequence[tuple[Job, Option]],
    ) -> None:
        """Tell those to leave that are not in the next combination, where somebody gains by it."""
        room_for = "" if coming else min(chosen & machine.now)
        for job, option in coming:
            free, places = self._desk.free, (machine.place,)
            if free.room(job, option, leaving, first=(places,)) == places:
                free.trade(job, option, places, leaving)
                room_for = job.id
                break
        if room_for:
            words = f"{self._name} runs {jobs_text(sorted(chosen))} on {machine.name} without it"
            self._desk.preempts.extend(Preempt(job, room_for, words) for job in leaving)
            for job, _ in coming:
                del self._waiting[job.id]


def _volume_s(job: Job, shape: Shape) -> float:
    """How long what is left of a job is expected to run alone: not 0, nor without an end."""
    return min(max(left_s(job, shape), _LEAST_S), NO_LIMIT_S)


def _is_changing(running: list[Job]) -> bool:
    """Whether somebody is about to leave a node."""
    return any(
        job.state is not JobState.RUNNING or job.room_for or job.next_shape for job in running
    )


def _fit_in(cell: Cell, state: State, needs: list[Need]) -> bool:
    """Whether needs fit into a node's state one after the other, whole GPUs first."""
    for need in sorted(needs, key=lambda need: need.share):
        receipt = find(cell.kind, state, need)
        if receipt is None:
            return False
        state = taken(state, receipt)
    return True
