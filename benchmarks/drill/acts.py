"""What is done to pliantd, to a job's processes and to any daemon while the drill runs."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import sys
import threading
import time

import psutil

from benchmarks.drill.fault import Act
from benchmarks.drill.field import COME_S, Field
from pliant.daemon.run_verbs import GONE
from pliant.errors import PliantError
from pliant.handover import Outcome

FILE = "pliant.db"


def kill(part: str) -> Act:
    return lambda field: field.kill(part)


def stop_pliantd(field: Field) -> None:
    """Stop it, silent but not gone, until the job's wrapper requeues by itself."""
    field.signal("pliantd", signal.SIGSTOP)
    try:
        field.wait(lambda: field.state_of(field.job) == "PENDING", "the wrapper to requeue", COME_S)
    finally:
        field.signal("pliantd", signal.SIGCONT)


def kill_program(field: Field) -> None:
    psutil.Process(field.program()[0]).kill()


def kill_wrapper(field: Field) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        field.program()[1].kill()


def kill_wrapper_alone(field: Field) -> None:
    """The program has ended by then: its wrapper is what keeps the job's place."""
    field.program()[1].kill()


def kill_guardian(field: Field) -> None:
    """Kill the job's script; the batch system ends the job of one that is killed."""
    kill_script(field, with_wrapper=False)


def kill_guardian_for_good(field: Field) -> None:
    """The same where the batch system runs no job again that has ended, saved or not."""
    kill_script(field, with_wrapper=False, for_good=True)


def kill_both(field: Field) -> None:
    kill_script(field, with_wrapper=True)


def kill_script(field: Field, *, with_wrapper: bool, for_good: bool = False) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        guardian = field.guardian()
        wrapper = [field.program()[1]] if with_wrapper else []
        for process in (*wrapper, guardian):
            process.kill()
        if for_good or not (field.has_saved() and _is_noted(field)):
            # One that has just begun again may be taken for told a second time.
            field.ends = ("FAILED", "COMPLETED")
            ends = (GONE, Outcome.RUN_OVER)  # as its connection shows it, or the batch system
            words = (f"job {field.number}: {how}" for how in ends)
            field.told = ("its guardian was killed", *words)


def _is_noted(field: Field) -> bool:
    """Whether pliantd knows of the checkpoint: it does where it halts after that."""
    told = field.history()
    return told is None or (bool(told.handovers) and told.handovers[-1].saved_s > 0)


def stop_guardian(field: Field) -> None:
    """Stop it for longer than the program saves, and let it go on."""
    with contextlib.suppress(psutil.NoSuchProcess):
        guardian = field.guardian()
        guardian.suspend()
        time.sleep(2.0)
        guardian.resume()


def cancel_guest(field: Field) -> None:
    """End the trial job that room is made for."""
    field.cancel(field.guest)


def stale(change: str) -> Act:
    """Kill pliantd, and let its store say of the hand-over what it said earlier, or nothing."""

    def does(field: Field) -> None:
        field.kill("pliantd")
        with contextlib.closing(sqlite3.connect(field.state / FILE)) as db:
            db.execute(f"{change} WHERE done_s IS NULL")
            db.commit()

    return does


def second_pliantd(field: Field) -> None:
    """Start another pliantd with the same configuration; it has to leave by itself.

    What keeps it from working is the lock of the state directory, or the name of the cluster's on
    this host. One with another directory on another host is not tried.
    """
    main, said = "from pliant.daemon.main import main; main()", len(field.said())
    second = field.spawn([sys.executable, "-c", main, "--config", str(field.toml)], {})
    if second.wait(COME_S) == 0 or "another pliantd" not in field.said(said):
        raise PliantError(f"a second pliantd of one state: {field.said(said).strip() or 'it ran'}")


# --- what passes by itself -------------------------------------------------------------------


def for_a_while(begin: Act, end: Act, lasts_s: float) -> Act:
    """Begin it, and let it end so much later, while the hand-over goes on."""

    def does(field: Field) -> None:
        begin(field)
        field.later.append(threading.Timer(lasts_s, end, (field,)))
        field.later[-1].start()

    return does


def stopped(part: str, lasts_s: float = 3.0) -> Act:
    """Let a daemon be silent for a while: its machine is short of memory, say."""
    return for_a_while(
        lambda field: field.signal(part, signal.SIGSTOP),
        lambda field: field.signal(part, signal.SIGCONT),
        lasts_s,
    )


def both(*some: Act) -> Act:
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


def twice(part: str) -> Act:
    """Kill a part, and again as soon as it has been started anew and has begun to work."""

    def does(field: Field) -> None:
        field.kill(part)
        field.restore()
        time.sleep(0.4)
        field.kill(part)

    return does
