"""Leaves out of an answer what its asker may not see (slurm.conf(5), PrivateData).

===========  =====================================================================================
PrivateData  what is left out for a user who is no administrator
===========  =====================================================================================
jobs         others' jobs, which the verbs do not answer with; what is said of the own ones says
             "another job", and on how many nodes, not on which
nodes        the names of nodes but for those that jobs run on, and how many nodes and GPUs a
             partition has. What is too little for an own job is said in numbers all the same
partitions   the partitions in ``status``
===========  =====================================================================================

Each text goes through here, whoever wrote it and when: the history holds old ones. Jobs are found
by the word before their number (see :func:`pliant.model.jobs_text`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pliant.daemon import answers as a
from pliant.daemon.flagged import JobRow, ResizeRow
from pliant.daemon.named import parts
from pliant.daemon.rights import Asker
from pliant.daemon.watched import TopAnswer
from pliant.model import Snapshot

TEXTS: Mapping[type, tuple[str, ...]] = {
    JobRow: ("frozen", "last", "changing"),
    ResizeRow: ("guest", "reason"),
    a.StartRow: ("reason",),
    a.ClaimRow: ("reason",),
    a.ChangeRow: ("reason",),
    a.ShapeRow: ("reason",),
    a.DecisionRow: ("reason",),
    a.WhyAnswer: ("text", "left"),
    a.HandOverHistory: ("reason", "guest"),
}
"""The fields that are sentences of Pliant's."""

_PARTS: Mapping[type, tuple[str, ...]] = {
    a.StatusAnswer: ("partitions",),
    a.JobsAnswer: ("jobs",),
    TopAnswer: ("queue", "resizes"),
    a.PlanAnswer: ("starts", "claims", "changes"),
    a.WhyAnswer: ("job", "shapes", "before", "decisions"),
    a.HistoryAnswer: ("runs", "handovers", "decisions"),
}
"""The fields that are rows."""

_NO_NODES: Mapping[type, Mapping[str, object]] = {
    a.StartRow: {"nodes": ()},
    a.ClaimRow: {"nodes": ()},
    a.ShapeRow: {"nodes": ()},
    a.PartitionRow: dict.fromkeys(("nodes", "gpus", "gpus_free"), a.NOT_SHOWN),
}

_JOB = re.compile(r"\bjob ([0-9]+(?:_[0-9]+|\[[0-9]*\])?)")
_ANOTHER = "another job"
_LIST = re.compile(r"(?P<names>[\w.-]+(?:, [\w.-]+)*)(?: and (?P<more>[0-9]+) more\b)?")


def without_private(answer: object, asker: Asker, snapshot: Snapshot | None) -> object:
    """Return an answer as its asker may see it; ``snapshot``: what it was made from."""
    if asker.sees_all and asker.sees_nodes and asker.sees_partitions:
        return answer
    return _Private(asker, snapshot).of(answer)


class _Private:
    """What one asker may not see."""

    def __init__(self, asker: Asker, snapshot: Snapshot | None) -> None:
        jobs = (*snapshot.waiting, *snapshot.running) if snapshot else ()
        self._asker = asker
        self._jobs = {job.id for job in jobs if asker.may_see(job)}
        self._nodes = {node.name for node in snapshot.nodes} if snapshot else set()

    def of(self, answer: Any) -> Any:
        """Return an answer, or a row of one, without that."""
        kind = type(answer)
        changes = {name: self._words(getattr(answer, name)) for name in TEXTS.get(kind, ())}
        for name in _PARTS.get(kind, ()):
            part = getattr(answer, name)
            changes[name] = tuple(map(self.of, part)) if type(part) is tuple else self.of(part)
        if not self._asker.sees_nodes:
            changes |= _NO_NODES.get(kind, {})
        if kind is a.StatusAnswer and not self._asker.sees_partitions:
            changes["partitions"] = ()
        return replace(answer, **changes) if changes else answer

    def _words(self, text: str) -> Any:
        known = text if self._asker.sees_all else _JOB.sub(self._another, text)
        some_are_hidden = not self._asker.sees_all and _ANOTHER in known
        hides = some_are_hidden or not self._asker.sees_nodes
        return _LIST.sub(self._counted, known) if hides else known

    def _another(self, job: re.Match[str]) -> str:
        """A job that is not known, as one that has ended, is another one too.

        A task of an array that waits is known by its array.
        """
        array, _ = parts(job[1])
        is_known = not self._jobs.isdisjoint((job[1], array, f"{array}[]"))
        return job[0] if is_known else _ANOTHER

    def _counted(self, some: re.Match[str]) -> str:
        """Nodes by their number; other words as they are."""
        names = some["names"].split(", ")
        if self._nodes.isdisjoint(names):
            return some[0]
        if not self._nodes.issuperset(names):
            shown = ("a node" if name in self._nodes else name for name in names)
            return some[0].replace(some["names"], ", ".join(shown), 1)
        number = len(names) + int(some["more"] or 0)
        return "1 node" if number == 1 else f"{number} nodes"
