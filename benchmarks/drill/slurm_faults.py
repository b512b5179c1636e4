"""The faults of the drill on Slurm: what is done to which part, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.drill import acts, disks
from benchmarks.drill import slurm_acts as slurm
from benchmarks.drill.fault import ANY_TIME, ASKED, Fault, around
from benchmarks.drill.halting import END

STEPS = ("pin", "fence", "requeue", "reshape", "unfence", "release")
GUEST_STEPS = ("fence", "requeue", "pin-guest", "unfence", "release-guest")
SAVED = ("before:pin", "before:fence", "before:requeue")
WAITS = ("after:requeue", "before:reshape", "after:reshape", "before:unfence")

_release = slurm.by_owner("release", "{job}")
_kill_pliantd = acts.kill("pliantd")
_written_back = slurm.says("update", "jobid={job}", "Priority=7")

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

_FORGETS = (
    "a slurmctld that is killed forgets that the job was requeued, or runs again: once more, then"
)
_WITH_IT = "what the program did since its start goes with its node"
_BY_USER = "a run that has not saved yet is ended by its user"
_AT_START = "a run that has just begun is killed"
_REDONE: Mapping[str, str] = {
    "slurmctld killed": _FORGETS,
    "slurmctld killed, preempted": _FORGETS,
    "slurmctld killed twice": _FORGETS,
    "slurmctld and pliantd killed": _FORGETS,
    "slurmctld and slurmd killed": _FORGETS,
    "wrapper killed, slurmctld killed": _FORGETS,
    "node down, slurmctld killed": _FORGETS,
    "user holds, slurmctld killed": _FORGETS,
    "priority written back, slurmctld killed": _FORGETS,
    "node down while the program saves": _WITH_IT,
    "node rebooted while the program saves": _WITH_IT,
    "user requeues": _BY_USER,
    "user requeues and holds": _BY_USER,
    "next run killed at its start": _AT_START,
    "next run killed unobserved": _AT_START,
    "guardian killed at any time": _AT_START,
    "guardian and wrapper killed at any time": _AT_START,
}
"""Why work may be done again by the fault itself."""

_KINDS: Sequence[Fault] = (
    Fault("nothing", (ASKED,), made=True),
    Fault("nothing, preempted", (ASKED,), guest=True, made=True),
    Fault("pliantd killed while the program saves", (ASKED,), acts.kill("pliantd"), made=True),
    *(
        Fault(f"pliantd killed {when} {step}", (f"{when}:{step}",), acts.kill("pliantd"), made=True)
        for step in STEPS
        for when in ("before", "after")
    ),
    *(
        Fault(
            f"pliantd killed {when} {step}, preempted",
            (f"{when}:{step}",),
            acts.kill("pliantd"),
            guest=True,
            made=True,
        )
        for step in GUEST_STEPS
        for when in ("before", "after")
    ),
    *(
        Fault(
            f"pliantd killed before its answer that the program may end{more}",
            (f"before:{END}",),
            acts.kill("pliantd"),
            guest=guest,
            made=True,
        )
        for more, guest in (("", False), (", preempted", True))
    ),
    Fault("pliantd stopped until the wrapper requeues", SAVED, acts.stop_pliantd, first=True),
    *(
        Fault(
            f"pliantd stopped {when} until the next run works",
            moments,
            slurm.stop_until_next_run,
            rival=False,
        )
        for when, moments in (
            ("before requeue", SAVED[-1:]),
            ("at another step", (*SAVED[:-1], *WAITS)),
        )
    ),
    Fault("slurmctld killed", ANY, acts.kill("slurmctld")),
    Fault("slurmd killed", ANY, acts.kill("slurmd-n1")),
    Fault("wrapper killed while the program saves", (ASKED,), acts.kill_wrapper, first=True),
    Fault("wrapper killed, checkpoint written", SAVED, acts.kill_wrapper_alone, made=True),
    Fault("wrapper killed at any time", (ANY_TIME,), acts.kill_wrapper, first=True),
    Fault("guardian killed at any time", (ANY_TIME,), acts.kill_guardian, first=True),
    Fault("guardian killed, checkpoint written", (*SAVED, *WAITS), acts.kill_guardian, first=True),
    Fault("guardian and wrapper killed at any time", (ANY_TIME,), acts.kill_both, first=True),
    Fault("guardian and wrapper killed, checkpoint written", SAVED, acts.kill_both, first=True),
    Fault("guardian stopped for a while", (ANY_TIME,), acts.stop_guardian, made=True),
    Fault("program killed while it saves", (ASKED,), acts.kill_program, ends="FAILED"),
    Fault("node down while the program saves", (ASKED,), slurm.node_down, first=True),
    Fault("node down, checkpoint written, no fence yet", SAVED[:2], slurm.node_down, first=True),
    Fault("node down, checkpoint written", (SAVED[-1], *WAITS), slurm.node_down),
    Fault("checkpoint never ends", (ASKED,), checkpoint="never", grace_s=3),
    Fault("checkpoint comes too late", (ASKED,), checkpoint="late", grace_s=3),
    Fault("checkpoint fails", (ASKED,), checkpoint="fails", ends="FAILED"),
    Fault("checkpoint half written", (ASKED,), checkpoint="half", ends="FAILED"),
    Fault("credential revoked", ("after:requeue",), slurm.restart_at_once, rival=False),
    Fault("next run killed at its start", ("after:release",), slurm.kill_start, first=True),
    Fault("user cancels", ANY, slurm.cancel, ends="CANCELLED"),
    Fault("user holds", HOLDS, slurm.hold, after=_release, first=True, held=True),
    Fault(
        "user updates",
        ANY,
        slurm.by_owner("update", "jobid={job}", "TimeLimit=25"),
        limit_s=25 * 60,
        made=True,
    ),
    *(
        Fault(
            f"user updates {what}",
            moments,
            slurm.by_owner("update", "jobid={job}", words),
            first=goes_back,
            stands=stands,
            made=not goes_back,
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
    Fault("user requeues", (ASKED, *SAVED), slurm.by_owner("requeue", "{job}"), first=True),
    Fault(
        "user requeues and holds",
        (ASKED, *SAVED),
        slurm.by_owner("requeuehold", "{job}"),
        after=_release,
        first=True,
        held=True,
    ),
    Fault("clock of pliantd 30 s ahead", (ASKED,), skew_s=30, made=True),
    Fault("clock of pliantd 30 s behind", (ASKED,), skew_s=-30, made=True),
    Fault("clock 30 s ahead, pliantd killed", around(*STEPS), _kill_pliantd, skew_s=30, made=True),
    Fault(
        "clock 30 s behind, pliantd killed", around(*STEPS), _kill_pliantd, skew_s=-30, made=True
    ),
    Fault("disk full from the start", (ASKED,), around=disks.full_disk, made=True),
    Fault(
        "disk full from the start, pliantd killed",
        WAITS,
        acts.kill("pliantd"),
        around=disks.full_disk,
    ),
    Fault(
        "disk full meanwhile, pliantd killed",
        ANY,
        disks.fill_and_kill,
        around=disks.small_disk,
        once=True,
    ),
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
    Fault("node rebooted while the program saves", (ASKED,), slurm.reboot_slowly, first=True),
    Fault("node rebooted, checkpoint written", SAVED, slurm.reboot, first=True),
    Fault("slurmctld stopped for a while", ANY, acts.stopped("slurmctld"), made=True),
    Fault("slurmd stopped for a while", ANY, acts.stopped("slurmd-n1"), made=True),
    Fault("pliantd stopped for a while", ANY, acts.stopped("pliantd"), made=True),
    Fault("program stopped while it saves", (ASKED,), acts.stop_program, made=True),
    Fault("second pliantd of the same state", ANY, acts.second_pliantd, made=True),
    Fault("reconfigured", ANY, slurm.says("reconfigure"), made=True),
    Fault("node drained for a while", (ASKED, *SAVED, *WAITS), slurm.drained),
    Fault("partition down for a while", HOLDS, slurm.partition_down),
    Fault("reserved for others for a while", HOLDS, slurm.reserved),
    Fault("priority written back", WAITS, _written_back, made=True),
    Fault("maintenance soon for a while", HOLDS, slurm.maintenance),
    Fault("fence deleted", (SAVED[-1], *WAITS), slurm.delete_fence, first=True),
    Fault("suspended for a while", (ASKED, *SAVED), slurm.suspended),
    Fault("prolog fails once", (ASKED,), around=slurm.scripted("Prolog", FAILS_ONCE), first=True),
    Fault("epilog of 20 s", (ASKED,), around=slurm.scripted("Epilog", "sleep 20"), made=True),
    Fault("least time", (ASKED,), options=("--time-min=20",), made=True),
    Fault("least time, pliantd killed", ANY, _kill_pliantd, options=("--time-min=20",), made=True),
    Fault(
        "user requeues unobserved",
        SAVED,
        acts.both(_kill_pliantd, slurm.by_owner("requeue", "{job}")),
        first=True,
    ),
    Fault(
        "user updates GPUs unobserved",
        PENDING,
        acts.both(_kill_pliantd, slurm.by_owner("update", "jobid={job}", "Gres=gpu:3")),
        first=True,
        stands=("TresPerNode", "gres:gpu:3"),
    ),
    Fault("quota full at save", (ASKED,), disks.fill_quota, around=disks.quota, ends="FAILED"),
    Fault(
        "quota full at save, program goes on",
        (ASKED,),
        disks.fill_quota,
        checkpoint="again",
        grace_s=3,
        around=disks.quota,
        after=disks.free_quota,
    ),
    Fault(
        "quota full for a while, program saves again",
        (ASKED,),
        acts.for_a_while(disks.fill_quota, disks.free_quota, 2.5),
        checkpoint="again",
        around=disks.quota,
        made=True,
    ),
    Fault(
        "user forbids requeues",
        (ASKED, *SAVED, *WAITS),
        slurm.by_owner("update", "jobid={job}", "Requeue=0"),
        stands=("Requeue", "0"),
    ),
    Fault("at most one requeue", (ASKED,), around=slurm.capped("max_batch_requeue=1")),
    Fault(
        "at most one requeue, pliantd killed",
        ANY,
        _kill_pliantd,
        around=slurm.capped("max_batch_requeue=1"),
    ),
    Fault(
        "at most one requeue, wrapper killed",
        (ANY_TIME,),
        acts.kill_wrapper,
        around=slurm.capped("max_batch_requeue=1"),
        first=True,
    ),
    Fault("updates refused for a while", ANY, slurm.refused, made=True),
    Fault(
        "updates refused for a while, pliantd killed",
        ANY,
        acts.both(slurm.refused, _kill_pliantd),
        made=True,
    ),
    *(
        Fault(
            f"{what} unobserved",
            moments,
            acts.both(_kill_pliantd, act),
            first=goes_back,
            made=made,
        )
        for what, moments, act, goes_back, made in (
            ("node down", SAVED[:2], slurm.node_down, True, False),
            ("node down while it waits", (SAVED[-1], *WAITS), slurm.node_down, False, False),
            ("node rebooted", SAVED, slurm.reboot, True, False),
            ("priority written back", WAITS, _written_back, False, True),
            ("reconfigured", ANY, slurm.says("reconfigure"), False, True),
            ("wrapper killed", SAVED, acts.kill_wrapper_alone, False, True),
            ("next run killed", ("after:release",), slurm.kill_start, True, False),
        )
    ),
    Fault(
        "user holds unobserved",
        HOLDS,
        acts.both(_kill_pliantd, slurm.hold),
        after=_release,
        first=True,
        held=True,
    ),
    Fault("user cancels unobserved", ANY, acts.both(_kill_pliantd, slurm.cancel), ends="CANCELLED"),
    Fault(
        "user starts it anew unobserved",
        SAVED[:2],  # behind the fence it could not
        acts.both(_kill_pliantd, slurm.start_anew),
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
    Fault("pliantd killed twice", ANY, acts.twice("pliantd"), made=True),
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
        acts.both(slurm.node_down, acts.kill("slurmctld")),
        first=True,
    ),
    Fault(
        "user holds, slurmctld killed",
        HOLDS,
        slurm.hold_and_kill,
        after=_release,
        first=True,
        held=True,
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
        made=True,
    ),
)

FAULTS: Sequence[Fault] = tuple(replace(one, redoes=_REDONE.get(one.name, "")) for one in _KINDS)
