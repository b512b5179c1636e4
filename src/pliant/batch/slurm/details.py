"""What only ``scontrol -o -d show job`` tells: which GPUs a running job sits on, an array's limit.

Asked only for jobs where that matters and cannot be known otherwise, all of them through one
scontrol that reads its commands from standard input. Between two jobs stands a mark that nobody
can know, so that no job's text is taken for another's. Within a record its own user can still lie:
the allocation counts only if it names each node of the job exactly once and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pliant.batch.slurm.gres import Gres, gres_list
from pliant.batch.slurm.values import host_list
from pliant.errors import BadAnswer

_THROTTLE = re.compile(
    r"^JobId=\d+ ArrayJobId=\d+ ArrayTaskId=\S+ ArrayTaskThrottle=(\d{1,9}) ", re.MULTILINE
)
_ALLOCATION = re.compile(r" Nodes=(\S+) CPU_IDs=\S* Mem=\S* GRES=(\S*)")

Allocation = Mapping[str, tuple[Gres, ...]]
"""GRES with the GPUs' indexes, by node."""


def detail_commands(job_ids: Sequence[str], mark: str) -> str:
    """Return what scontrol is to read: each job, then the mark (as the name of a host)."""
    lines = (f"show job {job_id}\nshow hostnames {mark}{n}\n" for n, job_id in enumerate(job_ids))
    return "".join(lines)


def parse_details(
    text: str, job_ids: Sequence[str], mark: str, nodes: Mapping[str, str]
) -> dict[str, Allocation]:
    """Read the answer; jobs that are gone or contradict themselves are left out."""
    found: dict[str, Allocation] = {}
    for job_id, record in _records(text, job_ids, mark):
        allocation = _allocation(record, set(host_list(nodes[job_id])))
        if allocation is not None:
            found[job_id] = allocation
    return found


def parse_throttles(text: str, job_ids: Sequence[str], mark: str) -> dict[str, int]:
    """Read how many tasks may run at once of the array of each; those without a limit are left out.

    It stands before all that a user writes.
    """
    found = ((job_id, _THROTTLE.search(record)) for job_id, record in _records(text, job_ids, mark))
    return {job_id: int(limit[1]) for job_id, limit in found if limit}


def _records(text: str, job_ids: Sequence[str], mark: str) -> Iterator[tuple[str, str]]:
    """Yield what stands between the marks."""
    rest = text
    for number, job_id in enumerate(job_ids):
        record, between, rest = rest.partition(f"\n{mark}{number}\n")
        if not between:
            raise BadAnswer("scontrol's answer ends in the middle of a job")
        yield job_id, record


def _allocation(record: str, nodes: set[str]) -> Allocation | None:
    try:
        pairs = list(_pairs(record))
    except BadAnswer:
        return None
    named = [name for name, _ in pairs]
    if len(named) != len(nodes) or set(named) != nodes:
        return None
    return dict(pairs)


def _pairs(record: str) -> Iterator[tuple[str, tuple[Gres, ...]]]:
    for names, gres in _ALLOCATION.findall(record):
        for name in host_list(names):
            yield name, gres_list(gres)
