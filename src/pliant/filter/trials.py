"""Whether a submission that says it is a trial job may be one, as far as is known when it comes.

It is taken in any case, and keeps what its owner said; each cycle decides anew, with the whole
queue before it. What is said here spares the owner a surprise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from pliant.filter.answer import Answer
from pliant.filter.fields import number
from pliant.filter.inventory import Inventory
from pliant.model import JobClass, TrialCaps

USER = "user_name"
"""The field with the owner's name; the plugin says it of trial jobs alone."""
_TASKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})(?::([0-9]{1,9}))?)?", re.ASCII)


class Trials:
    """What the site allows, and how many trial jobs each user has: those that came since too."""

    def __init__(self, caps: TrialCaps, held: Mapping[str, int]) -> None:
        """``held``: how many trial jobs wait and run, by user."""
        self._caps, self._held = caps, Counter(held)

    def judge(self, answer: Answer, submission: Mapping[str, str], inventory: Inventory) -> Answer:
        """Return the answer to a submission with a remark where it is beyond its user's cap."""
        spec, user = answer.spec, submission.get(USER, "")
        if spec is None or spec.request.job_class is not JobClass.TRIAL or not user:
            return answer
        cap, tasks = self._caps.of(user), tasks_of(submission.get("array_inx", ""))
        why = cap.beyond(answer.most_gpus, _limit_s(submission, inventory))
        why = why or cap.too_many(self._held[user], tasks)
        if not why:
            self._held[user] += tasks
            return replace(answer, once=True)
        line = f"pliant: --class=trial: {why}; it is taken as an ordinary job"
        return replace(answer, once=True, lines=(*answer.lines, line))


def tasks_of(array: str) -> int:
    """Return how many tasks of an array may run at once; 1 for no array.

    ``array`` is like ``0-9:2,12%4``; what is not understood counts as one.
    """
    items, _, limit = array.partition("%")
    count = 0
    for item in items.split(","):
        found = _TASKS.fullmatch(item)
        if not found:
            return 1
        first, last, step = (int(part) if part else 0 for part in found.groups())
        count += max(0, last - first) // max(1, step) + 1 if found[2] else 1
    return max(1, min(count, int(limit))) if limit.isdecimal() and int(limit) else count


def _limit_s(submission: Mapping[str, str], inventory: Inventory) -> int | None:
    """Its time limit; 0 for none, None where that is not known."""
    minutes = number(submission, "time_limit")
    if minutes is not None:
        return 60 * minutes
    partitions = inventory.partitions(submission.get("partition", ""))
    limits = [p.default_time_s or p.max_time_s for p in partitions]
    return None if not limits else 0 if 0 in limits else max(limits)
