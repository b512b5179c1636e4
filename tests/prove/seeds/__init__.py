"""The whole of pliantd in one thread, under one seed: a cluster, its users, and what goes wrong.

Read in this order: ``loops`` (time, and processes as loops), ``cluster`` (slurmctld and its nodes,
on the fake of Slurm that is explored too), ``pliantd`` (the shipped daemon, its store on a disk, how
it is reached), ``programs`` (a job's program and its wrapper), ``workload`` (who submits what),
``owners`` (what they do about it), ``faults`` (what goes wrong), ``rules`` and ``records`` (what may
never be, and what history must say), ``seed`` (all of it, for one number).
"""
