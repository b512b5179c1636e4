"""Why a shape does not fit now, in words for the person who asks."""

from __future__ import annotations

from pliant.model import ALL_CORES, Job, Shape
from pliant.placement.cells import Cell
from pliant.placement.free import Free
from pliant.placement.later import NEVER_S
from pliant.placement.needs import Need, find, replaced
from pliant.placement.profiles import Profile
from pliant.placement.states import most_gpus


def why_not(free: Free, job: Job, shape: Shape) -> str:
    """Return why ``shape`` does not fit now; "" where it does."""
    if shape in job.refused:
        return "the batch system did not start it although it seemed to fit"
    if free.fit(job, shape) is not None:
        return ""
    profile, need = free.profile(job), free.need(job, shape)
    if not profile.scopes:
        return "no partition that it may use is open to it, with its time limit and features"
    beyond = _beyond_limits(profile, shape, need)
    if beyond:
        return beyond
    if shape not in profile.shapes:
        return "the nodes that it may use could not hold it even if they were empty"
    return _now(free, job, shape, profile, need)


def _beyond_limits(profile: Profile, shape: Shape, need: Need) -> str:
    if all(not scope.allows(shape.nodes) for scope in profile.scopes):
        few = all(shape.nodes < scope.min_nodes for scope in profile.scopes)
        nodes = "1 node" if shape.nodes == 1 else f"{shape.nodes} nodes"
        return f"it needs {nodes}, {'fewer' if few else 'more'} than its partition allows a job"
    if all(not scope.allows(shape.nodes, need.cpus) for scope in profile.scopes):
        return f"it needs {need.cpus} CPUs on a node, more than its partition allows a job there"
    return ""


def _now(free: Free, job: Job, shape: Shape, profile: Profile, need: Need) -> str:
    cells = free.cells_in(profile)
    where = "on one node" if shape.nodes == 1 else f"on each of {shape.nodes} nodes"
    with_gpus = [cell for cell in cells if _has(cell, replaced(need, cpus=0, mem_mib=0))]
    if _count(with_gpus) < shape.nodes:
        return _gpus(cells, _count(with_gpus), shape, where)
    with_cores = [cell for cell in with_gpus if _has(cell, replaced(need, mem_mib=0))]
    if _count(with_cores) < shape.nodes:
        most = max(cell.state[0] for cell in with_gpus)
        cores = "all cores" if need.cpus == ALL_CORES else f"{need.cpus} cores"
        beside = " beside its GPUs" if need.gpus else ""
        return f"needs {cores}{beside} {where}, the most free on one node is {most}"
    with_mem = [cell for cell in with_cores if _has(cell, need)]
    if _count(with_mem) < shape.nodes:
        most = max(cell.state[1] for cell in with_cores)
        return f"needs {need.mem_mib} MiB of memory {where}, the most free on one node is {most}"
    return _claimed(free, job, {place for cell in with_mem for place in cell.nodes})


def _has(cell: Cell, need: Need) -> bool:
    return find(cell.kind, cell.state, need) is not None


def _count(cells: list[Cell]) -> int:
    return sum(len(cell.nodes) for cell in cells)


def _gpus(cells: list[Cell], nodes: int, shape: Shape, where: str) -> str:
    kind = f"{shape.gpu_type} " if shape.gpu_type else ""
    if shape.is_share:
        return f"needs 1/{shape.share} of one {kind}GPU, and no GPU has so much free"
    most = max((most_gpus(cell.kind, cell.state, shape.gpu_type) for cell in cells), default=0)
    plural = "GPU" if shape.gpus == 1 else "GPUs"
    if most >= shape.gpus and nodes:
        have = f"only {nodes} {'has' if nodes == 1 else 'have'} them free"
        return f"needs {shape.gpus} {kind}{plural} {where}, {have}"
    return f"needs {shape.gpus} {kind}{plural} {where}, the most free on one node is {most}"


def _claimed(free: Free, job: Job, places: set[int]) -> str:
    """Which claim keeps this job from the nodes that have what it needs free."""
    bound, names = free.bound(job), set(free.names(places))
    claims = [c for c in free.claims if c.at_s <= bound and not names.isdisjoint(c.nodes)]
    if not claims or bound == -NEVER_S:
        return "the nodes that have it free are not all in one partition or are excluded"
    claim = min(claims, key=lambda claim: claim.at_s)
    begin_min = max(0, round((claim.at_s - free.now_s) / 60))
    return (
        f"{', '.join(claim.nodes)} {'is' if len(claim.nodes) == 1 else 'are'} kept for job "
        f"{claim.job.id} in {begin_min} min, and its time limit would run into that"
    )
