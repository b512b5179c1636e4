"""What is done to the parts of a cluster, to its jobs and its disks while the drill runs."""

from __future__ import annotations

import contextlib
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from benchmarks.drill.field import COME_S, KEPT, USER, Field
from pliant.daemon.run_verbs import GONE
from pliant.errors import PliantError
from pliant.sandbox import environment

FILE = "pliant.db"


def kill(part: str) -> Callable[[Field], None]:
    return lambda field: field.kill(part)


def stop_pliantd(field: Field) -> None:
    """Stop it, silent but not gone, until the job's wrapper requeues by itself."""
    field.sandbox.signal("pliantd", signal.SIGSTOP)
    try:
        field.wait(lambda: field.state(field.job) == "PENDING", "the wrapper to requeue", COME_S)
    finally:
        field.sandbox.signal("pliantd", signal.SIGCONT)


def kill_program(field: Field) -> None:
    psutil.Process(field.program()[0]).kill()


def kill_wrapper(field: Field) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        field.program()[1].kill()


def kill_wrapper_alone(field: Field) -> None:
    """The program has ended by then: its wrapper is what keeps the job's place."""
    field.program()[1].kill()


def kill_guardian(field: Field) -> None:
    """Kill the job's script; Slurm ends the job of a script that is killed, whatever it runs."""
    kill_script(field, with_wrapper=False)


def kill_both(field: Field) -> None:
    kill_script(field, with_wrapper=True)


def kill_script(field: Field, *, with_wrapper: bool) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        guardian = field.guardian()
        wrapper = [field.program()[1]] if with_wrapper else []
        for process in (*wrapper, guardian):
            process.kill()
        if not field.has_saved():  # one that just began again may be taken for told a second time
            field.ends = ("FAILED", "COMPLETED")
            field.told = ("its guardian was killed", f"job {field.job}: {GONE}")


def stop_guardian(field: Field) -> None:
    """Stop it for longer than the program saves, and let it go on."""
    with contextlib.suppress(psutil.NoSuchProcess):
        guardian = field.guardian()
        guardian.suspend()
        time.sleep(2.0)
        guardian.resume()


def node_down(field: Field) -> None:
    field.scontrol("update", "nodename=n1", "state=down", "reason=drill")


def by_owner(*words: str) -> Callable[[Field], None]:
    """Let the owner say it; Slurm 24.11 refuses it for a moment after a requeue: again then."""

    def does(field: Field) -> None:
        argv = [word.format(job=field.job, rival=field.rival) for word in words]

        def was_taken() -> bool:
            return "temporarily unavailable" not in field.scontrol(*argv, user=USER)

        field.wait(was_taken, "the owner's words to be taken", COME_S)

    return does


def cancel(field: Field) -> None:
    field.cancel(field.job, USER)


def restart_at_once(field: Field) -> None:
    """Let the job start in the second in which it went back into the queue, as it was."""

    def waits() -> bool:
        return field.state(field.job) == "PENDING"

    field.wait(waits, "the job to wait", 15)
    field.scontrol("update", f"jobid={field.job}", "StartTime=now")
    field.scontrol("delete", f"ReservationName=pliant_{field.job}")
    time.sleep(1.5)


def kill_start(field: Field) -> None:
    """End the next run as a kill does that is told a second time."""
    field.sandbox.run(["scancel", "--signal=TERM", "--full", str(field.job)])


@contextlib.contextmanager
def small_disk(field: Field, size: str = "2m") -> Iterator[None]:
    """Keep pliantd's state on a small disk."""
    state = field.sandbox.layout.pliant_state
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(state)]
    subprocess.run(mount, check=True, timeout=10)
    try:
        yield
    finally:
        field.stop_pliantd()
        subprocess.run(["umount", str(state)], check=True, timeout=10)


@contextlib.contextmanager
def full_disk(field: Field) -> Iterator[None]:
    """Keep it on a disk without a free byte."""
    with small_disk(field, "256k"):
        fill_disk(field)
        yield


def fill_disk(field: Field) -> None:
    """Take what is left of the disk that pliantd's state lies on."""
    _fill(field.sandbox.layout.pliant_state / "full")


def _fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as to:
        while to.write(b"0" * 1024):
            pass


def fill_and_kill(field: Field) -> None:
    fill_disk(field)
    field.kill("pliantd")


@contextlib.contextmanager
def quota(field: Field) -> Iterator[None]:
    """Let the job's user write no more than a little where its checkpoints lie."""
    kept = str(field.place / KEPT)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k,mode=777", "none", kept], check=True, timeout=10
    )
    try:
        yield
    finally:
        subprocess.run(["umount", kept], check=True, timeout=10)


def fill_quota(field: Field) -> None:
    """Use it up."""
    _fill(field.place / KEPT / "full")


def free_quota(field: Field) -> None:
    """Let it be enough again."""
    (field.place / KEPT / "full").unlink()


