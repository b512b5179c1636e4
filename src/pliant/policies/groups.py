"""Which jobs compete for the same nodes: they are divided among together, others apart."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial

from pliant.model import Job, Kind, Shape
from pliant.placement import Free, Option, Profile
from pliant.placement.queue import Alike
from pliant.placement.states import NodeKind
from pliant.policies.desk import Desk

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

    def level_of(self, shape: Shape) -> int | None:
        """Return the level with as many GPUs as a shape; None where there is none."""
        amount = float(shape.amount)
        at = bisect_left(self.amounts, amount)
        return at if at < len(self.amounts) and self.amounts[at] == amount else None

    def from_level(self, level: int) -> tuple[tuple[int, Option], ...]:
        """Return all options with their levels: that level, then smaller ones, then larger."""
        known = self._orders.get(level)
        if known is None:
            here = min(level, len(self.levels) - 1)
            order = (*range(here, -1, -1), *range(here + 1, len(self.levels)))
            known = tuple((place, option) for place in order for option in self.levels[place][1])
            self._orders[level] = known
        return known

    @cached_property
    def _orders(self) -> dict[int, tuple[tuple[int, Option], ...]]:
        return {}


def sizes_of(free: Free, profile: Profile) -> Sizes:
    """Return a profile's sizes, sorted once as long as the profile is known."""
    return free.remembered(profile, partial(sizes, profile))


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
    """Jobs that can use the same nodes: their sizes by profile, and how many tasks wait of each."""

    kinds: set[NodeKind]
    sizes: dict[Profile, Sizes] = field(default_factory=dict)
    tasks: dict[Sizes, int] = field(default_factory=dict)

    def jobs(self, desk: Desk, passed: Set[Alike] = frozenset()) -> Iterator[tuple[Job, Sizes]]:
        """Yield the jobs in the order of the queue, without those that are passed over."""
        for job, profile in desk.turns(passed):
            of = self.sizes.get(profile)
            if of is not None:
                yield job, of


def groups(desk: Desk) -> list[Group]:
    """Divide the queue: jobs that could use a node in common are in one group.

    Jobs that no node could ever hold are in none. The group of the first job comes first.
    """
    by_kind: dict[NodeKind, Group] = {}
    tasks = {profile: count for profile, count in desk.tasks().items() if profile.kinds}
    for profile in tasks:
        joined = Group(set(profile.kinds))
        for old in {id(by_kind[k]): by_kind[k] for k in profile.kinds if k in by_kind}.values():
            joined.kinds |= old.kinds
        by_kind.update(dict.fromkeys(joined.kinds, joined))
    found: dict[int, Group] = {}
    for profile, count in tasks.items():
        group = by_kind[next(iter(profile.kinds))]
        found[id(group)] = group
        of = sizes_of(desk.free, profile)
        group.sizes[profile], group.tasks[of] = of, count
    if len(found) < 2:
        return list(found.values())
    first = desk.firsts()
    return sorted(found.values(), key=lambda group: min(first[of] for of in group.sizes))
