"""What Slurm is told so that a waiting job may share, and whose marks are left alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_queue import Queue
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.marking import check, is_marked, left_marks, mark_words
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.daemon import main
from pliant.errors import Refused, Unavailable
from pliant.grammar import find_token, put_token
from pliant.model import ANYWHERE, UNMARKED, Shape

ROWS = {row.key: row for row in parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))}
PLAIN = replace(ROWS["302"], nodes_required="")
CLUSTER = Cluster(
    (22, 5),
    {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))},
    {row.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))},
)


def marked(mark: str, **fields: str) -> JobRow:
    """The job with a mark of ours, as Slurm shows it then."""
    spec = find_token(PLAIN.admin_comment)
    assert spec is not None
    comment = put_token(PLAIN.admin_comment, replace(spec, mark=mark))
    shares = "NO" if mark == UNMARKED else "YES"
    node = mark if mark not in (ANYWHERE, UNMARKED) else ""
    row = replace(PLAIN, admin_comment=comment, oversubscribe=shares, nodes_required=node)
    return replace(row, **fields)


def token(mark: str) -> str:
    return f"AdminComment={marked(mark).admin_comment}"


@pytest.mark.parametrize(
    ("row", "mark", "words"),
    [
        (PLAIN, ANYWHERE, ("OverSubscribe=YES",)),
        (PLAIN, "n1", ("OverSubscribe=YES", "ReqNodeList=n1")),
        (marked(ANYWHERE), UNMARKED, ("OverSubscribe=NO",)),
        (marked("n1"), UNMARKED, ("OverSubscribe=NO", "ReqNodeList=")),
        (marked("n1"), ANYWHERE, ("OverSubscribe=YES", "ReqNodeList=")),
        (marked("n1"), "n2", ("OverSubscribe=YES", "ReqNodeList=n2")),
        (marked("n1", nodes_required="n3"), UNMARKED, ("OverSubscribe=NO",)),
        (marked(UNMARKED), ANYWHERE, ("OverSubscribe=YES",)),
    ],
)
def test_one_call_gives_or_takes_a_mark_and_notes_it(
    row: JobRow, mark: str, words: tuple[str, ...]
) -> None:
    assert mark_words(row, mark) == (*words, token(mark))


def test_a_mark_of_its_owner_is_left_alone() -> None:
    own = replace(PLAIN, oversubscribe="YES")
    with pytest.raises(Refused, match="its owner gave it one"):
        mark_words(own, UNMARKED)
    with pytest.raises(Refused, match="it says nothing to Pliant"):
        mark_words(replace(PLAIN, admin_comment="theirs"), ANYWHERE)
    runs = marked(ANYWHERE, state="RUNNING")
    assert left_marks([own, runs, PLAIN, marked(UNMARKED), marked("n1")]) == [marked("n1")]


def test_a_job_that_has_changed_or_started_is_not_marked() -> None:
    assert check(PLAIN, PLAIN) is PLAIN
    for now in (None, replace(PLAIN, state="RUNNING"), replace(PLAIN, num_cpus="3")):
        with pytest.raises(Refused):
            check(PLAIN, now)


def test_what_is_read_back_tells_whether_a_mark_was_set() -> None:
    assert is_marked(marked("n1"), "n1")
    assert is_marked(marked(UNMARKED), UNMARKED)
    assert not is_marked(marked(ANYWHERE), "n1")
    assert not is_marked(replace(marked(ANYWHERE), oversubscribe="OK"), ANYWHERE)


def test_a_job_whose_mark_was_taken_back_is_not_taken_for_an_exclusive_one() -> None:
    """Slurm says NO of both."""
    found = waiting_job(marked(UNMARKED), CLUSTER, 0.0)
    assert (found.frozen, found.shares, found.mark) == ("", False, "")
    exclusive = waiting_job(replace(PLAIN, oversubscribe="NO"), CLUSTER, 0.0)
    assert exclusive.frozen == "it has its nodes alone"
    assert waiting_job(marked("n1"), CLUSTER, 0.0).mark == "n1"


@pytest.mark.parametrize(
    ("said", "sharers"), [("YES:2", 2), ("YES:4", 4), ("NO", 1), ("FORCE:2", 1), ("EXCLUSIVE", 1)]
)
def test_how_many_share_a_cpu_is_read_of_a_partition(said: str, sharers: int) -> None:
    recording = recorded("22.05", "partitions.txt")
    text = re.sub(r"OverSubscribe=\S+", f"OverSubscribe={said}", recording)
    assert {row.sharers for row in parse_partitions(text)} == {sharers}


@pytest.fixture
def queue() -> Queue:
    """Jobs wait that may share: 7 and 8 for their owners say so, 302 and 999 by marks of Pliant's."""
    made, shares = Queue(), ("OverSubscribe", "YES")
    made.submit("7", "", Shape(1, 1), comment="theirs", also=[shares])
    made.submit("8", "colocate", Shape(1, 1), also=[shares])
    for number, mark, also in (("302", "n1", [("ReqNodes", "n1")]), ("999", ANYWHERE, [])):
        made.submit(number, "colocate", Shape(1, 1), also=[shares, *also])
        made.says(number, mark=mark)
    return made


