"""The co-location monitor: how fast each Slurm job runs on this node, measured from outside it.

``processes`` says which processes are whose, ``usage`` what they took, ``speed`` turns two samples
into a speed that is tagged with how it was measured, and ``service`` does so again and again.
``gpus`` reads the node's GPUs and who is on them, ``held`` says which of them a job does not use.
A program's own heartbeats are not read here: this runs as root and opens no file of a user. They
reach pliantd from ``pliant run`` (:mod:`pliant.wire.runs`).
"""
