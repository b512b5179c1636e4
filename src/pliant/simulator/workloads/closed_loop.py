"""Arrivals that keep a cluster at a load under FIFO: a small FIFO of its own.

It is no part of the simulator and knows of nothing but jobs of one node each, in a queue from which
they start strictly in order, each on the first node with room. Half a million jobs take seconds:
when the head of the queue fitted nowhere, it can only fit on the node where a job has ended since,
so that all nodes are looked at only once for each job.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple


class Needs(NamedTuple):
    """What each job needs, by its number."""

    run_s: array[float]
    cpus: Sequence[int]
    mem_gib: Sequence[int]
    gpus: Sequence[int]


class Cluster(NamedTuple):
    """So many nodes, all alike."""

    nodes: int
    cpus: int
    mem_gib: int
    gpus: int


class Loop(NamedTuple):
    """When each job arrives, and when FIFO starts it, and on which node."""

    submit_s: array[float]
    start_s: array[float]
    node: array[int]


def closed_loop(needs: Needs, cluster: Cluster, load: float) -> Loop:
    """Let a job arrive whenever what runs and waits asks for less than ``load`` times the cluster.

    Of CPUs, of memory and of GPUs. No job may need more than a node has.
    """
    loop = Loop(array("d"), array("d"), array("I"))
    asked, room = _Asked(needs, cluster, load), _Room(needs, cluster)
    ends: list[tuple[float, int, int]] = []
    jobs, came, head, now_s = len(needs.run_s), 0, 0, 0.0
    places: Sequence[int] = room.all
    while head < jobs:
        while came < jobs and asked.is_low:
            asked.add(came)
            loop.submit_s.append(now_s)
            came += 1
        while head < came and (node := room.first(head, places)) is not None:
            room.take(head, node)
            heappush(ends, (now_s + needs.run_s[head], head, node))
            loop.start_s.append(now_s)
            loop.node.append(node)
            head, places = head + 1, room.all
        if head < jobs:
            now_s, job, node = heappop(ends)
            room.give_back(job, node)
            asked.remove(job)
            places = (node,) if head < came else room.all
    return loop


class _Asked:
    """What runs and waits asks for, of each resource, and how much is the load."""

    def __init__(self, needs: Needs, cluster: Cluster, load: float) -> None:
        self._needs = needs
        self._cpus = self._mem = self._gpus = 0
        nodes, *each = cluster
        self._most = [load * nodes * size for size in each]

    @property
    def is_low(self) -> bool:
        cpus, mem, gpus = self._most
        return self._cpus < cpus and self._mem < mem and self._gpus < gpus

    def add(self, job: int) -> None:
        self._cpus += self._needs.cpus[job]
        self._mem += self._needs.mem_gib[job]
        self._gpus += self._needs.gpus[job]

    def remove(self, job: int) -> None:
        self._cpus -= self._needs.cpus[job]
        self._mem -= self._needs.mem_gib[job]
        self._gpus -= self._needs.gpus[job]


class _Room:
    """What is free on each node."""

    def __init__(self, needs: Needs, cluster: Cluster) -> None:
        self._needs, self.all = needs, range(cluster.nodes)
        self._cpus = [cluster.cpus] * cluster.nodes
        self._mem = [cluster.mem_gib] * cluster.nodes
        self._gpus = [cluster.gpus] * cluster.nodes

    def first(self, job: int, places: Sequence[int]) -> int | None:
        """The first of some nodes that has room."""
        needs, free_cpus, free_mem, free_gpus = self._needs, self._cpus, self._mem, self._gpus
        cpus, mem, gpus = needs.cpus[job], needs.mem_gib[job], needs.gpus[job]
        for node in places:
            if free_gpus[node] >= gpus and free_cpus[node] >= cpus and free_mem[node] >= mem:
                return node
        return None

    def take(self, job: int, node: int) -> None:
        self._cpus[node] -= self._needs.cpus[job]
        self._mem[node] -= self._needs.mem_gib[job]
        self._gpus[node] -= self._needs.gpus[job]

    def give_back(self, job: int, node: int) -> None:
        self._cpus[node] += self._needs.cpus[job]
        self._mem[node] += self._needs.mem_gib[job]
        self._gpus[node] += self._needs.gpus[job]
