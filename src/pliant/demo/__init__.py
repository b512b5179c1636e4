"""The demonstration: one mix of jobs, run with Pliant off and with Pliant enforcing.

``mix`` says what is submitted, ``speed`` how fast a job is on what it was given, ``live`` runs a
round on a real private Slurm and ``dry`` on the simulated cluster; both return the same ``Run``
records, from which ``idle`` and ``report`` compute what is shown.
"""
