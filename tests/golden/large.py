"""Clusters of a thousand nodes, poll after poll: what a busy cluster is at the next look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from golden.rooms import Room, Taken, placed
from pliant.grammar import parse, parse_shape
from pliant.grammar import shapes as request_shapes
from pliant.model import Footprint, Job, JobState, Node, Partition, Pool, Snapshot, Spec

NODES, GPUS = 1_000, 8
POLLS = 20
POLL_S = 5.0
NOW_S = 1_000_000.0
BUSY = 0.99
WAITING = 400
ENDS = 60  # in each poll
REQUESTS = (
    ("gpus=1-4", "4"),
    ("gpus=1-8;malleable", "8"),
    ("gpus=1:2:4;malleable", "2"),
    ("gpus=8:16,nodes=1-2", "2x8"),
    ("gpus=1/4-2", "1"),
    ("job-class=best-effort", "8"),
    ("job-class=trial", "8"),
    ("", "2"),
    ("", "1"),
)


def polls(seed: int = 1) -> Iterator[Snapshot]:
    """Yield what one look after another sees; who starts is drawn, as far as it fits."""
    return _Large(Random(seed)).polls()


class _Large:
    def __init__(self, rng: Random) -> None:
        self._rng = rng
        pool = Pool("a100", GPUS, GPUS, 4, mem_mib=80_000)
        nodes = [Node(f"n{at:04}", 64, 64, 512_000, 512_000, (pool,)) for at in range(NODES)]
        self._rooms = [Room(node) for node in nodes]
        self._number = 0
        self._waiting: list[Job] = []
        self._running: list[Job] = []
        self._has: dict[str, list[tuple[Room, Taken]]] = {}

    def polls(self) -> Iterator[Snapshot]:
        now_s = NOW_S
        while self._busy() < BUSY:
            self._start(self._arrived(now_s), now_s - self._rng.choice([60.0, 3000.0]))
        for _ in range(POLLS):
            self._some_end()
            while len(self._waiting) < WAITING:
                self._waiting.append(self._arrived(now_s))
            yield self._seen(now_s)
            for job in self._rng.sample(self._waiting, len(self._waiting)):
                if self._busy() < BUSY and self._start(job, now_s):
                    self._waiting.remove(job)
            now_s += POLL_S

    def _busy(self) -> float:
        free = sum(gpu.shards for room in self._rooms for gpu in room.gpus)
        return 1 - free / (4 * NODES * GPUS)

    def _arrived(self, now_s: float) -> Job:
        self._number += 1
        allows, text = self._rng.choice(REQUESTS)
        own, request = parse_shape(text), parse(allows) if allows else None
        elastic = request is not None and request.is_elastic
        return Job(
            str(self._number),
            user=self._rng.choice("abcdef"),
            partitions=("gpu",),
            reason="Priority",
            submit_s=now_s,
            shape=own,
            shapes=request_shapes(request, own) if request is not None else (own,),
            footprint=Footprint(cpus_per_gpu=4, mem_per_gpu_mib=8_000),
            spec=Spec(request, own, set=own) if request is not None else None,
            time_limit_s=self._rng.choice([600, 3600, 7200, 86_400]),
            grace_s=self._rng.choice([60.0, 300.0]) if elastic else 0.0,
            restart_s=30.0 if elastic else 0.0,
        )

    def _start(self, job: Job, at_s: float) -> bool:
        shape = self._rng.choice(job.shapes)
        some = self._rng.sample(self._rooms, 40)
        found = placed(some, shape.nodes, job.demand(shape))
        if not found:
            return False
        self._has[job.id] = found
        request = job.spec.request if job.spec is not None else None
        malleable = request is not None and request.malleable is not None
        best_effort = request is not None and str(request.job_class) == "best-effort"
        self._running.append(
            replace(
                job,
                state=JobState.RUNNING,
                reason="",
                shape=shape,
                shapes=job.shapes if malleable else (shape,),
                spec=job.spec and replace(job.spec, set=shape),
                nodes=tuple(sorted(room.node.name for room, _ in found)),
                start_s=at_s,
                preemptible=best_effort,
            )
        )
        return True

    def _some_end(self) -> None:
        for job in self._rng.sample(self._running, min(ENDS, len(self._running))):
            self._running.remove(job)
            for room, taken in self._has.pop(job.id):
                room.give(taken)

    def _seen(self, now_s: float) -> Snapshot:
        nodes = tuple(room.as_node() for room in self._rooms)
        partition = Partition("gpu", tuple(node.name for node in nodes), default=True)
        return Snapshot(now_s, nodes, (partition,), tuple(self._waiting), tuple(self._running))
