"""RSA, RSC and ASJF: two queues of jobs for one node, by the resource that each prefers.

A job runs on the cores of one node or on a GPU. Those that run faster on cores stand in one queue,
the others in another. Whenever a resource is free it goes to the top of its own queue. They differ
in the order of the queues, and in what is done where a resource is free and its queue empty.

With GP and MP a job's speedups on a GPU and on the cores over one core, SQ its time there:

- ``rsa``, relative speedup, aggressive: both queues in descending order of the difference between
  GP and MP. A resource whose queue is empty takes the bottom of the other queue: who loses least.
- ``rsc``, relative speedup, conservative: the same order. Nobody runs where it is slower: the
  resource stays idle.
- ``asjf``, adaptive shortest job first: each queue in ascending order of its jobs' run times there,
  SQ/MP or SQ/GP. A resource whose queue is empty takes that job of the other queue to which it is
  the least penalty, SQ/MP - SQ/GP or the reverse, if that is less than the wait until the preferred
  resource is free; else none.

GP and MP are f as the owner gave it (``throughput``), which is to count steps of one core alike for
all jobs; SQ is ``steps`` over those. Only ASJF looks at ``steps``. See :mod:`pliant.speedup` for
what is taken where the owner gave nothing.

What the paper does not cover:

- Among several shapes on cores, or with GPUs, each job's fastest stands for the resource. A job
  that has shapes of one sort only prefers that by an infinite difference, and runs nowhere else.
- Who does not fit while a later job of its queue does is passed over; an array starts as many
  tasks as fit, all on one resource.
- Of equal jobs the queue's order decides; one that is as fast on both prefers the GPU.

They choose who is next, which on a real cluster is the batch system's part: for simulations only.

Source: Ravi et al. (paper 004), section III-A.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pliant.model import Job, Kind, Shape, Snapshot
from pliant.placement import Option, Profile
from pliant.plan import Plan
from pliant.policies.candidates import run_s
from pliant.policies.desk import Desk
from pliant.policies.outlook import Opening, Outlook
from pliant.speedup import DEFAULT_CPU_SPEED, known_speed, relative_speed


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A job in one of the queues: what it prefers, and what it could run as instead.

    ``gap``: how much faster the preferred one is, as a difference of speedups.
    """

    job: Job
    profile: Profile
    best: Option
    other: Option | None
    gap: float


Queues = tuple[list[Entry], list[Entry]]
"""Those that prefer cores, and those that prefer a GPU."""


@dataclass(frozen=True, slots=True)
class Rsa:
    """Relative speedup, aggressive."""

    name: ClassVar[str] = "rsa"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk = Desk(snapshot)
        queues = _by_gap(desk, self.cpu_speed)
        _serve(desk, queues)
        for own, other in (queues, queues[::-1]):
            if not own:
                for entry in reversed(other):
                    _elsewhere(desk, entry)
        return desk.plan()


@dataclass(frozen=True, slots=True)
class Rsc:
    """Relative speedup, conservative."""

    name: ClassVar[str] = "rsc"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk = Desk(snapshot)
        _serve(desk, _by_gap(desk, self.cpu_speed))
        return desk.plan()


