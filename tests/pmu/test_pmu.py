"""Our reader, unmodified, on machines with a PMU: programs whose instructions are known beforehand.

Not of `make test`, for an emulated machine takes its time: `make test-pmu`.
"""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emulator
import experiments
import pytest

from pliant.monitor.counting import offered
from pliant.monitor.perf import Event

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build/pmu"
COUNT = 100_000_000
EXACT = 0.001  # of what is known: the goal
TURNS = 0.05  # where only a share of the time was counted, and scaled
NO_CGROUP = (
    "job 1: speed in tier 1, counters by threads: perf does not follow this cgroup: it has gone, "
    "is of another hierarchy, or waits for a controller in cgroup.subtree_control (ENOENT)"
)
BLIND = (
    "job 1: speed in tier 3, CPU time alone, which does not see interference in caches and memory: "
)

pytestmark = pytest.mark.timeout(emulator.BOOT_S + 300)


@pytest.fixture(scope="module")
def machine() -> tuple[Path, Path]:
    """The emulated machine's kernel and initramfs."""
    return emulator.build(emulator.fetch(BUILD / "apt"), BUILD / "image", COUNT)


@pytest.fixture(scope="module")
def emulated(machine: tuple[Path, Path]) -> list[dict[str, Any]]:
    """What was counted where QEMU counts instructions."""
    found, printed = emulator.boot(*machine, "-icount", "shift=0")
    assert found, printed
    return found


@pytest.fixture(scope="module")
def loop() -> Path:
    """The program, for this machine."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / "loop"
    emulator.compile_loop(program, "gcc")
    return program


@pytest.fixture(scope="module")
def native(loop: Path) -> Iterator[list[dict[str, Any]]]:
    """What was counted on this machine itself."""
    if no := offered()[Event.INSTRUCTIONS]:
        pytest.skip(f"this machine: {no}")
    argv = [sys.executable, str(Path(experiments.__file__)), str(loop), str(COUNT)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=300)
    print(done.stdout)
    yield emulator.told(done.stdout)


def close(found: list[dict[str, Any]], what: str, near: float = EXACT) -> list[float]:
    """Print the experiments of a kind; return the largest error of each that is not near enough."""
    ours = [one for one in found if one["what"] == what]
    assert ours, found
    for one in ours:
        print(one)
    errors = [one["instructions"] / one["expected"] - 1 for one in ours]
    return [error for error in errors if abs(error) > near]


@pytest.mark.parametrize(
    "what",
    ["thread", "job by threads", "job by cgroup", "two jobs by threads", "two jobs by cgroup"],
)
def test_a_known_loop_is_counted_on_an_emulated_machine(
    emulated: list[dict[str, Any]], what: str
) -> None:
    assert close(emulated, what) == []


def test_where_the_pmu_has_too_few_counters_they_take_turns(emulated: list[dict[str, Any]]) -> None:
    assert close(emulated, "shared PMU", TURNS) == []
    turns = [one for one in emulated if one["what"] == "shared PMU"]
    assert all(one["running_ns"] < one["enabled_ns"] for one in turns)


def test_a_cgroup_without_controllers_leads_to_the_threads(emulated: list[dict[str, Any]]) -> None:
    assert [one["line"] for one in emulated if one["what"] == "new cgroup"] == [NO_CGROUP]


def test_a_pmu_without_instructions_is_a_partial_one(machine: tuple[Path, Path]) -> None:
    found, printed = emulator.boot(*machine)
    assert found == [
        {
            "what": "machine",
            "instructions": errno.ENOENT,
            "cycles": 0,
            "task-clock": 0,
            "line": f"{BLIND}the PMU counts cycles but no instructions: no PMU here offers this "
            "event (ENOENT)",
        }
    ], printed


@pytest.mark.parametrize("what", ["thread", "job by threads", "two jobs by threads"])
def test_a_known_loop_is_counted_on_this_machine(native: list[dict[str, Any]], what: str) -> None:
    assert close(native, what) == []


def test_the_loop_is_what_it_says_to_a_simulator_of_instructions(loop: Path) -> None:
    """Cachegrind executes each instruction itself: an oracle for the loop, without a PMU."""
    shortest = executed(loop, 2)
    longest = executed(loop, COUNT // 10)
    print(shortest, longest)
    # Three threads, the second and third of which have two and three times the first's.
    assert longest - shortest == pytest.approx(6 * (COUNT // 10 - 2), rel=EXACT / 10)


def executed(loop: Path, count: int) -> int:
    """Return how many instructions a run of the program had, start and end included."""
    argv = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    argv += [str(loop), str(count), "3", "0"]
    done = subprocess.run(argv, input="\n", capture_output=True, text=True, check=True, timeout=300)
    refs = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert refs, done.stderr
    return int(refs[1].replace(",", ""))
