"""What happens in a replay, written down by others than those who decide and carry out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace

from test_policies_properties import all_fit, gpus_of

from pliant.model import ALL_CORES, Demand, Job, Node, Shape, Snapshot
from pliant.plan import Plan, Policy
from pliant.simulator.cluster import Cluster
from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.running import History, Run
from pliant.simulator.workload import Workload


class Plain(Snapshot):
    """A simulated cluster at one moment, as one that has kept nothing from earlier moments."""

    @property
    def is_plain(self) -> bool:
        """As the cluster's own: no batch system says anything of its jobs."""
        return True


def as_plain(snapshot: Snapshot) -> Plain:
    """The same, all of it read now."""
    values = {field.name: getattr(snapshot, field.name) for field in fields(Snapshot)}
    rows = {name: tuple(values[name]) for name in ("nodes", "waiting", "running")}
    return Plain(**{**values, **rows})


@dataclass
class Watched:
    """A policy that shows every snapshot that it is asked about, and every plan."""

    of: Policy
    seen: Callable[[Snapshot, Policy], Plan] = lambda snapshot, policy: policy(snapshot)
    asked_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name, self.molds, self.resizes = self.of.name, self.of.molds, self.of.resizes
        self.by_progress = getattr(self.of, "by_progress", self.of.resizes)

    def __call__(self, snapshot: Snapshot) -> Plan:
        self.asked_s.append(snapshot.now_s)
        return self.seen(snapshot, self.of)


Has = tuple[Job, Shape, tuple[str, ...]]


class Counted(Cluster):
    """A cluster whose books are kept a second time, from the jobs' demands alone."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self._books = {node.name: node for node in workload.nodes}
        self.has: dict[str, list[Has]] = {}
        self.refused: list[tuple[str, Shape]] = []  # starts and changes that did not fit
        self.shapes: dict[str, list[Shape]] = {}  # of all runs of a job

    def start(self, job: Job, of: History, shape: Shape, nodes: Sequence[str]) -> Run | None:
        run = super().start(job, of, shape, nodes)
        if run is None:
            self.refused.append((job.id, shape))
            return None
        assert job.id not in self.has, f"{job.id} runs twice"
        assert len(set(nodes)) == shape.nodes
        self.has[job.id] = [(job, shape, tuple(nodes))]
        self.shapes.setdefault(job.id, []).append(shape)
        self.check()
        return run

    def keep_extra(self, run: Run, shape: Shape, nodes: Sequence[str]) -> bool:
        kept = super().keep_extra(run, shape, nodes)
        if kept:
            self.has[run.job.id].append((run.job, shape, tuple(nodes)))
        else:
            self.refused.append((run.job.id, shape))
        self.check()
        return kept

    def change(self, run: Run) -> bool:
        changed = super().change(run)
        if changed:
            (self.has[run.job.id],) = ([has] for has in self.has[run.job.id][1:])
            self.shapes[run.job.id].append(run.shape)
            self.check()
        return changed

    def stop(self, run: Run) -> None:
        super().stop(run)
        del self.has[run.job.id]
        self.check()

    def check(self) -> None:
        """Nothing is given twice, and of cores and memory what is free is what nobody has."""
        for now in self.snapshot(0.0).nodes:
            name = now.name
            node = self._books[name]
            demands = [
                demand
                for has in self.has.values()
                for demand in _together([h for h in has if name in h[2]], node)
            ]
            cpus, mem = sum(d.cpus for d in demands), sum(d.mem_mib for d in demands)
            assert cpus <= node.cpus, f"{name}: {cpus} cores of {node.cpus}"
            assert not node.mem_mib or mem <= node.mem_mib, f"{name}: {mem} MiB"
            shares = sorted(((d, 0) for d in demands), key=lambda one: one[0].share)
            assert all_fit(shares, gpus_of(node)), f"{name}: {demands}"
            free = (node.cpus - cpus, node.mem_mib - mem)
            assert (now.free_cpus, now.free_mem_mib) == free, name

    @property
    def is_free(self) -> bool:
        """Whether all nodes are as they were in the beginning."""
        return self.snapshot(0.0).nodes[:] == self._all


def _together(held: list[Has], node: Node) -> list[Demand]:
    """What a job has on a node that keeps room there for its next shape meanwhile."""
    demands = [job.demand(shape) for job, shape, _ in held]
    demands = [replace(d, cpus=node.cpus) if d.cpus == ALL_CORES else d for d in demands]
    if not node.mem_mib:
        demands = [replace(d, mem_mib=0) for d in demands]
    if len(demands) < 2:
        return demands
    old, new = demands
    cpus, mem = max(old.cpus, new.cpus), max(old.mem_mib, new.mem_mib)
    larger = max(old, new, key=lambda demand: demand.gpus / demand.share)
    return [replace(larger, cpus=cpus, mem_mib=mem)]


def replayed(
    workload: Workload, policy: Policy, most: int = 2_000
) -> tuple[Replay, list[Task], Counted]:
    """Replay all of a workload; fail where it asks more than ``most`` times."""
    asked = Counter[str]()
    watched = policy if isinstance(policy, Watched) else Watched(policy)
    inner = watched.seen

    def seen(snapshot: Snapshot, of: Policy) -> Plan:
        asked["times"] += 1
        assert asked["times"] <= most, f"asked {most} times, at {snapshot.now_s} s last"
        return inner(snapshot, of)

    watched.seen = seen
    replay = Replay(workload, watched)
    cluster = replay.cluster = Counted(workload)
    tasks = list(replay.run())
    return replay, tasks, cluster
