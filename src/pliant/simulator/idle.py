"""GPU time that stood idle although a job waited that would have fitted there.

*Avoidably idle* at an instant, once all that the policy decided then is carried out: the jobs that
wait are gone through in the order of the queue, and each (of an array, each task) is given the
largest of its shapes that has GPUs and fits now on what is left free, with its CPUs and memory. The
GPUs given so, parts counted as parts, times the seconds until something happens again, are
avoidably idle GPU seconds. What stays free is idle, and could not be helped at that instant.

What is kept for a running job's next shape is not free. No claim is honoured: what a policy keeps
for the first waiting job counts as avoidable where a later job would have fitted, whether or not
it would have delayed the first one. (``pliant demo`` does honour the first job's claim; traces
often have no time limits to tell from when it could begin.) So a policy that starts whatever fits
has none, whatever it is worth otherwise.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pliant.placement import Free, Option, Profile
from pliant.placement.queue import Alike
from pliant.simulator.cluster import Cluster

_NO_CLAIM = -float("inf")


class Idle:
    """Adds up avoidably idle GPU seconds, as a replay shows its cluster."""

    def __init__(self) -> None:
        self.avoidable_gpu_s = 0.0
        self._since_s = 0.0
        self._usable = 0.0
        self._largest: dict[Profile, list[Option]] = {}
        self._least: dict[Profile, _Room] = {}

    def __call__(self, now_s: float, cluster: Cluster) -> None:
        """Note what is free, and could be used, from now on."""
        self.avoidable_gpu_s += self._usable * (now_s - self._since_s)
        self._since_s = now_s
        self._usable = self.usable(now_s, cluster) if cluster.queue else 0.0

    def usable(self, now_s: float, cluster: Cluster) -> float:
        """Return how many free GPUs the waiting jobs could have now."""
        rooms = _rooms(cluster)
        if not rooms:
            return 0.0
        free: Free | None = None
        left = first = _free_gpus(cluster)
        passed: set[Alike] = set()
        for job, profile in cluster.queue.turns(passed):
            least = self._least.get(profile) or self._learn(profile)
            for _ in range(job.tasks_waiting):
                if not any(room.has(least) for room in rooms):
                    break
                free = free or Free(cluster.snapshot(now_s, progress=False))
                found = self._fitting(free, profile, left)
                if found is None:
                    passed.add((profile, job.time_limit_s))
                    rooms = _rooms(cluster)  # what was given since is no room any more
                    break
                free.take_places(job, *found)
                left -= found[0][0].amount
            if not (left and rooms):
                break
        if free is not None:
            cluster.ground.restored()
        return float(first - left)

    def _fitting(
        self, free: Free, profile: Profile, left: Fraction
    ) -> tuple[Option, tuple[int, ...]] | None:
        """Return the largest option with GPUs that fits, and where."""
        for option in self._largest[profile]:
            if option[0].amount <= left:
                places = free.places(profile, option, _NO_CLAIM)
                if places is not None:
                    return option, places
        return None

    def _learn(self, profile: Profile) -> _Room:
        """Note what jobs of a profile may have: the largest first, and the least of each."""
        options = [option for option in profile.options if option[0].amount]
        options.sort(key=lambda option: (option[0].amount, option[0]), reverse=True)
        self._largest[profile] = options
        needs = [need for _, need in options]
        least = _Room(
            min((need.gpus for need in needs), default=_MANY),
            min((need.cpus for need in needs), default=_MANY),
            min((need.mem_mib for need in needs), default=_MANY),
        )
        self._least[profile] = least
        return least


_MANY = 1 << 62


class _Room(NamedTuple):
    """GPUs, CPUs and memory of one node: what is free there, or the least that a job needs."""

    gpus: int
    cpus: int
    mem_mib: int

    def has(self, least: _Room) -> bool:
        """Whether it may be enough: where it is not, a search can be saved."""
        return least.gpus <= self.gpus and least.cpus <= self.cpus and least.mem_mib <= self.mem_mib


def _rooms(cluster: Cluster) -> list[_Room]:
    """Return the rooms on nodes with a free GPU, or a part of one, that no other room has."""
    rooms: set[_Room] = set()
    for cell in cluster.ground.cells.filled():
        cpus, mem_mib, pools, _ = cell.state
        gpus = sum([some if isinstance(some, int) else len(some) - some.count(0) for some in pools])
        if cpus and gpus:
            rooms.add(_Room(gpus, cpus, mem_mib if cell.kind.mem_mib else _MANY))
    front: list[_Room] = []
    for room in sorted(rooms, reverse=True):
        if not any(other.has(room) for other in front):
            front.append(room)
    return front


def _free_gpus(cluster: Cluster) -> Fraction:
    """Return all free GPUs of nodes with a free CPU, parts counted as parts."""
    cells = cluster.ground.cells.filled()
    return sum((cell.available * len(cell.nodes) for cell in cells), Fraction(0))
