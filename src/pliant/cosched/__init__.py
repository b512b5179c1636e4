"""Co-scheduling on one machine: which tasks run at once, how fast they are so, and what is best.

Pure mathematics after Kuchumov & Korkhov (paper 002), for policies, simulations and the monitor:
tasks are names, and speeds are relative to a task alone.
"""

from pliant.cosched.instances import Pairs, layers, paired_instance, random_instance
from pliant.cosched.knowledge import SMALL, Knowledge
from pliant.cosched.optimum import Stint, makespan, optimum
from pliant.cosched.run import Instance, Ran, run
from pliant.cosched.strategies import EI, PI, Fastest, Learning, Optimal, Strategy, ucb
from pliant.cosched.tables import Fits, Table, is_antitone, total

__all__ = [
    "EI",
    "PI",
    "SMALL",
    "Fastest",
    "Fits",
    "Instance",
    "Knowledge",
    "Learning",
    "Optimal",
    "Pairs",
    "Ran",
    "Stint",
    "Strategy",
    "Table",
    "is_antitone",
    "layers",
    "makespan",
    "optimum",
    "paired_instance",
    "random_instance",
    "run",
    "total",
    "ucb",
]