def stale(change: str) -> Callable[[Field], None]:
    """Kill pliantd, and let its store say of the hand-over what it said earlier, or nothing."""

    def does(field: Field) -> None:
        field.kill("pliantd")
        with contextlib.closing(sqlite3.connect(field.sandbox.layout.pliant_state / FILE)) as db:
            db.execute(f"{change} WHERE done_s IS NULL")
            db.commit()

    return does


# --- what passes by itself -----------------------------------------------------------------


def for_a_while(
    begin: Callable[[Field], object], end: Callable[[Field], object], lasts_s: float
) -> Callable[[Field], None]:
    """Begin it, and let it end so much later, while the hand-over goes on."""

    def does(field: Field) -> None:
        begin(field)
        field.later.append(threading.Timer(lasts_s, end, (field,)))
        field.later[-1].start()

    return does


def stopped(part: str, lasts_s: float = 3.0) -> Callable[[Field], None]:
    """Let a daemon be silent for a while: its machine is short of memory, say."""
    return for_a_while(
        lambda field: field.sandbox.signal(part, signal.SIGSTOP),
        lambda field: field.sandbox.signal(part, signal.SIGCONT),
        lasts_s,
    )


def says(*words: str) -> Callable[[Field], None]:
    """Let an administrator say it."""

    def does(field: Field) -> None:
        field.scontrol(*(word.format(job=field.job, rival=field.rival) for word in words))

    return does


def both(*some: Callable[[Field], object]) -> Callable[[Field], None]:
    """Do one after the other at the same moment."""

    def does(field: Field) -> None:
        for one in some:
            one(field)

    return does


def stop_program(field: Field) -> None:
    """Let what it writes hang: its file system does not answer."""
    program = psutil.Process(field.program()[0])
    for_a_while(lambda _: program.suspend(), lambda _: _resumed(program), 3.0)(field)


def _resumed(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.resume()


def twice(part: str) -> Callable[[Field], None]:
    """Kill a part, and again as soon as it has been started anew and has begun to work."""

    def does(field: Field) -> None:
        field.kill(part)
        field.restore()
        time.sleep(0.4)
        field.kill(part)

    return does


def start_anew(field: Field) -> None:
    """Let the owner requeue it, and let it start again without the two minutes of wait."""
    by_owner("requeue", "{job}")(field)

    def waits() -> bool:
        return field.state(field.job) == "PENDING"

    field.wait(waits, "the job to wait", COME_S)
    time.sleep(1.0)  # not in the second of its kill
    field.scontrol("update", f"jobid={field.job}", "StartTime=now")
    field.wait(lambda: field.state(field.job) == "RUNNING", "the job to run", COME_S)


def cancel_guest(field: Field) -> None:
    """End the trial job that room is made for."""
    field.cancel(field.guest)


def reboot(field: Field) -> None:
    """Let its node lose power for a moment, and with it all that the job ran there."""
    field.kill("slurmd-n1")
    guardian = field.guardian()
    stepd = guardian.parent()
    for process in (*([stepd] if stepd else ()), guardian, *guardian.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


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
suspended = for_a_while(says("suspend", "{job}"), says("resume", "{job}"), 3.0)


def second_pliantd(field: Field) -> None:
    """Start another pliantd of the same cluster; it has to leave by itself."""
    layout = field.sandbox.layout
    main = "from pliant.daemon.main import main; main()"
    argv = [sys.executable, "-c", main, "--config", str(layout.pliant_toml)]
    env = environment.for_daemons(layout)
    done = subprocess.run(argv, env=env, timeout=COME_S, capture_output=True, check=False)
    if done.returncode == 0:
        raise PliantError("a second pliantd of one cluster began to work")


_Around = Callable[[Field], contextlib.AbstractContextManager[None]]


def configured(change: Callable[[Field, str], str]) -> _Around:
    """Let slurm.conf say something else."""

    @contextlib.contextmanager
    def around(field: Field) -> Iterator[None]:
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


def scripted(name: str, script: str) -> _Around:
    """Let slurm.conf name a script, Prolog or Epilog, that finds the run's directory in $1."""

    def change(field: Field, conf: str) -> str:
        file = field.place / name
        file.write_text(f"#!/bin/sh\nset -- {field.place}\n{script}\n")
        file.chmod(0o755)
        return f"{conf}\n{name}={file}\n"

    return configured(change)


def capped(more: str) -> _Around:
    """Let the scheduler hold a job after so many requeues."""
    return configured(
        lambda _, conf: re.sub(r"(?m)^(SchedulerParameters=.*)$", rf"\1,{more}", conf)
    )


REFUSING = """
function slurm_job_modify()
   return slurm.ERROR
end
return slurm.SUCCESS
"""


def _refuses(field: Field) -> None:
    file = field.sandbox.layout.job_submit
    file.write_text(file.read_text() + REFUSING)


def _allows(field: Field) -> None:
    file = field.sandbox.layout.job_submit
    file.write_text(file.read_text().removesuffix(REFUSING))


refused = for_a_while(_refuses, _allows, 4.0)
"""Let the site's script refuse every update of a job."""