Unmark = Callable[[float], tuple[int, float]]


@pytest.fixture
def unmark(queue: Queue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Unmark:
    """Run ``pliantd --unmark``; return how it ends, and after how many seconds.

    Slurm answers after as many seconds as are given.
    """

    def run(answers_s: float) -> tuple[int, float]:
        now_s = 0.0

        def monotonic() -> float:
            assert len(queue.clients.asked) < 1000, "it asks without a pause"
            return now_s

        def sleep(for_s: float) -> None:
            nonlocal now_s
            now_s += for_s
            queue.clients.away = AWAY if now_s < answers_s else None

        monkeypatch.setattr(main, "_slurm", lambda _config: queue)
        monkeypatch.setattr(time, "monotonic", monotonic)
        monkeypatch.setattr(time, "sleep", sleep)
        config = tmp_path / "pliant.toml"
        config.write_text("")
        code = 0
        sleep(0.0)
        try:
            main.main(["--config", str(config), "--unmark"])
        except SystemExit as end:
            code = int(end.code or 0)
        return code, now_s

    return run


AWAY = Unavailable("scontrol: Unable to contact slurm controller")


def test_marks_that_any_pliantd_gave_are_taken_as_soon_as_slurm_answers(
    queue: Queue, unmark: Unmark, capsys: pytest.CaptureFixture[str]
) -> None:
    assert unmark(6.0) == (0, 6.0)
    assert capsys.readouterr().out == "job 302 starts beside nobody\njob 999 starts beside nobody\n"
    assert queue.changes == [("302", "mark -"), ("999", "mark -")]
    assert queue.clients.took[0][2:4] == ("OverSubscribe=NO", "ReqNodeList=")
    shares = {number: queue.job(number).shares for number in ("7", "8", "302", "999")}
    assert shares == {"7": True, "8": True, "302": False, "999": False}


def test_marks_that_cannot_be_taken_are_told_in_one_line_after_a_while(
    queue: Queue, unmark: Unmark, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "pliantd: --unmark: tried for 20 s: jobs may wait with Pliant's marks: "
    assert unmark(1000.0) == (2, 22.0)
    assert capsys.readouterr().err == f"{told}{AWAY}\n"
    queue.clients.refuses = {"jobid=302": "slurm_update error: Invalid job id"}
    assert unmark(0.0) == (2, 22.0)
    found = capsys.readouterr()
    assert found.out == "job 999 starts beside nobody\n"
    assert found.err == f"{told}job 302: slurm_update error: Invalid job id\n"
    assert queue.changes == [("999", "mark -")]
