"""From what each job should have to what can be done about it now.

A policy that changes running jobs says what each job should have: a *goal*. Goals of jobs that run
already are reached by checkpoint and requeue, and what one job gives up can be given to another
only when it is really gone. So a cycle makes the first steps, and later ones the rest:

1. The goals are placed on the cluster as it will be when all is done: jobs that become smaller on
   nodes of theirs, then those that wait, in the order of the queue, where it is free already if
   that is possible; then those that become larger, beside what they have if that is possible.
2. What is free now is taken: waiting jobs start, running ones grow. The rest waits for its room.
3. Those that become smaller do so, if somebody needs what they give up.

The first job of each queue that does not start keeps its earliest opening, as everywhere: nobody
starts or grows into it, and a running job is changed only if it is still over by then, or leaves
enough, for its time limit begins anew; but for a job that makes room for just that first one.

What turns out not to be possible is not decided upon again in the same cycle: see ``stuck``. Others
are then changed only towards their first goals (:func:`_towards`).
"""

from __future__ import annotations

from collections.abc import Callable

from pliant.model import Job, JobState, Snapshot
from pliant.plan import Plan
from pliant.policies.changes import ROUNDS
from pliant.policies.desk import Desk
from pliant.policies.goal import Goal, Goals
from pliant.policies.step import Step


def stepwise(
    snapshot: Snapshot,
    jobs: list[Job],
    goals: Callable[[list[Job]], Goals],
    alone: Callable[[Desk], Plan],
    *,
    pays: bool,
) -> Plan:
    """Return what can be done now about the goals of ``jobs``, which run, and of all that wait.

    ``goals`` is asked again without those that cannot be changed now; ``alone`` decides for those
    that wait where nobody that runs changes.
    """
    under_way = any(job.next_shape for job in snapshot.running)
    first: Goals | None = None
    for _ in range(ROUNDS):
        if not (jobs or under_way):
            return alone(Desk(snapshot))
        wanted = goals(jobs)
        if first is not None:
            wanted = _towards(first, wanted)
        steps = Step(snapshot, wanted, pays=pays)
        plan = steps.run()
        if not (steps.stuck or steps.unpaid):
            return plan
        if steps.stuck:
            first = first or wanted
        jobs = [job for job in jobs if job.id not in steps.stuck | steps.unpaid]
    return Step(snapshot, goals([]), pays=pays).run() if under_way else alone(Desk(snapshot))


def _towards(first: Goals, now: Goals) -> Goals:
    """Return the goals of now, of running jobs those alone that the first goals agree with.

    These do not depend on what the jobs have that may be changed. So each change brings a job
    closer to where it ends, and none is changed to and fro. (To cut a goal that lies beyond the
    first one, instead of dropping it, made F-scheduling change a job for ever.)
    """
    return {
        id_: goal
        for id_, goal in now.items()
        if goal.job.state is not JobState.RUNNING or _leads(goal, first.get(id_))
    }


def _leads(goal: Goal, first: Goal | None) -> bool:
    """Whether a goal lies between what a job has and its first goal."""
    if first is None:
        return False
    has, may, amount = goal.job.shape.amount, first.shapes[0].amount, goal.shapes[0].amount
    return has < amount <= may or may <= amount < has
