"""What Pliant remembers: intentions before actions, decisions with reasons, refused shapes.

One SQLite file (WAL, mode 0600) in the state directory, and beside it ``paused``, an empty file
that is there while an administrator has paused Pliant. Losing all of it loses history, never a
job: what matters about a job stands in the batch system. So nothing here raises, and
:attr:`Store.trouble` says where nothing can be written to disk. The rows of hand-overs outlast a
loss of power; what is noted of decisions and speeds in the last moments before one may be gone.
Only a file that a later release wrote raises: pliantd leaves it as it is, and ends.
"""

from pliant.store.database import RETRY_S
from pliant.store.reported import (
    JobSums,
    PartitionReport,
    Refusal,
    Report,
    Resizes,
    Waits,
    reason_of,
)
from pliant.store.rows import ENDED, Decision, HandOverRow, JobRecord, RunRow, Tally
from pliant.store.schema import MIGRATIONS
from pliant.store.store import Store

__all__ = [
    "ENDED",
    "MIGRATIONS",
    "RETRY_S",
    "Decision",
    "HandOverRow",
    "JobRecord",
    "JobSums",
    "PartitionReport",
    "Refusal",
    "Report",
    "Resizes",
    "RunRow",
    "Store",
    "Tally",
    "Waits",
    "reason_of",
]
