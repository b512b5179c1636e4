"""Seo's figures 3 and 4 (paper 003): what the jobs did with their time, and how used GPUs were."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from pliant.simulator.reproduce.claims import Claim, Table, percent
from pliant.simulator.reproduce.fsched_runs import STATIC, F, Ran, Stay, above
from pliant.simulator.workloads.seo import busy

LEVELS = tuple(level / 100 for level in range(50, 101, 5))
"""The utilisations from 50 % on."""
Rans = Mapping[str, Ran]


def _computing(stay: Stay) -> float:
    return busy(stay.model, stay.gpus)


def _held(stay: Stay) -> float:
    del stay
    return 1.0


READINGS: Mapping[str, Callable[[Stay], float]] = {
    "while it computes or exchanges": _computing,
    "while its job makes progress": _held,
}
"""When a GPU counts as used; the first one is figure 4's: a driver counts what computes."""


# --- figure 3 -------------------------------------------------------------------------------------


def state_claims(rans: Rans) -> list[Claim]:
    """Return what section 5.2.1 says of figure 3."""
    states = {name: ran.states for name, ran in rans.items()}
    static = [states[name] for name in STATIC]
    launches = [one.launching_s for one in static]
    more = states[F].launching_s
    queuing, running = [s.queuing_s for s in static], [s.running_s for s in static]
    fewer = all(a <= b for a, b in pairwise(queuing)) and all(a > b for a, b in pairwise(running))
    both = {name: one.queuing_s + one.running_s for name, one in states.items()}
    least = min(both, key=both.__getitem__)
    return [
        Claim(
            "launching is least with static partitions, and F-scheduling adds to it (figure 3)",
            "fitted",
            "more",
            f"{more:.0f} s against {min(launches):.0f} s of all four jobs",
            more > max(launches),
            "" if more > max(launches) else "no job was changed",
        ),
        Claim(
            "the smaller the slots, the less jobs queue and the longer they run (figure 3)",
            "fitted",
            "less and longer",
            f"queuing {_listed(queuing)} s, running {_listed(running)} s for n = 1, 2, 3, 6",
            fewer,
            "" if fewer else "see the table",
        ),
        Claim(
            "F-scheduling brings queuing and running, taken together, down (figure 3)",
            "fitted",
            "least",
            f"{both[F]:.0f} s; {least} has the least, {both[least]:.0f} s",
            least == F,
            "" if least == F else _why_more(rans),
        ),
    ]


def _listed(seconds: Sequence[float]) -> str:
    return ", ".join(f"{one:.0f}" for one in seconds)


def _why_more(rans: Rans) -> str:
    """Say what a job alone on a slot has that F's jobs lack, and how the claim can be read."""
    sums = {name: sum(ran.states) for name, ran in rans.items()}
    return (
        "the sum of all four jobs' seconds is no matter of table 2, which counts until the last"
        f" ends: with launching it is {sums[F]:.0f} s under F, and"
        f" {', '.join(f'{sums[name]:.0f} s with {name}' for name in STATIC)}"
    )


def state_table(rans: Rans) -> Table:
    """Return figure 3 as numbers."""
    rows = []
    for name, ran in rans.items():
        one = ran.states
        figures = (ran.total_s, one.queuing_s, one.launching_s, one.running_s, sum(one))
        rows.append([name, *(f"{seconds:.1f}" for seconds in figures), f"{ran.changes}"])
    return Table(
        "Table 2 and figure 3: seconds; of all four jobs together but for the first",
        ["scheduler", "until all are done", "queuing", "launching", "running", "sum", "changes"],
        rows,
        "Launching: STANDBY, LAUNCHING, CHECKPOINTING and STOPPING.",
    )


# --- figure 4 -------------------------------------------------------------------------------------


def use_claims(rans: Rans) -> list[Claim]:
    """Return what section 5.2.2 says of figure 4, for each reading of "used"."""
    return [_use_claim(rans, text, reading) for text, reading in READINGS.items()]


def _use_claim(rans: Rans, text: str, reading: Callable[[Stay], float]) -> Claim:
    shares = _shares(rans, reading)
    lower = {
        name: [
            at for at, mine, its in zip(LEVELS, shares[F], shares[name], strict=True) if mine < its
        ]
        for name in STATIC
    }
    so = not any(lower.values())
    most = max(level for _, level in rans[F].used(reading))
    where = "; ".join(
        f"{name} is above it from {percent(at[0])} on" for name, at in lower.items() if at
    )
    return Claim(
        "from 50 % on GPUs are used more under F-scheduling than with every static partition"
        f" (figure 4); a GPU counts as used {text}",
        "fitted",
        "more",
        f"50 % or more for {percent(shares[F][0])} of the time, against"
        f" {', '.join(f'{percent(shares[name][0])} with {name}' for name in STATIC)}; at most"
        f" {percent(most)}",
        so and shares[F][0] > 0,
        "" if so and shares[F][0] > 0 else where or "it never is 50 %",
    )


def _shares(rans: Rans, reading: Callable[[Stay], float]) -> dict[str, list[float]]:
    """For how much of the time the GPUs are used so much or more, at each level."""
    return {
        name: [above(ran.used(reading), level) for level in LEVELS] for name, ran in rans.items()
    }


def use_tables(rans: Rans) -> list[Table]:
    """Return figure 4 as numbers, for each reading."""
    levels = (0.25, 0.3, 0.35, 0.4, 0.45, *LEVELS)
    return [
        Table(
            f"Figure 4: for how much of the time six GPUs are used so much, {text}",
            ["scheduler", "mean", *(percent(level) for level in levels)],
            [
                [
                    name,
                    percent(_mean(ran.used(reading))),
                    *(percent(above(ran.used(reading), level)) for level in levels),
                ]
                for name, ran in rans.items()
            ],
        )
        for text, reading in READINGS.items()
    ]


def _mean(used: Sequence[tuple[float, float]]) -> float:
    return sum(seconds * share for seconds, share in used) / sum(seconds for seconds, _ in used)
