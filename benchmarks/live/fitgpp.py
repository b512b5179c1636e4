"""FitGpp's experiment (paper 001, section 3) on four nodes of eight GPUs, live.

The same jobs, submitted at the same seconds, meet three clusters one after the other: FIFO, FitGpp,
and Slurm's own preemption. The jobs are those of :mod:`.workload`. Another free choice is what
``LOAD`` means: the jobs are submitted such that, under FIFO, the GPUs asked for by all that run or
wait stay at twice those there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import ceil
from statistics import median

from benchmarks.live.arms import attempt, told
from benchmarks.live.jobs import LOOK_S, Jobs, training
from benchmarks.live.workload import STEPS_PER_S, TRIALS, Asked, workload
from benchmarks.section import Section
from benchmarks.stats import quantile
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.options import SCHEDULER_PARAMETERS

NODES, GPUS = 4, 8
LOAD = 2.0
FIRST_ONLY = SCHEDULER_PARAMETERS.replace("bf_max_job_test=1000", "bf_max_job_test=1")
"""Backfill looks at the first job alone: nobody overtakes it, as in the paper's FIFO."""
END_S = 900.0


@dataclass(frozen=True, slots=True)
class Ran:
    """One job of one run."""

    asked: Asked
    submit_s: float  # since the first one's
    flow_s: float
    restarts: int
    lost_s: float  # work made again
    saving_s: float
    away_s: tuple[float, ...]  # from each checkpoint until it works again
    state: str
    whole: bool

    @property
    def slowdown(self) -> float:
        """1 + wait/execution: all that is not execution counts as wait."""
        return max(1.0, self.flow_s / self.asked.exec_s)


@dataclass(frozen=True, slots=True)
class Way:
    """One of the clusters: Pliant's policy, or none, and what its jobs say."""

    name: str
    policy: str
    trial: tuple[str, ...] = ()
    best_effort: Callable[[Asked], Sequence[str]] = lambda _asked: ()

    @property
    def own(self) -> bool:
        """Whether Slurm itself preempts."""
        return not self.policy


def _grace(asked: Asked) -> Sequence[str]:
    return ("--class=best-effort", f"--malleable=grace={max(1, ceil(2 * asked.grace_s))}")


WAYS = (
    Way("FIFO", "fifo", (), lambda _asked: ()),
    Way("FitGpp", "fitgpp", ("--class=trial", "--nice=-100000"), _grace),
    Way(
        "Slurm's preemption",
        "",
        ("--partition=te",),
        lambda _asked: ("--partition=be",),
    ),
)


def sections(count: int, seed: int) -> Iterator[Section]:
    """Run all three, and tell of them; an arm that fails is told and ends no other."""
    asked = workload(count, seed)
    at_s: list[float] = []
    found, failed = dict[str, list[Ran]](), dict[str, str]()
    for way in WAYS:
        known = len(at_s)
        ran = attempt(way.name, partial(run, way, asked, at_s), failed)
        if ran is None:
            del at_s[known:]  # found out by half: the next one does so anew
        else:
            found[way.name] = ran
    yield _table(found, failed, count, seed)
    yield _drawn(asked, at_s)


def run(way: Way, asked: Sequence[Asked], at_s: list[float]) -> list[Ran]:
    """Run the jobs on a cluster of its own.

    ``at_s``: when each is submitted; empty, it is found out, and filled in, by keeping the load.
    """
    mode = "none" if way.own else "enforce"
    options = Options(nodes=NODES, gpus=GPUS, mode=mode, scheduler_parameters=FIRST_ONLY)
    if way.policy:
        options = Options(
            nodes=NODES, gpus=GPUS, policy=way.policy, scheduler_parameters=FIRST_ONLY
        )
    sandbox = Sandbox("live-fitgpp", options)
    sandbox.down()  # what a run that was killed has left
    try:
        sandbox.up()
        _configure(sandbox, way, asked)
        return _run(Jobs(sandbox), way, asked, at_s)
    finally:
        sandbox.down()


