"""Fujiwara et al. (paper 000), section V: figures 3 to 5 as numbers."""

from __future__ import annotations

from statistics import fmean

from pliant.simulator.reproduce.claims import Table, percent
from pliant.simulator.reproduce.fujiwara_figures import COLUMNS, mean_flow, most_flow
from pliant.simulator.reproduce.fujiwara_gpus import FEW, GPUS, OVERHEADS_S, Gpus, Part, Seen
from pliant.simulator.reproduce.fujiwara_runs import MALLEABLE, MOLDABLE


def gpu_tables(gpus: Gpus) -> list[Table]:
    """Return figures 3 to 5 as numbers, and what other choices give."""
    chosen = gpus.chosen
    return [*(_table(chosen, part) for part in chosen.parts), _overheads(chosen), _choices(gpus)]


def _table(seen: Seen, part: Part) -> Table:
    rows = []
    for count in (FEW, *GPUS) if part == seen.all else GPUS:
        for policy in part.policies:
            cells = [one.write(seen.mean(policy, count, part, one)) for one in COLUMNS]
            flow = seen.changes(policy, count, part, mean_flow)
            of_seeds = f"{percent(min(flow), 1)} … {percent(max(flow), 1)}" if any(flow) else ""
            rows.append([f"{count} GPUs, {policy}", *cells, of_seeds])
    names = [one.name for one in COLUMNS]
    return Table(
        f"Figures 3 and 4 as numbers: {part.text}",
        ["GPUs, policy", *names, "task flow against FCFS, by seed"],
        rows,
        "In the mean over the seeds; the last column is the range over them.",
    )


def _overheads(seen: Seen) -> Table:
    part, rows = seen.all, []
    for count in GPUS:
        base = seen.came(MOLDABLE, count, part)
        for overhead_s in OVERHEADS_S:
            came = seen.came(MALLEABLE, count, part, overhead_s)
            flows = [fmean(map(one, of)) for one in (mean_flow, most_flow) for of in (came, base)]
            rows.append(
                [
                    f"{count} GPUs, {overhead_s:.0f} s",
                    *(f"{flow:,.0f}" for flow in flows),
                    f"{fmean(one.restarts / one.tasks for one in came):.2f}",
                ]
            )
    return Table(
        f"Figure 5 as numbers: {part.text}",
        [
            *("GPUs, overhead", "malleable: task flow, s", "moldable", "malleable: longest"),
            *("moldable", "restarts a task"),
        ],
        rows,
    )


def _choices(gpus: Gpus) -> Table:
    names = [(policy, count) for policy in (MOLDABLE, MALLEABLE) for count in GPUS]
    rows = [
        [
            seen.choice.text,
            *(percent(seen.change(name, count, mean_flow, seen.all), 1) for name, count in names),
        ]
        for seen in gpus.varied
    ]
    return Table(
        f"By the choice of curves and of the trace: {gpus.varied[0].all.text}",
        ["chosen", *(f"{name.split()[0]}, {count}" for name, count in names)],
        rows,
        "Mean flow time of tasks against rigid FCFS, on so many GPUs.",
    )
