"""The nouns: what a job may run as, what it asks, what the cluster is at one moment.

Everything here is immutable and compares by value. Units stand in the names: ``_s`` are seconds
(instants are seconds since the epoch, or since the start of a simulation), ``_mib`` are MiB.
"""

from pliant.model.abilities import EVERYBODY, Abilities
from pliant.model.arrays import ARRAY_LIMIT, is_task_of, within_array
from pliant.model.caps import Cap, Caps
from pliant.model.cluster import Admits, Mode, Node, Partition, Pool, Reservation
from pliant.model.company import Combination, Company, Speeds, Together
from pliant.model.footprints import ALL_CORES, Demand, Footprint
from pliant.model.jobs import Job, JobState, jobs_text
from pliant.model.limits import NO_LIMITS, Amounts, Limits
from pliant.model.outgrown import BEGUN_ARRAY, ONE_OF_ARRAY, asks_otherwise
from pliant.model.requests import ANYWHERE, UNMARKED, JobClass, Malleable, Request, Spec
from pliant.model.resting import job_rests_until_s, rests_until_s, why_rests
from pliant.model.shapes import Kind, Shape, shape_text
from pliant.model.snapshot import Snapshot
from pliant.model.trials import TrialCap, TrialCaps

__all__ = [
    "ALL_CORES",
    "ANYWHERE",
    "ARRAY_LIMIT",
    "BEGUN_ARRAY",
    "Abilities",
    "Admits",
    "Amounts",
    "Cap",
    "Caps",
    "Combination",
    "Company",
    "Demand",
    "EVERYBODY",
    "Footprint",
    "Job",
    "JobClass",
    "JobState",
    "Kind",
    "Limits",
    "Malleable",
    "Mode",
    "NO_LIMITS",
    "Node",
    "ONE_OF_ARRAY",
    "Partition",
    "Pool",
    "Request",
    "Reservation",
    "Shape",
    "Snapshot",
    "Spec",
    "Speeds",
    "Together",
    "TrialCap",
    "TrialCaps",
    "UNMARKED",
    "asks_otherwise",
    "is_task_of",
    "job_rests_until_s",
    "jobs_text",
    "rests_until_s",
    "shape_text",
    "why_rests",
    "within_array",
]
