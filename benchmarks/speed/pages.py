"""What the points say, as sections of the document. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.section import Section
from benchmarks.speed.points import CPU, MEASURES, Agreement, Point, agreement

KEPT = 0.85
"""From this part of its CPU time alone on a program counts as one that kept its CPU."""
_WORST = 8
Pairs = Sequence[Sequence[Point]]


def agreements(pairs: Pairs, missing: str) -> Section:
    """Return how well each measure agrees with the truth; ``missing``: why there is no tier 1."""
    settings = sorted({pair[0].setting for pair in pairs})
    rows = []
    for measure in MEASURES:
        if not any(measure in p.measured for pair in pairs for p in pair):
            rows.append((measure, "both", "0", *["not available"] * 4))
            continue
        for setting in ("", *settings):
            chosen = [pair for pair in pairs if setting in ("", pair[0].setting)]
            if found := agreement(chosen, measure):
                rows.append(_row(measure, setting or "both", found))
    return Section(
        "Measured against true",
        "Both are ratios: what a program does beside another, as a part of what it does alone on "
        "the same CPUs. True is its own count of its work, as heartbeats would tell it (tier 2); "
        "measured is the monitor's. r is Pearson's correlation; the errors are of measured less "
        "true.",
        ("measure", "setting", "points", "r", "mean error", "mean absolute error", "largest"),
        rows,
        f"Tier 1, by which the paper's figure was made, is not available here: {missing}. "
        "The counters' path is shown by `make test-pmu` on an emulated machine, which has no "
        "caches: that they see interference was not measured."
        if missing
        else "",
    )


def _row(measure: str, setting: str, found: Agreement) -> tuple[str, ...]:
    return (
        measure,
        setting,
        str(found.points),
        found.r.text(3),
        found.bias.text(3),
        found.error.text(3),
        f"{found.worst:.3f}",
    )


def blind(pairs: Pairs) -> Section:
    """Return what CPU time does not see: programs that kept their CPU and were slower."""
    kept = [[p for p in pair if p.measured[CPU] >= KEPT] for pair in pairs]
    points = sorted((p for pair in kept for p in pair), key=lambda p: p.true - p.measured[CPU])
    found = agreement(kept, CPU)
    true = sorted(p.true for p in points)
    slower = sum(p.true < KEPT for p in points)
    return Section(
        "What CPU time does not see",
        f"Programs that kept at least {KEPT:g} of their CPU time alone, those with the largest "
        "errors first: the other slowed them down in caches and memory, or in a core that the host "
        "shares.",
        ("program", "beside", "setting", "true", "CPU time"),
        [
            (p.name, p.beside, p.setting, f"{p.true:.3f}", f"{p.measured[CPU]:.3f}")
            for p in points[:_WORST]
        ],
        f"Of these {found.points} points r is {found.r.text(3)}, the mean absolute error "
        f"{found.error.text(3)}, and the true ratio from {true[0]:.3f} to {true[-1]:.3f}; it is "
        f"below {KEPT:g} for {slower} of them."
        if found
        else "There are none.",
    )


def all_points(pairs: Pairs, programs: Sequence[str]) -> list[Section]:
    """Return a table of each setting: a row for each program, a column for what it ran beside."""
    return [_table(setting, pairs, programs) for setting in sorted({p[0].setting for p in pairs})]


def _table(setting: str, pairs: Pairs, programs: Sequence[str]) -> Section:
    cells: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        for p in pair:
            if p.setting == setting:
                text = f"{p.true:.2f} / {p.measured[CPU]:.2f}"
                cells.setdefault((p.name, p.beside), []).append(text)
    return Section(
        f"All pairs, {setting}",
        "True ratio / ratio of CPU time, of the row's program beside the column's. A program "
        "beside itself is two points.",
        ("", *programs),
        [(one, *[", ".join(cells.get((one, two), ())) for two in programs]) for one in programs],
    )
