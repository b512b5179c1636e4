"""``python -m prove.shown [DIR...]``: notes which edges of the fake of Slurm real logs have shown.

It explores every hand-over with one fault for the edges (see prove.edges) that the fake makes, reads
each log of slurmctld's below the directories, which ``python -m benchmarks.drill --logs DIR`` leaves,
and writes edges.tsv: each edge, the kinds of hand-over that make it, and whether a log has shown it.
What was shown once remains so, and so does what stands there of one that was not, and of one that
only two faults lead to, which ``make prove`` names where it is not listed. Of a log that shows what
the fake does not do nothing is taken. The tests hold what is explored to that list.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from prove.explore import explored
from prove.on_slurm import OnSlurm
from prove.traced import told

TABLE = Path(__file__).with_name("edges.tsv")
SHOWN, UNSEEN = "shown", "not seen"
TWO = frozenset({"two faults"})
"""What stands for the kinds of an edge that no hand-over makes with one fault."""
MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Listed:
    """What is noted of an edge: which kinds make it; SHOWN, or UNSEEN with the reason."""

    kinds: frozenset[str]
    seen: str = UNSEEN

    @property
    def is_shown(self) -> bool:
        """Whether a log of a real slurmctld's has shown it."""
        return self.seen == SHOWN


def listed(table: Path = TABLE) -> Mapping[str, Listed]:
    """Return what is noted."""
    rows = (line.split("\t") for line in table.read_text().splitlines()[1:])
    return {edge: Listed(frozenset(kinds.split(", ")), seen) for edge, seen, kinds in rows}


def edges_of(kind: str) -> frozenset[str]:
    """Return which edges are noted as made by a kind of hand-over."""
    return frozenset(edge for edge, noted in listed().items() if kind in noted.kinds)


def figures(edges: Mapping[str, Listed]) -> str:
    """Return how many edges there are, as docs/promises.md says it."""
    shown = sum(noted.is_shown for noted in edges.values())
    return (
        f"{len(edges)} edges, of which real logs have shown {shown}, and {len(edges) - shown} not"
    )


def noted_anew(
    old: Mapping[str, Listed], made: Mapping[str, frozenset[str]], shown: frozenset[str]
) -> Mapping[str, Listed]:
    """Return what is to be noted of the edges that are made, by kind, some of which logs show."""
    rare = {edge for edge, noted in old.items() if noted.kinds == TWO}
    return {
        edge: Listed(
            frozenset(kind for kind, some in made.items() if edge in some) or TWO,
            SHOWN if edge in shown else old[edge].seen if edge in old else UNSEEN,
        )
        for edge in sorted(rare.union(*made.values()))
    }


def write(edges: Mapping[str, Listed], table: Path = TABLE) -> None:
    """Write what is noted."""
    rows = (
        f"{edge}\t{noted.seen}\t{', '.join(sorted(noted.kinds))}" for edge, noted in edges.items()
    )
    table.write_text("\n".join(("edge\tshown\tmade by", *rows)) + "\n")


def _made() -> Iterator[tuple[str, frozenset[str]]]:
    for kind in OnSlurm.kinds:
        yield kind.name, frozenset(explored(OnSlurm, faults=1, kind=kind, most=MOST).edges)


def _shown(directories: Iterable[Path]) -> Iterator[str]:
    for log in sorted(log for one in directories for log in one.rglob("slurmctld.log")):
        trace, unlike = told(log.read_text(errors="replace").splitlines())
        if unlike:
            print(f"{log}: left out, for the fake does not do the same: {unlike[0]}")
        else:
            yield from trace.edges


def _news(
    old: Mapping[str, Listed], new: Mapping[str, Listed], shown: frozenset[str]
) -> Iterator[str]:
    """Yield what is otherwise than it was noted, and what logs show that is explored by no kind."""
    first = {edge for edge in new if new[edge].is_shown and edge in shown}
    first -= {edge for edge in old if old[edge].is_shown}
    for what, some in (
        ("new", new.keys() - old.keys()),
        ("shown for the first time", first),
        ("made no more", old.keys() - new.keys()),
        ("shown, but explored in no hand-over", shown - new.keys()),
    ):
        yield from (f"{what}: {edge}" for edge in sorted(some))


def main(directories: Iterable[str]) -> int:
    """Note what is made and shown, and say what is otherwise than before."""
    places = [*map(Path, directories)]
    for place in places:
        if not place.is_dir():
            print(
                f"{str(place)!r}: a directory with logs of the drill's is expected", file=sys.stderr
            )
            return 2
    logging.disable(logging.CRITICAL)
    old = listed() if TABLE.exists() else {}
    shown = frozenset(_shown(places))
    edges = noted_anew(old, dict(_made()), shown)
    write(edges)
    print(figures(edges), *_news(old, edges, shown), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
