"""What the report holds: sums over jobs, and over what was counted by the hour."""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.store.rows import Tally

HOUR_S = 3600.0


@dataclass(frozen=True, slots=True)
class Waits:
    """How long jobs waited that have started, in seconds."""

    jobs: int = 0
    mean_s: float = 0.0
    median_s: float = 0.0


@dataclass(frozen=True, slots=True)
class JobSums:
    """What is said of the jobs of one partition; an array counts by its tasks.

    ``smaller``, ``larger``, ``other``: started in such a shape beside their own. ``would``: where
    Pliant observes, would have started so. ``sooner_s``, ``later_s``: how much sooner or later jobs
    started than the batch system expected before they were molded, added up over the ``expected``
    ones of which that is known; ``would_sooner_s``: how much sooner those would have started.
    ``gpu_s``: what all runs took; ``fewer_gpu_s``, ``more_gpu_s``: less, or more, than their own
    shapes would have taken in the same time.
    """

    jobs: int = 0
    waiting: int = 0
    running: int = 0
    ended: int = 0
    failed: int = 0
    unanswered: int = 0
    started: int = 0
    smaller: int = 0
    larger: int = 0
    other: int = 0
    would: int = 0
    expected: int = 0
    sooner_s: float = 0.0
    later_s: float = 0.0
    would_sooner_s: float = 0.0
    gpu_s: float = 0.0
    fewer_gpu_s: float = 0.0
    more_gpu_s: float = 0.0

    @property
    def molded(self) -> int:
        """The jobs that started in another shape than their own."""
        return self.smaller + self.larger + self.other


@dataclass(frozen=True, slots=True)
class Resizes:
    """What came of changes of running jobs: ``why`` is a policy, an owner, or room for another.

    ``gpu_s``: what they cost: for checkpoints, and until programs worked again. ``took_s``: from
    the checkpoint until it was over, of those that were done.
    """

    partition: str
    why: str
    outcome: str
    count: int
    gpu_s: float
    took_s: float


@dataclass(frozen=True, slots=True)
class Refusal:
    """In which words the batch system refused changes of waiting jobs, and how often."""

    words: str
    count: int


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """All of one partition; ``written``, ``molded``: the waits of jobs that started so."""

    partition: str
    sums: JobSums = field(default_factory=JobSums)
    written: Waits = field(default_factory=Waits)
    molded: Waits = field(default_factory=Waits)
    counted: Tally = field(default_factory=Tally)
    mode: str = ""  # as it is now


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of the time from ``since_s`` to ``until_s``; ``total`` is of all partitions.

    ``first_s``: since when Pliant has remembered anything; 0: it has not yet. ``steps``: what was
    counted, by so many seconds ``step_s``; their GPUs are those of all nodes.
    """

    since_s: float
    until_s: float
    first_s: float
    total: PartitionReport
    partitions: tuple[PartitionReport, ...] = ()
    resizes: tuple[Resizes, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    step_s: float = HOUR_S
    steps: tuple[Tally, ...] = ()


def reason_of(guest: str, reason: str) -> str:
    """Return in a word why a running job was changed."""
    if guest:
        return "room"
    return "owner" if reason.endswith(" asked for it") else "policy"
