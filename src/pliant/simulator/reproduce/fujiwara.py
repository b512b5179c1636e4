"""Fujiwara et al. (paper 000): moldable and malleable scheduling of deep-learning tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pliant.simulator.reproduce.asked import Asked
from pliant.simulator.reproduce.claims import ABOUT, Claim, Section, percent
from pliant.simulator.reproduce.fujiwara_charts import cpu_charts, gpu_charts
from pliant.simulator.reproduce.fujiwara_cpus import TRACE, Cpus, Every, Windows, cpu_tables
from pliant.simulator.reproduce.fujiwara_gpu_tables import gpu_tables
from pliant.simulator.reproduce.fujiwara_gpus import CHOICES, GPUS, Choice, Gpus, Part
from pliant.simulator.reproduce.fujiwara_hpc2n import hpc2n_claims
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
from pliant.simulator.reproduce.fujiwara_said import ALMOST
from pliant.simulator.reproduce.fujiwara_varied import gpu_claims
from pliant.simulator.workloads.fujiwara import fujiwara
from pliant.simulator.workloads.fujiwara_trace import TASKS
from pliant.simulator.workloads.hpc2n import CPUS


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is run: of the GPU trace; with other choices; of HPC2N, online and offline."""

    gpus: Sequence[Part]
    varied: Part
    choices: Sequence[Choice]
    online: Sequence[Windows]
    offline: Sequence[Every]


ON_GPUS = tuple(name for name in POLICIES if name != LIST)
"""All tasks have one GPU there if they are rigid: whoever does not fit, none does."""
_OFFLINE = (FCFS, LIST, MOLDABLE, MOLDABLE_P, MALLEABLE, MALLEABLE_P, LEFT)

FULL = Sizes(
    (Part(TASKS, 2, (FCFS, MOLDABLE)), Part(1_500, 3, ON_GPUS)),
    Part(300, 1, ON_GPUS),
    CHOICES,
    (Windows(1, 0, (FCFS, LIST, MOLDABLE, MALLEABLE)), Windows(4, 2_000, tuple(POLICIES))),
    (Every(1, (FCFS, LIST, MOLDABLE, MALLEABLE)), Every(20, _OFFLINE)),
)
"""On the GPU trace, policies that change running tasks run some 100 to 200 of them a second."""
QUICK = Sizes(
    (Part(100, 1, ON_GPUS),),
    Part(100, 1, ON_GPUS),
    CHOICES[:1],
    (Windows(1, 20, tuple(POLICIES)),),
    (Every(8_000, _OFFLINE),),
)


def reproduce(asked: Asked) -> Section:
    """Return the claims of sections V and VI.

    Raises BadInput where the trace of HPC2N cannot be right.
    """
    sizes = QUICK if asked.quick else FULL
    gpus = Gpus(sizes.gpus, sizes.varied, sizes.choices, asked.seed)
    gpus.run(asked)
    path = asked.data / TRACE if asked.data else None
    cpus = Cpus(sizes.online, sizes.offline, path) if path and path.is_file() else None
    if cpus is not None:
        cpus.run(asked)
    claims, varied = gpu_claims(gpus)
    return Section(
        "Fujiwara et al. (000): moldable and malleable tasks",
        " ".join(_sizes_text(asked, sizes, cpus)),
        [*claims, *hpc2n_claims(cpus, asked), *_UNTESTED],
        [*gpu_tables(gpus), varied, *(cpu_tables(cpus) if cpus is not None else ())],
        _choices(asked),
        [*gpu_charts(gpus.chosen), *(cpu_charts(cpus) if cpus is not None else ())],
    )


def _sizes_text(asked: Asked, sizes: Sizes, cpus: Cpus | None) -> Iterator[str]:
    parts = "; ".join(f"{part.text}: {', '.join(part.policies)}" for part in sizes.gpus)
    yield f"GPU trace, on {', '.join(map(str, GPUS))} GPUs: {parts}."
    if others := len(sizes.choices) - 1:
        yield f"Other choices of curves or trace ({others}): {sizes.varied.text}."
    if cpus is None:
        yield f"HPC2N: not run, as its trace ({TRACE}) is not there."
    else:
        online = "; ".join(f"{part.text}: {', '.join(part.policies)}" for part in sizes.online)
        offline = "; ".join(f"{part.text}: {', '.join(part.policies)}" for part in sizes.offline)
        yield f"HPC2N, on {', '.join(map(str, CPUS))} CPUs, online: {online}; offline: {offline}."
    if asked.quick:
        yield "A quick look shows that all of it runs: so few tasks decide nothing."
    yield f"Seeds count up from {asked.seed}."
    yield f'"Up to" so much holds within {percent(ABOUT)} of it, "almost" within {percent(ALMOST)}.'


_UNTESTED: Sequence[Claim] = (
    Claim(
        "the curves of figures 1 to 9 themselves",
        "not testable",
        "figures without numbers",
        why="what the text says of them is above",
    ),
    Claim(
        "mean flow times of 3,820 and 3,636 s on 12 GPUs, in seconds",
        "not testable",
        "3,820 s proportional, 3,636 s equipartition, both moldable",
        why="they are of a trace that is not public; which is the longer stands above",
    ),
)


def _choices(asked: Asked) -> list[str]:
    return [
        *fujiwara(asked.seed, tasks=100).choices,
        "a job's tasks are those that belong together in the trace, under every policy; what comes"
        " out where each schedule makes up its own jobs is not compared",
        "a task that was wider than the machine gets all of it, and runs as long as it did",
        "rigid FCFS strict: nothing overtakes; list: what does not fit is passed over",
        "malleable policies suspend no task: it keeps its smallest share at least",
        "fewer tasks are as dense as all, in less time, so that backlogs grow for less long",
    ]
