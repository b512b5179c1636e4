"""The owner's --time-min: noted while a job carries Pliant's, and put back where it waits for long.

From its requeue to its start a job has TimeMin = TimeLimit (see handing.py). On a running job
TimeMin does nothing (22.05), so it is put back when the job waits again, outside a hand-over.
"""

from __future__ import annotations

from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.values import NOTHING, duration_s
from pliant.grammar import note_time_min, noted_time_min

_COMMENT = "AdminComment="


def with_noted(words: tuple[str, ...], row: JobRow) -> tuple[str, ...]:
    """Return an update's words with the owner's --time-min noted beside the token they write."""
    own = noted_time_min(row.admin_comment) or duration_s(row.time_min) // 60
    return tuple(
        f"{_COMMENT}{note_time_min(word.removeprefix(_COMMENT), own)}"
        if word.startswith(_COMMENT)
        else word
        for word in words
    )


def owed(row: JobRow) -> int:
    """Return the owner's --time-min, in minutes, where a waiting job may have it back; else 0.

    Slurm takes none above the time limit: then there is nothing to put back yet.
    """
    own, limit = noted_time_min(row.admin_comment), duration_s(row.time_limit) // 60
    return own if row.waits and own and (not limit or own <= limit) else 0


def giving_back(row: JobRow) -> tuple[str, ...]:
    """Return the call that puts it back and forgets that it was noted."""
    comment = "" if row.admin_comment in NOTHING else row.admin_comment
    return (f"TimeMin={owed(row)}", f"{_COMMENT}{note_time_min(comment, 0)}")
