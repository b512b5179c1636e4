"""The faults of the drill: what is done to which part, and when.

A moment is a step of the hand-over, ``before:requeue`` or ``after:requeue``, at which pliantd halts
while the fault is injected, or ``asked``: while the program saves, or ``any time`` from then until
it should run again.
"""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import psutil

from benchmarks.drill.field import COME_S, USER, Field
from pliant.daemon.run_verbs import GONE

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
    job, and what it must say once all is quiet.
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


def around(*steps: str) -> tuple[str, ...]:
    """Return the moments before and after these steps."""
    return tuple(f"{when}:{step}" for step in steps for when in ("before", "after"))


# --- what is done --------------------------------------------------------------------------


def _kill(part: str) -> Callable[[Field], None]:
    return lambda field: field.kill(part)


def _stop_pliantd(field: Field) -> None:
    """Stop it, silent but not gone, until the job's wrapper requeues by itself."""
    field.sandbox.signal("pliantd", signal.SIGSTOP)
    try:
        field.wait(lambda: field.state(field.job) == "PENDING", "the wrapper to requeue", COME_S)
    finally:
        field.sandbox.signal("pliantd", signal.SIGCONT)


def _kill_program(field: Field) -> None:
    psutil.Process(field.program()[0]).kill()


def _kill_wrapper(field: Field) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        field.program()[1].kill()


def _kill_wrapper_alone(field: Field) -> None:
    """The program has ended by then: its wrapper is what keeps the job's place."""
    field.program()[1].kill()


def _kill_guardian(field: Field) -> None:
    """Kill the job's script; Slurm ends the job of a script that is killed, whatever it runs."""
    _kill_script(field, with_wrapper=False)


def _kill_both(field: Field) -> None:
    _kill_script(field, with_wrapper=True)


def _kill_script(field: Field, *, with_wrapper: bool) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
        guardian = field.guardian()
        wrapper = [field.program()[1]] if with_wrapper else []
        for process in (*wrapper, guardian):
            process.kill()
        if not field.has_saved():  # one that just began again may be taken for told a second time
            field.ends = ("FAILED", "COMPLETED")
            field.told = ("its guardian was killed", f"job {field.job}: {GONE}")


def _stop_guardian(field: Field) -> None:
    """Stop it for longer than the program saves, and let it go on."""
    with contextlib.suppress(psutil.NoSuchProcess):
        guardian = field.guardian()
        guardian.suspend()
        time.sleep(2.0)
        guardian.resume()


def _node_down(field: Field) -> None:
    field.scontrol("update", "nodename=n1", "state=down", "reason=drill")


def _owner(*words: str) -> Callable[[Field], None]:
    """Let the owner say it; Slurm 24.11 refuses it for a moment after a requeue: again then."""

    def does(field: Field) -> None:
        argv = [word.format(job=field.job, rival=field.rival) for word in words]

        def was_taken() -> bool:
            return "temporarily unavailable" not in field.scontrol(*argv, user=USER)

        field.wait(was_taken, "the owner's words to be taken", COME_S)

    return does


def _cancel(field: Field) -> None:
    field.sandbox.run(["scancel", str(field.job)], user=USER)


def _restart_at_once(field: Field) -> None:
    """Let the job start in the second in which it went back into the queue, as it was."""

    def waits() -> bool:
        return field.state(field.job) == "PENDING"

    field.wait(waits, "the job to wait", 15)
    field.scontrol("update", f"jobid={field.job}", "StartTime=now")
    field.scontrol("delete", f"ReservationName=pliant_{field.job}")
    time.sleep(1.5)


def _kill_start(field: Field) -> None:
    """End the next run as a kill does that is told a second time."""
    field.sandbox.run(["scancel", "--signal=TERM", "--full", str(field.job)])


@contextlib.contextmanager
def full_disk(field: Field) -> Iterator[None]:
    """Keep pliantd's state on a disk without a free byte."""
    state = field.sandbox.layout.pliant_state
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", str(state)]
    subprocess.run(mount, check=True, timeout=10)
    try:
        with contextlib.suppress(OSError), (state / "full").open("wb", buffering=0) as file:
            while file.write(b"0" * 4096):
                pass
        yield
    finally:
        field.sandbox.stop("pliantd")
        subprocess.run(["umount", str(state)], check=True, timeout=10)


def _fill_disk(field: Field) -> None:
    """Take what is left of the disk that pliantd's state lies on."""
    state = field.sandbox.layout.pliant_state
    with contextlib.suppress(OSError), (state / "full").open("ab", buffering=0) as file:
        while file.write(b"0" * 1024):
            pass


@contextlib.contextmanager
def small_disk(field: Field) -> Iterator[None]:
    """Keep pliantd's state on a small disk."""
    state = field.sandbox.layout.pliant_state
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", str(state)]
    subprocess.run(mount, check=True, timeout=10)
    try:
        yield
    finally:
        field.sandbox.stop("pliantd")
        subprocess.run(["umount", str(state)], check=True, timeout=10)


def _fill_and_kill(field: Field) -> None:
    _fill_disk(field)
    field.kill("pliantd")


