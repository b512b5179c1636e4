"""A sandbox of an ordinary user: no root needed once the packages are there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from user_helpers import python_for, readable

from limits import HANG_S
from pliant.sandbox.accounts import person

pytestmark = pytest.mark.slurm

SCRIPT = """
import os
from pliant.sandbox import Options, Sandbox
sandbox = Sandbox(f"mine-{os.getpid()}", Options(nodes=2, gpus=2, mode="none"))
sandbox.up()
try:
    print(sandbox.layout.top.parent)
    told = sandbox.run(["srun", "-N2", "--gres=gpu:1", "sh", "-c", 'id -un; echo "$CUDA_VISIBLE_DEVICES"'])
    print(told.stdout + told.stderr, end="")
finally:
    sandbox.down()
print(sandbox.processes(), sandbox.layout.base.exists())
"""


def test_an_ordinary_user_runs_a_sandbox(users: tuple[str, str], workdir: Path) -> None:
    alice = person(users[0])
    interpreter = python_for(alice)
    checkout, site = readable(alice, workdir)
    env = {
        "HOME": str(alice.home),
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{checkout / 'src'}:{site}",
    }
    done = subprocess.run(
        [interpreter, "-c", SCRIPT],
        env=env,
        cwd="/",
        user=alice.uid,
        group=alice.gid,
        extra_groups=alice.groups,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [
        "/home/pliant-alice/.cache/pliant-sandbox",
        "0",
        "0",
        "[] False",
        "pliant-alice",
        "pliant-alice",
    ]