def _configure(sandbox: Sandbox, way: Way, asked: Sequence[Asked]) -> None:
    """Set what a site would set for it."""
    if not way.own:
        with sandbox.layout.pliant_toml.open("a") as toml:
            toml.write('\n[trial]\nmax_jobs = "unlimited"\n')  # all jobs here are one user's
        sandbox.restart("pliantd")
        return
    grace_s = ceil(max(one.grace_s for one in asked)) + 1
    conf = sandbox.layout.slurm_conf
    lines = [
        # It keeps a requeued job for this and a second more: by default two hours of the paper's.
        f"{line},cred_expire=5" if line.startswith("AuthInfo=") else line
        for line in conf.read_text().splitlines()
        if not line.startswith(("PartitionName=", "KillWait="))
    ]
    lines += [
        "PreemptType=preempt/partition_prio",
        "PreemptMode=REQUEUE",
        f"KillWait={grace_s}",  # GraceTime tells job steps alone
        "PartitionName=te Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE",
        "PartitionName=be Nodes=ALL PriorityTier=1 MaxTime=INFINITE Default=YES",
    ]
    conf.write_text("\n".join(lines) + "\n")
    for part in ("slurmctld", *(f"slurmd-n{at + 1}" for at in range(NODES))):
        sandbox.restart(part)
    deadline = time.monotonic() + 60
    while sandbox.run(["sinfo", "-h", "-p", "be", "-t", "idle", "-o", "%D"]).stdout.strip() != "4":
        assert time.monotonic() < deadline, "the nodes did not come back"
        time.sleep(0.5)


def _run(jobs: Jobs, way: Way, asked: Sequence[Asked], at_s: list[float]) -> list[Ran]:
    find = not at_s
    began_s = time.time()
    numbers: list[int] = []
    for at, one in enumerate(asked):
        while find and _load(jobs, numbers, asked) >= LOAD:
            assert time.time() < began_s + END_S, f"after {END_S:.0f} s not all were submitted"
            time.sleep(LOOK_S)
            jobs.look()
        while not find and time.time() < began_s + at_s[at]:
            time.sleep(0.02)
        if find:
            at_s.append(time.time() - began_s)
        numbers.append(_submit(jobs, way, one, at))
    jobs.wait(began_s + END_S)
    return [_ran(jobs, one, at, numbers[at]) for at, one in enumerate(asked)]


def _load(jobs: Jobs, numbers: Sequence[int], asked: Sequence[Asked]) -> float:
    """What the jobs that run or wait ask for, of all GPUs."""
    there = (one for job, one in zip(numbers, asked, strict=False) if not jobs.seen[job].is_over)
    return sum(one.gpus for one in there) / (NODES * GPUS)


def _submit(jobs: Jobs, way: Way, one: Asked, at: int) -> int:
    size = (f"--gres=gpu:{one.gpus}", f"-c{one.cpus}", f"--mem={one.mem_mib}")
    common = ("-N1", "-n1", "-t60", "--open-mode=append", *size)
    file = jobs.file(str(at))
    if one.trial:
        script = (
            f'say() {{ echo "$1 $EPOCHREALTIME 0 {one.gpus} 0" >>{file}.log; }}\n'
            f"say start; sleep {one.exec_s:.2f}; say end"
        )
        return jobs.submit(script, *common, *way.trial)
    command = training(file, one.steps, (STEPS_PER_S,), 0.0, one.grace_s)
    script = f"trap '' TERM\nexec {command}" if way.own else f"exec pliant run -- {command}"
    return jobs.submit(script, *common, *way.best_effort(one))


def _ran(jobs: Jobs, one: Asked, at: int, number: int) -> Ran:
    seen, events = jobs.seen[number], jobs.events(str(at))
    last = events[-1] if events else None
    ended = last is not None and last.what == "end"
    end_s = last.at_s if last and ended else time.time()
    saves = sum(event.what == "saved" for event in events)
    return Ran(
        one,
        seen.submit_s - min(other.submit_s for other in jobs.seen.values()),
        end_s - seen.submit_s,
        seen.restarts,
        sum(event.lost for event in events) / STEPS_PER_S,
        saves * one.grace_s,
        tuple(
            later.at_s - event.at_s for event, later in pairwise(events) if event.what == "saved"
        ),
        seen.state,
        whole=last is not None and ended and (one.trial or last.step == one.steps),
    )


# --- what is told of it ---------------------------------------------------------------------


def _table(found: dict[str, list[Ran]], failed: dict[str, str], count: int, seed: int) -> Section:
    rows = [
        _row("TE slowdown, median", found, lambda ran: _slowdown(ran, True, median)),
        _row("TE slowdown, p95", found, lambda ran: _slowdown(ran, True, quantile(0.95))),
        _row("BE slowdown, median", found, lambda ran: _slowdown(ran, False, median)),
        _row("BE slowdown, p95", found, lambda ran: _slowdown(ran, False, quantile(0.95))),
        _row("preemptions (restarts)", found, lambda ran: f"{sum(one.restarts for one in ran)}"),
        _row("jobs preempted", found, lambda ran: f"{sum(one.restarts > 0 for one in ran)}"),
        _row("most of one job", found, lambda ran: f"{max(one.restarts for one in ran)}"),
        _row("work made again, s", found, lambda ran: f"{sum(one.lost_s for one in ran):.1f}"),
        _row("time to save, s", found, lambda ran: f"{sum(one.saving_s for one in ran):.1f}"),
        _row("from saved to working again, median s", found, _away),
        _row("all done after, s", found, lambda ran: f"{_makespan(ran):.0f}"),
        _row("not counted to the end", found, lambda ran: f"{sum(not one.whole for one in ran)}"),
    ]
    result = " ".join(words for words in (_result(found), told(failed)) if words)
    return Section("FitGpp: three clusters", _how(count, seed), ("", *found), rows, result)


