"""What slurmctld's log has shown and the fake of Slurm does not do is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from prove.traced import main, traced

RUN = """\
[2026-11-27T08:21:01.493] _slurm_rpc_submit_batch_job: JobId=7 InitPrio=1 usec=341
[2026-11-27T08:21:02.093] sched: Allocate JobId=7 NodeList=n1 #CPUs=1 Partition=gpu
[2026-11-27T08:22:03.434] sched: _update_job: set priority to 4294967002 for JobId=7
[2026-11-27T08:22:03.457] sched: Created reservation=pliant_7 users=root nodes=n1 cores=16 \
licenses=(null) tres=cpu=16 watts=4294967294 start=2026-11-27T08:21:03 end=2026-11-27T08:24:34 \
MaxStartDelay=
[2026-11-27T08:22:03.569] Requeuing JobId=7
[2026-11-27T08:22:03.651] sched: _update_job: setting tres_per_node:gres:gpu:1 for JobId=7
[2026-11-27T08:22:03.651] sched: _update_job: setting begin to 2026-11-27T08:22:04 for JobId=7
[2026-11-27T08:22:04.082] _slurm_rpc_delete_reservation complete for pliant_7 usec=21
[2026-11-27T08:22:04.093] sched: Allocate JobId=7 NodeList=n1 #CPUs=1 Partition=gpu
[2026-11-27T08:22:09.000] _job_complete: JobId=7 done
"""


def log(without: str = "", *more: str) -> list[str]:
    """A log of one resize, but for a line with these words, and with more."""
    lines = [line for line in RUN.splitlines() if not without or without not in line]
    return [*lines, *(f"[2026-11-27T08:22:10.000] {line}" for line in more)]


def test_what_a_real_one_does_in_a_resize_the_fake_does_too() -> None:
    seen, unlike = traced(log())
    assert unlike == []
    assert seen["a job starts after its requeue, as it was told to"] == 1
    assert seen["a pinned job starts in the pass that the end of a reservation starts"] == 1


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (log("delete_reservation"), "job 7 starts: n1 is reserved"),
        (log("setting begin"), "job 7 starts: it begins 119.9 s later"),
        (log("Requeuing"), "update jobid=7 Gres=gpu:1: the fake refuses it"),
        (log("", "Requeuing JobId=7", "Requeuing JobId=7"), "requeue 7: the fake refuses it"),
        (log("", "sched: Allocate JobId=7 NodeList=n1 #"), "job 7 starts: it is COMPLETED"),
        (
            log(
                "_job_complete",
                "_slurm_rpc_requeue: Requeue of JobId=7 returned an error: Job is pending execution",
            ),
            "job 7: Job is pending execution: it was not requeued",
        ),
    ],
)
def test_what_it_does_not_do_is_said(lines: list[str], words: str) -> None:
    _, unlike = traced(lines)
    assert any(words in line for line in unlike), unlike


def test_that_another_starts_before_one_that_is_pinned_is_said() -> None:
    waits = [line for line in log("_job_complete") if "22:04.093" not in line]
    waits = [line for line in waits if "tres_per_node" not in line]
    other = "[2026-11-27T08:22:{}.000] sched: Allocate JobId=8 NodeList=n1 #CPUs=1 Partition=gpu"
    submits = "[2026-11-27T08:22:04.500] _slurm_rpc_submit_batch_job: JobId=8 InitPrio=1 usec=341"
    assert traced([*waits, submits, other.format("05")])[1] == []  # it may not begin for so long
    _, unlike = traced([*waits, submits, other.format("06")])
    assert unlike == ["2026-11-27T08:22:06.000: job 8 starts: job 7 waits there, with a pin"]
    unpinned, _ = traced(log("set priority"))
    assert "a pinned job starts in the pass that the end of a reservation starts" not in unpinned


def test_nothing_is_held_against_a_slurmctld_that_may_have_forgotten_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = log("", "slurmctld version 22.05.8 started on cluster drill", "Requeuing JobId=7")
    (tmp_path / "log").write_text("\n".join(lines))
    assert main([str(tmp_path / "log")]) == 0
    assert "     2 a job that is RUNNING is requeued\n" in capsys.readouterr().out
    (tmp_path / "log").write_text("\n".join(log("delete_reservation")))
    assert main([str(tmp_path / "log")]) == 1
