"""Jobs as policies see them: from one row of qstat to one Job.

A flagged job is *frozen*, with words for its owner, wherever its shape must stay: several sorts of
chunks, arrays that have begun, subjobs, nodes for itself alone, and requests that someone else has
changed since Pliant noted or set them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pliant.batch.pbs.job_rows import ENDING, JobRow
from pliant.batch.pbs.reasons import reason
from pliant.batch.pbs.server_rows import QueueRow
from pliant.batch.pbs.site import Site
from pliant.batch.pbs.unreal import WORDS, is_unreal
from pliant.batch.pbs.values import duration_s, number, size_mib, tasks_in
from pliant.batch.pbs.vnodes import SHARDS
from pliant.cycle import allowed_shapes, carries_ours
from pliant.filter.fields import Fixed
from pliant.filter.pbs.names import CHECKPOINTED, RETURNS, TOKEN, UNANSWERED
from pliant.filter.pbs.said import words
from pliant.filter.pbs.select import Chunk
from pliant.filter.pbs.written import Written, own_shape, read_written
from pliant.grammar import find_token
from pliant.model import (
    BEGUN_ARRAY,
    Abilities,
    Demand,
    Footprint,
    Job,
    JobState,
    Kind,
    Shape,
    Spec,
    shape_text,
)

CHANGED = "its owner or another tool has changed it: "
HELD = "it is held, and would not start again"
LATER = "its owner lets it begin later where it goes back to the queue"
"""Why a job that runs is asked for nothing: our hook gives it a time to begin of its own."""
SHRINKS = "its time limit would begin anew: PBS sets it at each start (min_walltime)"
LOWEST = 1024
"""What is added to a job's Priority, which PBS counts from -1024 on."""
CODE = str(CHECKPOINTED)
"""What RETURNS must be: where it is empty, PBS's JSON prints what stands behind it."""
_VNODE = re.compile(r"\(?([^:()+]+)((?::[^:()+]+)*)\)?")
ABILITIES = Abilities(share_to_whole=True, whole_to_share=True, gpu_to_cpu=True, cpu_to_gpu=True)


def nodes_of(exec_vnode: str) -> tuple[str, ...]:
    """Return the vnodes of ``(gn1:ncpus=2:ngpus=2)+(gn2:ncpus=2)``, each once, in order."""
    return tuple(dict.fromkeys(found[1] for found in _VNODE.finditer(exec_vnode)))


def spec_of(row: JobRow) -> Spec | None:
    """Return what the token says."""
    said = row.resources.get(TOKEN, "")
    return find_token(said) if said else None


def written_of(row: JobRow, site: Site) -> Written:
    """Return what the job's resources say.

    Raises Fixed.
    """
    return read_written(row.resources, site.names.gpu_type, site.names.share, site.defaults(row))


def carried(row: JobRow, site: Site, spec: Spec | None) -> Shape:
    """Return the shape that a job carries.

    Raises Fixed.
    """
    shape = own_shape(written_of(row, site))
    expected = (spec.set or spec.own) if spec else None
    if expected and expected.kind is Kind.BOTH and replace(expected, kind=Kind.GPU) == shape:
        return expected
    return shape


