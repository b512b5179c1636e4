"""Ravi et al. (paper 004), figures 6 and 7: jobs for several nodes, and FMS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, Table, is_about, percent
from pliant.simulator.reproduce.ravi_runs import NO_IDLING, Multi, multi, over
from pliant.simulator.workloads.ravi import MIXES

Draw = dict[str, float]
Setting = tuple[float, float]
"""The load, and PageRank's doubtful time."""

BASELINES, HALVES = ("torque", "mct"), ("fms-type", "fms-nodes")
CORE = ("fms", *HALVES, *BASELINES)
ALL = (*CORE, "torque, overtaking", "fms, beside later")
LENGTH = tuple(name for name, mix in MIXES.items() if mix.by == "length")
SIZE = tuple(name for name, mix in MIXES.items() if mix.by == "size")
LARGE, SMALL = SIZE[0], SIZE[-1]


@dataclass(frozen=True, slots=True)
class Several:
    """All draws by mix; and by setting and mix where another load or time is taken."""

    setting: Setting
    draws: dict[str, list[Draw]]
    varied: dict[Setting, dict[str, list[Draw]]]

    def gain(self, mix: str, names: Sequence[str] = BASELINES, base: str = "fms") -> float:
        """Return how much longer the best of some policies takes than another, in a mix."""
        return min(over(self.draws[mix], name, base) for name in names) - 1


def run_multi(
    asked: Asked, base: tuple[Setting, int], varied: Sequence[tuple[Setting, int]]
) -> Several:
    """Run all mixes; ``base``, ``varied``: a setting, and how many draws."""
    points = [
        Multi(mix, seed, *setting, ALL if setting == base[0] else CORE)
        for setting, draws in (base, *varied)
        for mix in MIXES
        for seed in asked.seeds(draws)
    ]
    found = list(zip(points, asked.spread("jobs on several nodes", multi, points), strict=True))

    def of(setting: Setting) -> dict[str, list[Draw]]:
        return {
            mix: [
                draw
                for point, draw in found
                if (point.mix, point.load, point.pagerank_s) == (mix, *setting)
            ]
            for mix in MIXES
        }

    return Several(base[0], of(base[0]), {setting: of(setting) for setting, _ in varied})


def multi_claims(several: Several) -> list[Claim]:
    """Return what the text says of figures 6 and 7."""
    return [
        *_against_baselines(several, "length of jobs", LENGTH, 0.42),
        _together(several, "length of jobs", LENGTH, 0.12),
        *_against_baselines(several, "size of requests", SIZE, 0.32),
        _together(several, "size of requests", SIZE, 0.113),
        _each_alone(several),
        _contention(several),
    ]


def _against_baselines(
    several: Several, by: str, mixes: Sequence[str], printed: float
) -> list[Claim]:
    leads = {mix: several.gain(mix, ALL[1:5]) for mix in mixes}
    behind = [mix for mix in mixes if leads[mix] < 0]
    worst = -min(leads.values())
    gains = {mix: several.gain(mix) for mix in mixes}
    most = max(gains, key=gains.__getitem__)
    return [
        Claim(
            f"by {by}: FMS is done first of the five",
            "predicted",
            "in all mixes",
            f"in {len(mixes) - len(behind)} of {len(mixes)} mixes",
            not behind,
            f"not in the mix: {', '.join(behind)}; behind by {percent(worst, 1)} or less"
            if behind
            else "",
        ),
        Claim(
            f"by {by}: FMS is better than the faster of TORQUE and MCT",
            "predicted",
            f"by up to {percent(printed)}",
            f"by up to {percent(gains[most], 1)} ({most})",
            is_about(gains[most], printed),
            "" if is_about(gains[most], printed) else _why_less(several, mixes, most),
        ),
    ]


def _why_less(several: Several, mixes: Sequence[str], most: str) -> str:
    """Say what could be gained at all in a mix, and what FMS gains with other loads."""
    room = several.gain(most, base=NO_IDLING)
    elsewhere = max(
        min(over(draws[mix], name) for name in BASELINES) - 1
        for draws in several.varied.values()
        for mix in mixes
    )
    return (
        f"there these take but {percent(room)} longer than all as asked without any gap; how often"
        " batches come, and so how full the cluster is, is not printed: at the other loads that"
        f" were tried it is {percent(elsewhere, 1)} at most"
    )


def _together(several: Several, by: str, mixes: Sequence[str], printed: float) -> Claim:
    gain = fmean(several.gain(mix, HALVES) for mix in mixes)
    later = fmean(several.gain(mix, HALVES, "fms, beside later") for mix in mixes)
    right = is_about(gain, printed)
    return Claim(
        f"by {by}: molding both kind and number is better than the better of one alone",
        "predicted",
        f"by {percent(printed, 1)}",
        f"by {percent(gain, 1)}, in the mean of the mixes",
        right,
        ""
        if right
        else "why is not known: with the option beside = later, which puts jobs side by side on"
        f" nodes too that are not free yet, it is {percent(later, 1)}",
    )


def _each_alone(several: Several) -> Claim:
    so = [mix for mix in MIXES if all(several.gain(mix, base=half) > 0 for half in HALVES)]
    others = [mix for mix in MIXES if mix not in so]
    return Claim(
        "the kind alone, and the number of nodes alone, are each better than TORQUE and MCT",
        "predicted",
        "in all mixes",
        f"in {len(so)} of {len(MIXES)} mixes",
        not others,
        f"not in the mix: {', '.join(others)}" if others else "",
    )


def _contention(several: Several) -> Claim:
    gains = {mix: several.gain(mix, ("fms-nodes",), "fms-type") for mix in SIZE}
    steps = pairwise(reversed(SIZE))  # from few large requests to many
    falls = [f"from {few} to {many}" for few, many in steps if gains[many] < gains[few]]
    right = gains[LARGE] > 0 and gains[LARGE] > gains[SMALL] and not falls
    lead = f"it falls {' and '.join(falls)}; " if falls else ""
    return Claim(
        "with more large requests the kind alone becomes better than the number of nodes alone",
        "predicted",
        "as the ratio grows",
        "; ".join(f"{mix}: {percent(gain, 1)}" for mix, gain in gains.items()),
        right,
        "" if right else f"{lead}the load is not printed: the table has others",
    )


def multi_tables(several: Several) -> list[Table]:
    """Return figures 6 and 7 as numbers, and what other loads give."""
    names = [*ALL[1:], NO_IDLING]
    rows = [
        [
            mix,
            f"{fmean(times['fms'] for times in draws):.0f}",
            *(f"{over(draws, name):.3f}" for name in names),
        ]
        for mix, draws in several.draws.items()
    ]
    everything = {several.setting: several.draws, **several.varied}
    by_setting = [
        [
            f"load {load:g}, {pagerank_s:g} s: {mix}",
            f"{len(draws)}",
            *(f"{over(draws, name):.3f}" for name in (*CORE[1:], NO_IDLING)),
        ]
        for (load, pagerank_s), mixes in everything.items()
        for mix, draws in mixes.items()
    ]
    return [
        Table(
            "Figures 6 and 7: total completion time over that of FMS, geometric means",
            ["mix", "fms, s", *names],
            rows,
            "no idling: all jobs as asked on CPUs and GPUs, no node ever idle: no policy does so.",
        ),
        Table(
            "The same by load and by PageRank's doubtful time",
            ["setting, mix", "draws", *CORE[1:], NO_IDLING],
            by_setting,
        ),
    ]
