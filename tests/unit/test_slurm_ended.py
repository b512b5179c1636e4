"""Jobs of Slurm that have ended."""

from __future__ import annotations

from dataclasses import fields

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.ended import EndedJobs
from pliant.batch.slurm.job_rows import JobRow
from pliant.grammar import parse, put_token
from pliant.model import Footprint, Shape, Spec

TOKEN = put_token("", Spec(parse("gpus=1-4"), Shape(1, 2), None, Footprint()))

CLUSTER = Cluster((26, 5), {}, {})


def row(number: int, **said: str) -> JobRow:
    plain = {
        **{field.name: "" for field in fields(JobRow)},
        **{"job_id": str(number), "array_id": str(number), "state": "COMPLETED"},
        **{"array_tasks": "N/A", "priority": "9", "submit": "2026-11-25T10:00:00"},
        **{"start": "2026-11-25T10:00:05", "end": "2026-11-25T10:10:00", "nodes": "n1"},
        **{"num_nodes": "1", "num_tasks": "1", "num_cpus": "2", "cpus_per_task": "1"},
        **{"min_cpus": "1", "tres_per_node": "gres:gpu:2", "time_limit": "30:00"},
        **{"het_id": "0", "contiguous": "0", "batch": "1", "restarts": "0", "partition": "gpu"},
        "admin_comment": TOKEN,
    }
    return JobRow(**{**plain, **said})


def test_one_that_cannot_be_understood_hides_no_other() -> None:
    """What an owner or another tool made of it stays so for as long as Slurm remembers it."""
    odd = row(2, tres_per_node="gres:gpu:4|x:4")
    unread = row(3, end="yesterday")
    unflagged = row(4, admin_comment="")
    found = EndedJobs().of([odd, unread, unflagged, row(5)], CLUSTER)
    assert [(ended.job.id, ended.exit) for ended in found] == [("5", "COMPLETED")]


def test_each_is_read_once_and_anew_where_it_has_run_again() -> None:
    jobs = EndedJobs()
    first, other = jobs.of([row(5), row(6)], CLUSTER)
    again, changed = jobs.of([row(5), row(6, restarts="1", state="FAILED")], CLUSTER)
    assert again is first
    assert (other.exit, changed.exit, changed.job.restarts) == ("COMPLETED", "FAILED", 1)
    assert jobs.of([], CLUSTER) == []
    (after,) = jobs.of([row(5)], CLUSTER)
    assert after == first
    assert after is not first
