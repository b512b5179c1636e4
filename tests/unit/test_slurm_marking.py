"""What Slurm is told so that a waiting job may share, and whose marks are left alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from slurm_recorded import NONCE, recorded

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.marking import check, is_marked, left_marks, mark_words
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.errors import Refused
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
