"""Changes on several nodes come to an end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import PER_GPU, node
from hypothesis import given
from hypothesis import strategies as st
from resizing import elastic, fixpoint, reshapes, runs, snapshot

from pliant.grammar import parse_shape
from pliant.model import Job, Snapshot
from pliant.placement import Free
from pliant.plan import Policy
from pliant.policies import by_name
from pliant.policies.desk import Desk
from pliant.policies.gain import Gain

FULL = by_name("malleable-equipartition")
POLICIES = [FULL, by_name("malleable-proportional"), by_name("f-scheduling")]
ALLOWS = (
    "gpus=1-4",
    "gpus=1-8,nodes=1:2",
    "gpus=2:4:8,nodes=2",
    "gpus=1-6,nodes=1-3",
    "gpus=4:6:8,nodes=2-4",
    "gpus=3:4:6,nodes=1:3",
)


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Jobs that run where others have left gaps, and some that wait."""
    nodes = [node(f"n{number}") for number in range(1, draw(st.integers(2, 4)) + 1)]
    free = {one.name: 4 for one in nodes}
    busy: list[Job] = []
    waiting: list[Job] = []
    for number in range(draw(st.integers(2, 6))):
        steps = draw(st.sampled_from((900, 3_000, 20_000)))
        speeds = draw(st.sampled_from(((1.0, 1.9, 2.6, 3.1), (1.0, 0.8, 1.5, 1.2))))
        allows = draw(st.sampled_from(ALLOWS))
        found = elastic(number, "1", allows, throughput=speeds, steps=steps, submit_s=float(number))
        shape = draw(st.sampled_from(found.shapes))
        room = draw(st.permutations([name for name in free if free[name] >= shape.gpus]))
        if len(room) < shape.nodes or draw(st.integers(0, 4)) == 0:
            waiting.append(found)
            continue
        names = sorted(room[: shape.nodes])
        for name in names:
            free[name] -= shape.gpus
        busy.append(runs(found, str(shape), " ".join(names)))
    return snapshot(nodes, waiting, busy)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
@given(view=clusters())
def test_changes_come_to_an_end(policy: Policy, view: Snapshot) -> None:
    fixpoint(view, policy, within=12)


@given(view=clusters())
def test_nothing_is_left_free_beside_a_job_that_would_be_done_earlier_with_it(
    view: Snapshot,
) -> None:
    end, _ = fixpoint(view, FULL, within=12)
    if not end.waiting:
        assert [job.id for job in end.running if _could_grow(job, Free(end))] == []


def _could_grow(job: Job, free: Free) -> bool:
    """Whether a running job would be done earlier on more of its own nodes, which are free."""
    own, gain = tuple(sorted(free.held(job)[0])), Gain(Desk(free.snapshot))
    return any(
        free.room(job, (shape, free.need(job, shape)), (job,), first=(own,)) == own
        for shape in job.shapes
        if shape.amount > job.shape.amount and gain.growth_pays(job, shape)
    )


SMALL = "1 2 3 4"
WIDE = "1 2 2x1 3 4 2x2 5 6 2x3 7 8 2x4 2x5 2x6 2x7 2x8"
ANY = "1 2 2x1 3 3x1 4 2x2 4x1 2x3 3x2 2x4 4x2 3x3 3x4 4x3 4x4"
CRAMPED = (
    (4, "2x2", "n1 n4", WIDE),
    (18, "1", "n2", SMALL),
    (21, "4x1", "n1 n2 n3 n4", "4x1 3x2 4x2 3x4 4x3 4x4 4x5 3x8 4x6 4x7 4x8"),
    (7, "2x2", "n1 n3", WIDE),
    (12, "4x1", "n1 n2 n3 n4", ANY),
    (13, "2", "n2", SMALL),
    (5, "2x1", "n3 n4", "2x1 2x2 2x3 2x4 2x5 2x6 2x8"),
    (19, "2x2", "n1 n2", "3x1 2x2 2x3 3x2 2x4 2x5 2x6 3x4 2x7 2x8 3x6 3x8"),
    (20, "1", "n4", SMALL),
    (22, "2x2", "n4 n3", WIDE),
)
"""Jobs, in the order of their submission by number, where nobody can have what would be fair."""


def test_where_nobody_can_have_what_is_fair_no_job_is_changed_to_and_fro() -> None:
    busy = []
    for number, has, nodes, may in CRAMPED:
        shapes = tuple(parse_shape(word) for word in may.split())
        found = elastic(number, submit_s=float(number), footprint=PER_GPU)
        found = replace(found, id=f"{number:02}", shapes=shapes)
        busy.append(runs(found, has, nodes))
    view = snapshot([node(f"n{number}", gpus=8, cpus=32) for number in (1, 2, 3, 4)], [], busy)
    _, plans = fixpoint(view, FULL)
    changed = [job for plan in plans for job in reshapes(plan)]
    assert len(changed) == len(set(changed))
