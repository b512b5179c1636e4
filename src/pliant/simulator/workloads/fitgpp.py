"""FitGpp's synthetic mix: trial-and-error (TE) and best-effort (BE) jobs on 84 nodes.

Every job is one task on one node; 30 % are TE. Run times, CPUs, memory and GPUs are normal,
truncated, for each class its own; grace periods are normal with a mean of 3 minutes, truncated at
20. Printed are only the means of the run times (5 and 30 minutes) and where they are truncated (30
minutes, 24 hours): :class:`Mix` holds the rest, :data:`MIXES` other choices for it.

"The jobs were submitted at such a rate that the cluster load would be kept at 2.0 if they were
scheduled by FIFO" is read as a closed loop: under FIFO a job arrives whenever what runs and waits
asks for less than twice what there is. Those instants are found once, by
:func:`~pliant.simulator.workloads.closed_loop.closed_loop`, and are the arrivals under every
policy. (As a rate that does not listen, a load of 2.0 lets the queue grow without end.)

Source: Yabuuchi et al. (paper 001), section 3 and appendix A.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from random import Random
from typing import NamedTuple

from pliant.errors import BadInput
from pliant.model import Footprint, Job, JobClass, Kind, Node, Partition, Pool, Request, Shape, Spec
from pliant.simulator.workload import Arrival, Speed, Workload, alike
from pliant.simulator.workloads.closed_loop import Cluster, Needs, closed_loop
from pliant.simulator.workloads.records import Linear
from pliant.simulator.workloads.rows import Rows

JOBS = 2**19
CLUSTER = Cluster(nodes=84, cpus=32, mem_gib=256, gpus=8)
"""So many nodes, with so much on each."""
NODES, CPUS, MEM_GIB, GPUS = CLUSTER
NAMES = tuple(f"n{number:02}" for number in range(1, NODES + 1))
_ALL = ("all",)
TRIALS = 0.3
LOAD = 2.0


@dataclass(frozen=True, slots=True)
class Normal:
    """A normal distribution from ``low`` to ``high``: what lies outside is drawn again."""

    mean: float
    sd: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse what could hardly ever be drawn: raises BadInput."""
        if not (self.low <= self.mean <= self.high and self.low < self.high and self.sd >= 0):
            raise BadInput(f"{self}: a mean from low to high, and a deviation of 0 or more, please")

    def __str__(self) -> str:
        return f"{self.mean:g} ± {self.sd:g} within {self.low:g}..{self.high:g}"

    def draw(self, random: Random) -> float:
        """Return one value."""
        while True:
            value = random.gauss(self.mean, self.sd)
            if self.low <= value <= self.high:
                return value


@dataclass(frozen=True, slots=True)
class Class:
    """The jobs of one class; CPUs, GiB of memory and GPUs are rounded."""

    run_s: Normal
    cpus: Normal
    mem_gib: Normal
    gpus: Normal

    def __str__(self) -> str:
        return f"{self.run_s} s, {self.cpus} CPUs, {self.mem_gib} GiB, {self.gpus} GPUs"


@dataclass(frozen=True, slots=True)
class Mix:
    """All that is drawn. Where a standard deviation is not printed, it is the mean."""

    name: str = "deviations as large as means"
    trial: Class = Class(
        Normal(300, 300, 1, 1800), Normal(4, 4, 1, 32), Normal(16, 16, 1, 256), Normal(1, 1, 0, 8)
    )
    best_effort: Class = Class(
        Normal(1800, 1800, 1, 86400),
        Normal(8, 8, 1, 32),
        Normal(32, 32, 1, 256),
        Normal(2, 2, 0, 8),
    )
    grace_s: Normal = Normal(180, 180, 0, 1200)

    def __post_init__(self) -> None:
        """Refuse jobs that no node could hold: raises BadInput."""
        for one in (self.trial, self.best_effort):
            if one.cpus.high > CPUS or one.mem_gib.high > MEM_GIB or one.gpus.high > GPUS:
                raise BadInput(
                    f"{self.name}: no node has more than {CPUS} CPUs, {MEM_GIB} GiB and {GPUS} GPUs"
                )
            if one.cpus.low < 1 or min(one.mem_gib.low, one.gpus.low) < 0 or one.run_s.low <= 0:
                raise BadInput(f"{self.name}: a job has a CPU and a run time at least")


