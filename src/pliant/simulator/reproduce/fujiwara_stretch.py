"""Fujiwara et al. (paper 000), figures 4c and 4d: what is claimed of the stretch."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.simulator.reproduce.claims import Claim
from pliant.simulator.reproduce.fujiwara_figures import (
    mean_flow,
    mean_job_stretch,
    mean_stretch,
    most_job_stretch,
    most_stretch,
)
from pliant.simulator.reproduce.fujiwara_gpus import GPUS, Over, Seen
from pliant.simulator.reproduce.fujiwara_runs import (
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


def stretch_claims(seen: Seen) -> list[Claim]:
    """Return what the text says of figures 4c and 4d."""
    return [*_tasks(seen), *_jobs(seen)]


# --- figure 4c ------------------------------------------------------------------------------------


def _tasks(seen: Seen) -> Iterator[Claim]:
    for name in (MOLDABLE, MALLEABLE):
        text = f"{name.split()[0]}: the largest stretch of a task, on 12 to 48 GPUs (figure 4c)"
        yield seen.claim(at_least, text, 0.5, Over(name, most_stretch, least=MODEST), _LARGEST)
    yield seen.claim(
        not_above,
        "both equally: malleable's largest stretch is that of moldable, on 12 to 48 GPUs",
        "equal",
        Over(MALLEABLE, most_stretch, MOLDABLE, MODEST),
        _LARGEST,
    )
    for name, bound in ((MOLDABLE, 0.267), (MALLEABLE, 0.362)):
        text = f"{name.split()[0]}: mean stretch of tasks"
        yield seen.claim(at_least, text, bound, Over(name, mean_stretch), _MEAN)
    below = min(seen.mean(MOLDABLE, count, seen.part(MOLDABLE), mean_stretch) for count in GPUS)
    yield Claim(
        "a stretch can be below 1",
        "predicted",
        "< 1",
        f"{below:.3f} in the mean, moldable, at the least",
        below < 1,
        "a few GPUs each, as many as there are",
    )
    yield _shortest(seen)
    yield _more_noticeable(seen)


_LARGEST = (
    "the largest stretch is that of one short task in the worst burst: the fewer the tasks, the"
    " less rigid ones ever wait on so many GPUs, and the less there is to gain"
)
_MEAN = "on some sizes less: the fewer the tasks, the less rigid ones wait, and a stretch is 1"


def _shortest(seen: Seen) -> Claim:
    """Whether rigid shortest has the least largest stretch of all, size by size."""
    part = seen.all

    def rank(name: str, count: int) -> tuple[float, bool]:
        return (round(seen.mean(name, count, part, most_stretch), 9), name != SHORTEST)

    best = {count: min(part.policies, key=lambda name: rank(name, count)) for count in GPUS}
    return Claim(
        "rigid shortest has an outstanding advantage in the largest stretch of a task",
        "predicted",
        "outstanding",
        ", ".join(f"least: {name} ({count})" for count, name in best.items())
        + f"; {seen.on(*part.policies)}",
        all(name == SHORTEST for name in best.values()),
        "where there are GPUs for nearly all, who has several at once has the least stretch",
    )


def _more_noticeable(seen: Seen) -> Claim:
    flow, stretch = (
        seen.over_gpus(MOLDABLE_P, figure, MOLDABLE) for figure in (mean_flow, mean_stretch)
    )
    return Claim(
        "proportional is behind equipartition more by stretch than by flow time: moldable",
        "predicted",
        "more noticeable",
        f"{by_size(stretch)} against {by_size(flow)}; {seen.on(MOLDABLE_P)}",
        all(stretch[count] >= flow[count] for count in GPUS),
        "see the table",
    )


# --- figure 4d ------------------------------------------------------------------------------------


def _jobs(seen: Seen) -> Iterator[Claim]:
    six = GPUS[0]
    for name in (MOLDABLE, MALLEABLE):
        change = seen.over_gpus(name, most_job_stretch)[six]
        text = f"{name.split()[0]}: the largest stretch of a job on 6 GPUs (figure 4d)"
        yield up_to(text, 0.9, {six: change}, seen.on(name), _LARGEST_JOB)
    yield seen.claim(
        not_above,
        "malleable's largest stretch of a job is comparable to rigid shortest's, or better",
        "comparable or better",
        Over(MALLEABLE, most_job_stretch, SHORTEST),
        _LARGEST_JOB,
    )
    for one, other in ((MOLDABLE, MOLDABLE_P), (MALLEABLE, MALLEABLE_P)):
        found = seen.over_gpus(one, mean_job_stretch, other, MODEST)
        yield lower(
            "on 12 GPUs and more the mean stretch of jobs is lower without run times known:"
            f" {one.split()[0]}",
            "better",
            found,
            seen.on(other),
            f"{signed(max(found.values()))} at the most: the two rules give about the same on this"
            " trace",
        )


_LARGEST_JOB = (
    "the largest stretch is that of one short job, and which that is differs by seed and number of"
    " tasks"
)
