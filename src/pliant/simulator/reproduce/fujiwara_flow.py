"""Fujiwara et al. (paper 000), figures 3, 4a, 4b and 5: what is claimed of flow times."""

from __future__ import annotations

from statistics import fmean

from pliant.simulator.reproduce.claims import Claim, percent
from pliant.simulator.reproduce.fujiwara_figures import (
    Figure,
    mean_flow,
    mean_job_flow,
    most_flow,
    most_job_flow,
    used,
)
from pliant.simulator.reproduce.fujiwara_gpus import FEW, GPUS, OVERHEADS_S, Gpus, Part
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    MOLDABLE_P,
    SHORTEST,
)
from pliant.simulator.reproduce.fujiwara_said import (
    ALMOST,
    Sizes,
    alike,
    at_least,
    by_size,
    lower,
    not_below,
    signed,
    up_to,
)


def flow_claims(gpus: Gpus) -> list[Claim]:
    """Return what the text says of figures 3, 4a, 4b and 5."""
    return [*_utilisation(gpus), *_tasks(gpus), *_jobs(gpus), *_overhead(gpus)]


def on(part: Part) -> str:
    """Say what a claim's numbers are of."""
    return f"of {part.tasks:,} tasks"


# --- figure 3 -------------------------------------------------------------------------------------


def _utilisation(gpus: Gpus) -> list[Claim]:
    part = gpus.all
    found = {name: gpus.mean(name, FEW, part, used) for name in part.policies}
    at_six = gpus.mean(FCFS, GPUS[0], gpus.part(FCFS), used)
    apart = {
        count: max(
            (gpus.change(one, count, used, part, other) for one, other in _CLAIRVOYANT), key=abs
        )
        for count in (FEW, *GPUS)
    }
    rigid, sharing = (FCFS, SHORTEST), (MOLDABLE, MALLEABLE)
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
            _used(found, rigid),
            min(found[name] for name in rigid) >= 1 - ALMOST,
            f"{on(part)}: those that are left at the end run beside idle GPUs",
        ),
        Claim(
            "with fewer, moldable and malleable ones use more than all, by sharing",
            "predicted",
            "> 100 %",
            _used(found, sharing),
            min(found[name] for name in sharing) > 1,
            _AT_THE_END,
        ),
        alike(
            "utilisation with run times known is almost that without",
            "almost identical",
            apart,
            on(part),
            _AT_THE_END,
        ),
    ]


_CLAIRVOYANT = ((MOLDABLE_P, MOLDABLE), (MALLEABLE_P, MALLEABLE))
_AT_THE_END = "utilisation is counted to the last end, and what is begun on a share last ends late"


def _used(found: dict[str, float], names: tuple[str, ...]) -> str:
    return ", ".join(f"{name} {percent(found[name], 1)}" for name in names) + f" on {FEW}"


# --- figure 4a ------------------------------------------------------------------------------------


def _tasks(gpus: Gpus) -> list[Claim]:
    moldable, malleable = (gpus.over_gpus(name, mean_flow) for name in (MOLDABLE, MALLEABLE))
    longest = {name: gpus.over_gpus(name, most_flow) for name in (MOLDABLE, MALLEABLE)}
    first, second = on(gpus.part(MOLDABLE)), on(gpus.part(MALLEABLE))
    not_better = sum(change > -ALMOST for change in longest[MOLDABLE].values())
    return [
        at_least("moldable: mean flow time of tasks (figure 4a)", 0.151, moldable, first, _AVERAGE),
        up_to("moldable: the same at its best", 0.967, moldable, first, _BACKLOG),
        at_least("malleable: mean flow time of tasks", 0.425, malleable, second, _AVERAGE),
        up_to("malleable: the same at its best", 0.972, malleable, second, _BACKLOG),
        _at_six(moldable, malleable),
        _ends(moldable, first),
        lower(
            "malleable is better than moldable where a preemption costs nothing",
            "better",
            gpus.over_gpus(MALLEABLE, mean_flow, MOLDABLE),
            second,
            _SHARED_LESS,
        ),
        Claim(
            "moldable: the longest flow time of a task is not improved in most cases",
            "predicted",
            "not improved",
            f"{by_size(longest[MOLDABLE])}; {first}",
            not_better > len(GPUS) / 2,
            f"counted as improved: by more than {percent(ALMOST)}",
        ),
        up_to("malleable: the longest flow time", 0.666, longest[MALLEABLE], second, _LONGEST),
        not_below(
            "knowing run times, proportional, is no better than equipartition: moldable, mean flow",
            "worse or almost the same; 3,820 against 3,636 s (+5.1 %) on 12",
            gpus.over_gpus(MOLDABLE_P, mean_flow, MOLDABLE),
            on(gpus.part(MOLDABLE_P)),
            _PROPORTIONAL,
        ),
        not_below(
            "the same, malleable",
            "worse or almost the same",
            gpus.over_gpus(MALLEABLE_P, mean_flow, MALLEABLE),
            on(gpus.part(MALLEABLE_P)),
            _PROPORTIONAL,
        ),
    ]


