"""One batched ``squeue`` for all jobs: what to ask, and how to read it so that no text can lie.

A user writes what stands in comments, features and dependencies (newlines and ``|`` too), and
any field may hold more than it should. So each call has a nonce that nobody can know (it travels
in the environment, not in the arguments, which every user of the host can read). Fields that are
Slurm's own numbers are joined by ``|`` and stand first; every other field ends with the nonce,
the last of a row with the nonce twice.

Releases differ: 22.05 cannot print the excluded nodes in this form (``-o %x`` can, see
:func:`excluded_format`); from 24.11 on it is the field ``ExcNodes``. From 26.05 on OverSubscribe is
only ``YES`` or ``NO``, and for whom a job keeps its nodes stands in ``Exclusive``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pliant.batch.slurm.values import whole
from pliant.errors import BadAnswer

NUMBERS = (
    *("JobID", "ArrayJobID", "State", "PriorityLong", "SubmitTime", "EligibleTime"),
    *("StartTime", "EndTime", "TimeLimit", "MinTime", "NumNodes", "MaxNodes", "NumTasks"),
    *("NumCPUs", "cpus-per-task", "NTPerNode", "MinCpus", "MinMemory", "OverSubscribe"),
    *("HetJobID", "RestartCnt", "Contiguous", "BatchFlag", "Requeue"),
    "Deadline",
)
TEXTS = (
    *("ArrayTaskID", "Reason", "Origin", "UserName", "Account", "QOS", "Partition"),
    *("tres-alloc",),
    *("tres-per-job", "tres-per-node", "tres-per-socket", "tres-per-task", "cpus-per-tres"),
    *("mem-per-tres", "Feature", "Reservation", "ReqNodes", "NodeList", "SchedNodes"),
    *("Dependency", "ExcNodes", "Licenses", "Name", "admin_comment", "Comment"),
)
NONCE = re.compile(r"[A-Z][A-Za-z0-9]{12,64}", re.ASCII)  # a digit first would be a field size
NO_TASKS = ("N/A", "")
"""ArrayTaskID of what is no task of an array."""
_EXCLUDED_FROM = (23, 11)
_EXCLUSIVE_FROM = (26, 5)


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job record as squeue prints it. Names follow :data:`NUMBERS` and :data:`TEXTS`."""

    job_id: str
    array_id: str
    state: str
    priority: str
    submit: str
    eligible: str
    start: str
    end: str
    time_limit: str
    time_min: str
    num_nodes: str
    max_nodes: str
    num_tasks: str
    num_cpus: str
    cpus_per_task: str
    tasks_per_node: str
    min_cpus: str
    min_memory: str
    oversubscribe: str
    het_id: str
    restarts: str
    contiguous: str
    batch: str
    requeue: str
    deadline: str
    array_tasks: str
    reason: str
    origin: str
    user: str
    account: str
    qos: str
    partition: str
    tres: str
    tres_per_job: str
    tres_per_node: str
    tres_per_socket: str
    tres_per_task: str
    cpus_per_tres: str
    mem_per_tres: str
    features: str
    reservation: str
    nodes_required: str
    nodes: str
    nodes_expected: str
    dependency: str
    nodes_excluded: str
    licenses: str
    name: str
    admin_comment: str
    comment: str

    @property
    def waits(self) -> bool:
        """Whether it has no allocation."""
        return self.state in WAITING

    @property
    def is_array_record(self) -> bool:
        """Whether it stands for the waiting tasks of an array that were not split off."""
        return self.waits and self.array_tasks not in NO_TASKS and self.job_id == self.array_id

    @property
    def tasks(self) -> str:
        """Its waiting tasks as ``5,7-9``, without the limit of how many may run."""
        return self.array_tasks.partition("%")[0]

    @property
    def at_once(self) -> int:
        """How many tasks of its array may run at once; 0: any number."""
        limit = self.array_tasks.partition("%")[2]
        return int(limit) if limit.isascii() and limit.isdecimal() else 0

    @property
    def is_split_task(self) -> bool:
        """Whether it is one waiting task of an array with a record of its own."""
        return self.array_tasks not in NO_TASKS and not self.is_array_record

    @property
    def key(self) -> str:
        """The id users know: ``11``, ``27_4``; ``27`` for the waiting record of an array."""
        if self.array_tasks in NO_TASKS or (self.is_array_record and not self.is_last_task):
            return self.job_id
        return f"{self.array_id}_{self.tasks}"

    @property
    def is_last_task(self) -> bool:
        """Whether the waiting record has come down to one task."""
        return self.tasks.isdecimal()


WAITING = frozenset(("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"))


def _texts(version: tuple[int, int]) -> tuple[str, ...]:
    return tuple(t for t in TEXTS if t != "ExcNodes" or version >= _EXCLUDED_FROM)


def _numbers(version: tuple[int, int]) -> tuple[str, ...]:
    return (*NUMBERS, "Exclusive") if version >= _EXCLUSIVE_FROM else NUMBERS


def job_format(nonce: str, version: tuple[int, int]) -> str:
    """Return what ``squeue --Format`` (SQUEUE_FORMAT2) is to print."""
    assert NONCE.fullmatch(nonce)  # noqa: S101 - callers see to it
    words = [f"{name}:|" for name in _numbers(version)]
    words += [f"{name}:{nonce}" for name in _texts(version)]
    return ",".join(words) + nonce


def parse_jobs(text: str, nonce: str, version: tuple[int, int]) -> list[JobRow]:
    """Read the answer to :func:`job_format`.

    Raises BadAnswer.
    """
    rows = text.split(f"{nonce}{nonce}\n")
    if rows.pop():
        raise BadAnswer("squeue's answer ends in the middle of a job")
    return [_row(row, nonce, version) for row in rows]


def _row(row: str, nonce: str, version: tuple[int, int]) -> JobRow:
    texts = row.split(nonce)
    asked = len(_numbers(version))
    *numbers, texts[0] = texts[0].split("|", asked)
    if version < _EXCLUDED_FROM:
        texts.insert(TEXTS.index("ExcNodes"), "")
    if len(numbers) != asked or len(texts) != len(TEXTS):
        raise BadAnswer(f"squeue's row has {len(numbers)}+{len(texts)} fields, not as asked")
    if version >= _EXCLUSIVE_FROM:
        exclusive, place = numbers.pop(), NUMBERS.index("OverSubscribe")
        numbers[place] = _oversubscribe(numbers[place], exclusive)
    return JobRow(*numbers, *texts)


def _oversubscribe(word: str, exclusive: str) -> str:
    """Say in the one word of earlier releases what 26.05 says in two.

    NO: it shares its nodes with none; USER, MCS, TOPO: with some; OK: with all; YES: its CPUs too.
    """
    if exclusive != "NO":
        return "NO" if exclusive == "NODE" else exclusive
    return "OK" if word == "NO" else word


def excluded_format(nonce: str) -> str:
    """Return what ``squeue --format`` (SQUEUE_FORMAT) is to print for the excluded nodes."""
    return f"%A|%x{nonce}"


def parse_excluded(text: str, nonce: str) -> dict[str, str]:
    """Read the answer to :func:`excluded_format`: excluded nodes by JobID.

    Raises BadAnswer.
    """
    rows = text.split(f"{nonce}\n")
    if rows.pop():
        raise BadAnswer("squeue's answer ends in the middle of a job")
    pairs = (row.partition("|") for row in rows)
    return {job_id: nodes for job_id, _, nodes in pairs if nodes != "(null)"}


def count(text: str) -> int:
    """Read a number of squeue; ``N/A`` and ``*`` are 0."""
    return 0 if text == "*" else whole(text)
