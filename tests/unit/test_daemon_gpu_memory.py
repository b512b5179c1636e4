"""GPUs' memory: as monitors read it, else as the administrator says, and what jobs may then be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import build
import pytest

from pliant.daemon.gpu_memory import GpuMemory
from pliant.grammar import parse_shape
from pliant.model import Node, Pool, Request, Snapshot, Spec

READ = {"n1": 81_920}


def seen(*jobs: str, gpu_type: str = "a100") -> Snapshot:
    """Two nodes of four GPUs in shares, and jobs that wait with ``gpus=1/4:1/2:1``."""
    nodes = [build.node(f"n{n}", gpu_type=gpu_type, shards=4) for n in (1, 2)]
    waiting = [build.job(n, "1", f"gpus=1/4:1/2:1{more}") for n, more in enumerate(jobs, 1)]
    return build.snapshot(nodes, waiting)


def known(snapshot: Snapshot, said: Mapping[str, int], read: Mapping[str, int]) -> Snapshot:
    return GpuMemory(said, lambda: read).known(snapshot)


def shapes(snapshot: Snapshot) -> list[str]:
    (job,) = snapshot.waiting
    return [str(shape.amount) for shape in sorted(job.shapes, key=lambda shape: shape.amount)]


@pytest.mark.parametrize(
    ("said", "read", "mib"),
    [
        ({}, {}, [0, 0]),
        ({"a100": 40_960}, {}, [40_960, 40_960]),
        ({"default": 16}, READ, [81_920, 16]),  # what was read counts first
        ({"h100": 16}, {}, [0, 0]),
    ],
)
def test_what_was_read_counts_before_what_is_said(
    said: Mapping[str, int], read: Mapping[str, int], mib: list[int]
) -> None:
    found = known(seen(), said, read)
    assert [node.pools[0].told_mib for node in found.nodes] == mib


def test_what_the_batch_system_says_counts_first() -> None:
    snapshot = seen()
    pool = replace(snapshot.nodes[0].pools[0], told_mib=7)
    snapshot = replace(snapshot, nodes=(replace(snapshot.nodes[0], pools=(pool,)),))
    assert known(snapshot, {"a100": 16}, READ).nodes[0].pools[0].told_mib == 7


def test_a_job_becomes_no_share_that_is_too_small_for_it() -> None:
    asked = seen(",gpu-mem=12G")
    assert shapes(known(asked, {"a100": 40_960}, {})) == ["1/2", "1"]
    assert shapes(known(asked, {"a100": 49_152}, {})) == ["1/4", "1/2", "1"]
    assert shapes(known(asked, {"a100": 16_384}, {})) == ["1"]
    assert shapes(known(seen(""), {"a100": 16}, {})) == ["1/4", "1/2", "1"]


def test_slurm_chooses_the_node_so_the_smallest_gpu_counts_and_an_unknown_one_is_none() -> None:
    asked = seen(",gpu-mem=12G")
    assert shapes(known(asked, {"default": 20_000}, READ)) == ["1"]
    assert shapes(known(asked, {}, READ)) == ["1"]
    assert shapes(known(asked, {}, {})) == ["1"]
    others = Node("n3", 16, 16, 0, 0, (Pool("h100", 4, 4),))  # no shares there
    assert shapes(known(replace(asked, nodes=(*asked.nodes, others)), {"a100": 49_152}, {})) == [
        "1/4",
        "1/2",
        "1",
    ]


def test_the_share_that_its_owner_wrote_stays() -> None:
    asked = seen(",gpu-mem=12G")
    own = replace(asked.waiting[0], shape=parse_shape("1/4"))
    assert shapes(known(replace(asked, waiting=(own,)), {}, {})) == ["1/4", "1"]
    carries = replace(own, shape=parse_shape("1/2"), shapes=own.shapes)
    carries = replace(carries, spec=replace(own.spec or Spec(Request()), own=parse_shape("1/4")))
    assert shapes(known(replace(asked, waiting=(carries,)), {}, {})) == ["1/4", "1/2", "1"]
    running = replace(asked, waiting=(), running=(own,))
    assert [str(s.amount) for s in known(running, {}, {}).running[0].shapes] == ["1/4", "1"]


def test_nothing_changes_where_nothing_is_known_and_nobody_asks() -> None:
    snapshot = seen("")
    assert known(snapshot, {}, {}) is snapshot
