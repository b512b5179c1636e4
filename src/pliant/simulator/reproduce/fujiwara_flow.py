"""Fujiwara et al. (paper 000), figures 4a and 4b: what is claimed of flow times."""

from __future__ import annotations

from pliant.simulator.reproduce.claims import Claim, percent
from pliant.simulator.reproduce.fujiwara_figures import (
    mean_flow,
    mean_job_flow,
    most_flow,
    most_job_flow,
)
from pliant.simulator.reproduce.fujiwara_gpus import GPUS, Over, Seen
from pliant.simulator.reproduce.fujiwara_runs import (
    FCFS,
    MALLEABLE,
    MALLEABLE_P,
    MOLDABLE,
    MOLDABLE_P,
)
from pliant.simulator.reproduce.fujiwara_said import (
    ALMOST,
    alike,
    at_least,
    by_size,
    lower,
    not_below,
    signed,
    up_to,
)


def flow_claims(seen: Seen) -> list[Claim]:
    """Return what the text says of figures 4a and 4b."""
    return [*_tasks(seen), *_jobs(seen)]


# --- figure 4a ------------------------------------------------------------------------------------


def _tasks(seen: Seen) -> list[Claim]:
    text = "mean flow time of tasks"
    best = f"{text} at its best"
    worse = "knowing run times, proportional, is no better than equipartition:"
    printed = "worse or almost the same; 3,820 against 3,636 s (+5.1 %) on 12"
    return [
        seen.claim(
            at_least, f"moldable: {text} (figure 4a)", 0.151, Over(MOLDABLE, mean_flow), _AVERAGE
        ),
        seen.claim(up_to, f"moldable: {best}", 0.967, Over(MOLDABLE, mean_flow), _BACKLOG),
        seen.claim(at_least, f"malleable: {text}", 0.425, Over(MALLEABLE, mean_flow), _AVERAGE),
        seen.claim(up_to, f"malleable: {best}", 0.972, Over(MALLEABLE, mean_flow), _BACKLOG),
        _at_six(seen),
        _ends(seen),
        seen.claim(
            lower,
            "malleable is better than moldable where a preemption costs nothing",
            "better",
            Over(MALLEABLE, mean_flow, MOLDABLE),
            _SHARED_LESS,
        ),
        _longest(seen),
        seen.claim(
            up_to, "malleable: the longest flow time", 0.666, Over(MALLEABLE, most_flow), _LONGEST
        ),
        seen.claim(
            not_below,
            f"{worse} moldable, mean flow",
            printed,
            Over(MOLDABLE_P, mean_flow, MOLDABLE),
            _PROPORTIONAL,
        ),
        seen.claim(
            not_below,
            "the same, malleable",
            "worse or almost the same",
            Over(MALLEABLE_P, mean_flow, MALLEABLE),
            _PROPORTIONAL,
        ),
    ]


_AVERAGE = "on some sizes less: see the tables by choices, and by the number of tasks"
_BACKLOG = (
    "on six GPUs it is the backlog of rigid FCFS that is compared with, which grows with the number"
    " of tasks, and depends on how they come in bursts: that is not printed"
)
_SHARED_LESS = (
    "on six GPUs more wait than there are shares, and malleable makes room for all by the smallest:"
    " then of a job's tasks, which are alike, none is done early, as in the example of section VI-A"
)
_LONGEST = (
    "one task decides: where it has four GPUs from its start on, its flow time is as short as can"
    " be, and whether it has depends on who waits when it comes"
)
_PROPORTIONAL = (
    "it gives small tasks small shares wherever there is neither enough for all nor too little,"
    " and how often that is depends on the trace"
)


def _at_six(seen: Seen) -> Claim:
    found = [seen.over_gpus(name, mean_flow) for name in (MOLDABLE, MALLEABLE)]
    best = [min(of, key=of.__getitem__) for of in found]
    return Claim(
        "both are best where the system is fully loaded",
        "predicted",
        "on 6 GPUs",
        f"on {best[0]} and {best[1]}",
        best == [GPUS[0], GPUS[0]],
        _BACKLOG,
    )


def _ends(seen: Seen) -> Claim:
    moldable = seen.over_gpus(MOLDABLE, mean_flow)
    least = max(moldable, key=moldable.__getitem__)
    return Claim(
        "moldable gains most where the load is low or very high",
        "predicted",
        "least in between",
        f"least on {least} ({signed(moldable[least])}); {seen.on(MOLDABLE)}",
        GPUS[0] < least < GPUS[-1],
        "see the table",
    )


def _longest(seen: Seen) -> Claim:
    found = seen.over_gpus(MOLDABLE, most_flow)
    return Claim(
        "moldable: the longest flow time of a task is not improved in most cases",
        "predicted",
        "not improved",
        f"{by_size(found)}; {seen.on(MOLDABLE)}",
        sum(change > -ALMOST for change in found.values()) > len(GPUS) / 2,
        f"{_LONGEST}; counted as improved: by more than {percent(ALMOST)}",
    )


# --- figure 4b ------------------------------------------------------------------------------------


def _jobs(seen: Seen) -> list[Claim]:
    text = "mean flow time of jobs"
    return [
        seen.claim(
            at_least,
            f"moldable: {text} (figure 4b)",
            0.067,
            Over(MOLDABLE, mean_job_flow),
            _AVERAGE,
        ),
        seen.claim(at_least, f"malleable: {text}", 0.175, Over(MALLEABLE, mean_job_flow), _AVERAGE),
        _smaller(seen),
        alike(
            "the longest flow time of a job is almost the same for all schedules",
            "almost the same",
            seen.apart([(name, FCFS) for name in seen.all.policies], most_job_flow),
            f"the furthest from rigid FCFS, {seen.on_all()}",
            _LONGEST_JOB,
        ),
        *(
            seen.claim(
                alike,
                f"flow time of jobs, proportional against equipartition: {one.split()[0]}",
                "almost identical",
                Over(one, mean_job_flow, other),
                _PROPORTIONAL,
            )
            for one, other in ((MOLDABLE_P, MOLDABLE), (MALLEABLE_P, MALLEABLE))
        ),
    ]


_LONGEST_JOB = (
    "a job's tasks are submitted when they were seen to start: where that takes longer than any"
    " backlog lasts, no schedule shortens it, and where it does not, as on six GPUs, the schedule"
    " decides; of fewer tasks the longest job is shorter"
)


def _smaller(seen: Seen) -> Claim:
    jobs, tasks = (seen.over_gpus(MALLEABLE, one) for one in (mean_job_flow, mean_flow))
    parts = {count: jobs[count] / tasks[count] for count in GPUS}
    return Claim(
        "schedules differ less by the flow time of jobs than of tasks",
        "predicted",
        "less",
        "malleable gains "
        + ", ".join(f"{part:.2f} ({count})" for count, part in parts.items())
        + " of what it gains for tasks",
        max(parts.values()) < 1,
        "a job's tasks wait for each other, so that a backlog is counted once for many",
    )
