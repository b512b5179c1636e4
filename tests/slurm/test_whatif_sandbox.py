"""`pliant whatif` on what a real Slurm's accounting remembers."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from slurm_helpers import Submit, WaitForState, wait_until

from docs_helpers import Terminal
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm


def test_what_jobs_of_a_real_slurm_would_have_gained(
    clean: Sandbox, submit: Submit, wait_for_state: WaitForState, workdir: Path
) -> None:
    blocks = submit("--nodes=4", "--gres=gpu:4", "--time=2", script="sleep 2")
    last = submit("--nodes=4", "--gres=gpu:4", "--time=2", script="sleep 2", user="pliant-bob")
    for job in (blocks, last):
        wait_for_state(job, "COMPLETED")

    def known() -> bool:
        argv = ["sacct", "-n", "-X", "-P", f"-j{blocks},{last}", "-o", "State"]
        return clean.run(argv).stdout.split() == ["COMPLETED"] * 2

    wait_until(known, "slurmdbd to know of the jobs' ends")
    env = {key: clean.env[key] for key in ("SLURM_CONF", "PLIANT_CONFIG")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = Terminal(cwd=workdir, env={**os.environ, **env, "PATH": path})
    try:
        printed = terminal.types(
            "docs/simulator.md", "pliant whatif --since 30days --html whatif.html"
        )
    finally:
        terminal.close()
    assert "Cluster: 4 nodes with 4 GPUs and 16 CPUs each" in printed
    assert "Agreement: jobs waited" in printed
    assert re.search(r"^\d+ jobs of \d+ users, from ", printed, re.MULTILINE)
    assert re.search(r"^\S+ +users( +\d+){3}\n\S+ +jobs( +\d+){3}$", printed, re.MULTILINE)
    report = workdir / "whatif.html"
    assert report.stat().st_mode & 0o777 == 0o600
    assert report.read_text().count("<figure>") == 4
