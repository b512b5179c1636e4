"""What a sandbox is asked to be."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pliant import policies
from pliant.errors import BadInput

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,31}")
_PARAMETERS = re.compile(r"[A-Za-z0-9_=,.:+-]*")

MODES = ("enforce", "observe", "off", "none")
MAX_NODES = 512
MAX_GPUS = 64
MAX_CPUS = 1024

# Debian's slurmctld reacts after 2.4 s by default; with these after about half a second.
SCHEDULER_PARAMETERS = (
    "sched_min_interval=20000,batch_sched_delay=0,"
    "bf_interval=1,bf_continue,bf_resolution=1,bf_max_job_test=1000"
)


@dataclass(frozen=True)
class Options:
    """The shape of a sandbox; `cpus` of 0 means four for each GPU, and at least 16."""

    nodes: int = 2
    gpus: int = 4
    cpus: int = 0
    shards: int = 4
    gpu_types: tuple[str, ...] = ("a100",)
    mode: str = "enforce"
    policy: str = policies.DEFAULT
    policy_with: dict[str, bool | int | float | str] = field(default_factory=dict)
    accounting: bool = False
    users: tuple[str, ...] = ()
    scheduler_parameters: str = SCHEDULER_PARAMETERS
    gpu_memory: str = ""  # what Pliant is told that a fake GPU has

    def __post_init__(self) -> None:
        _check_range("--nodes", self.nodes, 1, MAX_NODES)
        _check_range("--gpus", self.gpus, 0, MAX_GPUS)
        _check_range("--cpus", self.cpus, 0, MAX_CPUS)
        _check_range("--shards", self.shards, 1, MAX_GPUS)
        if self.mode not in MODES:
            raise BadInput(f"--mode {self.mode!r}: one of {', '.join(MODES)}")
        policies.live(self.policy, self.policy_with)
        for word in self.gpu_types or ("",):
            if not _WORD.fullmatch(word):
                raise BadInput(f"--gpu-type {word!r}: a word such as a100, or several: a100:h100")
        if not _PARAMETERS.fullmatch(self.scheduler_parameters):
            raise BadInput(
                f"--scheduler-parameters {self.scheduler_parameters!r}: a list such as "
                "bf_interval=30,bf_continue"
            )

    @property
    def cpus_per_node(self) -> int:
        """Return the CPUs of one node."""
        return self.cpus or max(16, 4 * self.gpus)


def _check_range(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise BadInput(f"{option} {value}: from {low} to {high}")


def check_name(name: str) -> str:
    """Return the name of a sandbox; raise BadInput for what could not be a directory of ours."""
    if not NAME.fullmatch(name):
        raise BadInput(
            f"--name {name[:64]!r}: up to 32 of a-z, 0-9, '_' and '-', a letter or digit first"
        )
    return name
