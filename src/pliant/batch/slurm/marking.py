"""What ``scontrol update`` is told so that a waiting job may share its CPUs, or may no longer.

Measured on 22.05.8 alone, in a partition with ``OverSubscribe=YES:2``:

- ``OverSubscribe=YES`` marks a waiting job; a running one is refused. A mark stays until it is
  taken back, through a requeue too, and lets Slurm itself pair the job with any that is marked.
- Nothing sets back what a job was submitted with (``OK``): ``OverSubscribe=NO`` takes the mark
  away, and lets the job start on an idle node only, on which nobody else starts then. Of a job that
  asks for all CPUs of its node that is no change, and no other is ever marked.
- ``ReqNodeList=`` names the node to share, and takes such a name away again. To a running job it
  would mean a shrinking; it is refused together with the mark.
"""

from __future__ import annotations

from dataclasses import replace

from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.jobs import SHARES
from pliant.batch.slurm.update import Words, unchanged
from pliant.errors import Refused
from pliant.grammar import find_token, put_token
from pliant.model import ANYWHERE, UNMARKED

UNMARK = "OverSubscribe=NO"


def mark_words(row: JobRow, mark: str) -> Words:
    """Return the one call that gives a waiting job this mark, and notes it in its token.

    ``mark``: as :attr:`Spec.mark`. Raises Refused where it is not ours to change.
    """
    spec = find_token(row.admin_comment)
    if spec is None:
        raise Refused("it says nothing to Pliant any more")
    old = spec.mark if row.oversubscribe == SHARES else ""
    if row.oversubscribe == SHARES and not old:
        raise Refused("its owner gave it one (--oversubscribe)")
    named = old not in ("", UNMARKED, ANYWHERE) and row.nodes_required == old
    node = mark if mark not in (ANYWHERE, UNMARKED) else ""
    token = f"AdminComment={put_token(row.admin_comment, replace(spec, mark=mark))}"
    share = UNMARK if mark == UNMARKED else f"OverSubscribe={SHARES}"
    return (share, *((f"ReqNodeList={node}",) if node or named else ()), token)


def is_marked(row: JobRow, mark: str) -> bool:
    """Whether a row read back carries this mark."""
    spec = find_token(row.admin_comment)
    noted = spec is not None and spec.mark == mark
    return noted and (row.oversubscribe == SHARES) is (mark != UNMARKED)


def check(seen: JobRow | None, now: JobRow | None) -> JobRow:
    """Return the row as it is now. Raises Refused where the job is not as it was observed."""
    if now is None or not now.waits:
        raise Refused("it does not wait any more")
    if seen is None or not unchanged(seen, now):
        raise Refused("it was changed since it was last looked at; its owner wins")
    return now


def left_marks(rows: list[JobRow]) -> list[JobRow]:
    """Return the waiting jobs that carry a mark of Pliant's.

    Slurm notes the token even where it refuses the rest, as of a job that has just started: who
    was ever marked by Pliant, and shares, does so by Pliant's mark, whatever the token says now.
    """
    return [row for row in rows if row.waits and row.oversubscribe == SHARES and _is_ours(row)]


def _is_ours(row: JobRow) -> bool:
    spec = find_token(row.admin_comment)
    return spec is not None and spec.mark != ""
