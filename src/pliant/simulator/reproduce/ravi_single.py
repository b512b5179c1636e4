"""Ravi et al. (paper 004), figures 3, 4 and 5: jobs for the CPUs or a GPU of one node each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Table, is_about, percent
from pliant.simulator.reproduce.ravi_runs import (
    OPTIMAL,
    ROBIN,
    SCHEMES,
    Latencies,
    Single,
    single,
)
from pliant.simulator.workloads.ravi import GPU_PART
from pliant.simulator.workloads.ravi_tables import ITERATIONS, POOL, Application

Draw = dict[str, Latencies]
Figure = Callable[[Latencies], float]

ALL = (ROBIN, *SCHEMES, OPTIMAL)
PRINTED_CT_S, PRINTED_MIT_S = 705.2, 226.6


@dataclass(frozen=True, slots=True)
class Ones:
    """All draws by mix; and by how many iterations, where that is another number."""

    draws: dict[str, list[Draw]]
    varied: dict[int, list[Draw]]

    @property
    def all(self) -> list[Draw]:
        """The draws of all mixes."""
        return [draw for draws in self.draws.values() for draw in draws]

    def mean(self, mix: str, policy: str, figure: Figure) -> float:
        """Return a policy's mean figure in a mix."""
        return fmean(figure(draw[policy]) for draw in self.draws[mix])


def run_single(asked: Asked, base: tuple[int, int], varied: Sequence[tuple[int, int]]) -> Ones:
    """Run all mixes; ``base``, ``varied``: how many iterations, and how many draws."""
    points = [
        Single(mix, seed, iterations, ALL if iterations == base[0] else (ROBIN, *SCHEMES))
        for iterations, draws in (base, *varied)
        for mix in GPU_PART
        for seed in asked.seeds(draws)
    ]
    found = list(zip(points, asked.spread("jobs on one node", single, points), strict=True))
    return Ones(
        {
            mix: [draw for point, draw in found if (point.bias, point.iterations) == (mix, base[0])]
            for mix in GPU_PART
        },
        {
            iterations: [draw for point, draw in found if point.iterations == iterations]
            for iterations, _ in varied
        },
    )


def _ct(one: Latencies) -> float:
    return one.ct


def _anl(one: Latencies) -> float:
    return one.anl


def _aql(one: Latencies) -> float:
    return one.aql


def _mit(one: Latencies) -> float:
    return one.mit


FIGURES: dict[str, Figure] = {"CT": _ct, "ANL": _anl, "AQL": _aql, "MIT": _mit}


def _over(draws: Sequence[Draw], name: str) -> float:
    """How much longer a policy takes than RSA, RSC and ASJF, in the mean over these and draws."""
    return fmean(draw[name].ct / draw[scheme].ct for draw in draws for scheme in SCHEMES)


def single_claims(ones: Ones) -> list[Claim]:
    """Return what the text says of figures 3, 4 and 5."""
    return [*_completion(ones), *_latencies(ones), *_balanced(ones)]


def _completion(ones: Ones) -> list[Claim]:
    robin = _over(ones.all, ROBIN) - 1
    three = fmean(draw[one].ct / draw[OPTIMAL].ct for draw in ones.all for one in SCHEMES) - 1
    best = fmean(min(draw[one].ct for one in SCHEMES) / draw[OPTIMAL].ct for draw in ones.all) - 1
    return [
        Claim(
            "blind round robin takes longer than RSA, RSC and ASJF, on average",
            "predicted",
            "108 %",
            percent(robin),
            is_about(robin, 1.08),
            "times of two thirds of the jobs are made up: the table says what others give",
        ),
        _within(
            "RSA, RSC and ASJF are within 20.6 % of the optimum, on average", three, 0.206, _LAST
        ),
        _within("the best of the three is within 12 % of the optimum", best, 0.12, _LAST),
        _in_mixes(
            ones,
            "all three are done before blind round robin",
            partial(_all_below, ones, _ct),
        ),
        _in_mixes(
            ones,
            "ASJF is done first of the three in almost all mixes",
            lambda mix: _least(ones, mix, _ct, "asjf", ("rsa", "rsc")),
            _LAST,
            enough=len(GPU_PART) - 1,
        ),
    ]


def _within(text: str, ours: float, bound: float, why: str) -> Claim:
    holds = ours <= bound
    printed = f"≤ {percent(bound, 1)}"
    return Claim(text, "predicted", printed, percent(ours, 1), holds, "" if holds else why)


