"""What one row of squeue says about the shape of its job."""

from __future__ import annotations

from dataclasses import fields

import pytest

from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.request import asked
from pliant.model import Shape

WAITING = dict.fromkeys((field.name for field in fields(JobRow)), "") | {
    "state": "PENDING", "num_nodes": "1", "max_nodes": "0", "num_tasks": "4", "num_cpus": "4",
    "cpus_per_task": "1", "min_cpus": "1", "min_memory": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("request_fields", "shape"),
    [
        ({"tres_per_task": "gres:gpu:1"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:4"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:4", "tres_per_task": "gres:gpu:1"}, Shape(1, 4)),
        ({"tres_per_job": "gres:gpu:8", "tres_per_task": "gres:gpu:1"}, Shape(1, 8)),
        ({"tres_per_job": "gres:gpu:4", "num_nodes": "2"}, Shape(2, 2)),
    ],
)
def test_the_total_of_gpus_is_what_was_asked_in_total_else_by_task(
    request_fields: dict[str, str], shape: Shape
) -> None:
    assert asked(JobRow(**(WAITING | request_fields))).shape(0) == shape
