"""What is believed of speeds that were not measured: normal, between those that were.

The speed a_{i,S} of T_i in S is taken for a normal random variable. Measured speeds bound it, as a
task can only become slower when others are added (see :mod:`.tables`): it is at most u, the
least of T_i's speeds in the measured S_p ⊆ S, and at least l, the greatest of those in the measured
S_q ⊇ S. Between these two knots its mean is interpolated by a linear spline over the number of
tasks, with t = (|S| - |S_p|) / (|S_q| - |S_p|):

    μ_{i,S} = u - (u - l) t

Its variance is the largest with which the constraint holds with probability p against either knot:

    σ_{i,S} = (u - l) min(t, 1 - t) / Φ⁻¹(p)

which is 0 at what was measured and grows with the distance to it. Of a combination's sum of speeds
the mean is Σ μ_{i,S}, and the variance Σ σ²_{i,S}.

What the paper leaves open is our choice: the coordinate of the spline, and the knots before
anything was measured. These are 1 alone, and 0 with one task more than there are: so all n tasks
together are expected to run at 1/n each, as if they took turns. Where measures contradict the
constraint, that of the smaller combination is believed.

Source: Kuchumov & Korkhov (paper 002), section 2, "to interpolate values of a_{i,j} and ensure that
task variance increases with an increase of uncertainty, we used linear spline interpolation"; the
spline itself stands in a preprint that could not be had.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import hypot
from statistics import NormalDist

from pliant.cosched.tables import Table
from pliant.errors import BadInput
from pliant.model import Combination, Speeds


@dataclass(frozen=True, slots=True)
class Guess:
    """A sum of speeds as it is believed: ``mean`` and standard ``deviation``."""

    mean: float
    deviation: float = 0.0


@dataclass(slots=True)
class _Knots:
    """The bounds of one task's speed in one combination, and how many tasks they are from."""

    upper: float
    upper_size: int
    lower: float
    lower_size: int


@dataclass(slots=True)
class Belief:
    """The sums of speeds of ``candidates``, as far as ``table`` says them.

    ``tasks``: how many are left; ``probability``: with which the constraint holds, above 0.5.
    Raises BadInput for another probability.
    """

    candidates: Iterable[Combination]
    table: Table
    tasks: int
    probability: float
    _z: float = field(init=False)
    _knots: dict[Combination, dict[str, _Knots]] = field(init=False)
    _guesses: dict[Combination, Guess] = field(init=False)

    def __post_init__(self) -> None:
        self._z = quantile(self.probability)
        self._knots = {
            some: {task: _Knots(1.0, 1, 0.0, self.tasks + 1) for task in some}
            for some in self.candidates
        }
        for measured, speeds in self.table.items():
            self._bound(measured, speeds)
        self._guesses = {some: self._guess(some) for some in self._knots}

    @property
    def guesses(self) -> dict[Combination, Guess]:
        """What is believed of each candidate."""
        return self._guesses

    def learn(self, measured: Combination, speeds: Speeds) -> None:
        """Take in what was measured."""
        for some in self._bound(measured, speeds):
            self._guesses[some] = self._guess(some)

    def _bound(self, measured: Combination, speeds: Speeds) -> list[Combination]:
        """Tighten the bounds of larger and smaller combinations; return these."""
        size = len(measured)
        touched = []
        for some, knots in self._knots.items():
            above, below = measured <= some, some <= measured
            if not (above or below):
                continue
            touched.append(some)
            for task in measured if above else some:
                speed, knot = speeds[task], knots[task]
                if above and (-speed, size) > (-knot.upper, knot.upper_size):
                    knot.upper, knot.upper_size = speed, size
                if below and (speed, -size) > (knot.lower, -knot.lower_size):
                    knot.lower, knot.lower_size = speed, size
        return touched

    def _guess(self, some: Combination) -> Guess:
        mean, deviations = 0.0, []
        for knot in self._knots[some].values():
            span = knot.lower_size - knot.upper_size
            part = (len(some) - knot.upper_size) / span if span else 0.0
            gap = max(0.0, knot.upper - knot.lower)
            mean += knot.upper - gap * part
            deviations.append(gap * min(part, 1.0 - part) / self._z)
        return Guess(mean, hypot(*deviations))


def quantile(probability: float) -> float:
    """Return Φ⁻¹ of a probability above 0.5 and below 1.

    Raises BadInput for any other.
    """
    if not 0.5 < probability < 1.0:
        raise BadInput(f"p: {probability!r}: a probability above 0.5 and below 1 is expected")
    return NormalDist().inv_cdf(probability)
