"""What the batch system keeps for jobs that wait, and no later job is started into.

Backfill goes through the queue in order and gives each job its earliest opening at the shape that
it carries; a later job is started only where it ends before all of these. A policy keeps an
opening for the first waiting job alone, at the shape in which that starts soonest. So a start of
the policy's may lie where the batch system would not make it: a job that was changed for such a
start would wait all the same, and smaller than its user wrote. What the batch system says about
the jobs that wait (:attr:`Job.expected_nodes`) is taken as it is, a backfill pass old at most.

Slurm keeps nodes whole (slurm.conf(5), SchedulerParameters, ``bf_*``; squeue(1), SchedNodes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pliant.model import Job, Snapshot
from pliant.placement import limit_s
from pliant.plan import Plan, Policy, Start

ROUNDS = 2
"""How often a policy is asked again, with those nodes closed to those jobs."""
MOST = 50
"""How many jobs are given such nodes in one round."""

NEVER_S = float("inf")
Kept = Mapping[str, frozenset[str]]
"""Nodes by job: where the batch system would not start it now."""


def decided(seen: Snapshot, policy: Policy) -> Plan:
    """Return a policy's plan without starts that the batch system would not make."""
    plan = policy(seen)
    if seen.is_plain:
        return plan
    closed: dict[str, frozenset[str]] = {}
    for _ in range(ROUNDS):
        found = _in_the_way(seen, plan)
        if not found:
            return plan
        closed |= found
        waiting = tuple(_without(job, closed) for job in seen.waiting)
        plan = _as_seen(seen, policy(replace(seen, waiting=waiting)))
    found = _in_the_way(seen, plan, most=len(plan.starts))
    return replace(plan, starts=tuple(s for s in plan.starts if s.job.id not in found))


def kept_first(waiting: Iterable[Job]) -> list[tuple[Job, tuple[str, ...]]]:
    """Return, for each node that is kept, who is the first there: jobs with their nodes."""
    first: dict[str, Job] = {}
    for job in waiting:
        for node in job.expected_nodes if job.eligible else ():
            if node not in first or job.expected_s < first[node].expected_s:
                first[node] = job
    nodes: dict[str, list[str]] = {}
    for node, job in first.items():
        nodes.setdefault(job.id, []).append(node)
    jobs = {job.id: job for job in first.values()}
    return [(jobs[id_], tuple(names)) for id_, names in nodes.items()]


def _in_the_way(seen: Snapshot, plan: Plan, most: int = MOST) -> Kept:
    """Return the flagged jobs that start where the batch system keeps nodes for earlier ones."""
    starts = {start.job.id: start for start in plan.starts}
    kept_s: dict[str, float] = {}
    found: dict[str, frozenset[str]] = {}
    for job in seen.waiting:
        start = starts.get(job.id)
        if start is None:
            for node in job.expected_nodes if job.eligible else ():
                kept_s[node] = min(kept_s.get(node, NEVER_S), job.expected_s)
        elif kept_s and len(job.shapes) > 1:
            end_s = seen.now_s + limit_s(job)
            if _runs_into(start, kept_s, end_s):
                found[job.id] = frozenset(n for n, at_s in kept_s.items() if at_s < end_s)
                if len(found) >= most:
                    break
    return found


def _runs_into(start: Start, kept_s: Mapping[str, float], end_s: float) -> bool:
    return any(kept_s.get(n, NEVER_S) < end_s for nodes in start.all_nodes for n in nodes)


def _without(job: Job, closed: Kept) -> Job:
    return replace(job, nodes_kept=job.nodes_kept | closed[job.id]) if job.id in closed else job


def _as_seen(seen: Snapshot, plan: Plan) -> Plan:
    """The same plan of the jobs as they were seen."""
    jobs = {job.id: job for job in seen.waiting}
    starts = tuple(replace(start, job=jobs[start.job.id]) for start in plan.starts)
    claims = tuple(replace(claim, job=jobs[claim.job.id]) for claim in plan.claims)
    marks = tuple(replace(mark, job=jobs[mark.job.id]) for mark in plan.marks)
    return replace(plan, starts=starts, claims=claims, marks=marks)