@dataclass(frozen=True, slots=True)
class Asjf:
    """Adaptive shortest job first."""

    name: ClassVar[str] = "asjf"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = False
    simulated_only: ClassVar[bool] = True
    cpu_speed: float = DEFAULT_CPU_SPEED

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts."""
        desk = Desk(snapshot)
        outlook = Outlook(desk.free, self.cpu_speed)
        queues = two_queues(desk, self.cpu_speed)
        for queue in queues:
            queue.sort(key=lambda entry: self._run_s(entry.job, entry.best))
        for entry, option, opening in _serve(desk, queues):
            outlook.book(option, opening, self._run_s(entry.job, option))
        for own, other in (queues, queues[::-1]):
            if not own:
                self._divert(desk, outlook, other)
        return desk.plan()

    def _divert(self, desk: Desk, outlook: Outlook, queue: list[Entry]) -> None:
        """Let a free resource take who loses least, as long as waiting would cost more."""
        for entry in sorted(queue, key=self._penalty_s):
            if entry.other is None or not _fits(desk, entry, entry.other):
                continue
            best_s = self._run_s(entry.job, entry.best)
            opening = outlook.earliest(entry.profile, entry.best, best_s)
            wait_s = opening.at_s - desk.free.now_s if opening else float("inf")
            if self._penalty_s(entry) >= wait_s:
                return
            for one in _elsewhere(desk, entry):
                outlook.book(entry.other, one, self._run_s(entry.job, entry.other))

    def _run_s(self, job: Job, option: Option) -> float:
        return run_s(job, option[0], self.cpu_speed)

    def _penalty_s(self, entry: Entry) -> float:
        """How much longer a job runs on the resource that it does not prefer."""
        if entry.other is None:
            return float("inf")
        return self._run_s(entry.job, entry.other) - self._run_s(entry.job, entry.best)


def two_queues(desk: Desk, cpu_speed: float) -> Queues:
    """Divide the queue by what each job prefers, in its order."""
    queues: Queues = ([], [])
    for job in desk.queue():
        profile = desk.free.profile(job)
        cores, gpu = sides(job, profile, cpu_speed)
        if cores is not None or gpu is not None:
            entry, prefers_gpu = _entry(job, profile, (cores, gpu), cpu_speed)
            queues[prefers_gpu].append(entry)
    return queues


def sides(job: Job, profile: Profile, cpu_speed: float) -> tuple[Option | None, Option | None]:
    """Return a job's fastest option on cores, and its fastest with GPUs; None: it has none."""
    found: list[Option | None] = []
    for gpu in (False, True):
        options = [o for o in profile.options if (o[0].kind is not Kind.CPU) is gpu]
        key = [(run_s(job, o[0], cpu_speed), o[0].amount, o[0]) for o in options]
        found.append(options[key.index(min(key))] if options else None)
    return (found[0], found[1])


def _entry(
    job: Job, profile: Profile, pair: tuple[Option | None, Option | None], cpu_speed: float
) -> tuple[Entry, bool]:
    cores, gpu = pair
    if gpu is None or cores is None:
        only = gpu or cores
        assert only is not None  # noqa: S101 - callers see to it
        return (Entry(job, profile, only, None, float("inf")), gpu is not None)
    mp, gp = _speedups(job, cores[0], gpu[0], cpu_speed)
    best, other = (gpu, cores) if gp >= mp else (cores, gpu)
    return (Entry(job, profile, best, other, abs(gp - mp)), gp >= mp)


def _speedups(job: Job, cores: Shape, gpu: Shape, cpu_speed: float) -> tuple[float, float]:
    """MP and GP: as given for both, else relative to the own shape."""
    mp, gp = known_speed(job, cores), known_speed(job, gpu)
    if mp is None or gp is None:
        return (relative_speed(job, cores, cpu_speed), relative_speed(job, gpu, cpu_speed))
    return (mp, gp)


def _by_gap(desk: Desk, cpu_speed: float) -> Queues:
    queues = two_queues(desk, cpu_speed)
    for queue in queues:
        queue.sort(key=lambda entry: -entry.gap)
    return queues


def _fits(desk: Desk, entry: Entry, option: Option) -> bool:
    free = desk.free
    return free.places(entry.profile, option, free.bound(entry.job)) is not None


def _serve(desk: Desk, queues: Queues) -> list[tuple[Entry, Option, Opening]]:
    """Give each resource to its own queue from the top; who has all leaves the queue.

    An array with tasks left stays in its queue, and has its shape.
    """
    served: list[tuple[Entry, Option, Opening]] = []
    for queue in queues:
        for entry in tuple(queue):
            given = desk.fill(entry.job, entry.profile, entry.best)
            if not given:
                continue
            desk.start(entry.job, given, f"{entry.best[0]} is what it runs fastest on")
            served += [(entry, entry.best, Opening(desk.free.now_s, one.places)) for one in given]
            place = queue.index(entry)
            if len(given) == entry.job.tasks_waiting:
                del queue[place]
            else:
                queue[place] = Entry(entry.job, entry.profile, entry.best, None, float("inf"))
    return served


def _elsewhere(desk: Desk, entry: Entry) -> list[Opening]:
    """Let a job start on what it does not prefer, where that is free."""
    if entry.other is None:
        return []
    given = desk.fill(entry.job, entry.profile, entry.other)
    if given:
        words = f"{entry.other[0]} is free, and nobody waits who would rather have it"
        desk.start(entry.job, given, words)
    return [Opening(desk.free.now_s, one.places) for one in given]
