"""Replays as plain data: what is to be replayed, and what it came to.

So they may be done in other processes, and on other hosts: see :mod:`pliant.simulator.sweep`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from pliant import policies
from pliant.plan import Policy
from pliant.simulator.curves import Curves, Trail
from pliant.simulator.idle import Idle
from pliant.simulator.jobs import Ended, Flows
from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.tally import Figures, Tally
from pliant.simulator.workload import Workload

Value = bool | int | float | str
EVERY = 200
"""How many jobs end between two calls of ``progress``."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A policy with options, as a user wrote it."""

    name: str
    options: tuple[tuple[str, Value], ...] = ()

    def policy_for(self, seed: int) -> Policy:
        """Return the policy; one that draws does so by ``seed``, unless told another.

        Raises BadInput as :func:`pliant.policies.by_name` does.
        """
        chosen: dict[str, object] = dict(self.options)
        if "seed" in policies.options(self.name):
            chosen.setdefault("seed", seed)
        return policies.by_name(self.name, **chosen)


class Makes(Protocol):
    """What says which workload is meant: plain data, equal where it means the same."""

    def workload(self, seed: int) -> Workload:
        """Return it, drawn by ``seed`` where it draws. Raises BadInput."""

    def __hash__(self) -> int:
        """Return a number that is the same for equal ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """One replay: a policy on a workload. ``idle``: measure avoidable idle GPU time too.

    ``curves``: keep what plots show, too; ``jobs``: each job's flow time.
    """

    choice: Choice
    asked: Makes
    seed: int = 1
    idle: bool = True
    curves: bool = False
    jobs: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a replay came to; ``choices``: what was chosen where the workload's source is silent.

    ``curves``: None where they were not asked for, or no task ended; ``flows``: of each job, empty
    where they were not asked for.
    """

    workload: str
    choices: tuple[str, ...]
    figures: Figures
    curves: Curves | None = None
    flows: Flows = field(default_factory=dict)


def run_case(case: Case, progress: Callable[[int, int], None] | None = None) -> Outcome:
    """Replay one case; ``progress`` is told how many jobs of how many have ended.

    The same case gives the same outcome. Raises BadInput.
    """
    policy = case.choice.policy_for(case.seed)
    workload = _workload(case.asked, case.seed)
    trail, jobs = Trail(), Ended()
    told = [*[trail.add] * case.curves, *[jobs.add] * case.jobs]

    def ended(task: Task) -> None:
        for add in told:
            add(task)

    figures = replayed(workload, policy, idle=case.idle, progress=progress, ended=ended)
    curves = trail.curves() if case.curves else None
    return Outcome(workload.name, workload.choices, figures, curves, jobs.flows)


def replayed(
    workload: Workload,
    policy: Policy,
    *,
    idle: bool = True,
    progress: Callable[[int, int], None] | None = None,
    ended: Callable[[Task], None] | None = None,
) -> Figures:
    """Replay a workload under a policy to its end; return what it came to.

    ``ended`` is told of every task as it ends.
    """
    watch = Idle() if idle else None
    replay, tally = Replay(workload, policy, watch), Tally()
    gc.collect()
    gc.freeze()  # what is there now stays: it need not be looked at again and again
    try:
        for count, task in enumerate(replay.run(), 1):
            tally.add(task)
            if ended is not None:
                ended(task)
            if progress is not None and count % EVERY == 0:
                progress(count, len(workload.arrivals))
    finally:
        gc.unfreeze()
    left = [*replay.cluster.queue, *(run.job for run in replay.cluster.running.values())]
    return tally.figures(
        gpus=sum(pool.total for node in workload.nodes for pool in node.pools),
        avoidable_gpu_s=watch.avoidable_gpu_s if watch else None,
        never=sum(job.tasks_waiting for job in left),
        example=left[0].id if left else "",
    )


@lru_cache(maxsize=1)
def _workload(asked: Makes, seed: int) -> Workload:
    return asked.workload(seed)
