"""PBS by its client commands.

::

    commands.py        what its commands find in their environment
    pbs.py             observe, change, annotate, rescue
    queries.py         what is asked        handing.py    the steps of a hand-over
    fences.py          who is kept out while it lasts     shown.py   files that hooks read
    job_rows.py, node_rows.py, server_rows.py   what PBS's JSON has, as rows
    ended.py           jobs that have ended, as PBS's history has them
    reservations.py    reservations, as its text has them
    vnodes.py          the vnodes of a host as one node, GPUs in shares
    values.py          PBS's words          reasons.py    why a job waits
    site.py                                 what jobs are read with
    schedulers.py                           who starts a queue's jobs, and in which order
    jobs.py, snapshot.py                    rows as policies see them
    update.py          what qalter is told, and what must be read back
"""

from pliant.batch.pbs.commands import Commands
from pliant.batch.pbs.pbs import Pbs
from pliant.batch.pbs.vnodes import Names

__all__ = ["Commands", "Names", "Pbs"]
