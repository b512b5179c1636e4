"""The faults of the drill on PBS: what is done to which part, and when.

A program that has saved ends of itself there, and a hook sends its job back: the steps before are
none of pliantd's. ``end`` is its answer that the program may.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.drill import acts, disks
from benchmarks.drill import pbs_acts as pbs
from benchmarks.drill.fault import ANY_TIME, ASKED, Fault, around
from benchmarks.drill.halting import END

STEPS = (END, "reshape", "unfence")
GUEST_STEPS = (*STEPS, "pin-guest", "release-guest")
WAITS = ("before:reshape", "after:reshape", "before:unfence")
"""While it waits between its two runs."""
ANY = (ASKED, *around(*STEPS))

_kill_pliantd = acts.kill("pliantd")

_LET_IN = (
    *("runjob hook off for a while", "what the hooks are told lost"),
    *("store says nothing, pliantd killed", "store says not saved, pliantd killed"),
    *("disk full from the start, pliantd killed", "manager reruns", "user holds unobserved"),
    *("user alters GPUs", "user holds"),
)
"""Where no fence is, or none that would be read, or its user has changed a job meanwhile: one
that was sent back may start as it was then.
"""

_FORGETS = (
    "a pbs_server that is killed forgets that the job was requeued, or runs again: once more, then"
)
_REDONE: Mapping[str, str] = {
    "pbs_server killed": _FORGETS,
    "pbs_server killed, preempted": _FORGETS,
    "pbs_server and pliantd killed": _FORGETS,
    "pbs_mom killed": "a pbs_mom that is started again ends the jobs that it had",
    "manager reruns": "a run that has not saved yet is ended by a manager",
}
"""Why work may be done again by the fault itself."""

_KINDS: Sequence[Fault] = (
    Fault("nothing", (ASKED,), made=True),
    Fault("nothing, preempted", (ASKED,), guest=True, made=True),
    Fault("pliantd killed while the program saves", (ASKED,), _kill_pliantd, made=True),
    *(
        Fault(
            f"pliantd killed {moment.replace(':', ' ')}{more}",
            (moment,),
            _kill_pliantd,
            guest=guest,
            made=True,
        )
        for steps, more, guest in ((STEPS, "", False), (GUEST_STEPS, ", preempted", True))
        for moment in around(*steps)
    ),
    Fault("pliantd killed twice", ANY, acts.twice("pliantd")),
    Fault("pliantd stopped for a while", ANY, acts.stopped("pliantd")),
    Fault("second pliantd of the same state", ANY, acts.second_pliantd),
    Fault("pbs_server killed", ANY, acts.kill("pbs_server")),
    Fault(
        "pbs_server killed, preempted", around(*GUEST_STEPS), acts.kill("pbs_server"), guest=True
    ),
    Fault("pbs_server stopped for a while", ANY, acts.stopped("pbs_server")),
    Fault("pbs_server and pliantd killed", ANY, acts.both(acts.kill("pbs_server"), _kill_pliantd)),
    Fault("pbs_mom killed", ANY, acts.kill("pbs_mom"), first=True),
    Fault("pbs_mom killed, its jobs kept", ANY, pbs.keep_jobs, first=True),
    Fault("pbs_sched killed", ANY, acts.kill("pbs_sched")),
    Fault("runjob hook off for a while", ANY, pbs.unguarded, first=True),
    Fault("what the hooks are told lost", ANY, pbs.forget, first=True),
    Fault("node offline for a while", ANY, pbs.offline),
    # whoever waits has its place then, and it goes on only once that one has ended
    Fault("suspended for a while", (ASKED, *around(END)), pbs.suspended, rival=False),
    Fault("wrapper killed while the program saves", (ASKED,), acts.kill_wrapper, first=True),
    Fault("wrapper killed at any time", (ANY_TIME,), acts.kill_wrapper, first=True),
    Fault("guardian killed at any time", (ANY_TIME,), pbs.kill_guardian, first=True),
    Fault("program killed while it saves", (ASKED,), acts.kill_program, ends="FAILED"),
    Fault("program stopped while it saves", (ASKED,), acts.stop_program),
    Fault("checkpoint never ends", (ASKED,), checkpoint="never", grace_s=3),
    Fault("checkpoint comes too late", (ASKED,), checkpoint="late", grace_s=3),
    Fault("checkpoint fails", (ASKED,), checkpoint="fails", ends="FAILED"),
    # a signal that comes as pbs_mom launches the job is lost there: its user asks again
    Fault("user deletes", ANY, pbs.cancel, after=pbs.cancel, ends="CANCELLED"),
    Fault("user holds", ANY, pbs.hold, after=pbs.release, first=True, held=True),
    Fault(
        "user lowers the time limit",
        ANY,
        pbs.by_owner("qalter", "-l", "walltime=25:00", "{job}"),
        limit_s=25 * 60,
        made=True,
        once=True,  # of what is left later it is more, and a change
    ),
    Fault(
        "user alters GPUs",
        WAITS,
        pbs.by_owner("qalter", "-l", "select=1:ncpus=1:ngpus=3", "{job}"),
        first=True,
        stands=("Resource_List.select", "1:ncpus=1:ngpus=3"),
    ),
    Fault("manager reruns", (ASKED, "before:end", "after:end"), pbs.rerun, first=True),
    Fault(
        "trial job deleted, preempted",
        (ASKED, *around(*STEPS[:2]), "before:unfence"),
        acts.cancel_guest,
        guest=True,
        guest_ends="CANCELLED",
    ),
    Fault(  # nothing says there, as the priority does on Slurm, that the job was on its way
        "disk full from the start, pliantd killed",
        ANY,
        _kill_pliantd,
        around=disks.full_disk,
        first=True,
    ),
    Fault(
        "store says not saved, pliantd killed",
        WAITS,
        acts.stale("UPDATE handovers SET saved_s = 0"),
    ),
    Fault(
        "store says nothing, pliantd killed",
        WAITS,
        acts.stale("DELETE FROM handovers"),
        first=True,
    ),
    Fault(
        "user holds unobserved",
        ANY,
        acts.both(_kill_pliantd, pbs.hold),
        after=pbs.release,
        first=True,
        held=True,
    ),
)

FAULTS: Sequence[Fault] = tuple(
    replace(one, as_was=one.name in _LET_IN, redoes=_REDONE.get(one.name, "")) for one in _KINDS
)