def _row(what: str, found: dict[str, list[Ran]], of: Callable[[list[Ran]], str]) -> Sequence[str]:
    return (what, *(of(ran) for ran in found.values()))


def _slowdown(ran: list[Ran], trial: bool, take: Callable[[Sequence[float]], float]) -> str:
    return f"{take([one.slowdown for one in ran if one.asked.trial is trial]):.2f}"


def _away(ran: list[Ran]) -> str:
    spans = [span for one in ran for span in one.away_s]
    return f"{median(spans):.1f}" if spans else "-"


def _makespan(ran: list[Ran]) -> float:
    return max(one.submit_s + one.flow_s for one in ran)


def _result(found: dict[str, list[Ran]]) -> str:
    def p95(name: str, *, trial: bool) -> float:
        return float(_slowdown(found[name], trial, quantile(0.95)))

    def against(other: str, *, trial: bool) -> float:
        return 100 * (p95(fitgpp, trial=trial) / p95(other, trial=trial) - 1)

    fifo, fitgpp, own = (way.name for way in WAYS)
    if fitgpp not in found:
        return ""
    words = []
    if fifo in found:
        words.append(
            f"TE p95 slowdown under FitGpp against FIFO: {against(fifo, trial=True):+.1f} % (the "
            f"paper, in simulation: -96.6 %); BE p95: {against(fifo, trial=False):+.1f} % (the "
            "paper: +23.9 %)."
        )
    if own in found:
        words.append(
            f"Against Slurm's own preemption: TE p95 {against(own, trial=True):+.1f} %, BE p95 "
            f"{against(own, trial=False):+.1f} %."
        )
    return " ".join(words)


def _how(count: int, seed: int) -> str:
    return (
        f"{NODES} nodes of {GPUS} fake GPUs; {count} jobs, {100 * TRIALS:.0f} % of them trial "
        f"(TE), the others best-effort (BE), drawn by seed {seed}. A minute of the paper is a "
        f"second here. The submissions keep the GPUs asked for at {LOAD:g} times those there are "
        "under FIFO, and are the same for all three clusters. Slowdown is 1 + wait/execution; all "
        "that is not execution counts as wait, what Slurm, Pliant and Python take, unscaled, too. "
        "In all three backfill looks at the first job alone (bf_max_job_test=1): nobody overtakes "
        "it. TE jobs only sleep; BE jobs are a program that counts by the clock and, when it is "
        "asked, takes its whole grace period to save. Under FIFO and FitGpp (s = 4, P = 1) BE jobs "
        "run under `pliant run`; for FitGpp they say twice their grace period "
        "(`--malleable=grace=`), and TE jobs stand first by their nice value. Slurm's own: "
        "PreemptType=preempt/partition_prio, PreemptMode=REQUEUE; its programs save at the TERM "
        "and end, KillWait being longer than the longest grace period (with a GraceTime, also with "
        "preempt_send_user_signal, a batch script was told only when that was over), and "
        "cred_expire=5, for Slurm keeps each requeued job for 121 s otherwise, which would be two "
        "hours in the paper's time."
    )


def _drawn(asked: Sequence[Asked], at_s: Sequence[float]) -> Section:
    rows = []
    for name, trial in (("TE", True), ("BE", False)):
        some = [one for one in asked if one.trial is trial]
        execs, graces = [one.exec_s for one in some], [one.grace_s for one in some]
        rows.append(
            (
                name,
                f"{len(some)}",
                f"{median(execs):.1f} / {max(execs):.1f}",
                f"{median([one.gpus for one in some]):g} / {max(one.gpus for one in some)}",
                f"{median([one.cpus for one in some]):g} / {max(one.cpus for one in some)}",
                f"{median(graces):.1f} / {max(graces):.1f}",
            )
        )
    header = ("median / most", "jobs", "execution s", "GPUs", "CPUs", "grace period s")
    how = (
        "Truncated normals. The paper's: means of 5 and 30 min cut at 30 min and 24 h, a grace "
        "period of 3 min on average cut at 20. Chosen freely: every standard deviation as large as "
        "the mean, at least a minute of execution, GPUs around 1 and 2, CPUs around 4 and 8, "
        "memory around 16 and 32 of 256 GB."
    )
    if at_s:
        how += f" The last job was submitted after {at_s[-1]:.0f} s."
    return Section("FitGpp: what was drawn", how, header, rows)
