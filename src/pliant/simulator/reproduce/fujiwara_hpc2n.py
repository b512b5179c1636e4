"""Fujiwara et al. (paper 000), figures 7 to 9: what is claimed of HPC2N's tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pliant.simulator.metrics import Task
from pliant.simulator.replay import Replay
from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import Claim, percent
from pliant.simulator.reproduce.fujiwara_cpus import CHECKED, TRACE, Cpus, Every, Windows
from pliant.simulator.reproduce.fujiwara_figures import makespan, mean_flow, used
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    LEFT,
    LIST,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    MOLDABLE_P,
    POLICIES,
)
from pliant.simulator.reproduce.fujiwara_said import (
    alike,
    by_size,
    higher,
    lower,
    signed,
)
from pliant.simulator.traces import Record
from pliant.simulator.workloads.hpc2n import BOUNDS, CPUS, on_cpus
from pliant.simulator.workloads.records import Machine

MOST_GAIN = 0.027
CHECKED_WAIT_S = 16_189.15
SATURATED = 120


def hpc2n_claims(cpus: Cpus | None, asked: Asked) -> list[Claim]:
    """Return what the text says of figures 7 to 9; ``cpus``: None where there is no trace."""
    if cpus is None:
        return [_example(), *_without(asked)]
    return [_example(), *_check(cpus), *_utilisation(cpus), *_online(cpus), *_offline(cpus)]


FULL_USE = 0.95
"""So much of the CPUs is in use where they are saturated, by list scheduling."""
_ALIKE = "all policies use almost as many CPUs (figure 7)"
_SATURATES = "the system saturates with 120 CPUs"
_LIGHT = (
    "moldable and malleable improve the mean flow time of tasks on more than 240 CPUs (figure 8)"
)
_HEAVY = "on 240 CPUs and fewer the mean flow time of moldable tasks is worse than rigid"
_SHORTER = "offline, malleable's makespan is shorter by 2.7 % at most (figure 9)"
_WORSE = "offline, moldable's makespan is the longest"
_TOLD = "offline, it makes no difference that run times are known"


def _without(asked: Asked) -> list[Claim]:
    lacking = f"{asked.data / TRACE}: no such file" if asked.data else "--data"
    why = f"needs HPC2N's trace ({TRACE}): {lacking}"
    said = {
        _ALIKE: "almost identical",
        _SATURATES: "120",
        _LIGHT: "better",
        _HEAVY: "worse",
        _SHORTER: "-2.7 % at most",
        _WORSE: "worse",
        _TOLD: "identical",
    }
    return [Claim(text, "not testable", paper, why=why) for text, paper in said.items()]


# --- not of the trace -----------------------------------------------------------------------------


def _example() -> Claim:
    """Section VI-A: two tasks of two CPUs each, v = 4, on two CPUs."""
    flows = {name: _flow_of_two(name) for name in (FCFS, MOLDABLE)}
    return Claim(
        "two tasks of 2 CPUs and volume 4 on two CPUs: mean flow time, rigid and moldable"
        " (section VI-A)",
        "predicted",
        "3 and 4",
        " and ".join(f"{flow:g}" for flow in flows.values()),
        list(flows.values()) == [3, 4],
        "worked out in the paper",
    )


def _flow_of_two(policy: str) -> float:
    records = [Record(str(number), 0.0, 2.0, 2, 2, user="a") for number in (1, 2)]
    workload = on_cpus(records, Machine(2, BOUNDS, told=True))
    tasks: list[Task] = [*Replay(workload, POLICIES[policy]).run()]
    return sum(task.flow_s for task in tasks) / len(tasks)


def _check(cpus: Cpus) -> list[Claim]:
    came = cpus.checked
    return [_checked(came.wait_s.mean)] if came else []


def _checked(wait_s: float) -> Claim:
    return Claim(
        f"(not of the paper) strict FCFS on {CHECKED} CPUs, as many as each task asked for: mean"
        " wait",
        "predicted",
        f"{CHECKED_WAIT_S:,.2f} s, by AccaSim and by a loop that counts CPUs",
        f"{wait_s:,.2f} s",
        round(wait_s, 2) == CHECKED_WAIT_S,
        "the trace is another, or the replay is wrong",
    )


# --- online ---------------------------------------------------------------------------------------


def _utilisation(cpus: Cpus) -> list[Claim]:
    rigid = cpus.part(FCFS, LIST)
    in_use = [cpus.figure(one, SATURATED, rigid, used) for one in (FCFS, LIST)]
    return [
        *(_alike(cpus, base) for base in (FCFS, LIST)),
        Claim(
            _SATURATES,
            "predicted",
            "120",
            f"the whole trace keeps {cpus.demand_s:.1f} CPUs at work while it is submitted; of 120,"
            f" {percent(in_use[0], 1)} strict and {percent(in_use[1], 1)} list are in use"
            f" ({rigid.text})",
            in_use[1] >= FULL_USE,
            ""
            if in_use[1] >= FULL_USE
            else f"not on {rigid.text}: the first and the last of them run beside idle CPUs",
        ),
    ]


def _alike(cpus: Cpus, base: str) -> Claim:
    """Whether each policy uses as many CPUs as a rigid one, on the most that both were run on."""
    found = _furthest(cpus, base, tuple(POLICIES))
    most = cpus.part(base)
    whole = _furthest(cpus, base, most.policies)
    return alike(
        f"{_ALIKE}: as {_words(base)}",
        "almost identical",
        {count: change for count, (change, _) in found.items()},
        "the furthest from it: "
        + ", ".join(
            f"{name} on {cpus.part(name, base).text} ({count})"
            for count, (_, name) in found.items()
        ),
        "what runs last, at the end of a stretch of the trace, runs beside idle CPUs; on"
        f" {most.text} the furthest of {', '.join(most.policies)}: "
        + ", ".join(
            f"{name} {signed(change)} ({count})" for count, (change, name) in whole.items()
        ),
    )


def _furthest(cpus: Cpus, base: str, policies: Sequence[str]) -> dict[int, tuple[float, str]]:
    """Return by CPUs whose utilisation is furthest from a policy's, and by how much."""
    found = {}
    for count in CPUS:
        changes = [
            (cpus.change(one, base, count, cpus.part(one, base), used), one)
            for one in policies
            if one != base
        ]
        found[count] = max(changes, key=lambda change: abs(change[0]))
    return found


