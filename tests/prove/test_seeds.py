"""The whole of pliantd, under seeds: nothing is lost, left, overruled or told otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from limits import HANG_S
from prove.seeds.seed import run

TOP = Path(__file__).parents[1]
SEEDS = 50


@pytest.mark.parametrize("first", range(0, SEEDS, 5))
def test_whatever_a_seed_brings_all_is_as_it_must_be(first: int) -> None:
    for seed in range(first, first + 5):
        found = run(seed)
        assert found.wrong == [], f"make prove-seeds SEED={seed}"
        assert found.jobs >= 200
        assert found.hand_overs >= 20
        assert sum(found.faults.values()) >= 5


def test_the_same_seed_brings_the_same() -> None:
    assert {_hash_of(7, order) for order in ("1", "2")} == {run(7).hash}


def _hash_of(seed: int, order: str) -> str:
    """The hash of a seed in a process of its own, with sets and words in another order."""
    done = subprocess.run(
        [sys.executable, "-c", f"from prove.seeds.seed import run; print(run({seed}).hash)"],
        cwd=TOP,
        env={**os.environ, "PYTHONHASHSEED": order},
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    return done.stdout.strip()
