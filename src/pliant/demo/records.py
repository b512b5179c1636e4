"""Read what Slurm recorded of the demonstration's jobs, from ``scontrol -o -d show job``.

JOB_GRES is what a job was given (TresPerNode what it asked); Slurm keeps it after the end, without
accounting too. The names are the demonstration's own, so that splitting at blanks is safe here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from pliant.demo.mix import SHARDS, Submission
from pliant.demo.run import Run
from pliant.errors import BadAnswer
from pliant.model import Kind, Shape

_GRES = re.compile(r"\b(gpu|shard)(?::[a-z]\w*)?:(\d+)")


def runs(text: str, jobs: Mapping[str, Submission]) -> Sequence[Run]:
    """Return the runs of the jobs, given by their ids, in order of submission.

    Raises BadAnswer where a job is missing or did not complete.
    """
    found = {}
    for line in text.splitlines():
        fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
        job = jobs.get(fields.get("JobId", ""))
        if job is not None:
            found[fields["JobId"]] = _run(job, fields)
    missing = [f"{number} ({job.name})" for number, job in jobs.items() if number not in found]
    if missing:
        raise BadAnswer(f"slurmctld has no record of job {', '.join(missing)}")
    return [found[number] for number in jobs]


def _run(job: Submission, fields: Mapping[str, str]) -> Run:
    if fields["JobState"] != "COMPLETED":
        raise BadAnswer(
            f"job {fields['JobId']} ({job.name}) is {fields['JobState']}, not COMPLETED"
        )
    nodes = node_names(fields["NodeList"])
    return Run(
        job=job,
        shape=given(fields.get("JOB_GRES", ""), len(nodes)),
        nodes=nodes,
        submit_s=_instant(fields["SubmitTime"]),
        start_s=_instant(fields["StartTime"]),
        end_s=_instant(fields["EndTime"]),
    )


def given(job_gres: str, nodes: int) -> Shape:
    """Return the shape of an allocation: ``gpu:a100:4`` on two nodes is 2x2."""
    counts = {kind: int(count) for kind, count in _GRES.findall(job_gres)}
    if gpus := counts.get("gpu"):
        return Shape(nodes, gpus // nodes)
    if shards := counts.get("shard"):
        return Shape(1, 1, share=SHARDS // shards)
    return Shape(nodes, 0, kind=Kind.CPU)


def node_names(text: str) -> tuple[str, ...]:
    """Return the nodes of a list as the sandbox's nodes are written: ``n1``, ``n[1-2,4]``."""
    inside = re.fullmatch(r"n\[([\d,-]+)\]", text)
    if inside is None:
        return (text,)
    names = []
    for part in inside[1].split(","):
        first, _, last = part.partition("-")
        names += [f"n{number}" for number in range(int(first), int(last or first) + 1)]
    return tuple(names)


def _instant(text: str) -> float:
    """Return seconds since the epoch; Slurm writes local time."""
    return datetime.fromisoformat(text).astimezone().timestamp()
