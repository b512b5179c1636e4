"""Avoidable idle GPU time on the demonstration's mix: decided in simulation, and on a real Slurm.

What is counted, and from which records, says :mod:`pliant.demo.idle`. In simulation nothing but
the decisions can leave a GPU idle. On a real Slurm its own reaction is added: a start takes about a
second, and records have whole seconds. The demonstration's jobs run for seconds only, so its times
are stretched here until reacting is no large part of them; what happens within the first seconds
after a submission or an end is shown apart.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

from benchmarks.section import Section, verdict
from pliant.demo.dry import dry_round
from pliant.demo.idle import idle
from pliant.demo.live import live_round
from pliant.demo.mix import SEED, USERS, mix
from pliant.demo.play import CLUSTER
from pliant.demo.run import Run, mean_flow_s
from pliant.demo.users import users
from pliant.sandbox.options import SCHEDULER_PARAMETERS

GOAL = 0.01
SETTLE_S = 3.0
MODES = ("off", "enforce")
FIRST_ALONE = "bf_job_part_count_reserve=1"
ROUNDS = tuple(
    (mode, parameters)
    for parameters in (SCHEDULER_PARAMETERS, f"{SCHEDULER_PARAMETERS},{FIRST_ALONE}")
    for mode in MODES
)


def measure(quick: bool) -> list[Section]:
    """Measure the simulated and the real mix."""
    return [_simulated(range(1, 6) if quick else range(1, 101)), _real(0.5 if quick else 8.0)]


def _simulated(seeds: Sequence[int]) -> Section:
    shares: dict[str, list[float]] = {}
    flows: dict[str, list[float]] = {}
    for mode in MODES:
        rounds = [dry_round(mode, mix(seed), _silent) for seed in seeds]
        shares[mode] = sorted(idle(runs, CLUSTER).avoidable_share for runs in rounds)
        flows[mode] = [mean_flow_s(runs) for runs in rounds]
    changes = sorted(on / off - 1 for off, on in zip(flows["off"], flows["enforce"], strict=True))
    worse = sum(change > 0 for change in changes)
    return Section(
        "Avoidable idle GPU time, simulated",
        f"The demonstration's mix, drawn with seeds {seeds[0]} to {seeds[-1]}; of all GPU time.",
        ("", "median", "90 % of seeds below", "worst seed", "mean flow time, s (median)"),
        [
            (
                f"Pliant {mode}",
                _percent(median(shares[mode])),
                _percent(shares[mode][int(0.9 * len(seeds))]),
                _percent(shares[mode][-1]),
                f"{median(flows[mode]):.1f}",
            )
            for mode in MODES
        ],
        f"Mean flow time changes by {_signed(median(changes))} (median), from "
        f"{_signed(changes[0])} to {_signed(changes[-1])}; it is longer in {worse} of "
        f"{len(changes)} mixes. Goal: less than {_percent(GOAL)} avoidably idle, median: "
        f"{verdict(median(shares['enforce']) < GOAL)}.",
    )


def _real(stretch: float) -> Section:
    """Run all rounds at the same time, each on a Slurm of its own: it takes long enough."""
    jobs = mix(SEED, stretch)

    def one(number: int) -> Sequence[Run]:
        mode, parameters = ROUNDS[number]
        return live_round(f"bench-idle-{number}", mode, jobs, _silent, parameters)

    began = time.monotonic()
    with users(USERS), ThreadPoolExecutor(len(ROUNDS)) as pool:
        rounds = dict(zip(ROUNDS, pool.map(one, range(len(ROUNDS))), strict=True))
    took_s = time.monotonic() - began
    whole = {key: idle(runs, CLUSTER) for key, runs in rounds.items()}
    settled = {key: idle(runs, CLUSTER, SETTLE_S) for key, runs in rounds.items()}
    return Section(
        "Avoidable idle GPU time on a real Slurm",
        f"The mix of seed {SEED}, its times stretched {stretch:g}-fold ({took_s:.0f} s), "
        f"all {len(ROUNDS)} rounds at the same time on this machine; part of "
        "all GPU time, from Slurm's records. Slurm's backfill keeps nodes for every job that "
        "waits, at the shape that it carries, and not for the first alone: what nobody can use "
        f"because of that counts as avoidable here. With `{FIRST_ALONE}` it keeps them for the "
        "first of each partition.",
        ("", "idle", "avoidably", f"of it later than {SETTLE_S:.0f} s", "mean flow time, s"),
        [
            (
                f"Pliant {mode}" + (f", {FIRST_ALONE}" if FIRST_ALONE in parameters else ""),
                _percent(whole[mode, parameters].idle_share),
                _percent(whole[mode, parameters].avoidable_share),
                _percent(settled[mode, parameters].avoidable_share),
                f"{mean_flow_s(rounds[mode, parameters]):.1f}",
            )
            for mode, parameters in ROUNDS
        ],
        f'"Later than {SETTLE_S:.0f} s" leaves out the first seconds after each submission and '
        f"each end. Goal: less than {_percent(GOAL)} avoidably idle: "
        f"{verdict(whole['enforce', SCHEDULER_PARAMETERS].avoidable_share < GOAL)}.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _signed(share: float) -> str:
    return f"{100 * share:+.0f} %"


def _silent(_line: str) -> None:
    pass