def _stale(change: str) -> Callable[[Field], None]:
    """Kill pliantd, and let its store say of the hand-over what it said earlier, or nothing."""

    def does(field: Field) -> None:
        field.kill("pliantd")
        with contextlib.closing(sqlite3.connect(field.sandbox.layout.pliant_state / FILE)) as db:
            db.execute(f"{change} WHERE done_s IS NULL")
            db.commit()

    return does


_release = _owner("release", "{job}")

BEGINS = "2031-02-03T04:05:06"
"""When an owner lets a job begin who does not mean the drill."""
AFTER = "afterany:{rival}"
PENDING = ("before:reshape", "after:reshape", "before:unfence")
"""While it waits between its two runs: an owner's update of these fields is refused before."""
REQUEUED = ("after:requeue", "before:unfence")
"""While the job ends or waits, behind its fence."""
FILE = "pliant.db"
HOLDS = (ASKED, *SAVED, *WAITS)
ANY = (ASKED, *around(*STEPS))
"""Every moment of a resize."""

FAULTS: Sequence[Fault] = (
    Fault("nothing", (ASKED,)),
    Fault("nothing, preempted", (ASKED,), guest=True),
    Fault("pliantd killed while the program saves", (ASKED,), _kill("pliantd")),
    *(
        Fault(f"pliantd killed {when} {step}", (f"{when}:{step}",), _kill("pliantd"))
        for step in STEPS
        for when in ("before", "after")
    ),
    *(
        Fault(
            f"pliantd killed {when} {step}, preempted",
            (f"{when}:{step}",),
            _kill("pliantd"),
            guest=True,
        )
        for step in GUEST_STEPS
        for when in ("before", "after")
    ),
    Fault("pliantd stopped until the wrapper requeues", SAVED, _stop_pliantd, first=True),
    Fault("slurmctld killed", ANY, _kill("slurmctld")),
    Fault("slurmd killed", ANY, _kill("slurmd-n1")),
    Fault("wrapper killed while the program saves", (ASKED,), _kill_wrapper, first=True),
    Fault("wrapper killed, checkpoint written", SAVED, _kill_wrapper_alone, first=True),
    Fault("wrapper killed at any time", (ANY_TIME,), _kill_wrapper, first=True),
    Fault("guardian killed at any time", (ANY_TIME,), _kill_guardian, first=True),
    Fault("guardian killed, checkpoint written", (*SAVED, *WAITS), _kill_guardian, first=True),
    Fault("guardian and wrapper killed at any time", (ANY_TIME,), _kill_both, first=True),
    Fault("guardian and wrapper killed, checkpoint written", SAVED, _kill_both, first=True),
    Fault("guardian stopped for a while", (ANY_TIME,), _stop_guardian, first=True),
    Fault("program killed while it saves", (ASKED,), _kill_program, ends="FAILED"),
    Fault("node down while the program saves", (ASKED,), _node_down, first=True),
    Fault("node down, checkpoint written, no fence yet", SAVED[:2], _node_down, first=True),
    Fault("node down, checkpoint written", (SAVED[-1], *WAITS), _node_down),
    Fault("checkpoint never ends", (ASKED,), checkpoint="never", grace_s=3),
    Fault("checkpoint comes too late", (ASKED,), checkpoint="late", grace_s=3),
    Fault("checkpoint fails", (ASKED,), checkpoint="fails", ends="FAILED"),
    Fault("checkpoint half written", (ASKED,), checkpoint="half", ends="FAILED"),
    Fault("credential revoked", ("after:requeue",), _restart_at_once, rival=False),
    Fault("next run killed at its start", ("after:release",), _kill_start, first=True),
    Fault("user cancels", ANY, _cancel, ends="CANCELLED"),
    Fault("user holds", HOLDS, _owner("hold", "{job}"), after=_release, first=True),
    Fault("user updates", ANY, _owner("update", "jobid={job}", "TimeLimit=25")),
    *(
        Fault(
            f"user updates {what}",
            moments,
            _owner("update", "jobid={job}", words),
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
    Fault("user requeues", (ASKED, *SAVED), _owner("requeue", "{job}"), first=True),
    Fault("clock of pliantd 30 s ahead", (ASKED,), skew_s=30),
    Fault("clock of pliantd 30 s behind", (ASKED,), skew_s=-30),
    Fault("clock 30 s ahead, pliantd killed", around(*STEPS), _kill("pliantd"), skew_s=30),
    Fault("clock 30 s behind, pliantd killed", around(*STEPS), _kill("pliantd"), skew_s=-30),
    Fault("disk full from the start", (ASKED,), around=full_disk),
    Fault("disk full from the start, pliantd killed", WAITS, _kill("pliantd"), around=full_disk),
    Fault("disk full meanwhile, pliantd killed", ANY, _fill_and_kill, around=small_disk),
    *(
        Fault(f"store says {what}, pliantd killed{more}", REQUEUED, _stale(change), guest=guest)
        for what, change in (
            ("not saved", "UPDATE handovers SET saved_s = 0"),
            ("saved long ago", "UPDATE handovers SET saved_s = saved_s - 3600"),
            ("it is over", "UPDATE handovers SET done_s = at_s, outcome = 'done'"),
            ("nothing", "DELETE FROM handovers"),
        )
        for more, guest in (("", False), (", preempted", True))
    ),
    Fault("slurmctld killed, preempted", around(*GUEST_STEPS), _kill("slurmctld"), guest=True),
)
