"""What Slurm is told so that a waiting job may share, and whose marks are left alone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.marking import check, is_marked, left_marks, mark_words
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.batch.slurm.site import parse_config
from pliant.batch.slurm.update import Words
from pliant.daemon import main
from pliant.errors import Refused, Unavailable
from pliant.grammar import find_token, put_token
from pliant.model import ANYWHERE, UNMARKED

ROWS = {row.key: row for row in parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))}
PLAIN = replace(ROWS["302"], nodes_required="")
CLUSTER = Cluster(
    (22, 5),
    {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))},
    {row.partition.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))},
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
    assert {row.partition.sharers for row in parse_partitions(text)} == {sharers}


class Answers:
    """A Slurm whose jobs wait with marks, and are told what."""

    def __init__(self, refused: str = "", away: int = 0) -> None:
        """``refused``: a job that is not changed; ``away``: how many calls find nobody."""
        self.refused, self.away = refused, away
        self.told: dict[str, Words] = {}

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        del env, stdin
        self.away -= 1
        if self.away >= 0:
            raise Unavailable("scontrol: Unable to contact slurm controller")
        job = argv[2].removeprefix("jobid=")
        if job == self.refused:
            return Answer("", "slurm_update error: Invalid job id", 1)
        self.told[job] = tuple(argv[3:])
        return Answer("", "", 0)


@pytest.fixture
def unmark(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[Answers], tuple[int, float]]:
    """Run ``pliantd --unmark`` against answers; return how it ends, and after how many seconds."""

    def run(answers: Answers) -> tuple[int, float]:
        now = [0.0]
        slurm = Slurm(answers)
        ours = [marked("n1"), replace(marked(ANYWHERE), job_id="999", array_id="999")]

        def jobs() -> list[JobRow]:
            left = [row for row in ours if row.key not in answers.told]
            return [replace(PLAIN, oversubscribe="YES", admin_comment="theirs"), *left]

        monkeypatch.setattr(slurm, "site", lambda: parse_config(recorded("22.05", "config.txt")))
        monkeypatch.setattr(slurm._queries, "jobs", jobs)
        monkeypatch.setattr(main, "_slurm", lambda _config: slurm)
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        monkeypatch.setattr(time, "sleep", lambda for_s: now.append(now.pop() + for_s))
        config = tmp_path / "pliant.toml"
        config.write_text("")
        code = 0
        try:
            main.main(["--config", str(config), "--unmark"])
        except SystemExit as end:
            code = int(end.code or 0)
        return code, now[0]

    return run


Unmark = Callable[[Answers], tuple[int, float]]


def test_marks_that_any_pliantd_gave_are_taken_as_soon_as_slurm_answers(
    unmark: Unmark, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = Answers(away=3)
    assert unmark(answers) == (0, 6.0)
    assert capsys.readouterr().out == "job 302 starts beside nobody\njob 999 starts beside nobody\n"
    assert answers.told["302"] == ("OverSubscribe=NO", "ReqNodeList=", token(UNMARKED))


def test_marks_that_cannot_be_taken_are_told_in_one_line_after_a_while(
    unmark: Unmark, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "pliantd: --unmark: tried for 20 s: jobs may wait with Pliant's marks: "
    assert unmark(Answers(away=1000)) == (2, 22.0)
    assert capsys.readouterr().err == f"{told}scontrol: Unable to contact slurm controller\n"
    assert unmark(Answers(refused="302")) == (2, 22.0)
    found = capsys.readouterr()
    assert found.out == "job 999 starts beside nobody\n"
    assert found.err == f"{told}job 302: slurm_update error: Invalid job id\n"
