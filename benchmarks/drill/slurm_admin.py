"""What time or an administrator of a Slurm would do for the jobs of a run.

A slurmctld that is killed has forgotten its last seconds. It may start a job a second time, which
the node refuses: it then requeues and holds the job and drains the node. A job that was completing
may keep its GPUs for ever ("job_res_rm_job: plugin still initializing") until a reconfiguration.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.drill.field import Admin

if TYPE_CHECKING:
    from benchmarks.drill.slurm_field import SlurmField

HELD = ("launch_failed_requeued_held", "JobHoldMaxRequeue")
KEPT = ("Resources", "ReqNodeNotAvail")
"""Why a job waits though nothing runs: a slurmctld that was killed takes what it had for used, or
its node for one that is away. It is reconfigured then."""
IDLE_S = 15.0
"""How long a job may wait for its node with none of ours on it."""
LOOK_S = 1.0
FAR_S = 10.0
"""No begin time of a hand-over's is so far ahead."""
REQUEUE_S = 121.0
"""So long after a requeue Slurm itself lets a job begin."""
ROUNDED_S = 2.0


@dataclass(slots=True)
class SlurmAdmin(Admin):
    """``hurries``: no job waits the two minutes that Slurm makes it wait after a requeue."""

    area: SlurmField
    hurries: bool = False
    did: int = 0
    late: str = ""
    _hurried: set[tuple[str, str]] = field(default_factory=set)
    _looked_s: float = 0.0
    _idle_s: float = 0.0  # since when

    def tend(self) -> Sequence[Mapping[str, str]]:
        """Do what is to be done now; return what is shown of the job and its guest."""
        jobs = [job for job in (self.area.job, self.area.guest) if job]
        every = [self.area.show(job) for job in jobs]
        for job, shown in zip(jobs, every, strict=True):
            if shown.get("JobState") == "PENDING":
                self._tend(job, shown)
        self._look([shown for shown in every if shown])
        return every

    def _tend(self, job: str, shown: Mapping[str, str]) -> None:
        reason, start = shown.get("Reason", ""), (job, shown.get("Restarts", ""))
        if reason in HELD:
            self.area.scontrol("release", job)
            self.did += 1
        far = reason == "BeginTime" and instant(shown["EligibleTime"]) > time.time() + FAR_S
        if far and job == self.area.job and not self._is_slurms(shown, time.time()):
            self.late = f"it begins at {shown['EligibleTime']}, submitted {shown['SubmitTime']}"
        waits = self.hurries and far and start not in self._hurried
        quiet = waits and not self.area.is_under_way()  # a checkpoint may have come after all
        if quiet and not self.area.scontrol("update", f"jobid={job}", "StartTime=now+3"):
            self._hurried.add(start)

    def _is_slurms(self, shown: Mapping[str, str], now_s: float) -> bool:
        """Whether a time to begin is the one of Slurm's own requeue, or pliantd's clock is so far.

        Of a run whose node goes down as it ends Slurm notes no new SubmitTime.
        """
        begins_s, submit_s = instant(shown["EligibleTime"]), instant(shown["SubmitTime"])
        most_s = max(REQUEUE_S, FAR_S + abs(self.area.skew_s)) + ROUNDED_S
        is_old = submit_s < self.area.worked_s() - ROUNDED_S
        is_after_it = abs(begins_s - submit_s - REQUEUE_S) <= ROUNDED_S
        is_ours = begins_s <= now_s + FAR_S + abs(self.area.skew_s)
        return begins_s <= now_s + most_s and (is_old or is_after_it or is_ours)

    def _look(self, every: Sequence[Mapping[str, str]]) -> None:
        """Look after the nodes, now and then."""
        now_s = time.monotonic()
        states = {shown.get("JobState") for shown in every}
        if "PENDING" not in states or now_s - self._looked_s < LOOK_S:
            return
        self._looked_s = now_s
        if not self.area.is_disturbed:
            self.did += self.area.resume_nodes()
        waits = any(shown.get("Reason", "").startswith(KEPT) for shown in every)
        if not waits or states & {"RUNNING", "COMPLETING"} or self.area.fences():
            self._idle_s = now_s
        elif now_s - self._idle_s > IDLE_S and self._idle_s:
            self.area.scontrol("reconfigure")
            self._idle_s, self.did = now_s, self.did + 1
        self._idle_s = self._idle_s or now_s


def instant(text: str) -> float:
    """Read an instant of Slurm's, which is in local time."""
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))
