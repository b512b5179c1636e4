"""What a policy can do, or has to heed: what its golden plans must show, and how often.

Some show in a plan. Others are heeded: without them another plan would have been made, which is
how it is told that a plan shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from pliant.cycle import cycle
from pliant.model import (
    ANYWHERE,
    UNMARKED,
    Abilities,
    Company,
    Job,
    JobState,
    Kind,
    Mode,
    Partition,
    Snapshot,
)
from pliant.plan import Plan, Policy

LIMIT = 50
"""How many changes one cycle makes, as live."""

Shows = Callable[[Snapshot, Plan], bool]
Without = Callable[[Snapshot], Snapshot]


# --- what a plan shows ----------------------------------------------------------------------------


def _keeps_second(_: Snapshot, plan: Plan) -> bool:
    return len(plan.claims) > 1


def _shrinks(_: Snapshot, plan: Plan) -> bool:
    return any(one.shape.amount < one.job.shape.amount for one in plan.reshapes)


def _grows(_: Snapshot, plan: Plan) -> bool:
    return any(one.shape.amount > one.job.shape.amount for one in plan.reshapes)


def _parts(_: Snapshot, plan: Plan) -> bool:
    return any(one.shape == one.job.shape for one in plan.reshapes)


def _gives_back(_: Snapshot, plan: Plan) -> bool:
    started = {start.job.id for start in plan.starts}
    return any(mold.job.id not in started for mold in plan.actions)


def _in_part(_: Snapshot, plan: Plan) -> bool:
    return any(start.tasks < start.job.tasks_waiting for start in plan.starts)


def _share_beside(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether a share starts on a node of which others have shares."""
    parted = {node.name for node in snapshot.nodes if any(pool.parts for pool in node.pools)}
    shares = (start for start in plan.starts if start.shape.is_share)
    return any(not parted.isdisjoint(names) for start in shares for names in start.all_nodes)


def _in_both_modes(snapshot: Snapshot, plan: Plan) -> bool:
    mode = {partition.name: partition.mode for partition in snapshot.partitions}
    found = {mode[name] for mold in plan.actions for name in mold.job.partitions}
    return {Mode.ENFORCE, Mode.OBSERVE} <= found


SHOWN: Mapping[str, Shows] = {
    "start": lambda _, plan: bool(plan.starts),
    "start at another size": lambda _, plan: any(s.shape != s.job.shape for s in plan.starts),
    "reserve": lambda _, plan: bool(plan.claims),
    "reserve for a second": _keeps_second,
    "preempt": lambda _, plan: bool(plan.preempts),
    "shrink": _shrinks,
    "grow": _grows,
    "part": _parts,
    "mark for a node": lambda _, plan: any(m.mark not in (ANYWHERE, UNMARKED) for m in plan.marks),
    "mark for anywhere": lambda _, plan: any(mark.mark == ANYWHERE for mark in plan.marks),
    "take a mark back": lambda _, plan: any(mark.mark == UNMARKED for mark in plan.marks),
    "give back": _gives_back,
    "start an array in part": _in_part,
    "start on cores": lambda _, plan: any(s.shape.kind is Kind.CPU for s in plan.starts),
    "start on several nodes": lambda _, plan: any(s.shape.nodes > 1 for s in plan.starts),
    "share beside others": _share_beside,
    "change in observed and enforced partitions": _in_both_modes,
}


# --- what it heeds --------------------------------------------------------------------------------


def _jobs(change: Callable[[Job], Job]) -> Without:
    def without(snapshot: Snapshot) -> Snapshot:
        waiting = tuple(change(job) for job in snapshot.waiting)
        running = tuple(change(job) for job in snapshot.running)
        return replace(snapshot, waiting=waiting, running=running)

    return without


def _partitions(change: Callable[[Partition], Partition]) -> Without:
    return lambda s: replace(s, partitions=tuple(change(one) for one in s.partitions))


def _of_itself(job: Job) -> Job:
    """A job whose limit is its own alone, where it is one of several jobs."""
    shared = job.reason.startswith(("QOSGrp", "AssocGrp", "QOSMaxGRESPerUser"))
    return replace(job, reason="QOSMaxGRESPerJob") if shared else job


