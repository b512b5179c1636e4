"""Malleable equipartition: all GPUs are divided equally among the jobs that wait and that run.

The rule is that of moldable equipartition (:mod:`pliant.policies.equipartition`), with Q the jobs
that wait and those running jobs that may be changed, and what these have counted as free: each may
be given another amount of GPUs, on other nodes too. A job is changed only while more than
``least_left_s`` of its work is left, as the time that it would take alone on one GPU (v_rem).

What the paper does not cover:

- Of what each should have, a cycle does what can be done at once, later ones the rest (see
  :mod:`pliant.policies.steps`). A job that should have as many GPUs as it has stays where it is.
- The running jobs come before those that wait, which stand in the order of the queue; equal bids
  of the D'Hondt method go to who was submitted first, whether it runs or not. So no running job is
  left without any GPU: the paper suspends a task that gets none.
- A running job on CPU cores alone stays as it is, and so does one on a share of a GPU of which it
  is not known which it is.

Options: ``votes`` and ``cpu_speed`` as for moldable equipartition; ``least_left_s``: the paper's
300 s; ``pays``: change jobs only where all together are done earlier, restarts included (see
:mod:`pliant.policies.gain`). Off, it is the paper's exact form.

Source: Fujiwara et al. (paper 000), section IV-A, Malleable Equipartition, and V-B for the 300 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol

from pliant.model import Job, Snapshot
from pliant.plan import Plan
from pliant.policies.changes import changed
from pliant.policies.crowd import Crowd, Standing, crowd_of
from pliant.policies.desk import Desk
from pliant.policies.equipartition import MoldableEquipartition
from pliant.policies.goal import Goals, movable
from pliant.policies.goals import as_if_waiting, goals_of
from pliant.policies.split import Split
from pliant.policies.steps import stepwise
from pliant.speedup import DEFAULT_CPU_SPEED, volume_left_s


@dataclass(frozen=True, slots=True)
class MalleableEquipartition:
    """All GPUs, divided among the jobs that wait and those that run."""

    name: ClassVar[str] = "malleable-equipartition"
    molds: ClassVar[bool] = True
    resizes: ClassVar[bool] = True
    votes: Literal["largest", "equal"] = "largest"
    cpu_speed: float = DEFAULT_CPU_SPEED
    least_left_s: float = 300.0
    pays: bool = False

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return starts, claims and reshapes."""
        rule = MoldableEquipartition(self.votes, self.cpu_speed)
        return resized(snapshot, rule, self.least_left_s, pays=self.pays, uses_up=True)


class Rule(Protocol):
    """What jobs should have."""

    def divide(self, desk: Desk) -> Plan:
        """Return what those at a desk should have, as starts."""

    def split(self, crowd: Crowd, rows: Sequence[Standing]) -> Split:
        """Return the same in numbers of those that wait and some that run."""


def resized(
    snapshot: Snapshot, rule: Rule, least_left_s: float, *, pays: bool, uses_up: bool = False
) -> Plan:
    """Return what can be done now for a rule for jobs that wait to hold for running ones too.

    ``least_left_s``: jobs with no more work left on one GPU stay as they are. ``uses_up``: nothing
    is left free beside a job that can take it.
    """
    crowd = None if pays else crowd_of(snapshot)
    if crowd is not None:
        return changed(crowd, rule.split, least_left_s)
    jobs = [job for job in movable(snapshot) if volume_left_s(job) > least_left_s]

    def goals(running: list[Job]) -> Goals:
        desk = as_if_waiting(snapshot, running)
        return goals_of(snapshot, desk, rule.divide(desk))

    return stepwise(snapshot, jobs, goals, rule.divide, pays=pays, uses_up=uses_up)
