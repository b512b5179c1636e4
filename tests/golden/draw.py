"""Clusters in the middle of their work, drawn by a seed: what the golden plans are plans of.

Each draw has a theme, which says what its jobs may be and what its owners allow: a policy does what
only it can do where enough jobs are of its kind. All awkward things come in every theme, rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import Any, TypeVar

from golden.rooms import Room, placed
from pliant.cycle import allowed_shapes
from pliant.grammar import shapes as request_shapes
from pliant.model import (
    ALL_CORES,
    ANYWHERE,
    UNMARKED,
    Abilities,
    Cap,
    Company,
    Footprint,
    Job,
    JobClass,
    JobState,
    Kind,
    Limits,
    Malleable,
    Mode,
    Node,
    Partition,
    Pool,
    Request,
    Reservation,
    Shape,
    Snapshot,
    Spec,
    Together,
)

T = TypeVar("T")
NOW_S = 100_000.0
CPUS = Shape(1, 0, kind=Kind.CPU)
SHARED = ("QOSGrpGRES", "AssocGrpGRES", "QOSMaxGRESPerUser", "QOSGrpCpuLimit", "AssocGrpNodeLimit")
"""Reasons of limits that several jobs share."""
OTHERS = ("None", "JobHeldUser", "Dependency", "BeginTime", "QOSMinGRES", "PartitionNodeLimit")
UNSEEN = "requeued by Pliant: it waits for its place"


@dataclass(frozen=True, slots=True)
class Theme:
    """What the jobs of a draw are, each as the part of them that is so."""

    molds: float = 0.7  # its owner allows several sizes
    resizes: float = 0.0  # also while it runs
    trial: float = 0.0
    best_effort: float = 0.0
    colocates: float = 0.0
    parts: float = 0.1  # it may have a part of a GPU
    kinds: float = 0.1  # it may have cores instead
    array: float = 0.1
    told: float = 0.5  # its owner says how fast it is
    several: float = 0.15  # it may have several nodes
    pairs: bool = False  # nodes of cores alone, each of one job or of two that share
    load: tuple[float, float] = (0.5, 1.0)
    limits: float = 0.05
    wide: bool = False
    handing: float = 0.3  # in how many draws something is under way
    many: tuple[int, ...] = (2, 4, 6, 8, 12)  # how many wait
    slow: float = 0.4  # two that share are slower than one after the other


THEMES = {
    "plain": Theme(),
    "wide": Theme(wide=True, several=0.3, many=(10, 20, 40)),
    "rigid": Theme(molds=0.2, several=0.4, load=(0.6, 1.0)),
    "elastic": Theme(resizes=0.8, load=(0.6, 1.0), parts=0.0, kinds=0.0),
    "elastic, light": Theme(resizes=0.9, load=(0.2, 0.6), parts=0.0, kinds=0.0),
    "elastic, parts": Theme(resizes=0.7, parts=0.5, load=(0.4, 1.0)),
    "elastic, idle": Theme(resizes=0.9, load=(0.2, 0.8), parts=0.05, kinds=0.05, many=(0, 1, 1, 2)),
    "handing": Theme(resizes=0.8, best_effort=0.4, trial=0.2, load=(0.5, 1.0), handing=1.0),
    "classes": Theme(molds=0.3, trial=0.3, best_effort=0.6, load=(0.9, 1.0)),
    "classes, elastic": Theme(resizes=0.5, trial=0.3, best_effort=0.6, load=(0.8, 1.0)),
    "parts": Theme(parts=0.8, load=(0.3, 1.0)),
    "kinds": Theme(kinds=0.8, told=0.9, several=0.4, load=(0.3, 0.9)),
    "together": Theme(molds=0.0, colocates=0.9, best_effort=0.7, load=(0.4, 0.9), several=0.0),
    "pairs": Theme(molds=0.0, colocates=0.9, pairs=True, resizes=0.6, kinds=0.0, several=0.0),
    "pairs, idle": Theme(
        *(0.0, 0.8),
        colocates=0.95,
        pairs=True,
        kinds=0.0,
        several=0.0,
        load=(0.3, 0.9),
        many=(0, 1, 2, 3),
    ),
    "pairs, slow": Theme(
        *(0.0, 0.9),
        colocates=1.0,
        pairs=True,
        kinds=0.0,
        several=0.0,
        load=(0.3, 0.6),
        handing=0.05,
        many=(0, 0, 1),
        slow=0.9,
    ),
    "limits": Theme(limits=0.5, resizes=0.3),
    "arrays": Theme(array=0.7, parts=0.3, load=(0.2, 0.8)),
}


def drawn(theme: str, seed: int) -> Snapshot:
    """Return the cluster of a theme that a seed draws."""
    return _Draw(THEMES[theme], Random(f"{theme} {seed}")).snapshot()


class _Draw:
    def __init__(self, theme: Theme, rng: Random) -> None:
        self._theme, self._rng = theme, rng
        self._number = 0
        self._abilities = self._drawn_abilities()
        self._rooms = [Room(node) for node in self._nodes()]
        self._names = tuple(room.node.name for room in self._rooms)
        self._partitions = self._drawn_partitions()

    # --- chance ---------------------------------------------------------------------------------

    def _is(self, part: float) -> bool:
        return self._rng.random() < part

    def _one(self, some: Sequence[T]) -> T:
        return self._rng.choice(some)

    def _rarely(self, usual: T, *others: T, part: float = 0.12) -> T:
        return self._one(others) if self._is(part) else usual

    # --- the cluster ------------------------------------------------------------------------------

    def snapshot(self) -> Snapshot:
        running = self._running()
        waiting = self._waiting()
        waiting, running = self._handed_over(waiting, running)
        waiting = self._expected(waiting)
        nodes = [room.as_node() for room in self._rooms]
        return Snapshot(
            NOW_S,
            tuple(nodes),
            self._partitions,
            tuple(waiting),
            tuple(running),
            self._reservations(),
            self._abilities,
            self._company([*running, *waiting]),
        )

    def _drawn_abilities(self) -> Abilities:
        limited = self._is(self._theme.limits)
        found = Abilities(
            share_to_whole=self._is(0.6),
            whole_to_share=self._is(0.6),
            gpu_to_cpu=self._is(0.7),
            cpu_to_gpu=self._rarely(True, False),
            claims_whole_nodes=self._is(0.3),
        )
        if not limited:
            return replace(found, preempts=self._rarely("", "Slurm itself preempts", part=0.03))
        caps = (
            Cap("the QOS batch", (("ngpus", 6),), qos="batch", each=self._one(["", "user"])),
            Cap("the account lab", (("jobs", 4),), accounts=frozenset({"lab"})),
            Cap("the QOS batch", (("wall_s", 7200),), qos="batch"),
        )
        return replace(
            found,
            limited_qos=frozenset(self._one([(), ("batch",), ("*",)])),
            least_qos=frozenset(self._one([(), ("batch",)])),
            most=self._one([(), (("batch", (("ngpus", 4),)),)]),
            pools=self._one([(), (("lab", "labs"), ("other", "labs"))]),
            caps=self._one([(), caps[:1], caps[1:2], caps[2:]]),
            waived=self._one([(), (Cap("the QOS batch", (("ncpus", 16),), qos="batch"),)]),
        )

    def _nodes(self) -> list[Node]:
        if self._theme.pairs:
            cpus = self._one([4, 8])
            return [
                Node(f"n{at}", cpus, cpus, 64_000, 64_000) for at in range(self._one([2, 3, 5]))
            ]
        count = self._one([12, 16, 24]) if self._theme.wide else self._one([1, 2, 2, 3, 4, 6])
        alike = self._node("n0") if self._is(0.7) else None
        return [
            replace(alike, name=f"n{at}", up=self._rarely(True, False, part=0.04))
            if alike
            else self._node(f"n{at}")
            for at in range(count)
        ]

    def _node(self, name: str) -> Node:
        cpus = self._rarely(32, 8, 4, part=0.2)
        mem_mib = self._rarely(0, 64_000, 256_000, part=0.4)
        shared = self._is(max(self._theme.parts, 0.15))
        types = self._rarely(("",), ("a100",), ("a100", "v100"), (), part=0.3)
        gpu_mib = self._rarely(0, 16_000, 40_000, part=0.3)
        counts = shared and gpu_mib > 0 and self._is(0.5)
        pools = [
            Pool(of, total, total, 4 * shared, mem_mib=gpu_mib, counts_mem=counts, told_mib=gpu_mib)
            for of in types
            for total in (self._one([4, 8, 4, 2, 3, 1]),)
        ]
        features = frozenset({"ib"}) if self._is(0.5) else frozenset[str]()
        return Node(name, cpus, cpus, mem_mib, mem_mib, tuple(pools), features)

    def _drawn_partitions(self) -> tuple[Partition, ...]:
        names, half = self._names, max(1, len(self._names) // 2)
        sharers = 2 if self._theme.pairs or self._is(0.1) else 1
        first = Partition(
            "gpu",
            names,
            default=True,
            sharers=sharers,
            max_nodes=self._rarely(0, 1, 2),
            max_time_s=self._rarely(0, 7200),
            mode=self._rarely(Mode.ENFORCE, Mode.OBSERVE, Mode.OFF),
            qos=self._rarely("", "batch"),
            limits=self._rarely(Limits(), Limits(most=(("ngpus", 4),)), part=0.05),
            preempts=self._rarely(False, True, part=0.04),
        )
        layout = self._one(["one", "one", "overlapping", "apart", "same"])
        second = replace(first, name="short", default=False, qos="", max_nodes=0, limits=Limits())
        second = replace(
            second,
            mode=self._rarely(Mode.ENFORCE, Mode.OBSERVE, Mode.OFF, part=0.3),
            max_time_s=self._rarely(0, 3600),
            tier=self._rarely(0, 1),
        )
        match layout:
            case "one":
                return (first,)
            case "overlapping":
                return (first, replace(second, nodes=names[:half]))
            case "apart" if len(names) > 1:
                return (replace(first, nodes=names[half:]), replace(second, nodes=names[:half]))
            case _:
                return (first, second)

    def _reservations(self) -> tuple[Reservation, ...]:
        if not self._is(0.15):
            return ()
        start_s = NOW_S + self._one([-100.0, 600.0, 3000.0])
        nodes = self._names[-self._one([1, 1, 2]) :]
        return (Reservation("maintenance", nodes, start_s, start_s + self._one([1000.0, 9000.0])),)

    # --- jobs -------------------------------------------------------------------------------------

    def _job(self) -> Job:
        """A job that waits, as its owner wrote it."""
        self._number += 1
        theme = self._theme
        job_class = self._class()
        request, own = self._request(job_class)
        partitions = [partition.name for partition in self._partitions]
        places = tuple(partitions) if self._is(0.3) else (self._one(partitions),)
        spec = Spec(request, own, set=own) if request != Request() else None
        job = Job(
            str(self._number),
            user=self._one(["ada", "bob", "eve"]),
            account=self._one(["lab", "lab", "other"]),
            qos=self._one(["batch", "batch", "long"]),
            partitions=places,
            reason=self._one(["Priority", "Resources"]),
            priority=self._rng.randint(1, 4),
            submit_s=NOW_S - self._one([10.0, 600.0, 7000.0]),
            shape=own,
            shapes=(own,),
            footprint=self._footprint(),
            spec=spec,
            time_limit_s=self._one([600, 3600, 3600, 7200, 0, 86_400]),
            name=self._one(["train", "fit", "grid"]),
            features=frozenset({"ib"}) if self._is(0.06) else frozenset[str](),
        )
        if theme.told and self._is(0.3):
            job = replace(job, measured=self._speeds(request, own))
        if request.malleable or job_class is JobClass.BEST_EFFORT:
            job = replace(
                job,
                grace_s=self._one([60.0, 60.0, 300.0, 600.0, 20.0, 0.0]),
                restart_s=self._one([0.0, 30.0, 100.0]),
            )
        return job

    def _class(self) -> JobClass | None:
        at = self._rng.random()
        if at < self._theme.trial:
            return JobClass.TRIAL
        return JobClass.BEST_EFFORT if at < self._theme.trial + self._theme.best_effort else None

    def _request(self, job_class: JobClass | None) -> tuple[Request, Shape]:
        theme = self._theme
        colocate = True if self._is(theme.colocates) else None
        resizes = self._is(theme.resizes)
        malleable = self._malleable() if resizes else None
        if theme.pairs:
            return (Request(malleable=malleable, job_class=job_class, colocate=colocate), CPUS)
        if not (resizes or self._is(theme.molds)):
            nodes = self._one([1, 2, 3]) if self._is(theme.several) else 1
            own = Shape(nodes, self._one([1, 1, 2, 3, 4]), gpu_type=self._rarely("", "a100"))
            own = Shape(1, 1, self._one([2, 4])) if self._is(theme.parts / 2) else own
            return (Request(job_class=job_class, colocate=colocate, malleable=None), own)
        kinds = self._one([(Kind.CPU, Kind.GPU), tuple(Kind), (Kind.BOTH, Kind.GPU)])
        kinds = kinds if self._is(theme.kinds) else ()
        request = Request(
            gpus=self._amounts(),
            nodes=self._one([(1, 2), (2,), (1, 2, 4)]) if self._is(theme.several) else (),
            kinds=kinds,
            cores=self._one([0, 4, ALL_CORES]) if kinds else 0,
            gpu_types=self._rarely((), ("a100", "v100"), part=0.05),
            gpu_mem_mib=self._rarely(0, 6_000, part=0.2),
            malleable=malleable,
            job_class=job_class,
            colocate=colocate,
        )
        own = self._one(request_shapes(request, Shape(1, 1)))
        if self._is(theme.told):
            request = replace(request, throughput=self._speeds(request, own))
            request = replace(request, steps=self._one([0, 1000, 100_000]))
        return (request, own)

    def _malleable(self) -> Malleable:
        return Malleable(
            max_resizes=self._rarely(None, 0, 1), min_run_s=self._rarely(0, 600), grace_s=60
        )

    def _amounts(self) -> tuple[Fraction, ...]:
        most = self._one([2, 4, 4, 6, 8])
        least = self._one([1, 1, 2])
        whole = tuple(Fraction(n) for n in range(least, most + 1))
        powers = tuple(Fraction(n) for n in (1, 2, 4, 8) if least <= n <= most)
        found = self._one([whole, whole, powers])
        parts = (Fraction(1, 4), Fraction(1, 2)) if self._is(self._theme.parts) else ()
        return (*parts, *(found or whole))

    def _speeds(self, request: Request, own: Shape) -> tuple[tuple[Shape, float], ...]:
        """How fast a job is by shape: rising less and less, or up and down."""
        exponent = self._one([1.0, 0.8, 0.5, 0.0, 0.9, -0.3])
        some = request_shapes(request, own)
        known = self._rng.sample(some, min(len(some), self._one([1, 2, 3, 9])))
        table = []
        for shape in known:
            amount = float(shape.amount) or 0.3 * shape.nodes
            wavers = self._rarely(1.0, 0.5, 1.4)
            table.append((shape, round(10 * amount**exponent * wavers, 3)))
        return tuple(sorted(table))

    def _footprint(self) -> Footprint:
        if self._theme.pairs:
            return Footprint(cpus_per_task=self._rooms[0].node.cpus, mem_per_node_mib=1_000)
        return self._rarely(
            Footprint(),
            Footprint(cpus_per_gpu=2, mem_per_gpu_mib=4_000),
            Footprint(tasks_per_node=2),
            Footprint(mem_per_node_mib=6_000),
            Footprint(tasks_per_gpu=1, cpus_per_task=2),
            part=0.3,
        )

    # --- jobs that run ----------------------------------------------------------------------------

    def _running(self) -> list[Job]:
        wanted = self._rng.uniform(*self._theme.load)
        found: list[Job] = []
        for _ in range(60):
            if self._used() >= wanted:
                break
            job = self._job()
            if job.tasks_waiting == 1:
                found += self._started(job)
        return found

    def _used(self) -> float:
        if self._theme.pairs:
            busy = [1 - room.cpus / room.node.cpus for room in self._rooms]
        else:
            busy = [
                1 - gpu.shards / (room.node.pools[gpu.pool].shards_per_gpu or 1)
                for room in self._rooms
                for gpu in room.gpus
            ] or [1 - room.cpus / room.node.cpus for room in self._rooms]
        return sum(busy) / len(busy)

    def _started(self, job: Job) -> list[Job]:
        shapes = request_shapes(job.spec.request, job.shape) if job.spec else (job.shape,)
        shape = self._one(shapes)
        reach = {name for p in self._partitions if p.name in job.partitions for name in p.nodes}
        rooms = [room for room in self._rooms if room.node.up and room.node.name in reach]
        beside = self._theme.pairs and job.colocates and self._is(0.8)
        nodes = self._placed(job, shape, rooms, beside=beside)
        if not nodes:
            return []
        spec = job.spec and replace(job.spec, set=shape)
        request = job.spec.request if job.spec else Request()
        marked = self._theme.pairs and job.colocates
        if marked and spec:
            spec = replace(spec, mark=self._one([ANYWHERE, nodes[0]]))
        since_s = self._one([30.0, 600.0, 2000.0, 3000.0])
        limit_s = job.time_limit_s
        restarts = self._rarely(0, 1, 2)
        job = replace(
            job,
            state=self._rarely(JobState.RUNNING, JobState.ENDING, part=0.05),
            reason="",
            shape=shape,
            shapes=shapes if request.malleable else (shape,),
            spec=spec,
            nodes=nodes,
            start_s=NOW_S - min(since_s, max(10.0, limit_s - 60.0) if limit_s else since_s),
            shares=marked,
            restarts=restarts,
            changes=self._rarely(0, 1),
            progress=self._one([0.0, 0.1, 0.5, 0.9]),
            preempted=self._rarely(0, 1),
            preemptible=request.job_class is JobClass.BEST_EFFORT and self._rarely(True, False),
            frozen=self._rarely("", "heterogeneous", part=0.04),
            requeues=self._rarely(True, False, part=0.04),
            volume_s=0.0,
        )
        return [job]

    def _placed(
        self, job: Job, shape: Shape, rooms: list[Room], *, beside: bool
    ) -> tuple[str, ...]:
        mixed = self._rng.sample(rooms, len(rooms))
        lonely = [room for room in mixed if not room.cpus and room.mem_mib > 62_500]
        if beside and lonely:  # its one job shares its cores
            lonely[0].mem_mib -= 1_000
            return (lonely[0].node.name,)
        mem_mib = job.spec.request.gpu_mem_mib if job.spec else 0
        found = placed(mixed, shape.nodes, job.demand(shape), mem_mib)
        return tuple(sorted(room.node.name for room, _ in found))

    # --- jobs that wait ---------------------------------------------------------------------------

    def _waiting(self) -> list[Job]:
        many = self._one(self._theme.many)
        found = [self._waits(self._job()) for _ in range(many)]
        return sorted(found, key=lambda job: (-self._tier(job), -job.priority))

    def _tier(self, job: Job) -> int:
        return max(p.tier for p in self._partitions if p.name in job.partitions)

    def _waits(self, job: Job) -> Job:
        spec, own = job.spec, job.shape
        if spec is not None and spec.request.is_moldable:
            possible = request_shapes(spec.request, own)
            carried = self._one(possible) if self._is(0.3) else own
            renewed = self._is(0.05)
            if renewed:  # its owner allows what it carries no longer
                carried = self._one([Shape(1, 5), Shape(1, 1, 4), Shape(2, 1)])
            shapes = allowed_shapes(spec.request, own, carried, self._abilities)
            spec = replace(spec, set=carried, renewed=renewed, pinned=self._is(0.03))
            job = replace(job, shape=carried, shapes=shapes, spec=spec)
        if self._is(self._theme.array) and not self._theme.pairs:
            job = replace(job, tasks_waiting=self._one([2, 3, 5]), array_tasks="0-9")
        if self._theme.pairs and spec is not None and job.colocates and self._is(0.3):
            mark = self._one([ANYWHERE, UNMARKED, self._names[0]])
            job = replace(job, spec=replace(spec, mark=mark), shares=mark != UNMARKED)
        return self._odd(job)

    def _odd(self, job: Job) -> Job:
        """What may be odd about a job that waits."""
        if self._is(0.05 + self._theme.limits):
            return self._limited(job)
        if not self._is(0.2):
            return job
        quirks: dict[str, Any] = {
            "reason": self._one(OTHERS),
            "nodes_required": (self._one(self._names),),
            "nodes_excluded": frozenset({self._one(self._names)}),
            "nodes_kept": frozenset({self._one(self._names)}),
            "frozen": "heterogeneous",
            "reservation": "maintenance",
            "ordinary": "it has no time limit",
        }
        several = [shape for shape in job.shapes if shape != job.shape]
        if several:
            quirks["refused"] = frozenset(self._rng.sample(several, min(2, len(several))))
        which = self._one([*quirks, *["refused"] * 3 * bool(several)])
        job = replace(job, **{which: quirks[which]})
        left = job.reason in ("JobHeldUser", "Dependency", "BeginTime")
        return replace(job, eligible=not left) if which == "reason" else job

    def _limited(self, job: Job) -> Job:
        reason = self._one(SHARED)
        if job.spec is not None and job.shapes and self._is(0.5):
            larger = max(job.shapes, key=lambda shape: shape.amount)
            job = replace(job, shape=larger, spec=replace(job.spec, set=larger))
        return replace(job, reason=reason)

    def _expected(self, waiting: list[Job]) -> list[Job]:
        """Where and when the batch system expects the first of them to start."""
        if not self._is(0.5):
            return waiting
        return [
            self._awaited(job) if at < 4 and self._is(0.5) else job
            for at, job in enumerate(waiting)
        ]

    def _awaited(self, job: Job) -> Job:
        many = min(len(self._names), max(1, job.shape.nodes))
        nodes = tuple(sorted(self._rng.sample(self._names, many)))
        at_s = NOW_S + self._one([0.0, 300.0, 1800.0, 5000.0])
        return replace(job, expected_s=at_s, expected_nodes=nodes)

    # --- what is under way ------------------------------------------------------------------------

    def _handed_over(self, waiting: list[Job], running: list[Job]) -> tuple[list[Job], list[Job]]:
        """Some that save to become another size, or to make room; some that have done so."""
        if not self._is(self._theme.handing):
            return (waiting, running)
        trials = [job.id for job in waiting if job.is_trial] or [job.id for job in waiting[:1]]
        after = [self._leaves(job, trials) if self._is(0.3) else job for job in running]
        if waiting and self._is(0.5):
            at = self._rng.randrange(len(waiting))
            others = [id_ for id_ in trials if id_ != waiting[at].id]
            spec = waiting[at].spec
            if others and spec is not None and spec.request.is_elastic:
                waiting = [*waiting]
                frozen = self._one(["", UNSEEN])
                gone = replace(waiting.pop(at), room_for=self._one(others), preempted=1)
                waiting.insert(0, replace(gone, frozen=frozen, restarts=1))
        return (waiting, after)

    def _leaves(self, job: Job, trials: list[str]) -> Job:
        request = job.spec.request if job.spec else Request()
        if request.job_class is JobClass.BEST_EFFORT and trials and self._is(0.6):
            return replace(job, room_for=self._one(trials), preempted=job.preempted + 1)
        others = [s for s in job.shapes if s != job.shape and s.nodes <= len(job.nodes)]
        if request.malleable and others:
            shape = self._one(others)
            return replace(job, next_shape=shape, next_nodes=job.nodes[: shape.nodes])
        return job

    def _company(self, jobs: list[Job]) -> Company:
        """How fast some that share are alone, and beside each other."""
        some = [job.id for job in jobs if job.colocates]
        if not some or self._is(0.1):
            return Company()
        known = [Together(((one, 1.0),)) for one in some if self._is(0.9)]
        for at, one in enumerate(some):
            for other in some[at + 1 :]:
                if self._is(0.6):
                    slow = self._is(self._theme.slow)
                    fast = self._one([0.45, 0.4] if slow else [0.95, 0.9, 0.7])
                    speeds = (fast, fast - self._one([0.0, 0.1, 0.3]))
                    known.append(Together(((one, speeds[0]), (other, speeds[1]))))
        trios = [(a, b, c) for a, b, c in zip(some, some[1:], some[2:], strict=False)]
        for trio in trios:
            if self._is(0.5):
                known.append(Together(tuple((one, self._one([0.9, 0.6, 0.3])) for one in trio)))
        return Company(tuple(known))
