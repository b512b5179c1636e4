"""The workloads that ``pliant simulate`` and ``pliant compare`` know, by name.

Each is a frozen dataclass whose fields are its options; what the command line has for all of them
is in :class:`Asked`. The first line of a docstring is what a user reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pliant.errors import BadInput
from pliant.policies.chosen import Load, build, options_of
from pliant.simulator.traces import Record
from pliant.simulator.traces.guess import FORMATS, Format, guess, processors_of
from pliant.simulator.workload import Workload
from pliant.simulator.workloads.chronus import NODES as CHRONUS_NODES
from pliant.simulator.workloads.chronus import chronus
from pliant.simulator.workloads.fitgpp import JOBS, MIXES, fitgpp
from pliant.simulator.workloads.fujiwara import fujiwara
from pliant.simulator.workloads.fujiwara_trace import GPUS, TASKS
from pliant.simulator.workloads.hpc2n import hpc2n
from pliant.simulator.workloads.measured import (
    COST,
    GPUS_PER_NODE,
    NODES,
    Cost,
    measured,
    tables_in,
)
from pliant.simulator.workloads.records import Machine, Width, from_records
from pliant.simulator.workloads.seo import seo
from pliant.simulator.workloads.sharing import Gavel, Ravi, RaviMulti
from pliant.simulator.workloads.site import Site, on_site

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload, and on what: 0 and "" where the user said nothing."""

    name: str = "trace"
    options: tuple[tuple[str, Value], ...] = ()
    trace: str = ""
    format: str = ""
    jobs: int = 0
    processors: int = 0
    nodes: int = 0
    gpus_per_node: int = 0
    cpus_per_node: int = 0

    @property
    def path(self) -> Path:
        """The trace."""
        return Path(self.trace)

    @property
    def most(self) -> int | None:
        """How many jobs are taken; None: all."""
        return self.jobs or None

    def workload(self, seed: int) -> Workload:
        """Return the workload, as :func:`workload_of` does."""
        return workload_of(self, seed)


class Source(Protocol):
    """A workload that can be asked for. ``said``: which of Asked it looks at."""

    said: ClassVar[frozenset[str]]
    draws: ClassVar[bool]

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return it, drawn by ``seed`` where it draws."""


_MACHINE = frozenset({"processors", "nodes", "gpus_per_node", "cpus_per_node"})


@dataclass(frozen=True, slots=True)
class Trace:
    """Jobs of a trace as they were, or moldable: `least` to `most` processors, linear speedup.

    ``limits``: rigid jobs have the trace's time limits. Moldable ones have none, for they were
    written for another size.
    """

    said: ClassVar[frozenset[str]] = _MACHINE | {"trace", "format"}
    draws: ClassVar[bool] = False
    least: int = 1
    most: int = 0
    width: Width = "allocated"
    offline: bool = False
    limits: bool = True
    told: bool = False

    def __post_init__(self) -> None:
        """Raise BadInput for bounds that are none."""
        if self.least > 1 and not self.most:
            raise BadInput(f"workload trace: least={self.least}: most=N is missing beside it")
        if self.most and not 1 <= self.least <= self.most:
            raise BadInput(f"workload trace: least={self.least}: 1 to {self.most} is expected")

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the jobs of the trace."""
        del seed
        of: Format = FORMATS[asked.format] if asked.format else guess(asked.path)
        records = islice(of.read(asked.path), asked.most)
        bounds = (self.least, self.most) if self.most else None
        limits = self.limits and bounds is None
        if asked.nodes:
            site = Site(
                asked.nodes,
                asked.gpus_per_node,
                asked.cpus_per_node,
                bounds,
                by_processor=not of.tells_gpus,
                offline=self.offline,
                limits=limits,
                told=self.told,
            )
            return on_site(self._wide(records), site, f"{asked.trace} on {asked.nodes} nodes")
        machine = Machine(
            asked.processors or processors_of(asked.path, of),
            bounds,
            width=self.width,
            offline=self.offline,
            limits=limits,
            told=self.told,
        )
        name = f"{asked.trace} on {machine.processors} processors"
        return from_records(records, machine, name)

    def _wide(self, records: Iterator[Record]) -> Iterator[Record]:
        if self.width == "allocated":
            return records
        return (replace(record, width=record.asked) for record in records)


@dataclass(frozen=True, slots=True)
class Hpc2n:
    """HPC2N's trace as Fujiwara et al. replay it: each job moldable from 1 to 240 CPUs."""

    said: ClassVar[frozenset[str]] = frozenset({"trace", "processors"})
    draws: ClassVar[bool] = False
    width: Width = "allocated"
    offline: bool = False
    told: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the tasks of the trace."""
        del seed
        cpus = asked.processors or 240
        chosen: dict[str, Any] = {name: getattr(self, name) for name in options_of(Hpc2n)}
        return hpc2n(asked.path, cpus, jobs=asked.most, **chosen)


@dataclass(frozen=True, slots=True)
class Fujiwara:
    """A GPU cluster as Fujiwara et al. describe theirs: from 1/4 GPU to 4 GPUs a task."""

    said: ClassVar[frozenset[str]] = frozenset({"processors"})
    draws: ClassVar[bool] = True
    overhead_s: float = 0.0
    told: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the tasks of a seed."""
        gpus, tasks = asked.processors or GPUS, asked.jobs or TASKS
        return fujiwara(seed, gpus, tasks=tasks, overhead_s=self.overhead_s, told=self.told)


