"""The files: snapshots as JSON, and plans as lines that a reader can compare.

A plan is a line for each thing that it does, with its reason behind a tab. Above it stands of which
snapshot it is, and what it shows (see golden.things).
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pliant.batch.snapshot_file import read_snapshot, write_snapshot
from pliant.model import Snapshot
from pliant.plan import Plan

DATA = Path(__file__).with_name("data")
CASE, OF = "== ", "-- "


@dataclass(frozen=True, slots=True)
class Golden:
    """What a policy decides on one snapshot, and what that shows."""

    lines: tuple[str, ...]
    shows: frozenset[str] = field(default=frozenset(), compare=False)

    @property
    def acts(self) -> tuple[str, ...]:
        """The same without reasons."""
        return tuple(line.partition("\t")[0] for line in self.lines)


Plans = dict[str, dict[str, Golden]]
"""By case, then by snapshot."""


def lines_of(plan: Plan) -> tuple[str, ...]:
    """Return a plan as lines."""
    found: list[str] = []
    for start in plan.starts:
        on = " | ".join("+".join(names) for names in start.all_nodes)
        found.append(f"start {start.job.id}: {start.shape} on {on}\t{start.reason}")
    for claim in plan.claims:
        on = "+".join(claim.nodes)
        found.append(f"keep {claim.job.id}: {claim.shape} on {on} at {claim.at_s}\t{claim.reason}")
    for mold in plan.actions:
        found.append(f"change {mold.job.id}: {mold.shape}\t{mold.reason}")
    for mark in plan.marks:
        found.append(f"mark {mark.job.id}: {mark.mark}\t{mark.reason}")
    for reshape in plan.reshapes:
        on = "+".join(reshape.nodes)
        found.append(f"resize {reshape.job.id}: {reshape.shape} on {on}\t{reshape.reason}")
    for preempt in plan.preempts:
        shape = f" as {preempt.shape}" if preempt.shape else ""
        found.append(f"preempt {preempt.job.id}: for {preempt.room_for}{shape}\t{preempt.reason}")
    if plan.deferred:
        found.append(f"deferred {plan.deferred}")
    return tuple(found)


def save_snapshots(name: str, snapshots: Mapping[str, Snapshot]) -> None:
    """Write snapshots by name to a file of this name."""
    rows = (json.dumps([key, write_snapshot(one).decode()]) for key, one in snapshots.items())
    _save(DATA / f"{name}.snapshots.xz", rows)


def snapshots_of(name: str) -> dict[str, Snapshot]:
    """Read what :func:`save_snapshots` wrote."""
    rows = map(json.loads, _lines(DATA / f"{name}.snapshots.xz"))
    return {key: read_snapshot(text.encode()) for key, text in rows}


def save_plans(name: str, plans: Plans, made_by: str) -> None:
    """Write plans to a file of this name; ``made_by``: the commit that decided so."""
    _save(DATA / f"{name}.plans.xz", _rows(plans, made_by))


def _rows(plans: Plans, made_by: str) -> Iterable[str]:
    yield made_by
    for case, of in plans.items():
        yield f"{CASE}{case}"
        for snapshot, golden in of.items():
            yield f"{OF}{snapshot}: {', '.join(sorted(golden.shows))}"
            yield from golden.lines


def plans_of(name: str) -> Plans:
    """Read what :func:`save_plans` wrote."""
    plans: Plans = {}
    case, snapshot, shows, lines = "", "", frozenset[str](), list[str]()
    for line in [*_lines(DATA / f"{name}.plans.xz")[1:], CASE]:
        if line.startswith((CASE, OF)):
            if snapshot:
                plans[case][snapshot] = Golden(tuple(lines), shows)
            snapshot, lines = "", []
        if line.startswith(CASE):
            case = line.removeprefix(CASE)
            plans.setdefault(case, {})
        elif line.startswith(OF):
            snapshot, _, words = line.removeprefix(OF).rpartition(": ")
            shows = frozenset(words.split(", ")) - {""}
        else:
            lines.append(line)
    del plans[""]
    return plans


def made_by(name: str) -> str:
    """Return the commit that made the plans of a file."""
    return _lines(DATA / f"{name}.plans.xz")[0]


def _save(path: Path, rows: Iterable[str]) -> None:
    DATA.mkdir(exist_ok=True)
    text = "".join(f"{row}\n" for row in rows)
    path.write_bytes(lzma.compress(text.encode(), preset=9))


def _lines(path: Path) -> list[str]:
    return lzma.decompress(path.read_bytes()).decode().splitlines()