def _online(cpus: Cpus) -> list[Claim]:
    light = [count for count in CPUS if count > CHECKED]
    heavy = [count for count in CPUS[1:] if count <= CHECKED]
    found = []
    for base in (FCFS, LIST):
        for name in (MOLDABLE, MALLEABLE):
            part = cpus.part(name, base)
            change = {n: cpus.change(name, base, n, part, mean_flow) for n in light}
            text = f"{_LIGHT}: {name.split()[0]}, against {_words(base)}"
            found.append(lower(text, "better", change, part.text, _SEE))
        part = cpus.part(MOLDABLE, base)
        change = {n: cpus.change(MOLDABLE, base, n, part, mean_flow) for n in heavy}
        text = f"{_HEAVY}: against {_words(base)}"
        found.append(higher(text, "worse", change, part.text, _idle(cpus, base, part)))
    return found


def _words(base: str) -> str:
    return {FCFS: "strict FCFS", LIST: "list scheduling"}[base]


_SEE = "see the table"


def _idle(cpus: Cpus, base: str, part: Windows) -> str:
    """Say how many CPUs a rigid policy and moldable leave idle where there are too few."""
    of = [percent(cpus.figure(one, SATURATED, part, used), 1) for one in (base, MOLDABLE)]
    return (
        f"of {SATURATED} CPUs {_words(base)} uses {of[0]} and moldable {of[1]}: a wide task that"
        " waits with CPUs idle costs more than tasks that run beside each other"
    )


# --- offline --------------------------------------------------------------------------------------


def _offline(cpus: Cpus) -> list[Claim]:
    found = [_gain(cpus, base) for base in (FCFS, LIST)]
    part = cpus.offline_part(MOLDABLE, FCFS, LIST)
    for base in (FCFS, LIST):
        change = {n: cpus.change(MOLDABLE, base, n, part, makespan) for n in CPUS}
        text = f"{_WORSE}: against {_words(base)}"
        found.append(higher(text, "worse", change, part.text, _busy(cpus, base, part)))
    some = cpus.offline_part(MOLDABLE, MALLEABLE)
    change = {n: cpus.change(MOLDABLE, MALLEABLE, n, some, makespan) for n in CPUS}
    found.append(higher(f"{_WORSE}: against malleable", "worse", change, some.text, _SEE))
    return [*found, *_told(cpus)]


def _told(cpus: Cpus) -> Iterator[Claim]:
    for one, other, words in (
        (MOLDABLE_P, MOLDABLE, "moldable"),
        (MALLEABLE_P, MALLEABLE, "malleable, the target as printed"),
        (LEFT, MALLEABLE, "malleable, the target of what is left"),
    ):
        some = cpus.offline_part(one, other)
        change = {n: cpus.change(one, other, n, some, makespan) for n in CPUS}
        yield alike(f"{_TOLD}: {words}: makespan", "identical", change, some.text, _WHOLE)


_WHOLE = (
    "as printed, the target counts what is done of running tasks too, so that the more is done the "
    "less is given; the paper sorts and fits tasks by what is left of them"
)


def _busy(cpus: Cpus, base: str, part: Every) -> str:
    """Say how many CPUs a rigid policy uses, and moldable, whose last tasks run on few."""
    of = [
        ", ".join(f"{percent(cpus.figure(one, n, part, used), 1)} ({n})" for n in CPUS)
        for one in (base, MOLDABLE)
    ]
    return (
        f"{_words(base)} uses {of[0]} of the CPUs and moldable {of[1]}: where the first leaves more"
        " idle beside wide tasks than the other at its end, it takes longer"
    )


def _gain(cpus: Cpus, base: str) -> Claim:
    """Malleable's makespan against rigid: of a part of the tasks, and the most that all allow."""
    part, whole = cpus.offline_part(MALLEABLE, base), cpus.offline_part(base)
    change = {n: cpus.change(MALLEABLE, base, n, part, makespan) for n in CPUS}
    rigid = [cpus.figure(base, n, whole, used) for n in CPUS]
    bound = {n: part - 1 for n, part in zip(CPUS, rigid, strict=True)}
    return Claim(
        f"{_SHORTER}: against {_words(base)}",
        "predicted",
        "-2.7 % at most",
        f"{by_size(change)}; {part.text}; no schedule could be shorter on {whole.text} by more than"
        f" {by_size(bound)}",
        -MOST_GAIN <= min(change.values()) < 0,
        f"{_words(base)} uses {percent(min(rigid), 1)} to {percent(max(rigid), 1)} of the CPUs, and"
        " malleable nearly all: only what list scheduling leaves idle is as little as 2.7 %",
    )
