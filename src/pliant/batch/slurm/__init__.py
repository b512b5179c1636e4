"""Slurm by its client commands.

::

    commands.py        the one module that runs scontrol and squeue
    slurm.py           observe, change, annotate
    job_rows.py        squeue's answer      node_rows.py, partition_rows.py, site.py   scontrol's
    details.py         which GPUs a running job sits on
    request.py         what a row asks      jobs.py, nodes.py     rows as policies see them
    update.py          what scontrol is told, and what must be read back
"""

from pliant.batch.slurm.commands import Commands
from pliant.batch.slurm.site import Site
from pliant.batch.slurm.slurm import Change, Slurm

__all__ = ["Change", "Commands", "Site", "Slurm"]