def job_of(row: JobRow, site: Site) -> Job:
    """Return one job, waiting or running."""
    state = JobState.WAITING if row.waits else JobState.RUNNING
    state = JobState.ENDING if row.state == ENDING else state
    queue = site.queues.get(row.queue)
    limit_s = duration_s(row.resources.get("walltime")) or (queue.max_time_s if queue else 0)
    job = Job(
        id=row.id,
        user=row.user,
        name=row.name.encode("utf-8", "backslashreplace").decode()[:256],
        account=row.account or row.project,
        partitions=(row.queue,),
        state=state,
        priority=max(1, row.priority + LOWEST),
        submit_s=row.submit_s,
        spec=spec_of(row),
        time_limit_s=limit_s or site.server.max_time_s,
        restarts=row.restarts,
        requeues=row.rerunable,
        answered=not row.variables.get(UNANSWERED),
    )
    unreal = is_unreal(row)
    shaped = _unchanged(job, row) if unreal else _shaped(job, row, site)
    if not row.waits:
        return replace(
            shaped,
            start_s=row.start_s,
            nodes=site.vnodes.places(nodes_of(row.exec_vnode)),
            whole_nodes=_alone(row),
        )
    if row.is_array:
        waiting = max(1, tasks_in(row.indices))
        shaped = replace(shaped, tasks_waiting=waiting, array_tasks=row.indices or "0")
    up = queue is not None and queue.up and site.server.scheduling
    eligible = row.state in "QB" and up and not unreal
    return replace(shaped, reason=reason(row), eligible=eligible)


def _shaped(job: Job, row: JobRow, site: Site) -> Job:
    """Add what a job carries and may become."""
    try:
        written, shape = written_of(row, site), carried(row, site, job.spec)
    except Fixed as why:
        shape, footprint = _odd(row)
        frozen = str(why) if _asks(row) else ""
        job = replace(job, shape=shape, shapes=(shape,), footprint=footprint, frozen=frozen)
        return replace(job, ordinary=str(why)) if job.is_trial else job  # nor is its room known
    spec = job.spec
    if spec is None:
        return replace(job, shape=shape, shapes=(shape,), footprint=written.footprint)
    own = spec.own or shape
    footprint = _footprint(spec, written, shape)
    spec = replace(spec, own=own, footprint=footprint)
    job = replace(job, spec=spec, shape=shape, shapes=(shape,), footprint=footprint)
    frozen = _left(row, job, site) or _changed(job, written.chunk, site)
    if frozen or spec.pinned:
        return replace(job, frozen=frozen or "its owner pinned it")
    if site.keeps_shapes(site.queues[row.queue]):
        return job  # it runs: a policy may have it make room, and come back as it is
    shapes = allowed_shapes(spec.request, own, shape, ABILITIES)
    possible = tuple(one for one in shapes if _possible(job, one, site))
    left = own if _is_beyond(job, site) else shape
    return replace(job, shapes=possible or (left,)) if _may_change(job) else job


def _footprint(spec: Spec, written: Written, shape: Shape) -> Footprint:
    """Return what was noted at submission, unless PBS adds something else by now."""
    if spec.footprint is None:
        return written.footprint
    noted = _amounts(spec.footprint.demand(shape, spec.request.cores))
    unsaid = noted.keys() - dict(written.chunk.resources).keys()
    added = {name: _amount(name, value) for name, value in written.added if name in unsaid}
    return spec.footprint if added.items() <= noted.items() else written.footprint


def _asks(row: JobRow) -> bool:
    """Whether its owner asked for something; without a token where the hook left the shape."""
    return bool(row.resources.get(TOKEN) or words(row.resources, row.variables))


def _unchanged(job: Job, row: JobRow) -> Job:
    """Leave a job alone whose numbers are none: it has nothing that its end could give back."""
    shape = Shape(1, 0, kind=Kind.CPU)
    return replace(job, shape=shape, shapes=(shape,), frozen=WORDS if _asks(row) else "")


def _may_change(job: Job) -> bool:
    running = job.state is not JobState.WAITING
    return not running or (job.spec is not None and job.spec.request.is_elastic)


def _left(row: JobRow, job: Job, site: Site) -> str:
    """Why a flagged job is left alone, whatever it asks."""
    queue, goes = site.queues.get(row.queue), not row.waits and job.spec is not None
    checks = (
        (row.queue not in site.queues, "its queue is a reservation's, or sends it on"),
        (row.is_subjob, "it is one of an array"),
        (row.is_array and row.state == "B", BEGUN_ARRAY),
        (row.is_suspended, "it is suspended"),
        (not row.waits and row.holds != "", HELD),
        (not row.waits and row.begin_s > 0, LATER),
        (goes and "min_walltime" in row.resources, SHRINKS),
        (goes and not _goes_back(row, site), "nothing here would bring it back to its place"),
    )
    why = next((why for holds, why in checks if holds), "")
    if not why and row.waits:
        return site.keeps_shapes(queue) if queue else ""
    why = why or (site.leaves_running(queue) if goes else "")
    stuck = site.why_none_starts(queue) if goes and not why else ""
    return f"it would not start again: {stuck}" if stuck else why


