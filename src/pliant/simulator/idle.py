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

    def __call__(self, now_s: float, cluster: Cluster) -> None:
        """Note what is free, and could be used, from now on."""
        self.avoidable_gpu_s += self._usable * (now_s - self._since_s)
        self._since_s = now_s
        self._usable = self.usable(now_s, cluster) if cluster.queue else 0.0

    def usable(self, now_s: float, cluster: Cluster) -> float:
        """Return how many free GPUs the waiting jobs could have now."""
        free = Free(cluster.snapshot(now_s, progress=False))
        left = first = free.available_on(free.kinds())
        passed: set[Alike] = set()
        if left:
            for job, profile in cluster.queue.turns(passed):
                for _ in range(job.tasks_waiting):
                    option = self._give(free, profile, left)
                    if option is None:
                        passed.add((profile, job.time_limit_s))
                        break
                    shape, places = option[0][0], option[1]
                    free.take_places(job, option[0], places)
                    left -= shape.amount
                if not left:
                    break
        cluster.ground.restored()
        return float(first - left)

    def _give(
        self, free: Free, profile: Profile, left: Fraction
    ) -> tuple[Option, tuple[int, ...]] | None:
        """Return the largest option that fits, and where."""
        options = self._largest.get(profile)
        if options is None:
            with_gpus = [option for option in profile.options if option[0].amount]
            options = sorted(with_gpus, key=lambda option: option[0], reverse=True)
            options.sort(key=lambda option: option[0].amount, reverse=True)
            self._largest[profile] = options
        for option in options:
            if option[0].amount <= left:
                places = free.places(profile, option, _NO_CLAIM)
                if places is not None:
                    return option, places
        return None
