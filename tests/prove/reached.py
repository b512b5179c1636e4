"""Which moves and faults the exploration comes to, with one fault: none may be gone unnoticed.

What needs another fault before it is not among them: backfill that writes the job's own priority
back, and a slurmctld that answers neither its wrapper nor its guardian.
"""

from __future__ import annotations

from collections.abc import Mapping

OF_ALL = frozenset(
    (
        "its node fails",
        "its owner asks three GPUs",
        "its owner asks three GPUs, between pliantd's look and its step",
        "its owner forbids requeues",
        "its owner forbids requeues, between pliantd's look and its step",
        "its owner gives it less time",
        "its owner gives it less time, between pliantd's look and its step",
        "its owner holds it",
        "its owner holds it, between pliantd's look and its step",
        "its owner lets it begin later",
        "its owner lets it begin later, between pliantd's look and its step",
        "its wrapper is killed",
        "owner releases",
        "pliantd acts",
        "pliantd has looked",
        "pliantd is killed",
        "pliantd is killed after its command",
        "pliantd is killed before its command",
        "pliantd is slow",
        "pliantd looks",
        "pliantd starts",
        "pliantd's look takes long",
        "program cannot be started again",
        "program completes",
        "program completes unmanaged",
        "program fails",
        "program saves",
        "program saves unmanaged",
        "rival ends",
        "time",
        "wrapper hears",
        "wrapper says again that there is none",
        "wrapper says it again",
        "wrapper's time is over",
    )
)
"""Whatever is handed over, and on which batch system."""
ON_SLURM = frozenset(
    (
        "Slurm holds it for its shape",
        "Slurm is not reached",
        "Slurm refuses all but AdminComment",
        "Slurm refuses all but AdminComment+Gres",
        "Slurm refuses all but MinCPUsNode+NumCPUs+NumNodes",
        "Slurm refuses for good",
        "Slurm refuses for now",
        "Slurm schedules",
        "Slurm's answer is lost",
        "a fence of before is listed yet",
        "a kill of before ends it",
        "guardian requeues",
        "its node fails once too often",
        "its next run is heard",
        "its node goes down as it ends",
        "its owner cancels it",
        "its owner cancels it, between pliantd's look and its step",
        "its owner requeues it",
        "its owner requeues it, between pliantd's look and its step",
        "its start is killed by a kill of before",
        "its start is refused by its node",
        "slurmctld forgets",
        "slurmctld forgets its requeue",
        "slurmctld forgets its requeue and fence",
        "slurmctld forgets its requeue, fence and pin",
    )
)
"""On Slurm, besides."""
ON_PBS = frozenset(
    (
        "PBS is not reached",
        "PBS refuses for good",
        "PBS refuses for now",
        "PBS schedules",
        "PBS's answer is lost",
        "PBS's scheduler is slow",
        "a hook on its node is slow",
        "a site's hook refuses its shape",
        "nothing can be written for its hooks",
        "its node does not take it",
        "its node is not reached",
        "its owner deletes it",
        "its owner deletes it, between pliantd's look and its step",
        "its owner moves it",
        "its owner moves it, between pliantd's look and its step",
        "its pbs_mom is started again, with -p",
        "pbs_server is started anew",
    )
)
"""On PBS."""
OF_ONE: Mapping[tuple[str, str], frozenset[str]] = {
    ("Slurm", "resize"): frozenset(
        (
            "its owner asks what it had",
            "its owner asks what it had, between pliantd's look and its step",
        )
    ),
    ("Slurm", "growth"): frozenset(
        (
            "a limit is lowered below what it is to have",
            "its owner asks what it had",
            "its owner asks what it had, between pliantd's look and its step",
        )
    ),
    ("Slurm", "growth onto another node"): frozenset(()),
    ("Slurm", "preemption"): frozenset(
        (
            "Slurm holds its guest for its shape",
            "a job starts between pliantd's look and its step",
            "backfill writes its guest's priority back",
            "guest ends",
            "its room does not do for its guest",
            "the guest's owner asks more time for it",
            "the guest's owner asks more time for it, between pliantd's look and its step",
            "the guest's owner asks three GPUs for it",
            "the guest's owner cancels it",
            "the guest's owner holds it",
            "the guest's owner lets later begin it",
        )
    ),
    ("PBS", "resize"): frozenset(
        (
            "a job starts between pliantd's look and its step",
            "its owner asks what it had",
            "its owner asks what it had, between pliantd's look and its step",
        )
    ),
    ("PBS", "growth"): frozenset(
        (
            "a job starts between pliantd's look and its step",
            "its owner asks what it had",
            "its owner asks what it had, between pliantd's look and its step",
        )
    ),
    ("PBS", "preemption"): frozenset(
        (
            "guest ends",
            "the guest's owner asks more time for it",
            "the guest's owner asks three GPUs for it",
            "the guest's owner deletes it",
            "the guest's owner holds it",
            "the guest's owner lets later begin it",
        )
    ),
}
"""By batch system and kind."""
