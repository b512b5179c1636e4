"""What several seeds say together: a mean, and how far the true one may be from it.

The interval is Student's t, two-sided, at 95 %, over the seeds: each is one draw of the workload.
Policies are compared seed by seed on the same workload (paired): a change is the mean over seeds of
what each seed's figure is relative to that of the first policy. One seed says nothing of how far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, stdev

CONFIDENCE = 0.95
_T = (
    *(12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281),
    *(2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860),
    *(2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423),
)
"""Student's t at 97.5 % for 1 to 30 degrees of freedom, as printed in every table."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and half the width of its confidence interval; None with one seed."""

    mean: float
    within: float | None


def estimate(values: Sequence[float]) -> Estimate:
    """Return the mean of one figure over seeds, and how far the true one may be from it.

    Raises ValueError where there are none.
    """
    if not values:
        raise ValueError("no values")
    if len(values) == 1:
        return Estimate(values[0], None)
    within = student_t(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Estimate(fmean(values), within)


def change(values: Sequence[float], first: Sequence[float]) -> Estimate | None:
    """Return by what part of it a figure differs from the first policy's, seed by seed.

    -0.1 is 10 % less. None where the first policy's was 0 for a seed.
    """
    if any(base == 0 for base in first):
        return None
    return estimate([value / base - 1 for value, base in zip(values, first, strict=True)])


def student_t(freedom: int) -> float:
    """Return Student's t at 97.5 %.

    Beyond the table by the expansion of Cornish and Fisher from the normal distribution, which is
    within 0.0001 of it there.
    """
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
