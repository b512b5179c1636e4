"""A real private Slurm on one machine, with fake GPUs, for trials, demonstrations and tests."""

from pliant.sandbox.options import Options
from pliant.sandbox.sandbox import Sandbox

__all__ = ["Options", "Sandbox"]