def _times(mix: Mix, trial: float, best_effort: float) -> Mix:
    """Return a mix with other deviations of the run times, as multiples of their means."""
    one, other = mix.trial, mix.best_effort
    return replace(
        mix,
        trial=replace(one, run_s=replace(one.run_s, sd=trial * one.run_s.mean)),
        best_effort=replace(other, run_s=replace(other.run_s, sd=best_effort * other.run_s.mean)),
    )


def _minute(mix: Mix) -> Mix:
    """Return a mix whose jobs run for a minute at least."""
    one, other = mix.trial, mix.best_effort
    return replace(
        mix,
        trial=replace(one, run_s=replace(one.run_s, low=60)),
        best_effort=replace(other, run_s=replace(other.run_s, low=60)),
    )


def _gpus(mix: Mix, trial: float, best_effort: float) -> Mix:
    """Return a mix with other means of the GPUs."""
    one, other = mix.trial, mix.best_effort
    return replace(
        mix,
        trial=replace(one, gpus=Normal(trial, trial, 0, GPUS)),
        best_effort=replace(other, gpus=Normal(best_effort, best_effort, 0, GPUS)),
    )


def _cpus(mix: Mix, trial: float, best_effort: float) -> Mix:
    """Return a mix with other means of the CPUs."""
    one, other = mix.trial, mix.best_effort
    return replace(
        mix,
        trial=replace(one, cpus=Normal(trial, trial, 1, CPUS)),
        best_effort=replace(other, cpus=Normal(best_effort, best_effort, 1, CPUS)),
    )


def _mem(mix: Mix, trial: float, best_effort: float) -> Mix:
    """Return a mix with other means of the memory."""
    one, other = mix.trial, mix.best_effort
    return replace(
        mix,
        trial=replace(one, mem_gib=Normal(trial, trial, 1, MEM_GIB)),
        best_effort=replace(other, mem_gib=Normal(best_effort, best_effort, 1, MEM_GIB)),
    )


_MIX = Mix()
MIXES: Mapping[str, Mix] = {
    mix.name: mix
    for mix in (
        _MIX,
        replace(_times(_MIX, 0.5, 0.5), name="run times half as spread"),
        replace(_times(_MIX, 2, 4), name="run times more spread"),
        replace(_times(_MIX, 1, 16), name="best-effort runs to a day"),
        replace(_minute(_MIX), name="runs of a minute at least"),
        replace(_gpus(_MIX, 0.5, 1), name="few GPUs"),
        replace(_gpus(_MIX, 2, 4), name="many GPUs"),
        replace(_cpus(_MIX, 8, 16), name="many CPUs"),
        replace(_mem(_MIX, 64, 128), name="much memory"),
        replace(_MIX, grace_s=Normal(180, 60, 0, 1200), name="grace periods alike"),
    )
}
"""What is not printed, chosen in other ways: for a table of what the results owe to it."""


