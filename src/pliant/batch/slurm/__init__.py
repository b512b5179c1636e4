"""Slurm by its client commands, or by its C library.

::

    commands.py        the one module that runs scontrol and squeue
    native/            the C library in a process of its own, where the site chose that
    slurm.py           observe, change, annotate, rescue
    queries.py         what is asked        attempt.py    one change under way
    job_rows.py        squeue's answer      node_rows.py, partition_rows.py, site.py   scontrol's
    details.py         which GPUs a running job sits on
    values.py, gres.py, records.py          Slurm's words
    request.py         what a row asks      requested.py  what a waiting job may become
    jobs.py, nodes.py, snapshot.py          rows as policies see them
    cluster.py         what both need to know: release, nodes, partitions
    update.py          what scontrol is told, and what must be read back
"""

from pliant.batch.slurm.commands import Commands
from pliant.batch.slurm.native import Native, Worker
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.slurm import Slurm

__all__ = ["Commands", "Native", "Site", "Slurm", "Worker"]
