"""What a job really has on its nodes, as its exec_vnode says: PLIANT_* and its devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pliant.errors import BadSpec
from pliant.filter.pbs.names import (
    BACK,
    GPUS,
    NODES,
    RESTARTS,
    SENT_BACK,
    SHAPE,
    SHARE,
    TYPE,
    read_back,
    restarts,
    shape_variables,
)
from pliant.grammar.values import parse_shape
from pliant.model.shapes import Kind, Shape

DEVICES = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class Part:
    """What a job has of one vnode. ``share``: the part of one GPU, 0.0 where none."""

    vnode: str
    gpus: int = 0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Site:
    """``gpu_vnode``: how the vnode of one GPU is called, like ``{host}-gpu{gpu}``; "": no such."""

    gpu_vnode: str = ""

    def split(self, vnode: str) -> tuple[str, str]:
        """Return a vnode's host, and the number of its GPU where it is that of one GPU."""
        prefix, suffix = self.gpu_vnode.replace("{host}", "", 1).partition("{gpu}")[::2]
        if self.gpu_vnode.startswith("{host}") and prefix and vnode.endswith(suffix):
            bare = vnode[: len(vnode) - len(suffix)]
            host, found, number = bare.rpartition(prefix)
            if found and host and number.isdecimal():
                return host, number
        return vnode.partition("[")[0], ""


def is_false_start(back: str, run_count: int) -> bool:
    """Whether this is the first start after our hook sent the job back to the queue.

    OpenPBS 22.05 and 23.06 keep the mark by which the server was told so, and would send the job
    back after every run from then on. A start that a hook refuses takes the mark's place.
    """
    said = read_back(back)
    return said is not None and run_count == said.runs + 1


def refused_next(back: str, run_count: int, exit_status: str) -> str:
    """Return what BACK is to say so that the start is refused that comes now; "": as it does.

    A start that never came to our launch hook (its node was not reached, or pbs_server was started
    anew meanwhile) has left that mark, and is no run of the job: it counts as one that was refused.
    """
    said = read_back(back)
    if said is None or exit_status != SENT_BACK or run_count <= said.runs:
        return ""
    return str(replace(said, runs=run_count, times=said.times + run_count - said.runs))


def variables(
    parts: Iterable[Part], site: Site, environment: Mapping[str, str], run_count: int
) -> dict[str, str]:
    """Return PLIANT_* as they are; ``environment`` has them as the job's record says.

    A job whose nodes have unequal numbers has no shape: then PLIANT_SHAPE is empty.
    """
    gpus: dict[str, int] = {}
    shares: list[float] = []
    for part in parts:
        host = site.split(part.vnode)[0]
        gpus[host] = gpus.get(host, 0) + part.gpus
        shares += [part.share] if part.share else []
    told = _told(environment.get(SHAPE, ""))
    before, back = environment.get(RESTARTS, ""), environment.get(BACK, "")
    said = {RESTARTS: str(restarts(before, back, run_count))}
    if not gpus:
        return said
    if len(set(gpus.values())) > 1:
        total = sum(gpus.values())
        uneven = {SHAPE: "", NODES: str(len(gpus)), GPUS: str(total), TYPE: "gpu", SHARE: "1"}
        return {**said, **uneven}
    each = next(iter(gpus.values()))
    if not each and len(shares) == 1:
        shape = Shape(1, 1, max(1, round(1 / shares[0])), gpu_type=told.gpu_type)
    elif not each:
        shape = Shape(len(gpus), 0, kind=Kind.CPU)
    else:
        kind = Kind.BOTH if environment.get(TYPE) == str(Kind.BOTH) else Kind.GPU
        shape = Shape(len(gpus), each, kind=kind, gpu_type=told.gpu_type)
    return {**said, **shape_variables(shape)}


def _told(text: str) -> Shape:
    try:
        return parse_shape(text)
    except BadSpec:
        return Shape()


def devices(parts: Iterable[Part], site: Site, host: str) -> str | None:
    """Return the numbers of a job's GPUs on ``host``, "" where it has none there.

    None where they cannot be told.
    """
    found: list[str] = []
    told = site.gpu_vnode != ""
    for part in parts:
        if not (part.gpus or part.share):
            continue
        on, number = site.split(part.vnode)
        if on != host:
            told &= number != ""  # else it may be of this host all the same
        elif not number or part.gpus > 1:
            return None
        else:
            found.append(number)
    return ",".join(sorted(set(found), key=int)) if found or told else None