def _goes_back(row: JobRow, site: Site) -> bool:
    return not site.stranded and row.variables.get(RETURNS) == CODE


def _possible(job: Job, shape: Shape, site: Site) -> bool:
    demand, queue = site.demand(job, shape), job.partitions[0]
    if shape == job.shape:
        return not _is_beyond(job, site)
    if demand.cpus % demand.tasks or (shape.gpu_type and not site.names.gpu_type):
        return False
    if shape.is_share and (not site.names.share or SHARDS % shape.share):
        return False
    own = job.spec.own if job.spec else None
    if shape.nodes > 1 and shape != own and site.sets(site.queues[queue]):
        return False
    return site.allows(queue, shape, demand) and site.vnodes.holding(queue, demand) >= shape.nodes


def _is_beyond(job: Job, site: Site) -> bool:
    """Whether a limit that came since forbids what Pliant made of a job that waits."""
    if job.state is not JobState.WAITING or not carries_ours(job):
        return False
    return not site.allows(job.partitions[0], job.shape, site.demand(job, job.shape))


def _changed(job: Job, chunk: Chunk, site: Site) -> str:
    """What someone else has changed since the token was written, in words."""
    spec = job.spec
    expected = (spec.set or spec.own) if spec else None
    if spec is None or expected is None:
        return ""
    if expected != job.shape:
        carries = f"it carries {shape_text(job.shape)} instead of {shape_text(expected)}"
        return f"{CHANGED}{carries}"
    asked = dict(chunk.resources)
    for name, many in _amounts(site.demand(job, job.shape)).items():
        if name in asked and _amount(name, asked[name]) != many:
            return f"{CHANGED}{name} is {asked[name]} instead of {many}"
    return ""


def _amounts(demand: Demand) -> dict[str, int]:
    """Return what a chunk says of a demand beside its GPUs."""
    return {"ncpus": demand.cpus, "mpiprocs": demand.tasks, "mem": demand.mem_mib}


def _amount(name: str, text: str) -> int:
    return size_mib(text) if name == "mem" else number(text)


def _odd(row: JobRow) -> tuple[Shape, Footprint]:
    """What a job whose request is not understood is taken for: for its totals, on its nodes."""
    nodes = max(1, number(row.resources.get("nodect")))
    gpus = -(-number(row.resources.get("ngpus")) // nodes)
    cpus = max(1, -(-number(row.resources.get("ncpus")) // nodes))
    mem_mib = size_mib(row.resources.get("mem")) // nodes
    shape = Shape(nodes, gpus) if gpus else Shape(nodes, 0, kind=Kind.CPU)
    return shape, Footprint(cpus_per_task=cpus, mem_per_node_mib=mem_mib)


def _alone(row: JobRow) -> bool:
    return "excl" in row.resources.get("place", "")


def queue_order(row: JobRow, queues: Mapping[str, QueueRow]) -> tuple[Any, ...]:
    """Return PBS's own order where no formula is set: queues by priority, then as they came."""
    queue = queues.get(row.queue)
    return (-(queue.priority if queue else 0), row.rank, row.submit_s, row.id)


def queue_of(rows: Sequence[JobRow], queues: Mapping[str, QueueRow]) -> list[JobRow]:
    """Return the jobs that wait, in PBS's order; the tasks of an array are one."""
    waiting = [row for row in rows if row.waits and not row.is_subjob]
    return sorted(waiting, key=lambda row: queue_order(row, queues))