def _latencies(ones: Ones) -> list[Claim]:
    anl = max(ones.mean(mix, "rsc", _anl) for mix in GPU_PART)
    lower = [
        _in_mixes(
            ones,
            f"all three have a lower {name} than blind round robin",
            partial(_all_below, ones, FIGURES[name]),
            reason,
        )
        for name, reason in (("ANL", ""), ("AQL", _WAITS), ("MIT", ""))
    ]
    return [
        Claim("RSC's ANL is always 0", "predicted", "0", f"{anl:.3f} s", anl < 1e-6, "by its rule"),
        _in_mixes(
            ones,
            "RSA has the highest ANL of the three",
            lambda mix: _most(ones, mix, _anl, "rsa", ("rsc", "asjf")),
        ),
        _in_mixes(
            ones,
            "RSA's AQL is below RSC's",
            lambda mix: _least(ones, mix, _aql, "rsa", ("rsc",)),
        ),
        _in_mixes(
            ones,
            "ASJF has the lowest AQL of the three",
            lambda mix: _least(ones, mix, _aql, "asjf", ("rsa", "rsc")),
        ),
        _in_mixes(
            ones,
            "RSC has the highest MIT of the three",
            lambda mix: _most(ones, mix, _mit, "rsc", ("rsa", "asjf")),
            _LAST,
        ),
        *lower,
    ]


def _longest() -> str:
    """Say how long the longest job of the pool takes where it is fastest."""
    longest = max(POOL, key=_alone_s)
    return f"{longest.name} alone takes {_alone_s(longest):.0f} s"


def _alone_s(one: Application) -> float:
    return one.sequential_s / max(one.gpu, one.cores)


_LAST = f"ASJF takes the longest jobs last, and {_longest()} at its best"
_WAITS = "RSC waits for the resource that its jobs prefer"


def _all_below(ones: Ones, figure: Figure, mix: str) -> bool:
    return all(_least(ones, mix, figure, one, (ROBIN,)) for one in SCHEMES)


def _balanced(ones: Ones) -> list[Claim]:
    times = {one: ones.mean("uniform", one, _ct) for one in SCHEMES}
    first = min(times, key=times.__getitem__)
    busy = 1 - ones.mean("uniform", first, _mit) / times[first]
    printed = 1 - PRINTED_MIT_S / PRINTED_CT_S
    return [
        Claim(
            "the balanced mix takes 705.2 s",
            "fitted",
            f"{PRINTED_CT_S} s",
            f"{times[first]:.1f} s ({first})",
            is_about(times[first], PRINTED_CT_S),
            f"{ITERATIONS} iterations are chosen so",
        ),
        Claim(
            "there each resource is busy for 68 % of the time or more",
            "predicted",
            percent(printed),
            f"{percent(busy)} ({first}, MIT {ones.mean('uniform', first, _mit):.1f} s)",
            busy >= printed,
            "" if busy >= printed else f"a single job decides: {_longest()}",
        ),
    ]


def _least(ones: Ones, mix: str, figure: Figure, name: str, others: Sequence[str]) -> bool:
    return all(ones.mean(mix, name, figure) <= ones.mean(mix, one, figure) for one in others)


def _most(ones: Ones, mix: str, figure: Figure, name: str, others: Sequence[str]) -> bool:
    return all(ones.mean(mix, name, figure) >= ones.mean(mix, one, figure) for one in others)


def _in_mixes(
    ones: Ones,
    text: str,
    holds: Callable[[str], bool],
    reason: str = "",
    enough: int = len(GPU_PART),
) -> Claim:
    """Claim that something is so in ``enough`` of the mixes, by their means."""
    rest = [mix for mix in ones.draws if not holds(mix)]
    so = len(ones.draws) - len(rest)
    why = f"not in the mix: {', '.join(rest)}" + (f"; {reason}" if reason else "")
    return Claim(
        text,
        "predicted",
        "in all mixes" if enough == len(GPU_PART) else "almost always",
        f"in {so} of {len(ones.draws)} mixes",
        so >= enough,
        why if rest else "",
    )


def single_tables(ones: Ones) -> list[Table]:
    """Return figures 3 to 5 as numbers, and what other numbers of iterations give."""
    rows = [
        [
            f"{mix}, {policy}",
            *(f"{round(ones.mean(mix, policy, one), 1) + 0.0:.1f}" for one in FIGURES.values()),
        ]
        for mix in ones.draws
        for policy in ALL
    ]
    everything = {ITERATIONS: ones.all, **ones.varied}
    by_iterations = [
        [
            f"{iterations}",
            f"{len(draws)}",
            f"{fmean(min(draw[one].ct for one in SCHEMES) for draw in draws):.0f}",
            percent(_over(draws, ROBIN) - 1),
        ]
        for iterations, draws in sorted(everything.items())
    ]
    return [
        Table(
            "Figures 3 to 5: seconds, in the mean over all draws", ["mix, policy", *FIGURES], rows
        ),
        Table(
            "By the choice of how many iterations are many",
            ["iterations", "draws", "best of the three, s", "round robin longer by"],
            by_iterations,
        ),
    ]
