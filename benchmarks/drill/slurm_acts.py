"""What is done to a Slurm and by its users while the drill runs."""

from __future__ import annotations

import contextlib
import re
import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import psutil

from benchmarks.drill.acts import for_a_while
from benchmarks.drill.fault import Act, Around
from benchmarks.drill.field import COME_S
from benchmarks.drill.slurm_field import USER, SlurmField

KILLS_S = 2.0
"""How long after its start a kill of a job's run before may meet it."""
SAVES_S = 1.0
"""How long slurmctld may write what it had to save before it was told something."""
WORKS_S = 8.0
"""How long the next run has worked when a pliantd that stood still goes on: no kill of the run
before is taken to meet it any more, and what is lost with it would be seen.
"""
BOOTS_S = 30.0
"""Longer than Slurm lets a job's start take: one that is not there by then it misses at once."""


def by_owner(*words: str) -> Act:
    """Let the owner say it; Slurm 24.11 refuses it for a moment after a requeue: again then."""

    def does(field: SlurmField) -> None:
        argv, complaint = [word.format(job=field.job, rival=field.rival) for word in words], ""

        def was_heard() -> bool:
            nonlocal complaint
            complaint = field.scontrol(*argv, user=USER)
            return "temporarily unavailable" not in complaint

        field.wait(was_heard, "the owner's words to be heard", COME_S)
        field.passed_by = complaint != "" or field.passed_by

    return does


hold = by_owner("hold", "{job}")


def hold_and_kill(field: SlurmField) -> None:
    """Let the owner hold it, and kill slurmctld as soon as it would know that again."""
    hold(field)
    field.told_s = time.time() + SAVES_S
    field.kill("slurmctld")


def cancel(field: SlurmField) -> None:
    field.cancel(field.job, USER)


def restart_at_once(field: SlurmField) -> None:
    """Let the job start in the second in which it went back into the queue, as it was."""

    def waits() -> bool:
        return field.state_of(field.job) == "PENDING"

    field.wait(waits, "the job to wait", 15)
    says("update", "jobid={job}", "StartTime=now")(field)
    says("delete", "ReservationName=pliant_{job}")(field)
    time.sleep(1.5)


def kill_start(field: SlurmField) -> None:
    """End the next run as a kill does that is told a second time: within its first two seconds."""
    started_s = datetime.fromisoformat(field.show(field.job)["StartTime"]).timestamp()
    if time.time() - started_s > KILLS_S:
        field.passed_by = True
        return
    field.sandbox.run(["scancel", "--signal=TERM", "--full", field.job])


def says(*words: str) -> Act:
    """Let an administrator say it; where Slurm refuses it, nothing was done."""

    def does(field: SlurmField) -> None:
        argv = [word.format(job=field.job, rival=field.rival) for word in words]
        field.passed_by = field.scontrol(*argv) != "" or field.passed_by

    return does


node_down = says("update", "nodename=n1", "state=down", "reason=drill")


def start_anew(field: SlurmField) -> None:
    """Let the owner requeue it, and let it start again without the two minutes of wait."""
    by_owner("requeue", "{job}")(field)

    def waits() -> bool:
        return field.state_of(field.job) == "PENDING"

    field.wait(waits, "the job to wait", COME_S)
    time.sleep(1.0)  # not in the second of its kill
    field.scontrol("update", f"jobid={field.job}", "StartTime=now")
    field.wait(lambda: field.state_of(field.job) == "RUNNING", "the job to run", COME_S)


def reboot(field: SlurmField) -> None:
    """Let its node lose power for a moment, and with it all that the job ran there."""
    field.kill("slurmd-n1")
    with contextlib.suppress(psutil.NoSuchProcess):  # its run may have ended just now
        guardian = field.guardian()
        stepd = guardian.parent()
        for process in (*([stepd] if stepd else ()), guardian, *guardian.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()


def reboot_slowly(field: SlurmField) -> None:
    """The same for as long as a node boots: one that is back sooner Slurm asks minutes later."""
    reboot(field)
    time.sleep(BOOTS_S)


def stop_until_next_run(field: SlurmField) -> None:
    """Let pliantd stand still between its look and its step, as one whose memory is swapped out.

    The wrapper requeues the job meanwhile, and it runs again, as it was, once the time has passed
    that it and its fence have: two minutes, which nobody waits for here.
    """
    field.signal("pliantd", signal.SIGSTOP)
    try:
        field.wait(lambda: field.state_of(field.job) == "PENDING", "the wrapper to requeue", COME_S)
        field.scontrol("delete", f"reservationname=pliant_{field.job}")
        field.scontrol("update", f"jobid={field.job}", "StartTime=now+2")  # not in this second
        field.wait(field.works, "the next run to work", COME_S)
        time.sleep(WORKS_S)
    finally:
        field.signal("pliantd", signal.SIGCONT)


drained = for_a_while(
    says("update", "nodename=n1", "state=drain", "reason=drill"),
    says("update", "nodename=n1", "state=resume"),
    3.0,
)
partition_down = for_a_while(
    says("update", "partitionname=gpu", "state=down"),
    says("update", "partitionname=gpu", "state=up"),
    3.0,
)
reserved = for_a_while(
    says(
        *("create", "reservation", "reservationname=drill", "starttime=now", "duration=5"),
        *("users=root", "nodes=n1", "flags=ignore_jobs,overlap"),
    ),
    says("delete", "reservationname=drill"),
    3.0,
)
maintenance = for_a_while(
    says(
        *("create", "reservation", "reservationname=drill", "starttime=now+5minutes"),
        *("duration=60", "users=root", "nodes=n1", "flags=maint,ignore_jobs"),
    ),
    says("delete", "reservationname=drill"),
    3.0,
)
"""Before it the job's run has time, and the next one has not."""
delete_fence = says("delete", "reservationname=pliant_{job}")
suspended = for_a_while(says("suspend", "{job}"), says("resume", "{job}"), 3.0)


def configured(change: Callable[[SlurmField, str], str]) -> Around:
    """Let slurm.conf say something else."""

    @contextlib.contextmanager
    def around(field: SlurmField) -> Iterator[None]:
        conf = field.sandbox.layout.slurm_conf
        before = conf.read_text()
        conf.write_text(change(field, before))
        field.sandbox.reconfigure()
        try:
            yield
        finally:
            conf.write_text(before)
            field.sandbox.reconfigure()

    return around


def scripted(name: str, script: str) -> Around:
    """Let slurm.conf name a script, Prolog or Epilog, that finds the run's directory in $1."""

    def change(field: SlurmField, conf: str) -> str:
        file = field.place / name
        file.write_text(f"#!/bin/sh\nset -- {field.place}\n{script}\n")
        file.chmod(0o755)
        return f"{conf}\n{name}={file}\n"

    return configured(change)


def capped(more: str) -> Around:
    """Let the scheduler hold a job after so many requeues."""
    return configured(
        lambda _, conf: re.sub(r"(?m)^(SchedulerParameters=.*)$", rf"\1,{more}", conf)
    )


_LAST = "return slurm.SUCCESS\n"
_REFUSING = """\
function slurm_job_modify()
   return slurm.ERROR
end

"""


def _refuses(field: SlurmField) -> None:
    file = field.sandbox.layout.job_submit
    file.write_text(file.read_text().removesuffix(_LAST) + _REFUSING + _LAST)


def _allows(field: SlurmField) -> None:
    file = field.sandbox.layout.job_submit
    file.write_text(file.read_text().replace(_REFUSING, ""))


refused = for_a_while(_refuses, _allows, 4.0)
"""Let the site's script refuse every update of a job."""
