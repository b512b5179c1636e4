"""The faults of the drill: what is done to which part, and when.

A moment is a step of the hand-over, ``before:requeue`` or ``after:requeue``, at which pliantd halts
while the fault is injected, or ``asked``: while the program saves, or ``any time`` from then until
it should run again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.drill import acts
from benchmarks.drill.field import Field

STEPS = ("pin", "fence", "requeue", "reshape", "unfence", "release")
GUEST_STEPS = ("fence", "requeue", "pin-guest", "unfence", "release-guest")
ASKED, ANY_TIME = "asked", "any time"
UNHALTED_S = {ASKED: (0.2, 0.7), ANY_TIME: (0.0, 2.5)}
"""How long after the wish a fault comes that no step of pliantd is halted for: from, to."""
SAVED = ("before:pin", "before:fence", "before:requeue")
WAITS = ("after:requeue", "before:reshape", "after:reshape", "before:unfence")


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault; ``moments`` is drawn from.

    ``checkpoint``: how it fails (see faulty_count.py). ``ends``: how the job ends if all is well.
    ``guest``: it is preempted for a trial job, else resized. ``rival``: another job waits for its
    GPUs. ``around``: what holds from before pliantd starts until all is over. ``after``: what the
    user does when all is quiet. ``first``: the batch system or its user sends the job back, behind
    whoever may start at once. ``stands``: a field of the
    job, and what it must say once all is quiet. ``options``: more of its sbatch. ``guest_ends``:
    how the trial job ends.
    """

    name: str
    moments: Sequence[str]
    inject: Callable[[Field], None] = lambda _field: None
    checkpoint: str = ""
    grace_s: int = 20
    ends: str = "COMPLETED"
    guest: bool = False
    rival: bool = True
    skew_s: int = 0
    around: Callable[[Field], contextlib.AbstractContextManager[None]] = lambda _field: (
        contextlib.nullcontext()
    )
    after: Callable[[Field], None] = lambda _field: None
    first: bool = False
    stands: tuple[str, str] = ("", "")
    options: tuple[str, ...] = ()
    guest_ends: str = "COMPLETED"

    @property
    def hand_overs(self) -> int:
        """How many a run makes at most: one where the job ends, or keeps what its user said."""
        return 1 if self.stands[0] or self.ends != "COMPLETED" else 3


def around(*steps: str) -> tuple[str, ...]:
    """Return the moments before and after these steps."""
    return tuple(f"{when}:{step}" for step in steps for when in ("before", "after"))


_release = acts.by_owner("release", "{job}")
_kill_pliantd = acts.kill("pliantd")
_written_back = acts.says("update", "jobid={job}", "Priority=7")

BEGINS = "2031-02-03T04:05:06"
"""When an owner lets a job begin who does not mean the drill."""
AFTER = "afterany:{rival}"
PENDING = ("before:reshape", "after:reshape", "before:unfence")
"""While it waits between its two runs: an owner's update of these fields is refused before."""
REQUEUED = ("after:requeue", "before:unfence")
"""While the job ends or waits, behind its fence."""
FAILS_ONCE = "test -e $1/log || exit 0; ! mkdir $1/failed-$(grep -c saved $1/log) 2>/dev/null"
"""A prolog that fails once after each of a job's checkpoints."""
HOLDS = (ASKED, *SAVED, *WAITS)
ANY = (ASKED, *around(*STEPS))
"""Every moment of a resize."""

