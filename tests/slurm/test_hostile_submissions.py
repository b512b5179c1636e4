"""Submissions with texts of 10 MB: nobody else's waits for them, and the switch to off works."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest
from asking_helpers import wait_for_look
from lua_helpers import PLAIN, close_breaker, job_submit_lua, run_asked
from slurm_helpers import wait_until

from pliant.grammar import find_token
from pliant.grammar.token import spec_text
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

SIZE = 10_000_000
ATTACKS = 3
SBATCH = ["sbatch", "--parsable", "--hold"]
FLAGGED = [*SBATCH, "--moldable=gpus=1-4", "--gres=gpu:1"]
TOO_LONG = "Pathname of a file, directory or other parameter too long"
OPTIONS = ("partition", "dependency", "nodelist", "exclude")
"""Of the last three Slurm takes 120,000 bytes; pliantd is told only that they are there."""


def attack(sandbox: Sandbox, option: str = "partition") -> str:
    """Submit a job of which one text has 10 MB, and return what sbatch says of it.

    Of commas: a constraint of 1 MB costs slurmctld of 24.11 more than 15 s by itself, and 300,000
    names of nodes in --exclude cost it 16 s (22.05), without Pliant as with it.
    """
    script = f"#!/bin/sh\n#SBATCH --{option}={',' * SIZE}\n"
    return sandbox.run(FLAGGED, user="pliant-bob", stdin=script).stderr


@contextmanager
def attacked(sandbox: Sandbox, option: str) -> Iterator[None]:
    """Let one such submission follow the other."""
    over = threading.Event()
    begun = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            attack(sandbox, option)
            begun.set()

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        assert begun.wait(120)
        yield
    finally:
        over.set()
        thread.join(120)


def cpu_of_attacks_s(sandbox: Sandbox, option: str) -> float:
    """CPU time that slurmctld spends on some, and on another user's plain job behind each of them.

    It is what that user waits for. Not wall clock, as the machine may be busy.
    """
    attack(sandbox, option)  # it loads the script
    pid = sandbox.pid("slurmctld")
    assert pid is not None
    before = psutil.Process(pid).cpu_times()
    for _ in range(ATTACKS):
        assert TOO_LONG in attack(sandbox, option)
        sandbox.run([*SBATCH, "--wrap=true"], user="pliant-alice", check=True)
    after = psutil.Process(pid).cpu_times()
    return after.user + after.system - before.user - before.system


@pytest.mark.parametrize("option", OPTIONS)
def test_a_text_of_10_mb_keeps_another_user_waiting_no_more_than_twice_as_long_as_without_pliant(
    clean: Sandbox, option: str
) -> None:
    with job_submit_lua(clean, PLAIN):
        without_s = cpu_of_attacks_s(clean, option)
    close_breaker(clean)
    with_s = cpu_of_attacks_s(clean, option)
    print(f"slurmctld's CPU: {without_s:.2f} s without Pliant, {with_s:.2f} s with it")
    assert with_s <= 2 * without_s + 0.5  # some seconds where each byte is escaped


def noted(sandbox: Sandbox, job: str) -> str:
    """What a job's token says."""
    argv = ["squeue", "-h", "-j", job, "-O", "admin_comment:|"]
    spec = find_token(sandbox.run(argv, check=True).stdout.strip().removesuffix("|"))
    return spec_text(spec) if spec else ""


def test_a_dependency_of_3_kb_keeps_a_job_moldable(clean: Sandbox) -> None:
    first = clean.run([*SBATCH, "--wrap=true"], user="pliant-alice", check=True).stdout.strip()
    close_breaker(clean)
    wait_for_look(clean)
    dependency = f"--dependency={','.join([f'afterany:{first}'] * 300)}"
    job = run_asked(clean, [*FLAGGED, dependency, "--wrap=true"], "pliant-alice").stdout.strip()
    assert noted(clean, job) == "moldable=gpus=1-4;own=1;fp=1,0,1,0,0,0,0"


def test_a_text_that_is_too_long_leaves_pliantd_asked_by_others(clean: Sandbox) -> None:
    close_breaker(clean)
    wait_for_look(clean)
    said = attack(clean)
    assert "pliant: --partition has more than the 1024 bytes that Pliant reads" in said
    job = run_asked(clean, [*FLAGGED, "--wrap=true"], "pliant-alice").stdout.strip()
    assert noted(clean, job) == "moldable=gpus=1-4;own=1;fp=1,0,1,0,0,0,0"


@pytest.mark.parametrize("option", ["partition", "dependency", "exclude"])
def test_the_switch_to_off_works_under_attack(clean: Sandbox, option: str) -> None:
    close_breaker(clean)
    wait_for_look(clean)
    path, log = clean.layout.pliant_toml, clean.layout.log("pliantd").with_suffix(".out")
    before = path.read_text()
    lines = ['default = "off"' if x.startswith("default =") else x for x in before.splitlines()]

    def times_read() -> int:
        return log.read_text(errors="replace").count("pliant.toml was read again")

    def reload(text: str) -> None:
        read = times_read()
        path.write_text(text)
        clean.signal("pliantd", signal.SIGHUP)
        wait_until(lambda: times_read() > read, "pliantd to read its configuration")

    try:
        with attacked(clean, option):
            reload("\n".join(lines) + "\n")
            job = run_asked(clean, [*FLAGGED, "--wrap=true"], "pliant-alice").stdout.strip()
            assert noted(clean, job) == "", "the first submission after it"
    finally:
        reload(before)
        wait_for_look(clean)
