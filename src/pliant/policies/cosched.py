"""Co-scheduling: which jobs run together on a node, by how fast they are in each other's company.

The jobs whose owners let them share (``--colocate``), ask for one node and fit on it are its tasks;
those that run there its combination. A strategy (see :mod:`pliant.cosched`) says which combination
of the jobs that run and wait runs next: others start beside those that run, and who is not in it is
set aside where it may be (a best-effort job), and goes back to the queue.

- ``cosched-optimal``: a linear program: minimise Σ x_j, A x = b, x ≥ 0, where combination j runs
  for x_j; A are the speeds, b what is left of the jobs, by their time limits where nothing else is
  known. Of more than fifteen jobs combinations of at most ``k``. Needs the extra ``solvers``.
- ``cosched-fcs``: the combination with the largest sum of speeds.
- ``cosched-pi``, ``cosched-ei``, ``cosched-ucb``: they learn the speeds: the most promising
  combination by the probability of an improvement, the expected improvement, the upper confidence
  bound with ``kappa``. ``p``: the probability with which a job is no faster in more company; ``k``
  as above; ``ends``: all at once are measured first; ``window``: how many jobs they look at for one
  node, those that run there and then the first of the queue, 0: all.

On a real cluster (``marks``; all but ``cosched-optimal``) jobs start and are placed as by
``easy-backfill``, and pairs come about by marks: see :mod:`.marks`. ``least``: two share only where
their speeds together are above it, and are parted at it: at 1 they do no more than they would one
after the other. ``across_accounts``: jobs of different accounts share too. ``k`` and ``window`` are
for simulations alone.

What is known of speeds stands in the snapshot (``Company``). The first two know only combinations
that are in it: there it is to hold all that can be, with their true speeds. What runs goes on until
the next cycle, where everything is decided anew: the order of an optimal schedule's combinations
is always the same, so that one follows the other as their time is over.

What the paper does not cover, having one machine and no queue:

- The nodes are gone through in their order, and each chooses among what still waits.
- A job that may not be set aside stays: only combinations with it count. Nothing changes on a node
  before those that leave it are gone. Who goes, goes before anybody else starts there.
- Nobody is set aside from a combination whose speeds are not known: it is measured first, and what
  one node gives up cannot make two nodes take jobs from each other again and again.
- Of a running job the share of a GPU is set aside only where it is certain which GPU it leaves.
- Jobs that do not share are placed as by ``easy-backfill``. What shares has its turn with the
  first of them in the queue and keeps no claim: it is the strategy that says who is next.

Source: Kuchumov & Korkhov (paper 002), section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import ClassVar

from pliant.cosched import Fastest, Learning, Optimal, Strategy, acquisition
from pliant.cosched.belief import quantile
from pliant.errors import BadInput
from pliant.model import Snapshot
from pliant.plan import Plan
from pliant.policies.chosen import Count
from pliant.policies.companions import Rule
from pliant.policies.easy import EasyBackfill
from pliant.policies.machines import Machines
from pliant.policies.marks import Marks
from pliant.policies.parting import partings


class _Cosched:
    """What these policies have in common; ``strategy`` says which combination runs next."""

    name: ClassVar[str]
    molds: ClassVar[bool] = False
    resizes: ClassVar[bool] = True
    window: int = 0

    def strategy(self) -> Strategy:
        """Return how combinations are ranked."""
        raise NotImplementedError

    def _check(self, p: float) -> None:
        """Refuse what is no such probability: raises BadInput."""
        try:
            quantile(p)
        except BadInput as error:
            raise BadInput(f"policy {self.name}: {error}") from error

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims and preempts."""
        return Machines(snapshot, self.strategy(), self.name, self.window).plan()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live(_Cosched):
    """One that a real cluster can have too."""

    live_options: ClassVar[Mapping[str, object]] = MappingProxyType({"marks": True})
    least: float = 1.0
    across_accounts: bool = False
    marks: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims, and preempts or marks and who is parted."""
        if not self.marks:
            return _Cosched.__call__(self, snapshot)
        rule = Rule(self.name, self.strategy(), self.least, self.across_accounts)
        plan = EasyBackfill()(snapshot)
        marks = Marks(snapshot, rule, frozenset(start.job.id for start in plan.starts)).marks()
        parted = partings(snapshot, self.least, plan)
        return replace(plan, marks=marks, pairs=True, reshapes=parted)


@dataclass(frozen=True, slots=True)
class CoschedOptimal(_Cosched):
    """The combinations of an optimal schedule."""

    name: ClassVar[str] = "cosched-optimal"
    simulated_only: ClassVar[bool] = True  # it goes by all speeds, which nobody knows of real jobs
    k: Count = 3

    def strategy(self) -> Strategy:
        """Return the linear program."""
        return Optimal(self.k)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoschedFcs(_Live):
    """The fastest combination first."""

    name: ClassVar[str] = "cosched-fcs"

    def strategy(self) -> Strategy:
        """Return FCS."""
        return Fastest()


_LEARNS: Mapping[str, object] = MappingProxyType({"marks": True, "k": 3, "window": 10})
"""Live two share a node, whatever ``k`` says, and how many wait there to choose from is one number
for all (see :data:`.marks.WINDOW`): another value would do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoschedPi(_Live):
    """The combination that is the most probably better than the best that was measured."""

    name: ClassVar[str] = "cosched-pi"
    live_options: ClassVar[Mapping[str, object]] = _LEARNS
    p: float = 0.95
    k: Count = 3
    ends: bool = True
    window: int = 10

    def __post_init__(self) -> None:
        self._check(self.p)

    def strategy(self) -> Strategy:
        """Return the search by probability of improvement."""
        return Learning(acquisition.improvement_probability, self.p, self.k, self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoschedEi(_Live):
    """The combination with the largest expected improvement on the best that was measured."""

    name: ClassVar[str] = "cosched-ei"
    live_options: ClassVar[Mapping[str, object]] = _LEARNS
    p: float = 0.95
    k: Count = 3
    ends: bool = True
    window: int = 10

    def __post_init__(self) -> None:
        self._check(self.p)

    def strategy(self) -> Strategy:
        """Return the search by expected improvement."""
        return Learning(acquisition.expected_improvement, self.p, self.k, self.ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class CoschedUcb(_Live):
    """The combination with the highest upper confidence bound."""

    name: ClassVar[str] = "cosched-ucb"
    live_options: ClassVar[Mapping[str, object]] = _LEARNS
    kappa: float = 2.0
    p: float = 0.95
    k: Count = 3
    ends: bool = True
    window: int = 10

    def __post_init__(self) -> None:
        self._check(self.p)

    def strategy(self) -> Strategy:
        """Return the search by upper confidence bound."""
        bound = acquisition.upper_confidence_bound(self.kappa)
        return Learning(bound, self.p, self.k, self.ends)