FAULTS: Sequence[Fault] = (
    Fault("nothing", (ASKED,)),
    Fault("nothing, preempted", (ASKED,), guest=True),
    Fault("pliantd killed while the program saves", (ASKED,), acts.kill("pliantd")),
    *(
        Fault(f"pliantd killed {when} {step}", (f"{when}:{step}",), acts.kill("pliantd"))
        for step in STEPS
        for when in ("before", "after")
    ),
    *(
        Fault(
            f"pliantd killed {when} {step}, preempted",
            (f"{when}:{step}",),
            acts.kill("pliantd"),
            guest=True,
        )
        for step in GUEST_STEPS
        for when in ("before", "after")
    ),
    Fault("pliantd stopped until the wrapper requeues", SAVED, acts.stop_pliantd, first=True),
    Fault("slurmctld killed", ANY, acts.kill("slurmctld")),
    Fault("slurmd killed", ANY, acts.kill("slurmd-n1")),
    Fault("wrapper killed while the program saves", (ASKED,), acts.kill_wrapper, first=True),
    Fault("wrapper killed, checkpoint written", SAVED, acts.kill_wrapper_alone, first=True),
    Fault("wrapper killed at any time", (ANY_TIME,), acts.kill_wrapper, first=True),
    Fault("guardian killed at any time", (ANY_TIME,), acts.kill_guardian, first=True),
    Fault("guardian killed, checkpoint written", (*SAVED, *WAITS), acts.kill_guardian, first=True),
    Fault("guardian and wrapper killed at any time", (ANY_TIME,), acts.kill_both, first=True),
    Fault("guardian and wrapper killed, checkpoint written", SAVED, acts.kill_both, first=True),
    Fault("guardian stopped for a while", (ANY_TIME,), acts.stop_guardian, first=True),
    Fault("program killed while it saves", (ASKED,), acts.kill_program, ends="FAILED"),
    Fault("node down while the program saves", (ASKED,), acts.node_down, first=True),
    Fault("node down, checkpoint written, no fence yet", SAVED[:2], acts.node_down, first=True),
    Fault("node down, checkpoint written", (SAVED[-1], *WAITS), acts.node_down),
    Fault("checkpoint never ends", (ASKED,), checkpoint="never", grace_s=3),
    Fault("checkpoint comes too late", (ASKED,), checkpoint="late", grace_s=3),
    Fault("checkpoint fails", (ASKED,), checkpoint="fails", ends="FAILED"),
    Fault("checkpoint half written", (ASKED,), checkpoint="half", ends="FAILED"),
    Fault("credential revoked", ("after:requeue",), acts.restart_at_once, rival=False),
    Fault("next run killed at its start", ("after:release",), acts.kill_start, first=True),
    Fault("user cancels", ANY, acts.cancel, ends="CANCELLED"),
    Fault("user holds", HOLDS, acts.by_owner("hold", "{job}"), after=_release, first=True),
    Fault("user updates", ANY, acts.by_owner("update", "jobid={job}", "TimeLimit=25")),
    *(
        Fault(
            f"user updates {what}",
            moments,
            acts.by_owner("update", "jobid={job}", words),
            first=goes_back,
            stands=stands,
        )
        for what, words, moments, stands, goes_back in (
            ("GPUs", "Gres=gpu:3", PENDING, ("TresPerNode", "gres:gpu:3"), True),
            ("GPUs back", "Gres=gpu:4", PENDING[2:], ("TresPerNode", "gres:gpu:4"), True),
            ("memory", "MinMemoryCPU=4000", PENDING, ("MinMemoryCPU", "4000M"), True),
            ("begin time", f"StartTime={BEGINS}", PENDING, ("EligibleTime", BEGINS), True),
            (
                "dependency",
                f"Dependency={AFTER}",
                PENDING,
                ("Dependency", f"{AFTER}(unfulfilled)"),
                True,
            ),
            ("partition", "Partition=cpu", PENDING, ("Partition", "cpu"), True),
            ("time limit", "TimeLimit=7", PENDING[:1], ("TimeLimit", "00:07:00"), False),
        )
    ),
    Fault("user requeues", (ASKED, *SAVED), acts.by_owner("requeue", "{job}"), first=True),
    Fault("clock of pliantd 30 s ahead", (ASKED,), skew_s=30),
    Fault("clock of pliantd 30 s behind", (ASKED,), skew_s=-30),
    Fault("clock 30 s ahead, pliantd killed", around(*STEPS), acts.kill("pliantd"), skew_s=30),
    Fault("clock 30 s behind, pliantd killed", around(*STEPS), acts.kill("pliantd"), skew_s=-30),
    Fault("disk full from the start", (ASKED,), around=acts.full_disk),
    Fault(
        "disk full from the start, pliantd killed",
        WAITS,
        acts.kill("pliantd"),
        around=acts.full_disk,
    ),
    Fault("disk full meanwhile, pliantd killed", ANY, acts.fill_and_kill, around=acts.small_disk),
    *(
        Fault(f"store says {what}, pliantd killed{more}", REQUEUED, acts.stale(change), guest=guest)
        for what, change in (
            ("not saved", "UPDATE handovers SET saved_s = 0"),
            ("saved long ago", "UPDATE handovers SET saved_s = saved_s - 3600"),
            ("it is over", "UPDATE handovers SET done_s = at_s, outcome = 'done'"),
            ("nothing", "DELETE FROM handovers"),
        )
        for more, guest in (("", False), (", preempted", True))
    ),
    Fault("slurmctld killed, preempted", around(*GUEST_STEPS), acts.kill("slurmctld"), guest=True),
    Fault("slurmctld and pliantd killed", ANY, acts.both(acts.kill("slurmctld"), _kill_pliantd)),
    Fault("slurmd and pliantd killed", ANY, acts.both(acts.kill("slurmd-n1"), _kill_pliantd)),
    Fault("node rebooted while the program saves", (ASKED,), acts.reboot, first=True),
    Fault("node rebooted, checkpoint written", SAVED, acts.reboot, first=True),
    Fault("slurmctld stopped for a while", ANY, acts.stopped("slurmctld")),
    Fault("slurmd stopped for a while", ANY, acts.stopped("slurmd-n1")),
    Fault("pliantd stopped for a while", ANY, acts.stopped("pliantd")),
    Fault("program stopped while it saves", (ASKED,), acts.stop_program),
    Fault("second pliantd", ANY, acts.second_pliantd),
    Fault("reconfigured", ANY, acts.says("reconfigure")),
    Fault("node drained for a while", (ASKED, *SAVED, *WAITS), acts.drained),
    Fault("partition down for a while", HOLDS, acts.partition_down),
    Fault("reserved for others for a while", HOLDS, acts.reserved),
    Fault("priority written back", WAITS, _written_back),
    Fault("suspended for a while", (ASKED,), acts.suspended),
    Fault("prolog fails once", (ASKED,), around=acts.scripted("Prolog", FAILS_ONCE), first=True),
    Fault("epilog of 20 s", (ASKED,), around=acts.scripted("Epilog", "sleep 20")),
    Fault("least time", (ASKED,), options=("--time-min=20",)),
    Fault("least time, pliantd killed", ANY, _kill_pliantd, options=("--time-min=20",)),
    Fault(
        "user requeues unobserved",
        SAVED,
        acts.both(_kill_pliantd, acts.by_owner("requeue", "{job}")),
        first=True,
    ),
    Fault(
        "user updates GPUs unobserved",
        PENDING,
        acts.both(_kill_pliantd, acts.by_owner("update", "jobid={job}", "Gres=gpu:3")),
        first=True,
        stands=("TresPerNode", "gres:gpu:3"),
    ),
    Fault("quota full at save", (ASKED,), acts.fill_quota, around=acts.quota, ends="FAILED"),
    Fault(
        "quota full at save, program goes on",
        (ASKED,),
        acts.fill_quota,
        checkpoint="again",
        grace_s=3,
        around=acts.quota,
        after=acts.free_quota,
    ),
    Fault(
        "quota full for a while, program saves again",
        (ASKED,),
        acts.for_a_while(acts.fill_quota, acts.free_quota, 2.5),
        checkpoint="again",
        around=acts.quota,
    ),
    Fault(
        "user forbids requeues",
        (ASKED, *SAVED, *WAITS),
        acts.by_owner("update", "jobid={job}", "Requeue=0"),
        stands=("Requeue", "0"),
    ),
    Fault("at most one requeue", (ASKED,), around=acts.capped("max_batch_requeue=1")),
    Fault(
        "at most one requeue, pliantd killed",
        ANY,
        _kill_pliantd,
        around=acts.capped("max_batch_requeue=1"),
    ),
    Fault(
        "at most one requeue, wrapper killed",
        (ANY_TIME,),
        acts.kill_wrapper,
        around=acts.capped("max_batch_requeue=1"),
        first=True,
    ),
    Fault("updates refused for a while", ANY, acts.refused),
    Fault(
        "updates refused for a while, pliantd killed", ANY, acts.both(acts.refused, _kill_pliantd)
    ),
    *(
        Fault(f"{what} unobserved", moments, acts.both(_kill_pliantd, act), first=goes_back)
        for what, moments, act, goes_back in (
            ("node down", SAVED[:2], acts.node_down, True),
            ("node down while it waits", (SAVED[-1], *WAITS), acts.node_down, False),
            ("node rebooted", SAVED, acts.reboot, True),
            ("priority written back", WAITS, _written_back, False),
            ("reconfigured", ANY, acts.says("reconfigure"), False),
            ("wrapper killed", SAVED, acts.kill_wrapper_alone, True),
            ("next run killed", ("after:release",), acts.kill_start, True),
        )
    ),
    Fault(
        "user holds unobserved",
        HOLDS,
        acts.both(_kill_pliantd, acts.by_owner("hold", "{job}")),
        after=_release,
        first=True,
    ),
    Fault("user cancels unobserved", ANY, acts.both(_kill_pliantd, acts.cancel), ends="CANCELLED"),
    Fault(
        "user starts it anew unobserved",
        SAVED[:2],  # behind the fence it could not
        acts.both(_kill_pliantd, acts.start_anew),
        rival=False,
    ),
    *(
        Fault(
            f"trial job cancelled{more}, preempted",
            (ASKED, *around(*GUEST_STEPS[:-1]), "before:release-guest"),
            act,
            guest=True,
            guest_ends="CANCELLED",
        )
        for more, act in (
            ("", acts.cancel_guest),
            (" unobserved", acts.both(_kill_pliantd, acts.cancel_guest)),
        )
    ),
    Fault("pliantd killed twice", ANY, acts.twice("pliantd")),
    Fault("slurmctld killed twice", ANY, acts.twice("slurmctld")),
    Fault(
        "slurmctld and slurmd killed",
        ANY,
        acts.both(acts.kill("slurmctld"), acts.kill("slurmd-n1")),
    ),
    Fault(
        "wrapper killed, slurmctld killed",
        (ANY_TIME,),
        acts.both(acts.kill_wrapper, acts.kill("slurmctld")),
        first=True,
    ),
    Fault(
        "node down, slurmctld killed",
        (SAVED[-1], *WAITS),
        acts.both(acts.node_down, acts.kill("slurmctld")),
        first=True,
    ),
    Fault(
        "user holds, slurmctld killed",
        HOLDS,
        acts.both(acts.by_owner("hold", "{job}"), acts.kill("slurmctld")),
        after=_release,
        first=True,
    ),
    Fault(
        "priority written back, slurmctld killed",
        WAITS,
        acts.both(_written_back, acts.kill("slurmctld")),
    ),
    Fault(
        "checkpoint comes too late, pliantd killed",
        (ASKED,),
        _kill_pliantd,
        checkpoint="late",
        grace_s=3,
    ),
    Fault(
        "program stopped while it saves, pliantd killed",
        (ASKED,),
        acts.both(acts.stop_program, _kill_pliantd),
    ),
)