_AVERAGE = "on some sizes less: the table by choices says what it depends on"
_BACKLOG = (
    "on six GPUs it is the backlog of rigid FCFS that is compared with, and how long that grows"
    " depends on the trace's bursts, which are not printed, and on how long the trace is"
)
_SHARED_LESS = (
    "where more wait than there are shares, room is made for all: then of a job's tasks, which are"
    " alike, none is done early, as in the paper's own example of section VI-A"
)
_LONGEST = "the longest task decides: whether it begins in a burst is a matter of the seed"
_PROPORTIONAL = (
    "it gives small tasks small shares wherever there is neither enough for all nor too little,"
    " and how often that is depends on the trace"
)


def _at_six(moldable: Sizes, malleable: Sizes) -> Claim:
    best = [min(found, key=found.__getitem__) for found in (moldable, malleable)]
    return Claim(
        "both are best where the system is fully loaded",
        "predicted",
        "on 6 GPUs",
        f"on {best[0]} and {best[1]}",
        best == [GPUS[0], GPUS[0]],
        _BACKLOG,
    )


def _ends(moldable: Sizes, where: str) -> Claim:
    least = max(moldable, key=moldable.__getitem__)
    return Claim(
        "moldable gains most where the load is low or very high",
        "predicted",
        "least in between",
        f"least on {least} ({signed(moldable[least])}); {where}",
        GPUS[0] < least < GPUS[-1],
        "see the table",
    )


# --- figure 4b ------------------------------------------------------------------------------------


def _jobs(gpus: Gpus) -> list[Claim]:
    moldable, malleable = (gpus.over_gpus(name, mean_job_flow) for name in (MOLDABLE, MALLEABLE))
    first, second = on(gpus.part(MOLDABLE)), on(gpus.part(MALLEABLE))
    part = gpus.all
    longest = {
        count: max(
            (gpus.change(name, count, most_job_flow, part) for name in part.policies), key=abs
        )
        for count in GPUS
    }
    smaller = {
        count: malleable[count] / task
        for count, task in gpus.over_gpus(MALLEABLE, mean_flow).items()
    }
    return [
        at_least("moldable: mean flow time of jobs (figure 4b)", 0.067, moldable, first, _AVERAGE),
        at_least("malleable: mean flow time of jobs", 0.175, malleable, second, _AVERAGE),
        Claim(
            "schedules differ less by the flow time of jobs than of tasks",
            "predicted",
            "less",
            "malleable gains "
            + ", ".join(f"{part:.2f} ({count})" for count, part in smaller.items())
            + " of what it gains for tasks",
            max(smaller.values()) < 1,
            "a job's tasks wait for each other, so that a backlog is counted once for many",
        ),
        alike(
            "the longest flow time of a job is almost the same for all schedules",
            "almost the same",
            longest,
            f"the furthest from rigid FCFS, {on(part)}",
            _LONGEST_JOB,
        ),
        *(
            alike(
                f"flow time of jobs, proportional against equipartition: {one.split()[0]}",
                "almost identical",
                gpus.over_gpus(one, mean_job_flow, other),
                on(gpus.part(one)),
                _PROPORTIONAL,
            )
            for one, other in _CLAIRVOYANT
        ),
    ]


_LONGEST_JOB = (
    "a job's tasks are submitted when they were seen to start, so that a job that lasted for months"
    " lasts as long under any schedule; ours last for days, and then the schedule decides"
)


# --- figure 5 -------------------------------------------------------------------------------------


def _overhead(gpus: Gpus) -> list[Claim]:
    light, heavy = (24, 48), (6, 12)
    where = on(gpus.all)
    found: list[Claim] = []
    for overhead_s in OVERHEADS_S[1:]:
        words = f"with {overhead_s:.0f} s a preemption (figure 5)"
        found += [
            lower(
                f"on 24 GPUs and more the longest flow time is below moldable's, {words}",
                "the merit is preserved",
                {n: _against_moldable(gpus, n, overhead_s, most_flow) for n in light},
                where,
                _LONGEST,
            ),
            not_below(
                f"on 12 and fewer malleable's gain over moldable is gone, {words}",
                "it disappears",
                {n: _against_moldable(gpus, n, overhead_s, mean_flow) for n in heavy},
                f"mean flow, {where}",
                _PREEMPTED,
            ),
        ]
    return found


_PREEMPTED = (
    "a task that should have as many GPUs as it has stays where it is here, and is not moved: the"
    " table says how few restarts that leaves"
)


def _against_moldable(gpus: Gpus, count: int, overhead_s: float, figure: Figure) -> float:
    base = gpus.came(MOLDABLE, count, gpus.all)
    came = gpus.came(MALLEABLE, count, gpus.all, overhead_s)
    return fmean(figure(one) / figure(other) - 1 for one, other in zip(came, base, strict=True))
