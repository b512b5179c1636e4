"""Which wrappers speak for a job's run: more than one is as good as none.

Each `pliant run` has a random word of its own and says it with all that it says. Two that live at
once run two programs beside each other: a checkpoint of one says nothing of the other, which a
requeue would end. What is kept here is lost with pliantd; a wrapper that was told that it is not
alone tells the next pliantd so, which may not have heard the other one yet.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

SILENT_S = 90.0
"""A program that has not asked for so long is not listening: nothing is asked of it."""

MOST = 100
"""So many wrappers of one run are remembered: nobody starts more of them in SILENT_S."""
_OTHER = "another one"
"""Stands for one that another wrapper tells of."""


@dataclass(slots=True)
class _Run:
    number: int
    heard_s: dict[str, float] = field(default_factory=dict)  # by word
    ended_s: dict[str, float] = field(default_factory=dict)


class Speakers:
    """The wrappers of each job's run; instants are seconds of any even clock."""

    def __init__(self) -> None:
        """Know of none."""
        self._runs: dict[str, _Run] = {}

    def heard(self, job_id: str, run: int, word: str, now_s: float, *, others: bool) -> None:
        """Note that a wrapper lives; ``others``: it was told that it is not alone.

        One without a word, of an earlier release, counts for nothing. What a wrapper had asked
        before its end may still be answered after it.
        """
        speakers = self._of(job_id, run, now_s)
        known = word in speakers.heard_s or len(speakers.heard_s) < MOST
        if word and known and word not in speakers.ended_s:
            speakers.heard_s[word] = now_s
            if others and len(speakers.heard_s) == 1:
                speakers.heard_s[_OTHER] = now_s

    def ended(self, job_id: str, run: int, word: str, now_s: float) -> None:
        """Note that a wrapper's program has ended for good, and the wrapper with it."""
        speakers = self._of(job_id, run, now_s)
        speakers.heard_s.pop(word, None)
        if word and len(speakers.ended_s) < MOST:
            speakers.ended_s[word] = now_s

    def lost(self, job_id: str, run: int, word: str, now_s: float) -> bool:
        """Note that a wrapper is gone; return whether it was the one that was heard."""
        speakers = self._of(job_id, run, now_s)
        known = speakers.heard_s.pop(word, None) is not None
        return known and not speakers.heard_s

    def are_several(self, job_id: str, run: int, now_s: float) -> bool:
        """Whether more than one lives."""
        return len(self._of(job_id, run, now_s).heard_s) > 1

    def _of(self, job_id: str, run: int, now_s: float) -> _Run:
        known = self._runs.get(job_id)
        if known is None or known.number != run:
            known = self._runs[job_id] = _Run(run)
        for said in (known.heard_s, known.ended_s):
            for word in [word for word, at_s in said.items() if now_s - at_s >= SILENT_S]:
                del said[word]
        if len(known.heard_s.keys() - {_OTHER}) > 1:  # they speak for themselves
            known.heard_s.pop(_OTHER, None)
        return known

    def forget(self, there: Collection[str]) -> None:
        """Forget all jobs but those that are there."""
        for job_id in self._runs.keys() - there:
            del self._runs[job_id]
