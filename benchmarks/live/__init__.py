"""Two papers' experiments, live on a real Slurm: see :mod:`.__main__`."""
