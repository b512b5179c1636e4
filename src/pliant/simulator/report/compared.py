"""Several policies on the same workloads as a page: what ``pliant compare`` finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pliant.pages.model import Marked, Page, Part, Picture, Table, Text, Tile
from pliant.simulator.comparison import Compared, WorstHit
from pliant.simulator.report.replays import picture_of_users, pictures_of
from pliant.simulator.report.said import changed, compared, judged, mean, name_of
from pliant.simulator.runs import Outcome
from pliant.simulator.users import SAME, sides

MAIN = "flow time, mean (s)"


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

    @property
    def by_figure(self) -> Mapping[str, Sequence[Compared]]:
        """The rows of each figure, one for each policy."""
        found: dict[str, list[Compared]] = {}
        for row in self.rows:
            found.setdefault(row.figure, []).append(row)
        return found


def page(found: Several) -> Page:
    """Return the page."""
    first, *_ = found.firsts
    more = f" and {found.seeds - 1} more draws of it" if found.seeds > 1 else ""
    about = [f"{found.workload.workload}{more}", f"Cluster: simulated, {_gpus(found)}"]
    lead: list[Text] = [f"Changes are against {first}.", *_hits(found)]
    if found.seeds > 1:
        lead.append(
            "After ± stands half the width of the 95 % confidence interval (Student's t). What may"
            " as well be chance is not marked as better or worse."
        )
    parts = [Part("Figures", tables=[_figures(found)])]
    of = ", of the first draw" if found.seeds > 1 else ""
    if pictures := [*_pictures(found)]:
        parts.insert(0, Part(f"In pictures{of}", pictures=pictures))
    if users := [*_users(found)]:
        parts.append(Part(f"For whom{of}", pictures=users))
    if found.workload.choices:
        parts.append(Part("What the source leaves open", items=found.workload.choices))
    return Page("Policies compared", about, lead, parts, [*_tiles(found)])


def _gpus(found: Several) -> str:
    gpus = found.workload.figures.gpus
    return "1 GPU" if gpus == 1 else f"{gpus} GPUs"


def _tiles(found: Several) -> Iterator[Tile]:
    if MAIN not in found.by_figure:  # no job has ended
        return
    before, *after = found.by_figure[MAIN]
    yield Tile(mean(MAIN, before.mean), f"mean flow time under {before.policy}")
    for row in after:
        how = f"mean flow time under {row.policy}: {mean(MAIN, row.mean)}"
        yield Tile(changed(row.change), how, judged(row, before))


def _figures(found: Several) -> Table:
    rows: list[list[Text]] = []
    for figure, (before, *after) in found.by_figure.items():
        cells = [compared(one, before) for one in after]
        rows.append([name_of(figure), mean(figure, before.mean), *cells])
    return Table(["figure", *found.firsts], rows)


def _hits(found: Several) -> Iterator[Text]:
    for hit in found.hits:
        on = f" (seed {hit.seed})" if found.seeds > 1 else ""
        words = f"Worst hit by {hit.policy}: {hit.user}{on}, mean flow time × {hit.ratio:.2f}."
        yield Marked(words, "worse" if hit.ratio > 1 + SAME else "")


def _pictures(found: Several) -> Iterator[Picture]:
    curves = {name: of.curves for name, of in found.firsts.items() if of.curves is not None}
    yield from pictures_of(curves, found.workload.figures.gpus)


def _users(found: Several) -> Iterator[Picture]:
    first, *others = found.firsts.items()
    for number, (name, outcome) in enumerate(others, 1):
        of = sides(name, outcome.figures, first[1].figures)
        if of.changes:
            changes = [(one.user, one.part) for one in of.changes]
            yield picture_of_users(name, changes, f"users-{number}")
