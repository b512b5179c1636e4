"""FitGpp: a trial job that does not fit takes the place of the best-effort job that suits best.

FIFO: jobs start in the order of the queue, each at one shape, and no best-effort job overtakes one
that waits. A trial job (TE) that does not fit takes the room of one running best-effort job (BE).
Of all BE jobs j that run, the one that is told to make room solves (equations 1 and 2)

    arg min { ‖D_j‖ / max ‖D‖ + s · GP_j / max GP  |  D_TE ≤ D_j + N and PC_j < P }

D_j being what j has of its node's CPUs, memory and GPUs, each relative to what the node has, GP_j
its grace period, PC_j how often it has made room before, N what is free on its node; the maxima are
over all running BE jobs. Its grace period over, j goes back to the head of the queue.

What the paper does not cover:

- Where no BE job qualifies, the trial job waits at the head, as in FIFO. ``several``: then it takes
  the room of several, added in the order of their scores until it fits. So it is in simulations
  alone: on a real cluster one of several may keep its place, and the others have saved for nothing.
- The queue is the batch system's: a site gives trial jobs a QOS that puts them first. A trial job
  further back may start or take room only in the hole that the first waiting job's claim leaves.
- A trial job for which room is being made takes no more, and nobody else gets that room, wherever
  in the queue they stand; who has made room starts after it, although it stands at the head. What
  it gives up beyond that is free when it is gone.
- D_TE ≤ D_j + N is asked of the nodes as they are: types of GPU, features and the like included.
  Of a job on several nodes, D_j is what it has on one of them, and N that of any of them.
- Without a grace period anywhere its term is 0.

The baselines, as the paper has them: ``fifo`` knows of no classes, so that trial jobs take no room
and pass nobody either; ``lrtp`` (longest remaining time, as in Big-C) tells the BE jobs with the
longest run left one after the other, wherever they run, until the trial job fits; ``rand`` does so
in an order that is drawn at random, by ``seed`` and the trial job. The order alone decides who is
told, and a job may be told again and again. On a real cluster the first of that order is told whose
room alone does.

Options: ``shape``: which of a job's shapes it gets; ``s`` and ``p``: the paper's s and P;
``several``; ``seed``; ``times``: of the baselines, how often a job is told at most, 0 for any.

Source: Yabuuchi et al. (paper 001), sections 2.1, 2.2 and 3, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from random import Random
from types import MappingProxyType
from typing import ClassVar

from pliant.model import ALL_CORES, Job, Node, Snapshot
from pliant.plan import Plan
from pliant.policies.shapes import Fixed
from pliant.policies.trials import Turns, Wish
from pliant.speedup import left_s

_ALONE: Mapping[str, object] = MappingProxyType({"several": False})
"""Live no room is made by several: each leaves at a time of its own, or stays after all."""


class _Fifo:
    """What these policies have in common; ``victims`` says whose room a trial job may take."""

    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = True
    by_progress: ClassVar[bool] = False  # whether it asks how far jobs are
    live_options: ClassVar[Mapping[str, object]] = MappingProxyType({})
    shape: Fixed

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims and preempts."""
        return Turns(snapshot, self).plan()

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield sets of running BE jobs, best first: the first that makes room enough is told."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Fifo(_Fifo):
    """First in, first out; nobody is told to make room."""

    name: ClassVar[str] = "fifo"
    resizes: ClassVar[bool] = False
    shape: Fixed = "own"

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield nobody, whoever wishes."""
        del wish
        yield from ()


@dataclass(frozen=True, slots=True)
class FitGpp(_Fifo):
    """The BE job with the least demand and grace period of those that make room enough."""

    name: ClassVar[str] = "fitgpp"
    live_options: ClassVar[Mapping[str, object]] = _ALONE
    s: float = 4.0
    p: int = 1
    several: bool = False
    shape: Fixed = "own"

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield each one by ascending score, then, as an option, several."""
        score = _scores(wish, self.s)
        ranked = sorted(
            (one for one in wish.running if one.preempted < self.p and one.preemptible),
            key=lambda one: (score[one.id], one.id),
        )
        yield from _alone(ranked)
        if self.several:
            yield from _more_and_more(ranked)


@dataclass(frozen=True, slots=True)
class Lrtp(_Fifo):
    """The BE jobs with the longest run left, until there is room."""

    name: ClassVar[str] = "lrtp"
    live_options: ClassVar[Mapping[str, object]] = _ALONE
    by_progress: ClassVar[bool] = True
    times: int = 0
    several: bool = True
    shape: Fixed = "own"

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield the longest, the two longest …; or each alone."""
        some = _told_less(wish.running, self.times)
        some.sort(key=lambda one: (-left_s(one, one.shape), one.id))
        yield from _more_and_more(some) if self.several else _alone(some)


@dataclass(frozen=True, slots=True)
class Rand(_Fifo):
    """BE jobs in a random order, until there is room."""

    name: ClassVar[str] = "rand"
    live_options: ClassVar[Mapping[str, object]] = _ALONE
    seed: int = 1
    times: int = 0
    several: bool = True
    shape: Fixed = "own"

    def victims(self, wish: Wish) -> Iterator[list[Job]]:
        """Yield one, that one and another …; or each alone."""
        some = sorted(_told_less(wish.running, self.times), key=lambda one: one.id)
        Random(f"{self.seed} {wish.job.id}").shuffle(some)  # noqa: S311  # no secret
        yield from _more_and_more(some) if self.several else _alone(some)


def _told_less(running: list[Job], times: int) -> list[Job]:
    return [one for one in running if one.preemptible and (not times or one.preempted < times)]


def _alone(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    return ([one] for one in jobs)


def _more_and_more(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    for count in range(1, len(jobs) + 1):
        yield list(jobs[:count])


def _scores(wish: Wish, s: float) -> dict[str, float]:
    """Equation 1 for each running BE job."""
    running = wish.running
    nodes = {node.name: node for node in wish.snapshot.nodes}
    sizes = {one.id: _demand(nodes, one) for one in running}
    most = max(sizes.values(), default=0.0) or 1.0
    longest_s = max((one.grace_s for one in running), default=0.0) or 1.0
    return {one.id: sizes[one.id] / most + s * one.grace_s / longest_s for one in running}


def _demand(nodes: dict[str, Node], job: Job) -> float:
    """‖D_j‖: of what a node has of CPUs, memory and GPUs, on the node where that is most."""
    demand = job.demand(job.shape)
    gpus = float(demand.gpus) / demand.share
    found = [0.0]
    for name in job.nodes:
        if name in nodes:
            node = nodes[name]
            cpus = node.cpus if demand.cpus == ALL_CORES else demand.cpus
            total = sum(pool.total for pool in node.pools)
            parts = (
                cpus / node.cpus if node.cpus else 0.0,
                demand.mem_mib / node.mem_mib if node.mem_mib else 0.0,
                gpus / total if total else 0.0,
            )
            found.append(sqrt(sum(part * part for part in parts)))
    return max(found)
