"""What is done to a PBS and by its users while the drill runs."""

from __future__ import annotations

from benchmarks.drill.acts import for_a_while, kill_guardian_for_good
from benchmarks.drill.fault import Act
from benchmarks.drill.field import COME_S
from benchmarks.drill.pbs_field import STATE_FILE, PbsField
from pliant.handover import Outcome

LAUNCHES = "41"
"""The substate of a job that is being launched (PRERUN)."""


def by_owner(*words: str) -> Act:
    """Let the owner say it."""

    def does(field: PbsField) -> None:
        argv = [word.format(job=field.job) for word in words]
        field.passed_by = field.tell(*argv, user=field.user) != "" or field.passed_by

    return does


def says(*words: str) -> Act:
    """Let a manager say it; where PBS refuses it, nothing was done."""

    def does(field: PbsField) -> None:
        argv = [word.format(job=field.job) for word in words]
        field.passed_by = field.tell(*argv) != "" or field.passed_by

    return does


cancel = by_owner("qdel", "{job}")
hold, release = by_owner("qhold", "-h", "u", "{job}"), by_owner("qrls", "-h", "u", "{job}")
rerun = says("qrerun", "{job}")


def kill_guardian(field: PbsField) -> None:
    """Kill the job's script: PBS runs no job again that has ended, also once it has saved."""
    kill_guardian_for_good(field)
    field.told = (*field.told, f"job {field.number}: {Outcome.GONE}")


def keep_jobs(field: PbsField) -> None:
    """Start pbs_mom again as one does who keeps its jobs: it is not told how their scripts end.

    Not while it launches the job: that it takes for one that has not begun from then on, with or
    without Pliant, and its end is seen by nobody.
    """
    field.wait(lambda: field.show(field.job).get("substate") != LAUNCHES, "no launch", COME_S)
    field.kill("pbs_mom")
    field.dead.remove("pbs_mom")
    field.start("pbs_mom", "-p")


suspended = for_a_while(
    says("qsig", "-s", "suspend", "{job}"), says("qsig", "-s", "resume", "{job}"), 3.0
)


unguarded = for_a_while(
    says("qmgr", "-c", "set hook pliant_runjob enabled=False"),
    says("qmgr", "-c", "set hook pliant_runjob enabled=True"),
    3.0,
)
"""Without our runjob hook, which keeps others out of a fence."""


def forget(_field: PbsField) -> None:
    """Lose what pliantd tells the hooks: what is there and which fences stand."""
    for file in (STATE_FILE, STATE_FILE.with_name("pbs_fences.json")):
        file.unlink(missing_ok=True)


def _nodes(field: PbsField, option: str) -> None:
    says("pbsnodes", option, *field.nodes())(field)


offline = for_a_while(lambda field: _nodes(field, "-o"), lambda field: _nodes(field, "-r"), 3.0)
