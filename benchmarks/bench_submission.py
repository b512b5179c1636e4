"""What a submission costs slurmctld, which does nothing else meanwhile, and whom types sbatch.

slurmctld's own time is sdiag's: of all that one user has asked it, the sum before and after each
single submission, in microseconds. That user does nothing but submit, so the difference is one
submission, from the request to the answer, with what it waited for locks; nobody else's is in it.

One slurmctld serves all ways of submitting, in short rounds of shuffled order, so that a drift of
the machine meets them alike; ``scontrol reconfigure`` takes the job_submit plugin in and out. The
cluster is full, so every job waits; each part's jobs are cancelled after it.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import psutil

from benchmarks.bench_attack import VICTIM, Attacks
from benchmarks.section import Section, verdict
from benchmarks.stats import difference, estimate, quantile
from pliant.sandbox import Options, Sandbox

GOAL_MS = 0.5
_SETTLE_S = 1.5
_WARM_UP = 5
_EMPTY = """\
function slurm_job_submit(job, partitions, uid) return slurm.SUCCESS end
function slurm_job_modify(job, record, partitions, uid) return slurm.SUCCESS end
return slurm.SUCCESS
"""
_HOW = """\
{rounds} rounds of {count} submissions of each kind by one user, in shuffled order, on one slurmctld
with a full cluster; `scontrol reconfigure` between no plugin, an empty job_submit.lua and Pliant's.
slurmctld's own time is by sdiag, which is asked after each single one: by how much the sum of all
that this user has asked grew. Locks that it waited for are in it; what pliantd's own questions cost
is not, nor what others submit. The client's time is one `sbatch` from start to end, one after
another; the rate is what one such client reaches. With Pliant jobs say `--moldable`; they ask the
same, as a sweep's do, but where it is said: then each has a time limit that no other has, or an
amount of memory. A daemon that was stopped answers nothing: once in each breaker period a
submission waits for its time limit, and each round begins with one. Under attack another user
submits hostile requests all the while, one of those below in turn in each round."""


def row_of(user: str) -> re.Pattern[str]:
    """Return what finds a user's count and total time, in microseconds, in what sdiag prints."""
    return re.compile(
        rf"^\s*{user}\s+\(\s*\d+\) count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)", re.M
    )


@dataclass(slots=True)
class Kind:
    """One way to submit, and what was measured so."""

    name: str
    setup: str
    differ: str = ""  # the option in which no two jobs are alike
    stopped: bool = False
    attacked: bool = False
    client_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)


NONE, EMPTY, PLIANT = "no plugin", "empty Lua script", "Pliant"
UNDER = ", under attack"


def kinds() -> dict[str, Kind]:
    """Return all kinds by their names, with nothing measured."""
    found = (
        Kind(NONE, NONE),
        Kind(EMPTY, EMPTY),
        Kind(EMPTY + UNDER, EMPTY, attacked=True),
        Kind(PLIANT, PLIANT),
        Kind("Pliant, each with its own time limit", PLIANT, "--time"),
        Kind("Pliant, each with its own memory", PLIANT, "--mem"),
        Kind(PLIANT + UNDER, PLIANT, attacked=True),
        Kind("Pliant, daemon stopped", PLIANT, stopped=True),
    )
    return {kind.name: kind for kind in found}


class Bench:
    """The sandbox, set up in one way or another."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.attacks = Attacks(sandbox)
        self.submitted = 0
        layout = sandbox.layout
        self._conf, self._plugstack = layout.slurm_conf.read_text(), layout.plugstack.read_text()
        self._lua = {EMPTY: _EMPTY, PLIANT: layout.job_submit.read_text()}
        self._row = row_of(VICTIM)

    def run(self, *argv: str, stdin: str = "", user: str | None = None) -> str:
        """Run a command in the sandbox and return what it says."""
        return self.sandbox.run(argv, check=True, stdin=stdin, user=user).stdout

    def fill(self) -> None:
        """Let a job take every GPU."""
        options = ("--output=/dev/null", "--nodes=2", "--gres=gpu:4", "--time=600")
        self.run("sbatch", *options, stdin="#!/bin/sh\nsleep 36000\n")
        while "R" not in self.run("squeue", "-h", "-o", "%t"):
            time.sleep(0.2)

    def submit(self, kind: Kind) -> str:
        """Submit a job of a kind and return its id."""
        self.submitted += 1
        own = {"--time": 10, "--mem": 100}
        if kind.differ:
            own[kind.differ] += self.submitted
        argv = ["sbatch", "--parsable", "--output=/dev/null", "--job-name=bench", "--nodes=1"]
        argv += ["--gres=gpu:2", *(f"{option}={value}" for option, value in own.items())]
        argv += ["--moldable=gpus=1-4"] if kind.setup == PLIANT else []
        return self.run(*argv, stdin="#!/bin/sh\ntrue\n", user=VICTIM).strip()

    def switch(self, kind: Kind) -> None:
        """Set slurmctld up for a kind and see that it took it."""
        layout, has_lua = self.sandbox.layout, kind.setup in self._lua
        bare = re.sub(r"^JobSubmitPlugins=.*\n", "", self._conf, flags=re.MULTILINE)
        layout.slurm_conf.write_text(bare + "JobSubmitPlugins=lua\n" * has_lua)
        layout.job_submit.write_text(self._lua.get(kind.setup, _EMPTY))
        layout.plugstack.write_text(self._plugstack if kind.setup == PLIANT else "")
        self.attacks.has_pliant = kind.setup == PLIANT
        self.run("scontrol", "reconfigure")
        time.sleep(_SETTLE_S)  # slurmctld compares the script's time in whole seconds
        for _ in range(_WARM_UP):
            job = self.submit(kind)
        record = self.run("scontrol", "show", "job", job)
        assert ("AdminComment=pliant=v1:" in record) == (kind.setup == PLIANT), record

    def measure(self, some: Sequence[Kind]) -> None:
        """Measure one submission of each of these, one after another; then cancel them."""
        before = self._asked()
        for kind in some:
            began = time.perf_counter()
            self.submit(kind)
            kind.client_ms.append(1000 * (time.perf_counter() - began))
            after = self._asked()
            while after[0] == before[0]:  # sbatch has its answer before sdiag's numbers change
                after = self._asked()
            assert after[0] == before[0] + 1, "the user asked for something else too"
            kind.server_ms.append((after[1] - before[1]) / 1000)
            before = after
        self.run("scancel", "--state=PENDING", "--name=bench")

    def _asked(self) -> tuple[int, int]:
        """Return how often the user has asked slurmctld, and for how many microseconds."""
        found = self._row.search(self.run("sdiag"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Let pliantd stand still."""
        self.sandbox.signal("pliantd", signal.SIGSTOP)
        try:
            yield
        finally:
            self.sandbox.signal("pliantd", signal.SIGCONT)

    def resident_mib(self) -> float:
        """Return pliantd's resident memory."""
        resident: int = psutil.Process(self.sandbox.pid("pliantd")).memory_info().rss
        return resident / 2**20


