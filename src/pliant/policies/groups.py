"""Which jobs compete for the same nodes: they are divided among together, others apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from pliant.model import Job, Kind
from pliant.placement import Free, Option, Profile
from pliant.placement.needs import NodeKind

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Sizes:
    """A profile's options by the GPUs that they take.

    ``levels``: ascending amounts of GPUs, each with its options: those that leave the cores of
    their nodes to others first, then those on fewer nodes. ``cpu``: the options without a GPU,
    in the job's order.
    """

    profile: Profile
    levels: tuple[tuple[Fraction, tuple[Option, ...]], ...]
    cpu: tuple[Option, ...]

    @cached_property
    def least(self) -> Fraction:
        """p_min of paper 000: the smallest amount; 0 without any GPU shape."""
        return self.levels[0][0] if self.levels else Fraction(0)

    @cached_property
    def most(self) -> Fraction:
        """p_max of paper 000: the largest amount."""
        return self.levels[-1][0] if self.levels else Fraction(0)

    @cached_property
    def first(self) -> int:
        """The level of "one vacant GPU": the smallest of at least one GPU, else the largest."""
        whole = (place for place, (amount, _) in enumerate(self.levels) if amount >= ONE)
        return next(whole, len(self.levels) - 1)

    @cached_property
    def gpu(self) -> tuple[Option, ...]:
        """The options with GPUs, from the smallest on."""
        return tuple(option for _, options in self.levels for option in options)

    @cached_property
    def amounts(self) -> tuple[float, ...]:
        """The amount of each level, as a number to compute with quickly."""
        return tuple(float(amount) for amount, _ in self.levels)

    @cached_property
    def shares(self) -> tuple[int, ...]:
        """The levels that are a share of one GPU."""
        return tuple(place for place, (amount, _) in enumerate(self.levels) if amount < ONE)

    def from_level(self, level: int) -> tuple[tuple[int, Option], ...]:
        """Return all options with their levels: that level, then smaller ones, then larger."""
        here = min(level, len(self.levels) - 1)
        order = (*range(here, -1, -1), *range(here + 1, len(self.levels)))
        return tuple((place, option) for place in order for option in self.levels[place][1])


def sizes(profile: Profile) -> Sizes:
    """Sort a profile's options by amount."""
    levels: dict[Fraction, list[Option]] = {}
    for option in profile.options:
        if option[0].kind is not Kind.CPU:
            levels.setdefault(option[0].amount, []).append(option)
    ordered = tuple(
        (amount, tuple(sorted(levels[amount], key=_taste))) for amount in sorted(levels)
    )
    cpu = tuple(option for option in profile.options if option[0].kind is Kind.CPU)
    return Sizes(profile, ordered, cpu)


def _taste(option: Option) -> tuple[bool, int]:
    return (option[0].kind is Kind.BOTH, option[0].nodes)


@dataclass(eq=False, slots=True)
class Group:
    """Jobs that can use the same nodes, in the order of the queue."""

    kinds: set[NodeKind]
    jobs: list[tuple[Job, Sizes]] = field(default_factory=list)

    def tasks(self) -> dict[Sizes, int]:
        """Count the waiting tasks of jobs with the same sizes."""
        tasks: dict[Sizes, int] = {}
        for job, of in self.jobs:
            tasks[of] = tasks.get(of, 0) + job.tasks_waiting
        return tasks


def groups(free: Free, queue: Iterable[Job]) -> list[Group]:
    """Divide the queue: jobs that could use a node in common are in one group.

    Jobs that no node could ever hold are in none.
    """
    known: dict[Profile, Sizes] = {}
    jobs: list[tuple[Job, Sizes]] = []
    for job in queue:
        profile = free.profile(job)
        of = known.get(profile)
        if of is None:
            of = known[profile] = sizes(profile)
        jobs.append((job, of))
    group_of = _joined(known)
    for entry in jobs:
        group = group_of.get(entry[1])
        if group is not None:
            group.jobs.append(entry)
    return list(dict.fromkeys(group_of.values()))


def _joined(known: dict[Profile, Sizes]) -> dict[Sizes, Group]:
    """Join the profiles whose nodes overlap; those that no node could hold are in no group."""
    by_kind: dict[NodeKind, Group] = {}
    for profile in known:
        joined = Group(set(profile.kinds))
        for old in {id(by_kind[k]): by_kind[k] for k in profile.kinds if k in by_kind}.values():
            joined.kinds |= old.kinds
        by_kind.update(dict.fromkeys(joined.kinds, joined))
    return {of: by_kind[next(iter(p.kinds))] for p, of in known.items() if p.kinds}
