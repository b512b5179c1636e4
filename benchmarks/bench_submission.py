"""What a submission costs: for who types sbatch, and for slurmctld, which does nothing else then.

One slurmctld serves all variants in turn, in blocks of shuffled order, so that a drift of the
machine meets them alike. ``scontrol reconfigure`` takes the job_submit plugin in and out.
slurmctld's own time comes from sdiag, asked after every single submission: total_time of
REQUEST_SUBMIT_BATCH_JOB in microseconds. The cluster is full, so every job waits; each block's
jobs are cancelled after it.
"""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psutil

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
{rounds} blocks of {count} submissions for each variant, shuffled, on one slurmctld with a full
cluster; `scontrol reconfigure` between blocks. The client's time is one `sbatch` from start to end,
one after another; the rate is what one such client reaches. slurmctld's own time is sdiag's for the
submission alone: what pliantd's own questions cost slurmctld is not in it. The jobs of a block ask
the same, as a sweep's do, but where it is said: then each has a time limit that no other has, or an
amount of memory. pliantd looks into a request once, whatever its time limits. A daemon that was
stopped answers nothing: once in each breaker period a submission waits for its time limit, and each
block begins with one."""
_RPC = re.compile(
    r"REQUEST_SUBMIT_BATCH_JOB\s+\(\s*\d+\)\s+count:(\d+)\s+ave_time:\d+\s+total_time:(\d+)"
)


@dataclass(slots=True)
class Variant:
    """One way in which slurmctld is set up, and what was measured so."""

    name: str
    lua: str | None  # job_submit.lua; None: no plugin at all
    flag: bool  # jobs say --moldable, and Pliant must have noticed
    stopped: bool = False
    differ: str = ""  # the option in which no two jobs are alike
    client_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)


class Bench:
    """The sandbox and its variants."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.submitted = 0
        self.conf = sandbox.layout.slurm_conf.read_text()
        self.plugstack = sandbox.layout.plugstack.read_text()
        ours = sandbox.layout.job_submit.read_text()
        self.variants = (
            Variant("no plugin, no flag", None, flag=False),
            Variant("empty Lua script, no flag", _EMPTY, flag=False),
            Variant("Pliant", ours, flag=True),
            Variant("Pliant, each with its own time limit", ours, flag=True, differ="--time"),
            Variant("Pliant, each with its own memory", ours, flag=True, differ="--mem"),
            Variant("Pliant, daemon stopped", ours, flag=True, stopped=True),
        )

    def run(self, *argv: str, stdin: str = "") -> str:
        """Run a command in the sandbox and return what it says."""
        return self.sandbox.run(argv, check=True, stdin=stdin).stdout

    def fill(self) -> None:
        """Let a job take every GPU."""
        self.submit("--nodes=2", "--gres=gpu:4", "--time=600", script="sleep 36000")
        while "R" not in self.run("squeue", "-h", "-o", "%t"):
            time.sleep(0.2)

    def submit(self, *options: str, script: str = "true") -> str:
        """Submit a job and return its id."""
        argv = ("sbatch", "--parsable", "--output=/dev/null", *options)
        return self.run(*argv, stdin=f"#!/bin/sh\n{script}\n").strip()

    def switch(self, variant: Variant) -> None:
        """Set slurmctld up for a variant and see that it took it."""
        layout = self.sandbox.layout
        plugins = "JobSubmitPlugins=lua\n" if variant.lua is not None else ""
        bare = re.sub(r"^JobSubmitPlugins=.*\n", "", self.conf, flags=re.MULTILINE)
        layout.slurm_conf.write_text(bare + plugins)
        layout.job_submit.write_text(variant.lua or _EMPTY)
        layout.plugstack.write_text(self.plugstack if variant.flag else "")
        self.run("scontrol", "reconfigure")
        time.sleep(_SETTLE_S)  # slurmctld compares the script's time in whole seconds
        for _ in range(_WARM_UP):
            job = self.submit(*self.options(variant))
        record = self.run("scontrol", "show", "job", job)
        assert ("AdminComment=pliant=v1:" in record) == variant.flag, f"{variant.name}: {record}"

    def block(self, variant: Variant, count: int) -> None:
        """Measure so many submissions."""
        self.switch(variant)
        if variant.stopped:
            self.sandbox.signal("pliantd", signal.SIGSTOP)
        try:
            before = self.own_time()
            for _ in range(count):
                options = self.options(variant)
                began = time.perf_counter()
                self.submit(*options)
                variant.client_ms.append(1000 * (time.perf_counter() - began))
                after = self.own_time()
                while after[0] == before[0]:  # sbatch has its answer before sdiag's numbers change
                    after = self.own_time()
                assert after[0] == before[0] + 1, "somebody else submitted too"
                variant.server_ms.append((after[1] - before[1]) / 1000)
                before = after
        finally:
            self.sandbox.signal("pliantd", signal.SIGCONT)
            self.run("scancel", "--state=PENDING", "--name=bench")

    def options(self, variant: Variant) -> Sequence[str]:
        """Return what the next job asks for."""
        flag = ["--moldable=gpus=1-4"] if variant.flag else []
        self.submitted += 1
        own = {"--time": 10, "--mem": 100}
        if variant.differ:
            own[variant.differ] += self.submitted
        values = [f"{option}={value}" for option, value in own.items()]
        return ["--job-name=bench", "--nodes=1", "--gres=gpu:2", *values, *flag]

    def own_time(self) -> tuple[int, int]:
        """Return how many submissions slurmctld has served, and for how many microseconds."""
        found = _RPC.search(self.run("sdiag"))
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def resident_mib(self) -> float:
        """Return pliantd's resident memory."""
        resident: int = psutil.Process(self.sandbox.pid("pliantd")).memory_info().rss
        return resident / 2**20