def _unlimited(snapshot: Snapshot) -> Snapshot:
    old, none = snapshot.abilities, Abilities()
    kept = ("share_to_whole", "whole_to_share", "gpu_to_cpu", "cpu_to_gpu", "claims_whole_nodes")
    abilities = replace(none, **{name: getattr(old, name) for name in kept})
    return replace(snapshot, abilities=abilities)


HEEDED: Mapping[str, Without] = {
    "keep room that is made": _jobs(lambda job: replace(job, room_for="")),
    "leave out a refused size": _jobs(lambda job: replace(job, refused=frozenset())),
    "wait behind a shared limit": _jobs(_of_itself),
    "leave what Slurm plans": _jobs(lambda job: replace(job, expected_s=0.0, expected_nodes=())),
    "a resize under way": _jobs(lambda job: replace(job, next_shape=None, next_nodes=())),
    "a reservation": lambda snapshot: replace(snapshot, reservations=()),
    "a job in two partitions": _jobs(lambda job: replace(job, partitions=job.partitions[:1])),
    "a partition that is off": _partitions(
        lambda one: replace(one, mode=Mode.ENFORCE if one.mode is Mode.OFF else one.mode)
    ),
    "limits of accounting": _unlimited,
    "speeds beside each other": lambda snapshot: replace(snapshot, company=Company()),
    "one that ends": _jobs(
        lambda job: replace(job, state=JobState.RUNNING) if job.state is JobState.ENDING else job
    ),
    "one that is frozen": _jobs(lambda job: replace(job, frozen="")),
}


# --- who shows what -------------------------------------------------------------------------------

THINGS = (*SHOWN, *HEEDED)
_TRIALS = ("fitgpp", "lrtp", "rand")
_KEEP_NOTHING = frozenset(
    (
        *("fms", "fms-type", "fms-nodes", "fms, beside=later", "rigid-shortest", "rsa", "rsc"),
        *("asjf", "blind-round-robin", "manual-optimal", "mct"),
        *("rigid-fcfs, overtaking=True", "torque, overtaking=True"),
    )
)
"""They start whoever fits, and keep nothing for those who wait."""


def can_show(case: str) -> frozenset[str]:
    """Return what a policy can do, or has to heed."""
    name, _, how = case.partition(", ")
    shares = name.startswith("cosched-")
    pairs, together = shares and how == "live", shares and how != "live"
    trials = name in _TRIALS
    divides = name.startswith(("malleable-", "f-scheduling"))
    keeps = case not in _KEEP_NOTHING
    only = {
        **dict.fromkeys(("reserve", "reserve for a second", "one that ends"), keeps),
        **dict.fromkeys(("shrink", "grow", "a resize under way"), divides),
        **dict.fromkeys(("part", "mark for a node", "mark for anywhere"), pairs),
        "preempt": trials or together,
        "keep room that is made": trials,
        "speeds beside each other": shares,
    }
    return frozenset(thing for thing in THINGS if only.get(thing, True))


def plan_of(snapshot: Snapshot, policy: Policy, limit: int = LIMIT) -> Plan:
    """Return what is decided live, with what is to be changed for it."""
    return cycle(snapshot, policy, limit)


def shown(
    snapshot: Snapshot, policy: Policy, plan: Plan, things: Container[str] = THINGS
) -> Iterable[str]:
    """Yield what a plan shows of a policy; of what is heeded no more than ``things``."""
    yield from (name for name, shows in SHOWN.items() if shows(snapshot, plan))
    for name, without in HEEDED.items():
        if name in things:
            other = without(snapshot)
            if other != snapshot and differs(plan, plan_of(other, policy)):
                yield name


def differs(plan: Plan, other: Plan) -> bool:
    """Whether two plans are not of the same changes, whatever their reasons."""
    return _acts(plan) != _acts(other)


def _acts(plan: Plan) -> tuple[object, ...]:
    return (
        [(s.job.id, s.shape, s.all_nodes) for s in plan.starts],
        [(c.job.id, c.shape, c.at_s, c.nodes) for c in plan.claims],
        [(a.job.id, a.shape) for a in plan.actions],
        [(r.job.id, r.shape, r.nodes) for r in plan.reshapes],
        [(p.job.id, p.room_for) for p in plan.preempts],
        [(m.job.id, m.mark) for m in plan.marks],
    )
