"""pyslurm: what it is asked, what the commands do instead, and that it can hang or die alone."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from slurm_recorded import Recorded

from pliant.batch.slurm import Native, Slurm, Worker
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.native import NativeQueries
from pliant.batch.slurm.native.native import FEW, REST_S
from pliant.batch.slurm.native.rows import fields as fields_of
from pliant.batch.slurm.native.words import arguments
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.site import Site
from pliant.errors import Unavailable
from pliant.grammar import parse, parse_shape, token_text
from pliant.model import Spec

SITE = replace(
    Queries(Recorded("22.05")).site(),
    version=(25, 11),
    release="25.11.7",
    options={"AccountingStorageTRES": "cpu,mem,energy,node,billing,gres/gpu"},
)
EMPTY = JobRow(*("" for _ in fields(JobRow)))
ROW = replace(
    EMPTY,
    job_id="11",
    state="PENDING",
    array_tasks="N/A",
    num_nodes="1",
    max_nodes="1",
    num_tasks="1",
    min_cpus="4",
)
LARGER = ("Gres=gpu:a100:2", "NumTasks=1", "NumCPUs=4", "CPUsPerTask=4", "AdminComment=x")


# --- what scontrol would be told --------------------------------------------------------------


def test_an_update_is_said_in_pyslurms_words() -> None:
    words = (*LARGER, "MinMemoryNode=900", "MinCPUsNode=4", "NumNodes=1-1")
    assert arguments(ROW, words) == {
        "gres_per_node": "gpu:a100:2",
        "ntasks": 1,
        "min_cpus_per_node": 4,
        "cpus_per_task": 4,
        "memory_per_node": 900,
        "admin_comment": "x",
    }


@pytest.mark.parametrize(
    "word",
    [
        "NumNodes=2-2",  # ignored in modify
        "MinCPUsNode=8",  # cannot be said
        "TresPerJob=",  # an empty value changes nothing
        "NumCPUs=70000",  # it has 16 bits
        "AdminComment=a\0b",
        "AdminComment=a\udcffb",
        "TimeLimit=5",
    ],
)
def test_what_pyslurm_cannot_say_is_left_to_scontrol(word: str) -> None:
    assert arguments(ROW, (*LARGER, word)) is None


def test_the_waiting_tasks_of_an_array_are_left_to_scontrol() -> None:
    array = replace(ROW, array_id="11", array_tasks="1-5")
    assert arguments(array, ("AdminComment=x",)) is None
    assert arguments(replace(array, job_id="12", array_tasks="3"), ("AdminComment=x",)) is not None


def test_a_number_of_nodes_counts_as_set_only_where_it_cannot_be_a_least_one() -> None:
    several = replace(ROW, num_tasks="4")
    assert arguments(several, ("Gres=gpu:2", "NumNodes=1-1")) is None
    spec = Spec(parse("gpus=1-4"), parse_shape("4"), parse_shape("2"))
    ours = replace(several, admin_comment=token_text(spec))
    assert arguments(ours, ("Gres=gpu:2", "NumNodes=1-1")) == {"gres_per_node": "gpu:2"}


# --- a job as squeue prints it ------------------------------------------------------------------


def count(number: int) -> SimpleNamespace:
    return SimpleNamespace(count=number)


def told(**other: Any) -> SimpleNamespace:
    """A job as pyslurm 25.11 shows it: ``sbatch -H -t90 -c2 --mem=2G --gres=gpu:2``."""
    tres = SimpleNamespace(
        cpu=count(2), mem=count(2048), node=count(1), billing=count(2), gres={"gpu": count(2)}
    )
    nothing = dict.fromkeys(
        (
            *("time_limit_min", "start_time", "end_time", "ntasks_per_node", "memory_per_cpu"),
            *("heterogeneous_id", "federation_origin", "reservation", "required_nodes", "comment"),
            *("allocated_nodes", "scheduled_nodes", "excluded_nodes", "admin_comment", "array_id"),
            *("allocated_tres", "cpus_per_gpu", "memory_per_gpu", "array_task_id", "max_nodes"),
            *("array_tasks_waiting", "array_tasks_parallel", "eligible_time", "deadline"),
        )
    )
    said = {
        "id": 7,
        "name": "train",
        "state": "PENDING",
        "priority": 0,
        "submit_time": 1795207380,
        "time_limit": 90,
        "num_nodes": 1,
        "ntasks": 1,
        "cpus": 2,
        "cpus_per_task": 2,
        "min_cpus_per_node": 2,
        "memory_per_node": 2048,
        "resource_sharing": "OK",
        "requeue_count": 0,
        "requires_contiguous_nodes": False,
        "is_batch_job": True,
        "is_requeueable": True,
        "state_reason": "JobHeldUser",
        "user_id": 0,
        "account": "sandbox",
        "qos": "normal",
        "partition": "gpu",
        "requested_tres": tres,
        "gres_per_node": {"gres/gpu": 2},
        "tres_per_task": SimpleNamespace(cpu=count(2), mem=None, node=None, gres={}),
        "constraints": [],
        "licenses": [],
    }
    return SimpleNamespace(**{**nothing, **said, **other})


def row_of(**other: Any) -> JobRow:
    found = fields_of(told(**other))
    assert found is not None
    return JobRow(*found)


def test_a_job_is_as_squeue_prints_it() -> None:
    assert row_of() == JobRow(
        *("7", "7", "PENDING", "0", "1795207380", "N/A", "N/A", "N/A", "1:30:00", "0:00"),
        *("1", "1", "1", "2", "2", "0", "2", "2G", "OK", "N/A", "0", "0", "1", "1", "N/A"),
        *("N/A", "JobHeldUser", "NA", "root", "sandbox", "normal", "gpu"),
        *("cpu=2,mem=2048M,node=1,gres/gpu=2", "N/A", "gres/gpu:2", "N/A", "cpu=2", "N/A", "N/A"),
        *("(null)", "(null)", "", "", "(null)", "(null)", "", "(null)", "train"),
        *("(null)", "(null)"),
    )


@pytest.mark.parametrize(
    ("other", "shown"),
    [
        ({"time_limit": None}, ("time_limit", "UNLIMITED")),
        ({"time_limit": 1500}, ("time_limit", "1-01:00:00")),
        ({"time_limit_min": 5}, ("time_min", "5:00")),
        ({"memory_per_node": None, "memory_per_cpu": 1500}, ("min_memory", "1500M")),
        ({"memory_per_node": None}, ("min_memory", "0")),
        ({"gres_per_node": {"gpu": 2}}, ("tres_per_node", "gres:gpu:2")),
        ({"array_id": 5}, ("array_tasks", "0")),  # pyslurm shows task 0 as none
        ({"array_id": 5, "array_task_id": 3}, ("array_tasks", "3")),
        ({"array_id": 7, "array_tasks_waiting": "1-9"}, ("array_tasks", "1-9")),
        (
            {"array_id": 7, "array_tasks_waiting": "1-9", "array_tasks_parallel": 2},
            ("array_tasks", "1-9%2"),
        ),
        ({"user_id": 4_000_000}, ("user", "4000000")),
        ({"deadline": 1795353941}, ("deadline", "1795353941")),
        ({"licenses": ["matlab:2", "ansys:1"]}, ("licenses", "matlab:2,ansys:1")),
    ],
)
def test_what_pyslurm_shows_in_another_way(other: dict[str, Any], shown: tuple[str, str]) -> None:
    assert getattr(row_of(**other), shown[0]) == shown[1]


@pytest.mark.parametrize(
    "other",
    [
        {"gres_per_node": {}},  # --gpus=2
        {"gres_per_node": {"gres/gpu:a100": 1}},  # and another one for each task, say
        {"cpus_per_task": None},  # --cpus-per-gpu
    ],
)
def test_a_job_of_which_pyslurm_hides_something_is_no_row(other: dict[str, Any]) -> None:
    assert fields_of(told(**other)) is None


# --- when it is asked -----------------------------------------------------------------------------


@dataclass
class Asked:
    """Answers, or fails, as it is told."""

    answer: Any = None
    questions: list[Sequence[object]] = field(default_factory=list)
    closed: int = 0

    def ask(self, request: Sequence[object]) -> Any:
        """Answer one question."""
        self.questions.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        """Begin anew."""
        self.closed += 1


@dataclass
class Fixture:
    """One Native, what it asks, and its clock."""

    asked: Asked
    version: str = "25.11.2"
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.native = Native(self.asked, lambda: self.version, lambda: self.now_s)


ROWS = {"rows": [["7"] * len(fields(JobRow))], "unsure": ["8"]}


def test_all_jobs_are_asked_of_pyslurm_and_the_hidden_ones_named() -> None:
    made = Fixture(Asked(ROWS))
    assert made.native.jobs(SITE) == ([JobRow(*["7"] * len(fields(JobRow)))], ["8"])
    assert made.asked.questions == [("jobs",)]


def test_an_update_is_made_or_refused_as_scontrol_would() -> None:
    asked = Asked({"done": True})
    native = Fixture(asked).native
    assert native.update(SITE, ROW, ("Gres=gpu:2",)) == Answer("", "", 0)
    assert asked.questions == [("update", 11, {"gres_per_node": "gpu:2"})]
    asked.answer = {"refused": "Access/permission denied"}
    refused = native.update(SITE, ROW, ("Gres=gpu:2",))
    assert refused is not None
    assert (refused.status, refused.words) == (1, "Access/permission denied")
    asked.answer = {"refused": "Unable to contact slurm controller (connect failure)"}
    with pytest.raises(Unavailable, match="Unable to contact"):
        native.update(SITE, ROW, ("Gres=gpu:2",))


@pytest.mark.parametrize(
    ("version", "site", "line"),
    [
        ("", SITE, "pyslurm is not installed"),
        ("25.5.0", SITE, "pyslurm 25.5.0 does not fit Slurm 25.11.7"),
        ("x", SITE, "pyslurm x does not fit Slurm 25.11.7"),
        (
            "25.11.2",
            replace(SITE, version=(26, 5), release="26.05.1"),
            "pyslurm 25.11.2 does not fit Slurm 26.05.1",
        ),
        (
            "25.11.2",
            replace(SITE, options={}),
            "AccountingStorageTRES has no gres/gpu, by which pyslurm counts GPUs",
        ),
    ],
)
def test_where_it_does_not_fit_one_line_says_so_and_nothing_is_asked(
    caplog: pytest.LogCaptureFixture, version: str, site: Site, line: str
) -> None:
    made = Fixture(Asked(ROWS), version)
    with caplog.at_level(logging.WARNING):
        assert [made.native.jobs(site) for _ in range(3)] == [None] * 3
    assert caplog.messages == [f"{line}: the commands are used instead"]
    assert made.asked.questions == []


@pytest.mark.parametrize(
    "failure",
    [
        Unavailable("pyslurm: no answer within 10 s"),
        {"unfit": "ImportError: no .so"},
        {"refused": "Unable to contact slurm controller (connect failure)"},
    ],
)
def test_after_a_failure_the_commands_do_it_for_a_while(
    caplog: pytest.LogCaptureFixture, failure: Any
) -> None:
    made = Fixture(Asked(failure))
    for _ in range(3):
        try:
            assert made.native.jobs(SITE) is None
        except Unavailable as error:
            assert error is failure  # this look is over; the next is made by commands
    assert made.native.update(SITE, ROW, ("Gres=gpu:2",)) is None
    assert (len(made.asked.questions), made.asked.closed) == (1, 1)
    (said,) = caplog.messages
    assert said.endswith(": the commands are used instead for 5 minutes")
    made.now_s, made.asked.answer = REST_S, ROWS
    assert made.native.jobs(SITE) is not None


def test_where_many_jobs_are_hidden_squeue_is_asked_for_all_and_updates_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Fixture(Asked({"rows": [], "unsure": [str(n) for n in range(FEW + 1)]}))
    assert [made.native.jobs(SITE) for _ in range(2)] == [None, None]
    assert len(made.asked.questions) == 1
    assert caplog.messages == [
        "pyslurm hides what 101 jobs ask: the commands are used instead for 5 minutes"
    ]
    made.asked.answer = {"done": True}
    assert made.native.update(SITE, ROW, ("Gres=gpu:2",)) is not None


def test_where_it_only_changes_jobs_none_is_read() -> None:
    asked = Asked({"done": True})
    native = Native(asked, lambda: "25.11.2", reads=False)
    without = replace(SITE, options={})
    assert native.jobs(without) is None
    assert native.update(without, ROW, ("Gres=gpu:2",)) == Answer("", "", 0)


def test_where_it_only_changes_jobs_the_first_look_says_that_it_does_not_fit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    native = Native(Asked(ROWS), lambda: "", reads=False)
    assert [native.jobs(SITE), native.jobs(SITE)] == [None, None]
    assert caplog.messages == ["pyslurm is not installed: the commands are used instead"]


def test_without_pyslurm_a_look_is_what_the_commands_see(caplog: pytest.LogCaptureFixture) -> None:
    def look(native: Native | None) -> object:
        return Slurm(Recorded("22.05"), clock=lambda: 1795207380.0, native=native).observe()

    native = Native(Asked(), lambda: "")
    assert look(native) == look(None)
    assert caplog.messages == ["pyslurm is not installed: the commands are used instead"]


@dataclass
class Squeue:
    """Commands that have one job, and remember which were asked for."""

    calls: list[Sequence[str]] = field(default_factory=list)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        self.calls.append(argv)
        return Recorded("22.05").run(argv, env=env, stdin=stdin)


def test_of_hidden_jobs_squeue_is_asked_and_of_changed_ones_it_alone() -> None:
    squeue, ids = Squeue(), [row.job_id for row in Queries(Recorded("22.05")).jobs()]
    asked = Asked({"rows": [], "unsure": ids[:2]})
    site = replace(SITE, version=(22, 5))
    queries = NativeQueries(Native(asked, lambda: "22.5.0"), squeue)
    queries.site = lambda: site  # type: ignore[method-assign]  # a fake
    assert {row.job_id for row in queries.jobs()} == set(ids[:2])
    assert squeue.calls[-1][-2:] == ("-j", ",".join(ids[:2]))
    queries.jobs([ids[0]])
    assert len(asked.questions) == 1


# --- the process ------------------------------------------------------------------------------------

FAKE = """
import os, time
class RPCError(Exception): pass
class JobSubmitDescription:
    def __init__(self, **said): self.said = said
