"""Fujiwara et al. (paper 000), figures 4c and 4d: what is claimed of the stretch."""

from __future__ import annotations

from pliant.simulator.reproduce.claims import Claim
from pliant.simulator.reproduce.fujiwara_figures import (
    mean_flow,
    mean_job_stretch,
    mean_stretch,
    most_job_stretch,
    most_stretch,
)
from pliant.simulator.reproduce.fujiwara_flow import on
from pliant.simulator.reproduce.fujiwara_gpus import GPUS, Gpus
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    MOLDABLE_P,
    SHORTEST,
)
from pliant.simulator.reproduce.fujiwara_said import (
    at_least,
    by_size,
    lower,
    not_above,
    signed,
    up_to,
)

MODEST = 12
"""From so many GPUs on the system is "modestly loaded", or "not fully loaded"."""


def stretch_claims(gpus: Gpus) -> list[Claim]:
    """Return what the text says of figures 4c and 4d."""
    return [*_tasks(gpus), *_jobs(gpus)]


def _tasks(gpus: Gpus) -> list[Claim]:
    first, second = on(gpus.part(MOLDABLE)), on(gpus.part(MALLEABLE))
    found = [
        at_least(
            f"{name.split()[0]}: the largest stretch of a task, on 12 to 48 GPUs (figure 4c)",
            0.5,
            gpus.over_gpus(name, most_stretch, least=MODEST),
            on(gpus.part(name)),
            _LARGEST,
        )
        for name in (MOLDABLE, MALLEABLE)
    ]
    below = min(gpus.mean(MOLDABLE, count, gpus.part(MOLDABLE), mean_stretch) for count in GPUS)
    return [
        *found,
        _equally(gpus),
        at_least(
            "moldable: mean stretch of tasks",
            0.267,
            gpus.over_gpus(MOLDABLE, mean_stretch),
            first,
            _MEAN,
        ),
        at_least(
            "malleable: mean stretch of tasks",
            0.362,
            gpus.over_gpus(MALLEABLE, mean_stretch),
            second,
            _MEAN,
        ),
        Claim(
            "a stretch can be below 1",
            "predicted",
            "< 1",
            f"{below:.3f} in the mean, moldable, at the least",
            below < 1,
            "a few GPUs each, as many as there are",
        ),
        _shortest(gpus),
        _more_noticeable(gpus),
    ]


_LARGEST = (
    "the largest stretch is that of a short task in the worst burst; how large bursts are is not"
    " printed"
)
_MEAN = "on some sizes less: see the table"


def _equally(gpus: Gpus) -> Claim:
    return not_above(
        "both equally: malleable's largest stretch is that of moldable, on 12 to 48 GPUs",
        "equal",
        gpus.over_gpus(MALLEABLE, most_stretch, MOLDABLE, MODEST),
        on(gpus.part(MALLEABLE)),
        _LARGEST,
    )


def _shortest(gpus: Gpus) -> Claim:
    """Whether rigid shortest has the least largest stretch of all, size by size."""
    part = gpus.all
    best = {
        count: min(part.policies, key=lambda name: gpus.mean(name, count, part, most_stretch))
        for count in GPUS
    }
    return Claim(
        "rigid shortest has an outstanding advantage in the largest stretch of a task",
        "predicted",
        "outstanding",
        ", ".join(f"least: {name} ({count})" for count, name in best.items()) + f"; {on(part)}",
        all(name == SHORTEST for name in best.values()),
        "where there are GPUs for all, who has several at once has the least stretch",
    )


def _more_noticeable(gpus: Gpus) -> Claim:
    flow, stretch = (
        gpus.over_gpus(MOLDABLE_P, figure, MOLDABLE) for figure in (mean_flow, mean_stretch)
    )
    return Claim(
        "proportional is behind equipartition more by stretch than by flow time: moldable",
        "predicted",
        "more noticeable",
        f"{by_size(stretch)} against {by_size(flow)}; {on(gpus.part(MOLDABLE_P))}",
        all(stretch[count] >= flow[count] for count in GPUS),
        "see the table",
    )


# --- figure 4d ------------------------------------------------------------------------------------


def _jobs(gpus: Gpus) -> list[Claim]:
    six = GPUS[0]
    found = []
    for name in (MOLDABLE, MALLEABLE):
        part = gpus.part(name)
        change = gpus.change(name, six, most_job_stretch, part, FCFS)
        found.append(
            up_to(
                f"{name.split()[0]}: the largest stretch of a job on 6 GPUs (figure 4d)",
                0.9,
                {six: change},
                on(part),
                _LARGEST_JOB,
            )
        )
    return [
        *found,
        not_above(
            "malleable's largest stretch of a job is comparable to rigid shortest's, or better",
            "comparable or better",
            gpus.over_gpus(MALLEABLE, most_job_stretch, SHORTEST),
            on(gpus.part(MALLEABLE)),
            _LARGEST_JOB,
        ),
        *(
            lower(
                "on 12 GPUs and more the mean stretch of jobs is lower without run times known:"
                f" {one.split()[0]}",
                "better",
                gpus.over_gpus(one, mean_job_stretch, other, MODEST),
                on(gpus.part(other)),
                f"by {signed(max(gpus.over_gpus(one, mean_job_stretch, other, MODEST).values()))}"
                " at the most: the rules differ only where there is neither too little nor enough",
            )
            for one, other in ((MOLDABLE, MOLDABLE_P), (MALLEABLE, MALLEABLE_P))
        ),
    ]


_LARGEST_JOB = "the largest stretch is that of one job, a short one that came in the worst burst"
