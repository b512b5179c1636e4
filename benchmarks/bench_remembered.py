"""Whether all that was molded is remembered, with pliantd killed twice and a third unanswered.

``python -m benchmarks remembered`` submits 1,000 flagged jobs to a real Slurm (100 with --quick).
pliantd is killed, stopped, and killed again, and is away each time until a ninth of all of them has
passed without an answer. What it remembers in the end is compared with what Slurm says: of each job
the shape that slurmctld showed right after its submission, and the GPUs that accounting says it ran
on.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.section import Section, verdict
from pliant.daemon import answers as a
from pliant.daemon.reporting import ReportAnswer
from pliant.errors import Unavailable
from pliant.grammar.token import UNANSWERED, noted
from pliant.sandbox import Options, Sandbox
from pliant.wire import Message, ask_over_tcp

NAME = "bench-remembered"
USERS = ("pliant-alice", "pliant-bob")
SUBMISSIONS = 1_000
PART = 1 / 3
"""Of the submissions that pass without an answer."""
OUTAGES = ("SIGKILL", "SIGSTOP", "SIGKILL")
"""How pliantd goes away; each begins in the middle of its part of the run."""
BURSTS = 100
GAP_S = (2.5, 1.0)
"""From burst to burst, and so with --quick: the first of a burst is often molded by the filter, the
others while they wait. job_submit.lua asks nobody for 5 s after a failure."""
SETTLE_S = 2.0
LAST_S = 280.0
"""By then all is remembered: slurmctld forgets jobs after MinJobAge, 300 s."""
_GPUS = re.compile(r" TresPerNode=gres:gpu:(?:\w+:)?(\d+)")
_ADMIN_COMMENT = re.compile(r" AdminComment=(.*?) [A-Z]\w+=")
_SHAPED = ("filter", "mold")


@dataclass(slots=True)
class Submitted:
    """A job, as its owner wrote it and as Slurm shows it."""

    job: str
    own: str
    at_first: str  # right after its submission
    answered: bool
    ran: str = ""  # the GPUs that accounting says; "" for none

    @property
    def molds(self) -> set[str]:
        """The shapes that it did not have of its owner."""
        return {self.at_first, self.ran} - {self.own, ""}


@dataclass(slots=True)
class Found:
    """What pliantd remembers of those jobs."""

    unrecorded: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)


def measure(quick: bool) -> list[Section]:
    """Submit, and compare."""
    sandbox = Sandbox(NAME, Options(nodes=4, gpus=4, accounting=True, users=USERS))
    try:
        sandbox.up()
        time.sleep(SETTLE_S)
        return [_section(sandbox, SUBMISSIONS // 10 if quick else SUBMISSIONS, GAP_S[quick])]
    finally:
        sandbox.down()


def _section(sandbox: Sandbox, count: int, gap_s: float) -> Section:
    began_s = time.monotonic()
    jobs = [*_submitted(sandbox, count, gap_s)]
    took_s = time.monotonic() - began_s
    _wait(lambda: not _out(sandbox, "squeue", "-h", "-o", "%i"), "all jobs to end")
    _account(sandbox, jobs)
    found = _compared(sandbox, jobs)
    counted = _counted(sandbox)
    silent = sum(not one.answered for one in jobs)
    ran = sum(one.ran not in ("", one.own) for one in jobs)
    rows = [
        ("submissions", count, counted["submissions"]),
        ("of these without an answer", silent, counted["unanswered"]),
        ("jobs with another shape right after", sum(one.at_first != one.own for one in jobs), "-"),
        ("jobs that ran with another shape", ran, counted["molded"]),
        ("jobs with a mold that no decision tells of", "-", len(found.unrecorded)),
        ("jobs whose answer or run is remembered otherwise", "-", len(found.wrong)),
    ]
    whole = not found.unrecorded and not found.wrong
    same = (count, silent, ran) == tuple(counted.values())
    told = ", ".join(f"{number} {what}" for what, number in sorted(found.told.items()))
    return Section(
        "What is remembered while pliantd comes and goes",
        f"{count} flagged jobs of two users in {BURSTS} bursts, {took_s:.0f} s in all, on 4 nodes "
        f"with 4 GPUs. pliantd was away {len(OUTAGES)} times ({', '.join(OUTAGES)}), each time "
        f"until a ninth of the submissions had passed without an answer. Decisions: {told}.",
        ("", "Slurm says", "Pliant remembers"),
        [(name, str(slurm), str(pliant)) for name, slurm, pliant in rows],
        f"No mold is unrecorded and none is remembered otherwise: {verdict(whole)}; "
        f"the report's counts are Slurm's: {verdict(same)}."
        + "".join(f" {one}." for one in (*found.unrecorded, *found.wrong)[:5]),
    )


# Submitting


def _submitted(sandbox: Sandbox, count: int, gap_s: float) -> Iterator[Submitted]:
    draw, silent, began_s = random.Random(22), 0, time.monotonic()
    share, away = count / len(OUTAGES), None
    for number in range(count):
        begins_s = began_s + gap_s * (number * BURSTS // count)
        time.sleep(max(0.0, begins_s - time.monotonic()))
        outage = int(number / share)
        if away is None and number == int((outage + 0.4) * share):
            away = _leave(sandbox, OUTAGES[outage])
            most = PART * count * (outage + 1) / len(OUTAGES)
        job = _submit(sandbox, draw)
        silent += not job.answered
        if away is not None and silent >= most:
            away()
            away = None
        yield job
    if away is not None:
        away()


def _leave(sandbox: Sandbox, how: str) -> Callable[[], None]:
    """Take pliantd away; return what brings it back."""
    sandbox.signal("pliantd", signal.Signals[how])
    if how == "SIGSTOP":
        return lambda: sandbox.signal("pliantd", signal.SIGCONT)
    return lambda: sandbox.start("pliantd")


def _submit(sandbox: Sandbox, draw: random.Random) -> Submitted:
    own, least = draw.choice(((4, 1), (4, 2), (2, 1), (1, 1), (3, 1)))
    argv = ["sbatch", "--parsable", "-t5", "-o", "/dev/null", f"--gres=gpu:{own}"]
    flag = f"--moldable=gpus={least}-{draw.choice((own, 4))}"
    script = f"#!/bin/sh\nsleep {draw.choice((0, 0.5, 1))}\n"
    job = _out(sandbox, *argv, flag, user=draw.choice(USERS), stdin=script)
    shown = _out(sandbox, "scontrol", "-o", "show", "job", job)
    comment = _ADMIN_COMMENT.search(shown)
    gpus = _GPUS.search(shown)
    assert comment, f"job {job} has no token: {shown}"
    assert gpus, f"job {job} has no GPUs: {shown}"
    return Submitted(job, str(own), gpus[1], not noted(comment[1], UNANSWERED))


# Comparing


def _account(sandbox: Sandbox, jobs: Sequence[Submitted]) -> None:
    """Add what accounting says of each job."""
    argv = ("sacct", "-X", "-n", "-P", "-o", "JobID,State,AllocTRES", "-u", ",".join(USERS))
    told: dict[str, tuple[str, str]] = {}

    def all_ended() -> bool:
        lines = (line.split("|") for line in _out(sandbox, *argv).splitlines())
        told.update({job: (state, tres) for job, state, tres in lines})
        return all(told.get(one.job, ("", ""))[0] == "COMPLETED" for one in jobs)

    _wait(all_ended, "accounting to know all ends")
    for one in jobs:
        given = dict(word.partition("=")[::2] for word in told[one.job][1].split(","))
        one.ran = given.get("gres/gpu", "")


def _compared(sandbox: Sandbox, jobs: Sequence[Submitted]) -> Found:
    found = Found()
    for one in jobs:
        told = _history(sandbox, one.job)
        found.told.update(made.what for made in told.decisions)
        shapes = {made.shape for made in told.decisions if made.what in _SHAPED}
        runs = [f"{run.gpus:g}" for run in told.runs]
        if one.molds - shapes:
            found.unrecorded.append(f"{one} has {sorted(shapes)}")
        if (told.own, told.answered, runs) != (one.own, one.answered, [one.ran]):
            found.wrong.append(f"{one} has own {told.own}, {told.answered}, ran {runs}")
    return found


def _history(sandbox: Sandbox, job: str) -> a.HistoryAnswer:
    answers: list[a.HistoryAnswer] = []

    def is_over() -> bool:
        answer = _ask(sandbox, Message("history", {"job": job}))
        if answer is None or not answer.is_ok:
            return False
        answers.append(a.from_json(a.HistoryAnswer, answer.fields["json"]))
        return answers[-1].exit != ""

    _wait(is_over, f"pliantd to know the end of job {job}")
    return answers[-1]


def _counted(sandbox: Sandbox) -> dict[str, int]:
    answer = _ask(sandbox, Message("report", {"since": "86400"}))
    assert answer is not None, "pliantd does not answer"
    assert answer.is_ok, answer.message
    total = a.from_json(ReportAnswer, answer.fields["json"]).report.total
    return {
        "submissions": total.counted.answered + total.counted.unanswered,
        "unanswered": total.sums.unanswered,
        "molded": total.sums.smaller + total.sums.larger + total.sums.other,
    }


def _ask(sandbox: Sandbox, question: Message) -> Message | None:
    """Ask pliantd as root; None where it does not answer now."""
    try:
        return ask_over_tcp(
            "127.0.0.1",
            sandbox.record.ports.pliant,
            question,
            munge_socket=str(sandbox.layout.munge_socket),
        )
    except Unavailable:
        return None


def _out(sandbox: Sandbox, *argv: str, user: str | None = None, stdin: str = "") -> str:
    return sandbox.run(argv, check=True, user=user, stdin=stdin).stdout.strip()


def _wait(is_so: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + LAST_S
    while not is_so():
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.2)
