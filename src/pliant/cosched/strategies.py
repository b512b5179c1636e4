"""The strategies: which combination of the tasks that are left is to run next.

- :class:`Optimal`: that of an optimal schedule, volumes and speeds being known.
- :class:`Fastest` (the paper's FCS): the one with the largest sum of speeds, these being known.
- :class:`Learning`: the most promising one, going by the speeds that were measured. It is measured
  as it runs; once the best of all is one that was measured, that one runs until a task is done.

FCS and 2. The paper claims that FCS takes at most 2 × the optimum, by a proof that could not be
had. With nothing but the constraint on speeds (see :mod:`.tables`) this is not so: of the ten tasks
of :func:`~pliant.cosched.instances.layers` FCS takes 2.07 ×, and more layers give more. What holds:
with F(R) the largest sum of speeds of tasks in a set R, every schedule takes at least Σ b_i / F(R)
for what is left of R, and FCS works at the rate F(R). So with F_1 ≥ F_2 ≥ … F_m ≥ 1 its rates from
completion to completion

    FCS ≤ (1 + Σ (1 - F_k / F_{k-1})) optimum ≤ (1 + ln F_1) optimum

which is at most 2 where the fastest combination does at most e = 2.7 times as much as one task
alone, as two or three that share a machine do, and always for three tasks.

Equal ones: what runs now stays; then more tasks come before fewer, then the order of names.

Source: Kuchumov & Korkhov (paper 002), section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from pliant.cosched.acquisition import (
    Acquisition,
    expected_improvement,
    improvement_probability,
    upper_confidence_bound,
)
from pliant.cosched.knowledge import Knowledge
from pliant.cosched.optimum import Stint, optimum
from pliant.cosched.tables import ordered, total
from pliant.model import Combination

_NONE: Combination = frozenset()


class Strategy(Protocol):
    """Ranks the combinations that may run next."""

    @property
    def informed(self) -> bool:
        """Whether it goes by all speeds, as they are; else by those that were measured."""
        ...

    def ranked(self, knowledge: Knowledge, now: Combination = _NONE) -> Iterator[Stint]:
        """Yield what may run next, the best first; ``now``: what runs."""
        ...


@dataclass(frozen=True, slots=True)
class Optimal:
    """An optimal schedule; of more than fifteen tasks with at most ``k`` at once, 0: any number."""

    informed: ClassVar[bool] = True
    k: int = 3

    def ranked(self, knowledge: Knowledge, now: Combination = _NONE) -> Iterator[Stint]:
        """Yield the stints of an optimal schedule, then all others as FCS has them."""
        most = knowledge.most_at_once(self.k)
        some = [s for s in knowledge.known if len(s) <= most and knowledge.fits(s)]
        table = {s: knowledge.table[s] for s in some}
        volumes = {t: volume for t, volume in knowledge.volumes.items() if frozenset({t}) in table}
        stints = optimum(volumes, table)
        yield from stints
        chosen = {stint.tasks for stint in stints}
        yield from (s for s in Fastest().ranked(knowledge, now) if s.tasks not in chosen)


@dataclass(frozen=True, slots=True)
class Fastest:
    """FCS, fastest combination first."""

    informed: ClassVar[bool] = True

    def ranked(self, knowledge: Knowledge, now: Combination = _NONE) -> Iterator[Stint]:
        """Yield the known combinations by their sums of speeds."""
        sums = {some: round(total(knowledge.table[some]), 9) for some in knowledge.known}
        ranked = _by_key({s: (value,) for s, value in sums.items()}, now)
        yield from (Stint(some) for some in ranked if knowledge.fits(some))


@dataclass(frozen=True, slots=True)
class Learning:
    """The most promising combination, by an acquisition function.

    ``p``: the probability with which a task is no faster in more company; ``k``: of more than
    fifteen tasks at most so many are tried at once, 0: any number. ``ends``: where all tasks that
    are left may run at once, this is measured first, so that there are two ends to interpolate
    between; else the far end is assumed (see :mod:`.belief`).
    """

    informed: ClassVar[bool] = False
    acquisition: Acquisition
    p: float = 0.95
    k: int = 3
    ends: bool = True

    def ranked(self, knowledge: Knowledge, now: Combination = _NONE) -> Iterator[Stint]:
        """Yield all combinations by their promise."""
        if self.ends and self._lacks_end(knowledge):
            yield Stint(frozenset(knowledge.volumes))
        guesses = knowledge.belief(self.p, self.k).guesses
        measured = set(knowledge.known)
        best = max((guesses[some].mean for some in measured & guesses.keys()), default=1.0)
        keys = {
            some: (
                round(self.acquisition(guess, best), 9),
                round(guess.mean, 9),
                some not in measured,
            )
            for some, guess in guesses.items()
        }
        yield from map(Stint, _by_key(keys, now))

    def _lacks_end(self, knowledge: Knowledge) -> bool:
        """Whether all tasks may run at once, and how fast they are then is not known."""
        everybody = frozenset(knowledge.volumes)
        return (
            len(everybody) <= knowledge.most_at_once(self.k)
            and not any(everybody <= some for some in knowledge.table)
            and knowledge.fits(everybody)
        )


PI = Learning(improvement_probability)
EI = Learning(expected_improvement)


def ucb(kappa: float = 2.0) -> Learning:
    """Return the strategy UCB for a κ."""
    return Learning(upper_confidence_bound(kappa))


def _by_key(
    keys: Mapping[Combination, tuple[float, ...]], now: Combination
) -> Iterator[Combination]:
    """Yield combinations by descending key, equal ones in the order of the module's docstring."""
    best = max(keys.values(), default=())
    first = sorted((some for some in keys if keys[some] == best), key=lambda s: _place(s, now))
    yield from first
    rest = [some for some in keys if keys[some] != best]
    rest.sort(key=lambda some: (*(-value for value in keys[some]), *_place(some, now)))
    yield from rest


def _place(some: Combination, now: Combination) -> tuple[bool, int, tuple[str, ...]]:
    return (some != now, -len(some), ordered(some))
