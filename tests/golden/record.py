"""Snapshots of a real Slurm: those on which pliantd decides while jobs come and go in a sandbox.

``PYTHONPATH=. python -m golden.record DIR`` in tests/ runs jobs under each policy of RECORDED, and
leaves what was seen below DIR; ``python -m golden record DIR`` makes golden plans of it. Needs root,
and the packages that ``make test`` installs. GPUs are fake.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random

from benchmarks.live.jobs import Jobs, training

from pliant.sandbox import Options, Sandbox, parts
from pliant.sandbox.layout import Layout

NOTED = Path(__file__).with_name("noted_pliantd.py")
FOR_S = 150.0
RECORDED: Mapping[str, tuple[str, ...]] = {
    "moldable-equipartition": ("--moldable=gpus=1-4", "--moldable=gpus=1/4-2", ""),
    "malleable-equipartition": ("--moldable=gpus=1-4 --malleable", "--moldable=gpus=1-8", ""),
    "f-scheduling": ("--moldable=gpus=1-4 --malleable", ""),
    "fms": ("--moldable=gpus=1-4,nodes=1-2", "--moldable=gpus=1,type=gpu:cpu,cores=2", ""),
    "fitgpp": ("--class=best-effort", "--class=best-effort", "--class=trial", ""),
}
"""What jobs say to Pliant, by policy."""


def main(directory: Path) -> int:
    """Record all."""
    for policy, options in RECORDED.items():
        place = directory / policy
        place.mkdir(parents=True, exist_ok=True)
        _record(policy, options, place)
        print(f"{policy}: {len(list(place.iterdir()))} snapshots", flush=True)
    return 0


def _record(policy: str, options: tuple[str, ...], place: Path) -> None:
    parts._pliantd = partial(_noted, place)  # the pliantd that notes what it sees
    wanted = Options(nodes=3, gpus=4, policy=policy, policy_with={})
    sandbox = Sandbox(f"golden-{os.getpid()}", wanted)
    try:
        sandbox.up()
        with sandbox.layout.pliant_toml.open("a") as toml:
            toml.write('\n[trial]\nmax_jobs = "unlimited"\n')  # all jobs here are one user's
        sandbox.restart("pliantd")
        _run(Jobs(sandbox), options)
    finally:
        sandbox.down()


def _noted(place: Path, layout: Layout) -> list[str]:
    return [sys.executable, str(NOTED), str(place), "--config", str(layout.pliant_toml)]


def _run(jobs: Jobs, options: tuple[str, ...]) -> None:
    """Submit a job every few seconds."""
    rng = Random(1)
    number, ends_s = 0, time.time() + FOR_S
    while time.time() < ends_s:
        number += 1
        steps = rng.choice([100, 300, 600])
        program = training(jobs.file(str(number)), steps, [10.0, 18.0, 24.0, 28.0], 0.5, 0.5)
        said = rng.choice(options).split()
        gpus, minutes = rng.choice([1, 1, 2, 4]), rng.choice([2, 5, 10])
        array = ["--array=0-2"] if rng.random() < 0.1 else []
        jobs.submit(
            f"exec pliant run -- {program}", f"--gres=gpu:{gpus}", f"-t{minutes}", *said, *array
        )
        time.sleep(rng.choice([1.0, 3.0, 6.0]))
        jobs.look()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
