"""The co-location monitor: how fast each Slurm job runs on this node, measured from outside it.

``processes`` says which processes are whose, ``usage`` what they took, ``speed`` turns two samples
into a speed that is tagged with how it was measured, and ``service`` does so again and again.
``counters`` has the jobs counted by ``perf``, by cgroup or by thread, in ``windows`` of time, and
tells their ``tier``. ``gpus`` reads the node's GPUs and who is on them, ``gpu_use`` what of that is
a job's; pliantd finds which of its GPUs it does not use (:mod:`pliant.daemon.held`).
A program's own heartbeats are not read here: this runs as root and opens no file of a user. They
reach pliantd from ``pliant run`` (:mod:`pliant.wire.runs`).
"""
