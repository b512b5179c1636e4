"""Pliant: Slurm and PBS jobs that bend to the GPUs that are free."""

__version__ = "0.1.0"
