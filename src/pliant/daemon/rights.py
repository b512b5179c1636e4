"""Who may see and do what, at the second door."""

from __future__ import annotations

import pwd
from dataclasses import dataclass

from pliant.errors import Refused
from pliant.model import Job

PRIVATE = ("jobs", "nodes", "partitions")
"""What Pliant would show of what PrivateData may keep from users."""


@dataclass(frozen=True, slots=True)
class Site:
    """What the batch system's configuration says about rights and pace."""

    slurm_uid: int = 0  # of SlurmUser
    private: frozenset[str] = frozenset()  # what only operators see (slurm.conf(5), PrivateData)
    backfill_s: float = 30.0  # bf_interval
    cluster: str = ""

    @property
    def admin_uids(self) -> frozenset[int]:
        """Who rules the batch system: root and SlurmUser."""
        return frozenset({0, self.slurm_uid})


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: proven by munge."""

    uid: int
    name: str
    admin: bool
    sees_all: bool  # all jobs
    sees_nodes: bool = True
    sees_partitions: bool = True

    def may_see(self, job: Job) -> bool:
        """Whether the asker may see a job."""
        return self.sees_all or self.owns(job)

    def owns(self, job: Job) -> bool:
        """Whether it is the asker's own job.

        A user without a name goes by the number: whose name is another's number owns nothing here.
        """
        named = not self.name.isdecimal() or self.name == str(self.uid)
        return named and job.user == self.name

    def must_rule(self, job: Job) -> None:
        """Raise Refused where the asker may not change a job."""
        if not (self.admin or self.owns(job)):
            raise Refused(f"job {job.id} is not yours: its owner or an administrator may do this")

    def must_be_admin(self) -> None:
        """Raise Refused for a mere user."""
        if not self.admin:
            raise Refused("only an administrator may do this: root, SlurmUser, or one of admins")


def asker(uid: int, site: Site, admins: tuple[str, ...]) -> Asker:
    """Return what ``uid`` may do; ``admins`` are names of users."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    admin = uid in site.admin_uids or name in admins
    private = frozenset() if admin else site.private
    jobs, nodes, partitions = (kind not in private for kind in PRIVATE)
    return Asker(uid, name, admin, jobs, nodes, partitions)
