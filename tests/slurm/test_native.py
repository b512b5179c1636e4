"""A real Slurm by pyslurm: what is seen is what the commands see, also where pyslurm does not fit.

Which of both this is depends on the machine: pyslurm fits one release of Slurm. All tests of the
adapter run that way with ``PLIANT_TEST_ACCESS=native``.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest
from slurm_helpers import Submit, WaitForState, adapter, wait_until

from pliant.batch import Change
from pliant.batch.slurm.native import installed
from pliant.batch.slurm.site import version_of
from pliant.errors import Unavailable
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import Snapshot, Spec
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

LONG = "sleep 3600"
JOBS = (
    ("--gres=gpu:2", "--mem=100", "--time=30"),
    ("--gpus=2", "--time=1-01:00"),
    ("--gpus-per-node=a100:1", "--cpus-per-task=2", "--time-min=5"),
    ("--gres=gpu:1", "--nodes=2", "--ntasks-per-node=2", "--mem-per-cpu=50"),
    ("--gres=shard:1", "--array=0-4%2"),
    ("--gpus-per-task=1", "--ntasks=2", "--hold"),
    ("--gpus=1", "--cpus-per-gpu=2", "--hold"),
    ("--exclusive", "--nodelist=n1", "--constraint=a100", "--begin=now+3600"),
    ("--hold", "--comment=None |\n x AdminComment=y", "--exclude=n[1-2]"),
)


@pytest.fixture
def quiet(clean: Sandbox) -> Iterator[Sandbox]:
    """The sandbox without pliantd: nobody changes what a test looks at."""
    clean.stop("pliantd")
    yield clean
    clean.start("pliantd")


def without_moments(snapshot: Snapshot) -> Snapshot:
    """Leave out the moment of the look, and in which order running jobs were told."""
    running = tuple(sorted(snapshot.running, key=lambda job: job.id))
    return replace(snapshot, now_s=0.0, running=running)


def test_jobs_of_every_kind_are_seen_as_by_the_commands(
    quiet: Sandbox, submit: Submit, wait_for_state: WaitForState, caplog: pytest.LogCaptureFixture
) -> None:
    ids = [submit(*options, script=LONG) for options in JOBS]
    wait_for_state(ids[0], "RUNNING")
    commands, native = adapter(quiet, access="commands"), adapter(quiet, access="native")
    seen: list[Snapshot] = []

    def same() -> bool:
        seen[:] = [without_moments(each.observe()) for each in (commands, native)]
        return seen[0] == seen[1]  # nothing has started between the two

    wait_until(same, "both to see the same")
    assert len(seen[1].running) + len(seen[1].waiting) >= len(JOBS)
    release = native.site()
    version = installed()
    lines = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    if version and version_of(version) == release.version:
        assert lines == []
    else:
        reason = f"pyslurm {version} does not fit Slurm {release.release}" if version else ""
        line = f"{reason or 'pyslurm is not installed'}: the commands are used instead"
        assert lines == [line]


def test_a_job_is_changed_and_changed_back(quiet: Sandbox, submit: Submit) -> None:
    holder = submit("--nodes=4", "--exclusive", "--time=30", script=LONG)
    slurm = adapter(quiet, access="native")
    wait_until(lambda: bool(slurm.observe().running), f"job {holder} to run")
    job = submit("--nodes=1", "--ntasks=1", "--gres=gpu:1")
    words = f"AdminComment=site=x {token_text(Spec(parse('gpus=1-4')))}"
    quiet.run(["scontrol", "update", f"jobid={job}", words], check=True)
    for to in ("3", "1"):
        (seen,) = slurm.observe().waiting
        assert seen.spec is not None
        shape = parse_shape(to)
        spec = replace(seen.spec, set=shape)
        assert slurm.change([Change(seen, shape, spec)]) == [None]
        (changed,) = slurm.observe().waiting
        assert (changed.shape, changed.spec) == (shape, spec)


def test_a_controller_that_hangs_ends_the_look_in_time_and_harms_nothing_later(
    quiet: Sandbox,
) -> None:
    slurm = adapter(quiet, access="native", timeout_s=2.0)
    before = without_moments(slurm.observe())
    quiet.signal("slurmctld", signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="no answer within 2 s"):
            slurm.observe()
    finally:
        quiet.signal("slurmctld", signal.SIGCONT)

    def again() -> bool:
        try:
            return without_moments(slurm.observe()) == before
        except Unavailable:
            return False

    wait_until(again, "slurmctld to answer again")