def fitgpp(
    seed: int, *, jobs: int = JOBS, mix: Mix = _MIX, load: float = LOAD, told: bool = False
) -> Workload:
    """Return the jobs of one seed, at a load under FIFO.

    ``told``: each job's time limit is its run time in whole seconds, for policies that know how
    much is left of a run (LRTP). Raises BadInput where there would be no jobs or no load.
    """
    if jobs < 1 or load <= 0:
        raise BadInput(f"{jobs} jobs at a load of {load}: more than none is expected")
    drawn = draw(seed, jobs, mix)
    loop = closed_loop(drawn.needs, CLUSTER, load)
    build = _Build(drawn, loop.submit_s, told=told)
    return Workload(
        name=f"FitGpp's mix ({mix.name}), seed {seed}, {jobs} jobs",
        nodes=tuple(map(_node, NAMES)),
        partitions=(Partition("all", NAMES, default=True),),
        arrivals=Rows(jobs, build),
        choices=(
            f"TE jobs: {mix.trial}",
            f"BE jobs: {mix.best_effort}; grace periods: {mix.grace_s} s",
            "of these only the means and the upper bounds of times are printed",
            "CPUs, memory and GPUs of a job are drawn apart from each other and from its run time",
            f"load {load} is a closed loop: under FIFO a job arrives whenever what runs and waits"
            f" asks for less than {load} times what there is of CPUs, of memory and of GPUs",
            "the FIFO of that loop starts jobs strictly in order, on the first node that has room",
            "in its grace period a BE job keeps what it has and makes no progress; nothing is lost",
        ),
    )


def _node(name: str) -> Node:
    mem_mib = 1024 * MEM_GIB
    return Node(name, CPUS, CPUS, mem_mib, mem_mib, (Pool("", GPUS, GPUS),))


class Drawn(NamedTuple):
    """What each job is, by its number; ``grace_s`` is 0 for TE jobs."""

    trial: bytearray
    grace_s: array[float]
    needs: Needs


def draw(seed: int, jobs: int, mix: Mix = _MIX) -> Drawn:
    """Draw jobs; the first ones of a longer draw with the same seed are these."""
    random = Random(seed)  # noqa: S311  # no secret
    trials, grace_s = bytearray(), array("d")
    run_s, cpus, mem_gib, gpus = array("d"), bytearray(), array("H"), bytearray()
    for _ in range(jobs):
        trial = random.random() < TRIALS
        one = mix.trial if trial else mix.best_effort
        trials.append(trial)
        run_s.append(one.run_s.draw(random))
        cpus.append(round(one.cpus.draw(random)))
        mem_gib.append(round(one.mem_gib.draw(random)))
        gpus.append(round(one.gpus.draw(random)))
        grace_s.append(0.0 if trial else mix.grace_s.draw(random))
    return Drawn(trials, grace_s, Needs(run_s, cpus, mem_gib, gpus))


class _Build:
    """Makes each job where it is read; equal parts of jobs are one object."""

    def __init__(self, drawn: Drawn, submit_s: array[float], *, told: bool) -> None:
        self._drawn, self._submit_s, self._told = drawn, submit_s, told
        self._digits = len(str(len(submit_s) - 1))
        self._shapes = [Shape(1, 0, kind=Kind.CPU), *(Shape(1, n) for n in range(1, GPUS + 1))]
        asked = Request(job_class=JobClass.BEST_EFFORT), Request(job_class=JobClass.TRIAL)
        self._specs = [[Spec(one, own=shape) for shape in self._shapes] for one in asked]
        self._speeds: list[Speed] = [alike, *map(Linear, range(1, GPUS + 1))]
        self._footprints: dict[tuple[int, int], Footprint] = {}

    def __call__(self, row: int) -> Arrival:
        (trials, graces, needs), shapes = self._drawn, self._shapes
        work_s, gpus, grace_s = needs.run_s[row], needs.gpus[row], graces[row]
        job = Job(
            id=f"{row:0{self._digits}}",
            partitions=_ALL,
            submit_s=self._submit_s[row],
            shape=shapes[gpus],
            footprint=self._footprint(needs.cpus[row], needs.mem_gib[row]),
            spec=self._specs[trials[row]][gpus],
            time_limit_s=ceil(work_s) if self._told else 0,
            grace_s=grace_s,
        )
        return Arrival(job, work_s, self._speeds[gpus], save_s=grace_s)

    def _footprint(self, cpus: int, mem_gib: int) -> Footprint:
        known = self._footprints.get((cpus, mem_gib))
        if known is None:
            known = Footprint(cpus_per_task=cpus, mem_per_node_mib=1024 * mem_gib)
            self._footprints[(cpus, mem_gib)] = known
        return known
