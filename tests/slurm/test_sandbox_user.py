"""A sandbox of an ordinary user: no root needed once the packages are there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import pliant
from pliant.resources import FOLDERS
from pliant.sandbox.accounts import Person, person

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
    interpreter = _python_for(alice)
    checkout, site = _readable(alice, workdir)
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
        timeout=120,
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


def _readable(user: Person, workdir: Path) -> tuple[Path, Path]:
    """Return our checkout and our packages, copied where the user may not read ours."""
    checkout, site = Path(pliant.__file__).parents[2], Path(sysconfig.get_path("purelib"))
    tried = subprocess.run(
        ["runuser", "-u", user.name, "--", "test", "-r", str(site)], timeout=30, check=False
    )
    if tried.returncode == 0:
        return checkout, site
    for folder in ("src", *FOLDERS):
        shutil.copytree(checkout / folder, workdir / folder)
    shutil.copytree(site, workdir / "site", ignore=shutil.ignore_patterns("mypy*", "pip", "*.pth"))
    return workdir, workdir / "site"


def _python_for(user: Person) -> str:
    """Return a Python of our version that the user may run; ours may lie in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for place in (sys.executable, f"/usr/bin/{version}"):
        tried = subprocess.run(
            ["runuser", "-u", user.name, "--", place, "-c", ""],
            capture_output=True,
            timeout=30,
            check=False,
        )
        if tried.returncode == 0:
            return place
    pytest.skip(f"{user.name} may run no {version} here")