def measure(quick: bool) -> list[Section]:
    """Measure all variants."""
    rounds, count = (2, 5) if quick else (12, 50)
    sandbox = Sandbox("bench-submission", Options(nodes=2, gpus=4, mode="enforce"))
    sandbox.up()
    try:
        bench = Bench(sandbox)
        bench.fill()
        before_mib = bench.resident_mib()
        order = random.Random(0)
        for _ in range(rounds):
            for variant in order.sample(bench.variants, len(bench.variants)):
                bench.block(variant, count)
        after_mib = bench.resident_mib()
    finally:
        sandbox.down()
    flagged = sum(len(variant.client_ms) for variant in bench.variants if variant.flag)
    return [
        _section(bench.variants, rounds, count),
        Section(
            "Memory of pliantd",
            f"Resident, before and after the {flagged} moldable submissions above (and their "
            "cancellation); it decided every second meanwhile.",
            ("", "MiB"),
            [("before", f"{before_mib:.1f}"), ("after", f"{after_mib:.1f}")],
        ),
    ]


def _section(variants: Sequence[Variant], rounds: int, count: int) -> Section:
    none, empty, ours, own_time, own_mem, stopped = variants
    added = {
        variant.name: difference(variant.server_ms, none.server_ms)
        for variant in (ours, own_time, own_mem, stopped)
    }
    reached = max(added[one.name].high for one in (ours, own_time, own_mem)) < GOAL_MS
    words = "; ".join(f"{name}: {more.text(3)} ms" for name, more in added.items())
    script = difference(ours.server_ms, empty.server_ms)
    return Section(
        "A submission",
        _HOW.format(rounds=rounds, count=count),
        ("", "sbatch/s", "client p50, ms", "client p99, ms", "slurmctld p50, ms", "p99, ms", "max"),
        [_row(variant) for variant in variants],
        f"Added to slurmctld's median, against no plugin: {words}. Against an empty script Pliant "
        f"adds {script.text(3)} ms. Goal: less than {GOAL_MS} ms with the daemon running, "
        f"whatever the jobs ask, the whole interval: {verdict(reached)}.",
    )


def _row(variant: Variant) -> Sequence[str]:
    p99: Callable[[Sequence[float]], float] = quantile(0.99)
    rate = 1000 * len(variant.client_ms) / sum(variant.client_ms)
    return (
        variant.name,
        f"{rate:.0f}",
        estimate(variant.client_ms).text(1),
        estimate(variant.client_ms, p99).text(1),
        estimate(variant.server_ms).text(3),
        estimate(variant.server_ms, p99).text(2),
        f"{max(variant.server_ms):.1f}",
    )