@dataclass(frozen=True, slots=True)
class FitGpp:
    """Trial and best-effort jobs on 84 nodes, as Yabuuchi et al. draw them."""

    said: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[bool] = True
    mix: str = next(iter(MIXES))
    load: Load = 2.0
    told: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the jobs of a seed."""
        if self.mix not in MIXES:
            right = ", ".join(MIXES)
            raise BadInput(f"workload fitgpp: mix: {self.mix!r}: one of {right} is expected")
        jobs, mix = asked.jobs or JOBS, MIXES[self.mix]
        return fitgpp(seed, jobs=jobs, mix=mix, load=self.load, told=self.told)


@dataclass(frozen=True, slots=True)
class Seo:
    """Seo's four jobs on six GPUs, speeds fitted to the thesis."""

    said: ClassVar[frozenset[str]] = frozenset()
    draws: ClassVar[bool] = False
    launch_s: float = 27.4
    save_s: float = 23.0

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the four jobs."""
        del seed
        return _first(seo(launch_s=self.launch_s, save_s=self.save_s), asked.most)


@dataclass(frozen=True, slots=True)
class Chronus:
    """Philly's jobs with and without deadlines, as Chronus has them (a CSV file)."""

    said: ClassVar[frozenset[str]] = frozenset({"trace", "nodes"})
    draws: ClassVar[bool] = True
    told: bool = False

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Return the jobs of the file; grace periods are drawn."""
        found = chronus(asked.path, asked.nodes or CHRONUS_NODES, seed=seed, told=self.told)
        return _first(found, asked.most)


@dataclass(frozen=True, slots=True)
class MeasuredCurves:
    """Malleable jobs with measured speeds (--trace: Sia's or Gavel's file, or a folder of such)."""

    said: ClassVar[frozenset[str]] = frozenset({"trace", "nodes", "gpus_per_node"})
    draws: ClassVar[bool] = True
    save_s: float = COST.save_s
    launch_s: float = COST.launch_s

    def __call__(self, asked: Asked, seed: int) -> Workload:
        """Draw the jobs."""
        size = {"nodes": asked.nodes or NODES, "gpus": asked.gpus_per_node or GPUS_PER_NODE}
        cost = Cost(self.save_s, self.launch_s)
        return measured(tables_in(asked.path), seed, jobs=asked.jobs or 200, cost=cost, **size)


SOURCES: Mapping[str, type[Any]] = {
    "trace": Trace,
    "hpc2n": Hpc2n,
    "fujiwara": Fujiwara,
    "fitgpp": FitGpp,
    "seo": Seo,
    "chronus": Chronus,
    "ravi": Ravi,
    "ravi-multi": RaviMulti,
    "measured": MeasuredCurves,
    "gavel": Gavel,
}


def _first(workload: Workload, most: int | None) -> Workload:
    return replace(workload, arrivals=workload.arrivals[:most])


def source(asked: Asked) -> Source:
    """Return the workload asked for, its options and what was said beside it checked.

    Raises BadInput, naming what would be right.
    """
    if asked.name not in SOURCES:
        raise BadInput(f"workload: {asked.name!r}: one of {', '.join(SOURCES)} is expected")
    found: Source = build(f"workload {asked.name}", SOURCES[asked.name], dict(asked.options))
    if "trace" in found.said and not asked.trace:
        raise BadInput(f"workload {asked.name} reads a trace: --trace FILE is missing")
    for name in ("trace", "format", "processors", "nodes", "gpus_per_node", "cpus_per_node"):
        if getattr(asked, name) and name not in found.said:
            option = f"--{name.replace('_', '-')}"
            raise BadInput(f"{option}: workload {asked.name} has no use for it")
    _check_machine(asked)
    return found


def _check_machine(asked: Asked) -> None:
    if asked.format and asked.format not in FORMATS:
        raise BadInput(f"--format: {asked.format!r}: one of {', '.join(FORMATS)} is expected")
    if asked.nodes and asked.processors:
        raise BadInput("--processors and --nodes exclude each other")
    per_node = asked.gpus_per_node or asked.cpus_per_node
    if per_node and not asked.nodes:
        raise BadInput("--gpus-per-node and --cpus-per-node go with --nodes")
    if asked.name == "trace" and asked.nodes and not per_node:
        raise BadInput("--nodes goes with --gpus-per-node or --cpus-per-node, or both")


def workload_of(asked: Asked, seed: int) -> Workload:
    """Return the workload asked for, drawn by ``seed`` where it draws.

    Raises BadInput: an unknown name, option or value; a trace that cannot be right, or is empty.
    """
    found = source(asked)(asked, seed)
    if not len(found.arrivals):
        raise BadInput(f"{asked.trace or asked.name}: no job")
    return found
