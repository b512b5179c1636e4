"""What the owner wrote without Pliant: the own shape and the footprint, or why it must stay.

A chunk stands for a node of the shape, with all that PBS adds to it. What PBS says of a chunk stays
so per chunk, but as many ``mpiprocs`` as GPUs are one rank to a GPU, and follow them with their
cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pliant.errors import BadSpec
from pliant.filter.fields import Fixed
from pliant.filter.pbs.defaults import NO_DEFAULTS, Defaults, Pairs
from pliant.filter.pbs.names import RESOURCES, TOKEN, WROTE
from pliant.filter.pbs.select import (
    MAX_CHUNKS,
    SPREAD,
    Chunk,
    read_chunk,
    read_mem_mib,
    read_number,
    read_place,
)
from pliant.filter.pbs.shares import read_share, share_text
from pliant.grammar.values import parse_shape, quoted
from pliant.model.footprints import Demand, Footprint
from pliant.model.requests import Request
from pliant.model.shapes import Kind, Shape

JOB_WIDE = ("ncpus", "ngpus", "mem", "mpiprocs", "ompthreads")
"""What ``qsub -l ncpus=2,ngpus=1`` says without select, of one chunk."""
_KNOWN = frozenset(JOB_WIDE)
_OF_JOBS = frozenset(
    ("place", "nodect", "walltime", "min_walltime", "max_walltime", "cput", "pcput")
)
"""Resources of a whole job, which no chunk has."""


@dataclass(frozen=True, slots=True)
class Written:
    """A job without Pliant. ``own`` None: it asks for no GPU. ``old``: it has no select.

    ``added``: what a chunk has of what it does not say. ``shared``: its place says so.
    """

    own: Shape | None
    chunk: Chunk
    footprint: Footprint
    arrangement: str = "free"
    old: bool = False
    added: Pairs = ()
    shared: bool = False


def read_written(
    resources: Mapping[str, str],
    type_resource: str = "",
    share_resource: str = "",
    defaults: Defaults = NO_DEFAULTS,
) -> Written:
    """Return what ``Resource_List`` says, with ``defaults``.

    Raises Fixed in words where the shape must stay.
    """
    select, place = _arranged(resources, dict(defaults.job))
    chunk = read_chunk(select) if select else _job_wide(resources)
    arrangement = read_place(place)
    if arrangement == "pack" and chunk.count > 1:
        raise Fixed("several chunks on one node keep the shape: write one chunk")
    asked = dict(chunk.resources)
    others = set(asked) - _KNOWN - {type_resource, share_resource}
    if others:
        raise Fixed(f"{quoted(min(others))} in a chunk keeps the shape")
    added = _added(asked, defaults, old=not select)
    asked = {**dict(added), **asked}
    counted = [name for name in JOB_WIDE if name in asked and name != "mem"]
    count = {name: read_number(name, asked[name]) for name in counted}
    gpus, tasks = count.get("ngpus", 0), max(1, count.get("mpiprocs", 1))
    cpus = max(1, count.get("ncpus", 1))
    gpu_type = asked.get(type_resource, "")
    own = Shape(chunk.count, gpus, gpu_type=gpu_type) if gpus else None
    if share_resource and share_resource in asked:
        if gpus or chunk.count > 1:
            raise Fixed("shares of several GPUs, or of one beside whole ones, keep the shape")
        share = read_share(share_resource, asked[share_resource])
        own = Shape(1, 1, share, gpu_type=gpu_type)
    if cpus % tasks:
        raise Fixed(f"{cpus} ncpus do not divide over {tasks} mpiprocs: the shape stays")
    footprint = Footprint(
        tasks_per_node=tasks,
        cpus_per_task=cpus // tasks,
        mem_per_node_mib=read_mem_mib(asked["mem"]) if "mem" in asked else 0,
    )
    if gpus:
        footprint = footprint.by_gpu(gpus)
    shared = "shared" in place.lower().split(":")
    return Written(own, chunk, footprint, arrangement, old=not select, added=added, shared=shared)


def _arranged(resources: Mapping[str, str], default: Mapping[str, str]) -> tuple[str, str]:
    """Return the select and the place that a job has; PBS puts a select before all but another.

    Raises Fixed.
    """
    own = resources.get("select", "")
    if resources.get("nodes") or (default.get("nodes") and not own):
        raise Fixed("-l nodes= keeps the shape: ask by -l select=")
    select = own or default.get("select", "")
    beside = [name for name in JOB_WIDE if resources.get(name)]
    if select and not own and beside:
        raise Fixed(f"-l {beside[0]}= where each job has a select by default keeps the shape")
    return select, resources.get("place") or (default.get("place", "") if select else "")


def _added(asked: Mapping[str, str], defaults: Defaults, *, old: bool) -> Pairs:
    """Return what a chunk has of what it does not say.

    Raises Fixed where that is more than numbers, with which a shape is written.
    """
    found = dict(defaults.chunk)
    if old:
        found.update((name, value) for name, value in defaults.job if name not in _OF_JOBS)
    others = found.keys() - _KNOWN - asked.keys()
    if others:
        raise Fixed(f"{quoted(min(others))}, which each chunk has by default, keeps the shape")
    return tuple((name, value) for name, value in found.items() if name in _KNOWN)


def _job_wide(resources: Mapping[str, str]) -> Chunk:
    """Return the one chunk that resources without select stand for.

    Raises Fixed for others, which PBS would put into that chunk too.
    """
    others = set(resources) - _KNOWN - _OF_JOBS - {TOKEN, *RESOURCES.values()}
    if others:
        raise Fixed(f"{quoted(min(others))} without select keeps the shape")
    return Chunk(1, tuple((name, resources[name]) for name in JOB_WIDE if resources.get(name)))


def own_shape(written: Written) -> Shape:
    """Return the own shape; that of a job without GPUs is one of cores."""
    return written.own or Shape(written.chunk.count, 0, kind=Kind.CPU)


def known_own(written: Written, request: Request) -> Shape | None:
    """Return the own shape; None for a job that should have named its GPUs and did not."""
    meant = meant_shape(written, request)
    return written.own or (meant if meant.kind is Kind.CPU else None)


def wrote_shape(variables: Mapping[str, str]) -> Shape | None:
    """Return what is noted of an owner who wrote no GPU; None where nothing of ours.

    The variable is anybody's to write.
    """
    try:
        shape = parse_shape(variables.get(WROTE, ""))
    except BadSpec:
        return None
    return shape if shape.kind is Kind.CPU and shape.nodes <= MAX_CHUNKS else None


def meant_shape(written: Written, request: Request) -> Shape:
    """Return the own shape, or what it would be if the GPUs of the request had been written."""
    if written.own:
        return written.own
    if request.gpus or request.gpu_types or {Kind.GPU, Kind.BOTH} & set(request.kinds):
        return Shape(written.chunk.count, 1)
    return own_shape(written)


def rewritten(
    written: Written,
    shape: Shape,
    demand: Demand,
    type_resource: str = "",
    share_resource: str = "",
) -> dict[str, str]:
    """Return the resources to set so that the job carries ``shape``.

    GPUs that it has no more are said as 0: of what a select does not name PBS keeps the old sum in
    Resource_List, by which it holds limits against the job (OpenPBS 23.06). One that has no select
    gets none: its shapes are on one node.
    """
    asked, added = dict(written.chunk.resources), dict(written.added)
    has = {**added, **asked}
    gpus = 0 if shape.is_share else demand.gpus
    numbers = {
        "ncpus": str(demand.cpus) if "ncpus" in has or demand.cpus > 1 else "",
        "ngpus": str(gpus) if gpus or "ngpus" in asked else "",
        "mem": f"{demand.mem_mib}mb" if "mem" in has else "",
        "mpiprocs": str(demand.tasks) if "mpiprocs" in has else "",
    }
    for name in numbers.keys() & added.keys():
        if name not in asked or not numbers[name]:  # said only where it is not what PBS adds
            number = numbers[name] or "0"
            numbers[name] = "" if _same(name, number, added[name]) else number
    wanted = {
        **numbers,
        **({type_resource: shape.gpu_type} if type_resource else {}),
        **({share_resource: share_text(shape.share)} if shape.is_share else {}),
        **({share_resource: ""} if share_resource and not shape.is_share else {}),
    }
    if written.old:  # PBS would refuse a select beside them, and a hook cannot take them away
        return {name: value or "0" for name, value in wanted.items() if value or name in asked}
    kept = {name: wanted.pop(name, value) for name, value in asked.items()}
    items = {**kept, **wanted}
    chunk = Chunk(shape.nodes, tuple((name, value) for name, value in items.items() if value))
    changes = {"select": str(chunk)}
    if shape.nodes > 1 and written.chunk.count == 1:
        changes["place"] = f"{SPREAD}:shared" if written.shared else SPREAD
    return changes


def _same(name: str, one: str, other: str) -> bool:
    amount = read_mem_mib if name == "mem" else int
    return amount(one) == amount(other)
