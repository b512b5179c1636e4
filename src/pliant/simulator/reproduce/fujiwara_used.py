"""Fujiwara et al. (paper 000), figures 3 and 5: utilisation, and what preemptions cost."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pliant.simulator.reproduce.claims import Claim, percent
from pliant.simulator.reproduce.fujiwara_figures import Figure, mean_flow, most_flow, used
from pliant.simulator.reproduce.fujiwara_gpus import FEW, GPUS, OVERHEADS_S, Seen
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    MOLDABLE_P,
    SHORTEST,
)
from pliant.simulator.reproduce.fujiwara_said import ALMOST, Sizes, alike, lower, not_below


def used_claims(seen: Seen) -> list[Claim]:
    """Return what the text says of figure 3."""
    at_six = seen.mean(FCFS, GPUS[0], seen.part(FCFS), used)
    rigid, sharing = (_used(seen, names) for names in ((FCFS, SHORTEST), (MOLDABLE, MALLEABLE)))
    return [
        Claim(
            "six GPUs are saturated (figure 3)",
            "fitted",
            "6",
            f"{percent(at_six, 1)} in use on 6 under rigid FCFS",
            at_six >= 1 - ALMOST,
            "the trace is given the volume of six GPUs",
        ),
        Claim(
            "with fewer, rigid schedules use them all",
            "predicted",
            "100 %",
            _words(rigid),
            min(rigid.values()) >= 1 - ALMOST,
            f"{seen.on(*seen.all.policies)}: those that are left at the end run beside idle GPUs",
        ),
        Claim(
            "with fewer, moldable and malleable ones use more than all, by sharing",
            "predicted",
            "> 100 %",
            _words(sharing),
            min(sharing.values()) > 1,
            _AT_THE_END,
        ),
        alike(
            "utilisation with run times known is almost that without",
            "almost identical",
            seen.apart(_CLAIRVOYANT, used, (FEW, *GPUS)),
            seen.on(*seen.all.policies),
            _AT_THE_END,
        ),
    ]


_CLAIRVOYANT = ((MOLDABLE_P, MOLDABLE), (MALLEABLE_P, MALLEABLE))
_AT_THE_END = "utilisation is counted to the last end, and what is begun on a share last ends late"


def _used(seen: Seen, names: Sequence[str]) -> dict[str, float]:
    return {name: seen.mean(name, FEW, seen.all, used) for name in names}


def _words(found: dict[str, float]) -> str:
    return ", ".join(f"{name} {percent(part, 1)}" for name, part in found.items()) + f" on {FEW}"


def overhead_claims(seen: Seen) -> list[Claim]:
    """Return what the text says of figure 5."""
    where = seen.on(*seen.all.policies)
    found: list[Claim] = []
    for overhead_s in OVERHEADS_S[1:]:
        words = f"with {overhead_s:.0f} s a preemption (figure 5)"
        found += [
            lower(
                f"on 24 GPUs and more the longest flow time is below moldable's, {words}",
                "the merit is preserved",
                _against_moldable(seen, (24, 48), overhead_s, most_flow),
                where,
                _LONGEST,
            ),
            not_below(
                f"on 12 and fewer malleable's gain over moldable is gone, {words}",
                "it disappears",
                _against_moldable(seen, (6, 12), overhead_s, mean_flow),
                f"mean flow, {where}",
                _PREEMPTED,
            ),
        ]
    return found


_LONGEST = (
    "one task decides: where moldable gives it four GPUs at its start, nothing can be shorter, and"
    " whether it does depends on who waits when it comes"
)
_PREEMPTED = (
    "a task that keeps its amount of GPUs stays on them here, and only a change of it costs"
    " something: the table says how often a task is restarted"
)


def _against_moldable(seen: Seen, sizes: Sequence[int], overhead_s: float, figure: Figure) -> Sizes:
    found: dict[int, float] = {}
    for count in sizes:
        base = seen.came(MOLDABLE, count, seen.all)
        came = seen.came(MALLEABLE, count, seen.all, overhead_s)
        both = zip(came, base, strict=True)
        found[count] = fmean(figure(one) / figure(other) - 1 for one, other in both)
    return found
