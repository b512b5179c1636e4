"""Several policies on the same workloads as a page: what ``pliant compare`` finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pliant.simulator.comparison import Compared, WorstHit
from pliant.simulator.report.page import Page, Part, Plot, Table, number, percent
from pliant.simulator.report.replays import plot_of_users, plots_of
from pliant.simulator.runs import Outcome
from pliant.simulator.seeds import Estimate
from pliant.simulator.users import sides


@dataclass(frozen=True, slots=True)
class Several:
    """What was compared; ``firsts``: each policy's outcome on the first seed."""

    firsts: Mapping[str, Outcome]
    seeds: int
    rows: Sequence[Compared]
    hits: Sequence[WorstHit]

    @property
    def workload(self) -> Outcome:
        """Any of the outcomes: the workload is the same for all."""
        return next(iter(self.firsts.values()))


def page(found: Several, drawn: bool = False) -> Page:
    """Return the page, with plots where they are to be ``drawn``. Raises Unavailable."""
    first, *_ = found.firsts
    more = f" and {found.seeds - 1} more draws of it" if found.seeds > 1 else ""
    lead = [f"{found.workload.workload}{more}.", f"Changes are against {first}."]
    if found.seeds > 1:
        lead.append("After ± stands half the width of the 95 % confidence interval (Student's t).")
    parts = [Part("Figures", tables=[_figures(found)])]
    if found.hits:
        parts.append(Part("Users", items=[*_hits(found)]))
    if drawn:
        said = ["The first draw."] if found.seeds > 1 else []
        parts.append(Part("Plots", said, plots=[*_plots(found)]))
    if found.workload.choices:
        parts.append(Part("What the source leaves open", items=found.workload.choices))
    return Page("Policies compared", lead, parts)


def _figures(found: Several) -> Table:
    first, *others = found.firsts
    header = ["figure", first]
    for name in others:
        header += [name, "change"]
    by_figure: dict[str, list[Compared]] = {}
    for row in found.rows:
        by_figure.setdefault(row.figure, []).append(row)
    rows: list[list[str]] = []
    for figure, (before, *after) in by_figure.items():
        cells = [figure, _mean(before.mean)]
        for one in after:
            cells += [_mean(one.mean), _change(one.change)]
        rows.append(cells)
    return Table(header, rows)


def _mean(of: Estimate) -> str:
    return number(of.mean) + ("" if of.within is None else f" ± {number(of.within)}")


def _change(of: Estimate | None) -> str:
    if of is None:
        return ""
    return percent(of.mean) + ("" if of.within is None else f" ± {100 * of.within:.1f} %")


def _hits(found: Several) -> Iterator[str]:
    for hit in found.hits:
        on = f" (seed {hit.seed})" if found.seeds > 1 else ""
        yield f"Worst hit by {hit.policy}: {hit.user}{on}, mean flow time × {hit.ratio:.2f}."


def _plots(found: Several) -> Iterator[Plot]:
    curves = {name: of.curves for name, of in found.firsts.items() if of.curves is not None}
    yield from plots_of(curves, found.workload.figures.gpus)
    first, *others = found.firsts.items()
    for number_, (name, outcome) in enumerate(others, 1):
        of = sides(name, outcome.figures, first[1].figures)
        if of.changes:
            changes = [(one.user, one.part) for one in of.changes]
            yield plot_of_users(name, changes, f"users-{number_}")
