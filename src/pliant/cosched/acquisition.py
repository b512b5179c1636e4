"""How promising a combination is, by what is believed of its sum of speeds: PI, EI and UCB.

With μ and σ the mean and the deviation of the sum, f* the best sum that was measured and
z = (μ - f*) / σ:

    PI  = Φ(z)                     the probability of an improvement
    EI  = (μ - f*) Φ(z) + σ φ(z)   the expected improvement
    UCB = μ + κ σ                  the upper confidence bound

The paper names them and prints none; these are the textbooks' forms. Where σ is 0 they are their
limits, so the best combination that was measured has PI 1/2, EI 0 and UCB f*. That says when the
search is over: PI goes on only while something is expected to be better than the best that was
measured, EI and UCB while something may be.

Source: Kuchumov & Korkhov (paper 002), section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, exp, pi, sqrt

from pliant.cosched.belief import Guess

Acquisition = Callable[[Guess, float], float]
"""The promise of a sum of speeds, given the best one that was measured."""

_EQUAL = 1e-9  # sums of the same speeds in another order differ by less


def improvement_probability(guess: Guess, best: float) -> float:
    """Return PI."""
    if guess.deviation <= 0:
        above = guess.mean - best
        return 0.5 if abs(above) < _EQUAL else float(above > 0)
    return _below((guess.mean - best) / guess.deviation)


def expected_improvement(guess: Guess, best: float) -> float:
    """Return EI."""
    above, deviation = guess.mean - best, guess.deviation
    if deviation <= 0:
        return max(0.0, above)
    z = above / deviation
    return max(0.0, above * _below(z) + deviation * exp(-z * z / 2) / sqrt(2 * pi))


def upper_confidence_bound(kappa: float) -> Acquisition:
    """Return UCB for this κ."""

    def bound(guess: Guess, best: float) -> float:
        del best
        return guess.mean + kappa * guess.deviation

    return bound


def _below(z: float) -> float:
    """Φ, the distribution function of the standard normal."""
    return erfc(-z / sqrt(2)) / 2
