"""Waiting jobs on a full real Slurm, changed through `pliant.batch.slurm`, and what they ran as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from release_helpers import requests
from slurm_helpers import adapter, wait_until

from pliant.batch.slurm import Commands, Slurm
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import Footprint, Job, Spec
from pliant.sandbox import Sandbox

SCRIPT = """#!/bin/bash
echo "gpus=${CUDA_VISIBLE_DEVICES//[^,0-9]/} on_node=${SLURM_GPUS_ON_NODE:-0} \
nodes=$SLURM_JOB_NUM_NODES cpus=$SLURM_JOB_CPUS_PER_NODE tasks=$SLURM_TASKS_PER_NODE \
shards=${SLURM_SHARDS_ON_NODE:-0}"
"""


@dataclass(frozen=True)
class Ran:
    """What a job was really given, by its own environment and by Slurm's accounting."""

    gpus: int = 0  # on the first node, as CUDA sees them
    nodes: int = 1
    cpus: str = "1"
    tasks: str = "1"
    shards: int = 0
    accounted: int = 0  # GPUs in AllocTRES


@dataclass
class Cluster:
    """The sandbox without pliantd: what a test submits and changes is changed by nobody else."""

    sandbox: Sandbox
    workdir: str
    blockers: list[str] = field(default_factory=list)

    def slurm(self, bin_dir: str = "") -> Slurm:
        """Return the adapter under test; ``bin_dir``: the one with commands from there."""
        if not bin_dir:
            return adapter(self.sandbox)
        conf = self.sandbox.env["SLURM_CONF"]
        return Slurm(Commands(conf=conf, bin_dir=bin_dir, env={"PATH": self.sandbox.env["PATH"]}))

    def run(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """Run a command as root."""
        return self.sandbox.run(argv, stdin=stdin, check=check).stdout.strip()

    def fill(self) -> None:
        """Take every node, so that what is submitted next waits."""
        for node in ("n1", "n2", "n3", "n4"):
            where = ("--gres=gpu:4", "--exclusive", f"--nodelist={node}", "--time=600")
            self.blockers.append(self._sbatch(where, "#!/bin/bash\nsleep 3600\n"))
        wait_until(lambda: self.states(self.blockers) == {"RUNNING"}, "the nodes to be taken")

    def free(self, *nodes: str) -> None:
        """Give nodes back; all where none is named."""
        for place, job in enumerate(self.blockers, start=1):
            if not nodes or f"n{place}" in nodes:
                self.run("scancel", job)

    def empty(self) -> None:
        """End all jobs."""

        def none_left() -> bool:
            jobs = self.run("squeue", "-h", "-o%A").split()
            if jobs:
                self.run("scancel", *dict.fromkeys(jobs), check=False)
            return not jobs

        self.blockers.clear()
        wait_until(none_left, "all jobs to end")

    def states(self, jobs: Sequence[str]) -> set[str]:
        """Return the states of some jobs."""
        return set(self.run("squeue", "-h", "-t", "all", "-j", ",".join(jobs), "-o%T").split())

    def submit(self, *options: str, script: str = SCRIPT) -> str:
        """Submit one job."""
        return self._sbatch(("--time=30", "--mem=100", *options), script)

    def _sbatch(self, options: Sequence[str], script: str) -> str:
        argv = ("sbatch", "--parsable", f"--chdir={self.workdir}", "--output=%j.out", *options)
        return self.run(*argv, stdin=script).partition(";")[0]

    def run_long(self, *options: str) -> str:
        """Submit a job that runs until it is ended, and wait until it does."""
        job = self.submit(*options, script="#!/bin/bash\nsleep 3600\n")
        wait_until(lambda: self.states([job]) == {"RUNNING"}, f"job {job} to run")
        return job

    def flag(
        self, job: str, request: str, own: str = "", footprint: Footprint | None = None
    ) -> None:
        """Write the token that the filter writes at submission; ``own`` "": it was away."""
        spec = Spec(parse(request), parse_shape(own) if own else None, None, footprint)
        self.run("scontrol", "update", f"jobid={job}", f"AdminComment={token_text(spec)}")

    def fields(self, job: str) -> Mapping[str, str]:
        """Return a job's fields as scontrol has them, requests as 22.05 writes them."""
        told = requests(self.run("scontrol", "-d", "show", "job", job)).split()
        return dict(word.partition("=")[::2] for word in told if "=" in word)

    def ran(self, job: str) -> Ran:
        """Wait for a job's end and return what it was given."""
        wait_until(lambda: self.states([job]) == {"COMPLETED"}, f"job {job} to end")
        output = Path(f"{self.workdir}/{job}.out").read_text()
        told = dict(word.partition("=")[::2] for word in output.split())
        sacct = ("sacct", "-n", "-P", "-X", "-j", job, "-o", "AllocTRES")
        wait_until(lambda: "cpu=" in self.run(*sacct), f"job {job} in the accounts")
        tres = dict(item.partition("=")[::2] for item in self.run(*sacct).split(","))
        return Ran(
            gpus=len([index for index in told["gpus"].split(",") if index]),
            nodes=int(told["nodes"]),
            cpus=told["cpus"],
            tasks=told["tasks"],
            shards=int(told["shards"]),
            accounted=int(tres.get("gres/gpu", "0")),
        )


def by_id(jobs: Sequence[Job]) -> dict[str, Job]:
    """Return jobs by their ids."""
    return {job.id: job for job in jobs}
