"""What Slurm answers to a step that it will never take, and why a job of that shape waits.

The words are those of slurm_strerror(3), as scontrol prints them; docs/slurm-updates.md has the
table, with the release on which each row was measured. A refusal that is not named here may be of
the moment: it is tried again for some seconds.
"""

from __future__ import annotations

from pliant.batch import HELD_FOR_SHAPE

_FOR_GOOD = (
    "access/permission denied",
    "invalid time-min specification",
    "invalid generic resource (gres) specification",
    "invalid gres specification",
    "invalid feature specification",
    "invalid qos specification",
    "job violates accounting/qos policy",
    "requested node configuration is not available",
    "requested time limit is invalid",
    "update of this parameter is not supported",
    "job resizing not supported for job arrays",
)
_BLOCKED = ("QOS", "Assoc", "Max", "PartitionTimeLimit", "PartitionNodeLimit", HELD_FOR_SHAPE)
"""How the Reasons begin for which a job of another shape may start: squeue(1)."""
_LIMIT_OF = {
    "QOS": ", a limit of its QOS",
    "Assoc": ", a limit of its user or account",
    "Max": ", a limit of its user or account",
    "Partition": ", a limit of its partition",
}


def is_for_good(words: str) -> bool:
    """Whether Slurm would refuse the same update whenever it is asked."""
    told = words.lower()
    return any(known in told for known in _FOR_GOOD)


def is_closed(words: str) -> bool:
    """Whether a job's partition is closed to it, by its AllowGroups say."""
    return "partition configuration not available" in words.lower()


def blocked(reason: str) -> str:
    """Return a Reason that another shape may not have; "" for all others.

    A limit on the number of jobs (AssocMaxJobsLimit) is none.
    """
    return reason if reason.startswith(_BLOCKED) and "Jobs" not in reason else ""


def in_words(reason: str) -> str:
    """Return a Reason, and whose limit it is."""
    return reason + next((of for begin, of in _LIMIT_OF.items() if reason.startswith(begin)), "")
