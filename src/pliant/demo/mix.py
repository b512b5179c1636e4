"""What the demonstration submits.

The kinds are fixed: ranges, lists, shares of one GPU, numbers of nodes, CPU-or-GPU jobs, and rigid
jobs that say nothing to Pliant, each with the request that its user would write without Pliant.
Everything else (the order, when each arrives, whose it is, which program it runs and for how long)
is drawn from a seeded generator. The seed that is the default was taken before anything was run,
and another can be given; both rounds submit the very same.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from pliant.demo.speed import PROGRAMS, speed
from pliant.grammar import parse, parse_shape, shapes
from pliant.model import Request, Shape

SEED = 1
NODES, GPUS, SHARDS = 2, 4, 4
"""The cluster: nodes, GPUs on each, parts that each GPU can be shared in."""

USERS = ("pliant-alice", "pliant-bob")

KINDS = (
    ("2", "gpus=1-4"),
    ("4", "gpus=1-4"),
    ("1", "gpus=1-2"),
    ("4", "gpus=1:2:4"),
    ("2", "gpus=2:4"),
    ("1/2", "gpus=1/4:1/2"),
    ("1/4", "gpus=1/4:1/2"),
    ("2x2", "gpus=4,nodes=1-2"),
    ("2x4", "gpus=4:8,nodes=1-2"),
    ("1", "type=gpu:cpu,cores=4"),
    ("1", ""),
    ("2", ""),
    ("4", ""),
)
"""What a job's user asks without Pliant, and what else it may run as ("": rigid)."""

OF_EACH = 2
"""Jobs of each kind."""

GAP_S = 1.6
"""Mean time from one arrival to the next; exponential.

On average a job holds 2.6 GPUs for 5 s as its user asks, so that eight GPUs serve one in 1.6 s:
the cluster is asked for just what it can give.
"""

OWN_RUN_S = (2.5, 7.5)
"""A job's run time at its user's own request; uniform."""


@dataclass(frozen=True, slots=True)
class Submission:
    """One job as its user submits it. ``work`` is what its program does at speed 1 in one second.

    ``moldable`` is the value of ``--moldable``, "" for a rigid job; ``at_s`` counts from the start
    of a round.
    """

    name: str
    user: str
    at_s: float
    own: Shape
    moldable: str
    program: str
    work: float

    @property
    def request(self) -> Request:
        """What the owner allows."""
        return parse(f"moldable={self.moldable}") if self.moldable else Request()

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """What the job may run as, smallest first."""
        return shapes(self.request, self.own)

    def run_s(self, shape: Shape) -> float:
        """Return how long the job takes at ``shape``."""
        return self.work / speed(shape, PROGRAMS[self.program])

    @property
    def limit_min(self) -> int:
        """The time limit in Slurm's minutes: half as long again as its slowest shape takes."""
        return math.ceil(1.5 * max(self.run_s(shape) for shape in self.shapes) / 60)


def mix(seed: int = SEED, stretch: float = 1.0) -> tuple[Submission, ...]:
    """Return the jobs in order of arrival; ``stretch`` makes all times that much longer."""
    draw = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
    kinds = list(KINDS) * OF_EACH
    draw.shuffle(kinds)
    at_s = 0.0
    jobs = []
    for number, (own_text, moldable) in enumerate(kinds, start=1):
        own = parse_shape(own_text)
        program = draw.choice(sorted(PROGRAMS))
        run_s = stretch * draw.uniform(*OWN_RUN_S)
        jobs.append(
            Submission(
                name=f"{program}-{number:02}",
                user=draw.choice(USERS),
                at_s=at_s,
                own=own,
                moldable=moldable,
                program=program,
                work=run_s * speed(own, PROGRAMS[program]),
            )
        )
        at_s += stretch * draw.expovariate(1 / GAP_S)
    return tuple(jobs)
