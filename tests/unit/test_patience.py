"""How long a start may take before a shape is given up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from build import job, snapshot

from pliant.daemon.patience import Patience
from pliant.model import Shape
from pliant.plan import Plan, Start


@pytest.mark.parametrize(
    ("reason", "starts", "lost_s"),
    [
        ("Resources", True, 55),  # four passes of backfill, and some
        ("Resources", False, None),  # it waits for its turn
        ("QOSMaxGRESPerUser", False, 25),  # each pass asks a limit anew
        ("QOSMaxJobsPerUserLimit", False, None),  # which no shape meets
    ],
)
def test_a_shape_has_some_passes_of_backfill_to_start_and_one_where_a_limit_is_asked(
    reason: str, starts: bool, lost_s: int | None
) -> None:
    waits = job(1, "2", "gpus=1-4", reason=reason)
    assert waits.spec is not None
    waits = replace(waits, spec=replace(waits.spec, set=Shape(1, 2)))
    seen = snapshot([], [waits])
    plan = Plan((Start(waits, waits.shape, ("n1",), "there is room"),) if starts else ())
    patience = Patience(backfill_s=10.0)
    lost = [now_s for now_s in range(60) if patience.lost(seen, plan, float(now_s))]
    assert lost == ([] if lost_s is None else list(range(lost_s, 60, lost_s + 1)))
