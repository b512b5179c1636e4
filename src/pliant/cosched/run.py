"""One machine and its tasks, in memory: what a strategy makes of them.

The strategy is asked when nothing is known of what runs any more: when a task is done, when a
combination has run for the interval that it takes to measure its speeds, and when a stint of an
optimal schedule is over. A combination that was never run is measured when its interval is over, or
before that when one of its tasks is done. To set tasks aside that run costs ``switch_s`` in which
nothing runs; to start others beside them costs nothing.

The paper says neither how long a measurement takes nor what a switch costs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pliant.cosched.knowledge import Knowledge
from pliant.cosched.optimum import NOTHING, Stint
from pliant.cosched.strategies import Strategy
from pliant.cosched.tables import Table
from pliant.model import Combination, Speeds


@dataclass(frozen=True, slots=True)
class Instance:
    """Tasks with their volumes, in seconds alone, and their true speeds.

    Tasks whose combination is not in the table cannot run at once.
    """

    volumes: dict[str, float]
    table: Table


@dataclass(slots=True)
class Ran:
    """What was run, and when each task was done; ``switches``: how often tasks were set aside."""

    stints: list[Stint] = field(default_factory=list)
    done_s: dict[str, float] = field(default_factory=dict)
    switches: int = 0
    makespan_s: float = 0.0


def run(
    instance: Instance, strategy: Strategy, interval_s: float = 1.0, switch_s: float = 0.0
) -> Ran:
    """Let a strategy run all tasks to their ends."""
    table = dict(instance.table) if strategy.informed else {}
    knowledge = Knowledge(dict(instance.volumes), table, fits=instance.table.__contains__)
    ran = Ran()
    now: Combination = frozenset()
    while knowledge.volumes:
        stint = next(strategy.ranked(knowledge, now))
        if now - stint.tasks:
            ran.switches += 1
            ran.makespan_s += switch_s
        now = _carry_out(instance, knowledge, stint, interval_s, ran)
    return ran


def _carry_out(
    instance: Instance, knowledge: Knowledge, stint: Stint, interval_s: float, ran: Ran
) -> Combination:
    """Run a combination until there is something to decide; return what is left of it."""
    tasks, speeds = stint.tasks, instance.table[stint.tasks]
    is_known = tasks in knowledge.table
    seconds = min(
        stint.seconds, _first_end_s(knowledge, speeds), float("inf") if is_known else interval_s
    )
    ran.stints.append(Stint(tasks, seconds))
    ran.makespan_s += seconds
    if not is_known:
        knowledge.learn(tasks, speeds)
    done = set()
    for task, speed in speeds.items():
        knowledge.volumes[task] -= speed * seconds
        if knowledge.volumes[task] <= NOTHING * instance.volumes[task]:
            done.add(task)
    for task in sorted(done):
        ran.done_s[task] = ran.makespan_s
        knowledge.done(task)
    return tasks - done


def _first_end_s(knowledge: Knowledge, speeds: Speeds) -> float:
    """How long the first of these tasks to be done still runs."""
    return min(
        (knowledge.volumes[task] / speed for task, speed in speeds.items() if speed > 0),
        default=float("inf"),
    )
