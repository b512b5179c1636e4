"""What a site allows to be a trial job, by user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class TrialCap:
    """What trial jobs of one user may be; None: any.

    ``max_jobs``: how many may wait and run at once, tasks of arrays counted one by one;
    ``max_gpus``: of one job, in the largest of its shapes; ``max_minutes``: its time limit.
    """

    max_jobs: int | None = None
    max_gpus: int | None = None
    max_minutes: int | None = None

    def beyond(self, gpus: Fraction | None, limit_s: int | None) -> str:
        """Return why a job of this size is no trial job, and what would be right; "" where it is.

        ``gpus`` and ``limit_s`` None: not known; ``limit_s`` 0: no time limit.
        """
        if gpus is not None and self.max_gpus is not None and gpus > self.max_gpus:
            return f"it may take {gpus} GPUs, and a trial job here {self.max_gpus} at most"
        if limit_s is not None and self.max_minutes is not None:
            most = (
                f"a trial job here has {self.max_minutes} minutes at most (-t {self.max_minutes})"
            )
            if not limit_s:
                return f"it has no time limit, and {most}"
            if limit_s > 60 * self.max_minutes:
                return f"its time limit is {-(-limit_s // 60)} minutes, and {most}"
        return ""

    def too_many(self, others: int, tasks: int) -> str:
        """Return why one more is too many, and what would be right; "" where it is not.

        ``others``: the user's trial jobs that come before it; ``tasks``: how many it is itself.
        """
        most = self.max_jobs
        if most is None or others + tasks <= most:
            return ""
        if most == 0:
            return "no job of this user may be a trial job here"
        if tasks > most:
            return f"it has {tasks} tasks, and {most} trial jobs of a user at most wait or run here"
        return (
            f"{others} trial jobs of this user wait or run before it, and {most} at most may:"
            " it is one as soon as enough of them have ended"
        )


@dataclass(frozen=True, slots=True)
class TrialCaps:
    """What trial jobs may be: of all users, and of some by name."""

    default: TrialCap = TrialCap()
    users: Mapping[str, TrialCap] = field(default_factory=dict)

    def of(self, user: str) -> TrialCap:
        """Return what holds for a user."""
        return self.users.get(user, self.default)
