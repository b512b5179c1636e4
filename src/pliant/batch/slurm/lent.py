"""What of its owner's a job lends to a hand-over: noted beside its token, and put back afterwards.

- The --time-min: from its requeue to its start a job has none (see handing.py). On a running job
  TimeMin does nothing, so it is put back when the job waits again, outside a hand-over.
- The --nice: ``Priority=`` sets Nice to 0, and so does ``release``. Slurm takes a Nice again once
  it computes the priority itself, and then computes it anew.
- How few CPUs a node may have, from its first change on until it has its own shape again.
- The priority. Where PriorityType is basic it is put back: ``release`` would put the job behind all
  others, Nice is in it, and ``Nice=`` does nothing while it is set. Else Slurm computes it anew.
  The note also tells a pin that somebody else has changed: a job's owner may lower its priority,
  and just below a pin it is still above all others.

Measured on 22.05, and read in the source of 22.05 and 26.05 (``_update_job`` in job_mgr.c).
"""

from __future__ import annotations

from dataclasses import replace

from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.values import NOTHING, duration_s, size_mib, whole
from pliant.grammar import MEMORY, MIN_CPUS, NICE, PRIORITY, TIME_MIN, find_token, note, noted
from pliant.handover import OURS

_COMMENT = "AdminComment="
_LENT = (TIME_MIN, MIN_CPUS, NICE, PRIORITY)
"""What is noted beside a token of what may be put back; memory is so beside a priority alone."""


def lending(row: JobRow) -> tuple[tuple[str, ...], JobRow]:
    """Return what takes the owner's --time-min away, and the row with it noted.

    The words say nothing of the comment: whoever makes the call writes that of the row.
    """
    own = duration_s(row.time_min) // 60
    if not own:
        return (), row
    return ("TimeMin=0",), replace(row, admin_comment=note(_comment(row), TIME_MIN, own))


def pinning(row: JobRow, nice: int) -> tuple[str, ...]:
    """Return what notes a job's priority and ``nice``, in the call that takes them away.

    What was noted before stands: by then it may have had a priority of ours.
    """
    number = whole(row.priority)
    if own_priority(row) or number in OURS:
        return ()
    then = note(_comment(row), NICE, nice) if nice else _comment(row)
    then = note(then, PRIORITY, number)
    if not _asked_memory(row):
        then = note(then, MEMORY, size_mib(row.min_memory))
    return (f"{_COMMENT}{then}",)


def has_its_memory(row: JobRow, default_mib: int) -> bool:
    """Whether a pinned job that asked for no memory has what it had when it was pinned.

    With more it would take before all others what they wait for. ``default_mib``: the site's, which
    it has where 0.1.0 pinned it and noted nothing. Slurm shows none of a job with memory by the GPU
    while it tries to start it.
    """
    had, least = noted(row.admin_comment, MEMORY), size_mib(row.min_memory)
    if not own_priority(row) or _asked_memory(row):
        return True
    tried = least == 0 and row.mem_per_tres not in NOTHING
    return least == had or tried or (not had and least == default_mib)


def is_anothers(row: JobRow) -> bool:
    """Whether a job's priority is neither its own nor what we gave it.

    Somebody has changed our pin; or a job that waits has one without a note, which `scontrol top`
    takes from one job to another.
    """
    number, own = whole(row.priority), own_priority(row)
    return (number in OURS and row.waits and not own) or (number not in (0, *OURS) and own > 0)


def own_priority(row: JobRow) -> int:
    """Return the priority that a job had before it was pinned; 0 where none was noted."""
    return noted(row.admin_comment, PRIORITY)


def released(row: JobRow) -> JobRow:
    """Return a job's row as it is once Slurm computes its priority again."""
    return replace(row, priority="0")


def owed(row: JobRow) -> bool:
    """Whether something may be put back now.

    Slurm takes no --time-min above the time limit, and nothing else of a job that is pinned.
    """
    return is_anothers(row) or len(giving_back(row, 0)) > 0


def giving_back(row: JobRow, nice: int) -> tuple[str, ...]:
    """Return what puts back what may be, and forgets that it was noted.

    What the job has by now is newer than what was noted; ``nice``: of its nice value.
    """
    then, words = _comment(row), list[str]()
    if not any(key in then for key in _LENT):  # of nearly all jobs, at each look
        return ()
    own, limit = noted(then, TIME_MIN), duration_s(row.time_limit) // 60
    if own and row.waits and (not limit or own <= limit or duration_s(row.time_min)):
        words += [] if duration_s(row.time_min) else [f"TimeMin={own}"]
        then = note(then, TIME_MIN, 0)
    least = noted(then, MIN_CPUS)
    if least and row.waits and _has_own_shape(then):
        words += [f"MinCPUsNode={least}", f"NumCPUs={row.num_cpus}"]
        then = note(then, MIN_CPUS, 0)
    if whole(row.priority) not in OURS:
        own_nice = noted(then, NICE)
        words += [f"Nice={own_nice}"] if own_nice and not nice else []
        for key in (NICE, PRIORITY, MEMORY):
            then = note(then, key, 0)
    return (*words, f"{_COMMENT}{then}") if then != _comment(row) else ()


def _has_own_shape(comment: str) -> bool:
    spec = find_token(comment)
    return spec is not None and spec.set in (None, spec.own)


def _asked_memory(row: JobRow) -> bool:
    """Whether its token says that its owner asked for memory."""
    spec = find_token(_comment(row))
    said = spec.footprint if spec else None
    return said is not None and any(
        (said.mem_per_node_mib, said.mem_per_cpu_mib, said.mem_per_gpu_mib)
    )


def _comment(row: JobRow) -> str:
    return "" if row.admin_comment in NOTHING else row.admin_comment