class Job:
    def __init__(self, number): self.number = number
    def modify(self, changes):
        print("this goes nowhere")
        if changes.said != {"ntasks": 2}: raise RPCError("Invalid job id specified")
class Jobs:
    @staticmethod
    def load(): LOAD
"""
"""A pyslurm of a few lines: what it does with ``Jobs.load()`` is put in."""


@pytest.fixture
def worker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Worker]:
    """A worker process that finds the fake pyslurm."""
    load, timeout_s = getattr(request, "param", ("return {}", 60.0))
    (tmp_path / "pyslurm.py").write_text(FAKE.replace("LOAD", load))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        made = Worker({}, timeout_s)
        yield made
        made.close()


def running() -> list[int]:
    """The worker processes of this test."""
    mine = psutil.Process().children(recursive=True)
    return [one.pid for one in mine if "pliant.batch.slurm.native.worker" in one.cmdline()]


def test_the_process_answers_and_is_kept(worker: Worker) -> None:
    assert worker.ask(("jobs",)) == {"rows": [], "unsure": []}
    first = running()
    assert worker.ask(("update", 7, {"ntasks": 2})) == {"done": True}
    assert worker.ask(("update", 7, {"ntasks": 3})) == {"refused": "Invalid job id specified"}
    assert running() == first
    worker.close()
    assert running() == []


@pytest.mark.parametrize("worker", [("time.sleep(3600)", 1.0)], indirect=True)
def test_a_library_that_hangs_is_killed_at_the_time_limit(worker: Worker) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable, match="pyslurm: no answer within 1 s"):
            worker.ask(("jobs",))
        assert running() == []


@pytest.mark.parametrize("worker", [("os._exit(3)", 60.0)], indirect=True)
def test_a_library_that_ends_its_process_ends_that_alone(worker: Worker) -> None:
    for _ in range(2):
        with pytest.raises(Unavailable, match="pyslurm: its process ended with status 3"):
            worker.ask(("jobs",))


@pytest.mark.parametrize("worker", [("raise OSError('odd')", 60.0)], indirect=True)
def test_what_it_raises_is_told(worker: Worker) -> None:
    assert worker.ask(("jobs",)) == {"unfit": "OSError: odd"}


def test_a_pyslurm_that_cannot_be_loaded_is_told(worker: Worker, tmp_path: Path) -> None:
    (tmp_path / "pyslurm.py").write_text("raise ImportError('libslurmfull.so: not found')")
    assert worker.ask(("jobs",)) == {"unfit": "ImportError: libslurmfull.so: not found"}