def _round(
    bench: Bench, some: Sequence[Kind], count: int, attack: str, order: random.Random
) -> None:
    """Measure the kinds of one setup: what they have in common besides is done once."""
    bench.switch(some[0])
    for attacked, stopped in ((False, False), (True, False), (False, True)):
        alike = [k for k in some if (k.attacked, k.stopped) == (attacked, stopped)]
        each = order.sample(alike * count, len(alike) * count)
        with (
            bench.attacks.under(attack) if attacked and each else nullcontext(),
            bench.stopped() if stopped else nullcontext(),
        ):
            bench.measure(each)


def measure(quick: bool) -> list[Section]:
    """Measure all kinds."""
    rounds, count = (2, 5) if quick else (42, 25)
    sandbox = Sandbox("bench-submission", Options(nodes=2, gpus=4, mode="enforce"))
    found = kinds()
    setups = [[k for k in found.values() if k.setup == name] for name in (NONE, EMPTY, PLIANT)]
    sandbox.up()
    try:
        bench = Bench(sandbox)
        bench.fill()
        before_mib = bench.resident_mib()
        order = random.Random(0)
        for number in range(rounds):
            attack = bench.attacks.names[number % len(bench.attacks.names)]
            for some in order.sample(setups, len(setups)):
                _round(bench, some, count, attack, order)
        after_mib = bench.resident_mib()
    finally:
        sandbox.down()
    flagged = sum(len(kind.client_ms) for kind in found.values() if kind.setup == PLIANT)
    return [
        _section(found, rounds, count),
        Section(
            "Memory of pliantd",
            f"Resident, before and after the {flagged} moldable submissions above (and their "
            "cancellation); it decided every second meanwhile. It keeps what Slurm shows of ended "
            "jobs: here for half an hour (MinJobAge), so of them all.",
            ("", "MiB"),
            [("before", f"{before_mib:.1f}"), ("after", f"{after_mib:.1f}")],
        ),
    ]


def _section(found: dict[str, Kind], rounds: int, count: int) -> Section:
    ours = [kind for kind in found.values() if kind.setup == PLIANT]
    added = {
        kind.name: difference(
            kind.server_ms, found[EMPTY + (UNDER if kind.attacked else "")].server_ms
        )
        for kind in ours
    }
    median = all(more.value < GOAL_MS for more in added.values())
    whole = all(more.high < GOAL_MS for more in added.values())
    words = "; ".join(f"{name}: {more.text(3)} ms" for name, more in added.items())
    bare = difference(found[PLIANT].server_ms, found[NONE].server_ms)
    return Section(
        "A submission",
        _HOW.format(rounds=rounds, count=count),
        ("", "sbatch/s", "client p50, ms", "client p99, ms", "slurmctld p50, ms", "p99, ms", "max"),
        [_row(kind) for kind in found.values()],
        f"Added to slurmctld's median, against an empty script: {words}. Against no plugin Pliant"
        f" adds {bare.text(3)} ms. Goal: less than {GOAL_MS} ms against an empty script for every"
        f" kind: {verdict(median)}; the whole interval: {verdict(whole)}.",
    )


def _row(kind: Kind) -> Sequence[str]:
    p99: Callable[[Sequence[float]], float] = quantile(0.99)
    rate = 1000 * len(kind.client_ms) / sum(kind.client_ms)
    return (
        kind.name,
        f"{rate:.0f}",
        estimate(kind.client_ms).text(1),
        estimate(kind.client_ms, p99).text(1),
        estimate(kind.server_ms).text(3),
        estimate(kind.server_ms, p99).text(2),
        f"{max(kind.server_ms):.1f}",
    )
