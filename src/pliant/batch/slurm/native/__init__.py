"""Slurm by its C library, through pyslurm: what the commands do for jobs, without a process each.

::

    native.py    what is asked of pyslurm and what of the commands, and why
    fit.py       whether pyslurm fits, in words
    process.py   the worker process: asked with a time limit, killed where it does not answer
    worker.py    what runs there: the one module that imports pyslurm
    frames.py    what the two say to each other
    rows.py      pyslurm's jobs as rows of squeue
    words.py     what scontrol would be told, as pyslurm's arguments

The library would block or end the process that calls it: without slurmctld it waits for minutes,
without slurm.conf it exits. So it never runs in pliantd itself.
"""

from pliant.batch.slurm.native.fit import INSTEAD, blind, installed, misfit
from pliant.batch.slurm.native.native import Native, NativeQueries
from pliant.batch.slurm.native.process import Worker

__all__ = ["INSTEAD", "Native", "NativeQueries", "Worker", "blind", "installed", "misfit"]
