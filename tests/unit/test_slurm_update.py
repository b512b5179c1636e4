"""What scontrol is told, for each release, and what is made of what is read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pytest
from slurm_recorded import NONCE, Changing, Recorded, recorded

from pliant.batch import Change
from pliant.batch.slurm import Slurm
from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import JobRow, parse_jobs
from pliant.batch.slurm.jobs import waiting_job
from pliant.batch.slurm.lent import giving_back
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions
from pliant.batch.slurm.request import asked
from pliant.batch.slurm.update import (
    as_started,
    by_another,
    job_words,
    restoring,
    shortfall,
    token_words,
    unchanged,
    update_words,
    wanted,
)
from pliant.errors import NotNow, Refused
from pliant.grammar import find_token, parse_shape, token_text
from pliant.model import Spec

ROWS = {row.key: row for row in parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))}
NODES = {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))}
PARTITIONS = {row.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))}


NOW_S = 1795207380.0


def cluster(version: tuple[int, int] = (22, 5)) -> Cluster:
    return Cluster(version, NODES, PARTITIONS)


def told(row: JobRow, shape: str, version: tuple[int, int] = (22, 5)) -> str:
    """Return the call for a shape as one line, without the token at its end."""
    here = cluster(version)
    job = waiting_job(row, here, NOW_S)
    assert job.spec is not None
    spec = replace(job.spec, set=parse_shape(shape))
    then = wanted(job, parse_shape(shape), spec, here)
    *words, token = update_words(row, asked(row, job.footprint), then, spec)
    assert find_token(token.removeprefix("AdminComment=")) == spec
    return " ".join(words)


SIZES = "NumCPUs=1 CPUsPerTask=1 MinCPUsNode=1"
MEMORY = "MinMemoryNode=100"


@pytest.mark.parametrize(
    ("job", "shape", "call"),
    [
        ("298", "3", f"Gres=gpu:3 {SIZES} MinMemoryNode=200"),
        (
            *("306", "2x2"),
            f"Gres=gpu:2 NumNodes=2-2 NumTasks=2 NumCPUs=4 CPUsPerTask=2 MinCPUsNode=2 {MEMORY}",
        ),
        ("308", "2", f"Gres=gpu:2 {SIZES} {MEMORY}"),  # an array: no NumNodes
        ("311", "3", f"TresPerJob= Gres=gpu:3 {SIZES} {MEMORY}"),  # --gpus=4
        (
            *("302", "2@v100"),
            f"Gres=gpu:v100:2 NumCPUs=4 CPUsPerTask=4 MinCPUsNode=4 {MEMORY}",
        ),
    ],
)
def test_one_call_changes_all_of_a_shape(job: str, shape: str, call: str) -> None:
    assert told(ROWS[job], shape) == call


@pytest.mark.parametrize(
    ("asked_by", "shape", "call"),
    [
        (  # --ntasks-per-node=4
            {"num_tasks": "4", "num_cpus": "4", "tasks_per_node": "4"},
            "2",
            f"Gres=gpu:2 NumTasks=2 NumCPUs=2 CPUsPerTask=1 MinCPUsNode=2 TasksPerNode=2 {MEMORY}",
        ),
        (
            {"cpus_per_tres": "gres:gpu:3"},
            "2",
            f"CpusPerTres= Gres=gpu:2 NumTasks=1 NumCPUs=6 CPUsPerTask=6 MinCPUsNode=6 {MEMORY}",
        ),
        (  # it follows the GPUs by itself
            {"mem_per_tres": "gres:gpu:100", "tres": "cpu=1,mem=400M,node=1"},
            "2",
            f"Gres=gpu:2 {SIZES}",
        ),
        (
            {"tres_per_node": "N/A", "tres_per_task": "gres/gpu=1", "num_tasks": "4"},
            "2",
            f"TresPerTask= Gres=gpu:2 NumTasks=2 NumCPUs=2 CPUsPerTask=1 MinCPUsNode=2 {MEMORY}",
        ),
        (  # 22.05 refuses that
            {"tres_per_node": "N/A", "tres_per_task": "gres:gpu:1", "num_tasks": "4"},
            "2",
            "TresPerTask= TresPerJob=gres:gpu:2 NumNodes=1-1 NumTasks=2 NumCPUs=2 CPUsPerTask=1"
            f" MinCPUsNode=2 {MEMORY}",
        ),
    ],
)
def test_what_is_asked_by_the_node_by_gpu_or_by_task_changes_with_the_shape(
    asked_by: Mapping[str, str], shape: str, call: str
) -> None:
    row = replace(ROWS["308"], **{"array_tasks": "N/A", "tres_per_node": "gres:gpu:4", **asked_by})
    assert told(row, shape) == call


@pytest.mark.parametrize(
    ("said", "there", "noted", "back", "later"),
    [
        # -n12: Slurm may spread the tasks over several nodes
        (
            {"num_tasks": "12", "num_cpus": "12", "max_nodes": "1", "min_cpus": "1"},
            f"Gres=gpu:2 NumCPUs=12 CPUsPerTask=1 MinCPUsNode=12 {MEMORY}",
            "pliant-min-cpus=1",
            f"Gres=gpu:4 NumCPUs=12 CPUsPerTask=1 MinCPUsNode=12 {MEMORY}",
            ("MinCPUsNode=1", "NumCPUs=12"),  # in one call 24.11 would make one CPU of 12
        ),
        # -n6 --cpus-per-task=2: nobody said two nodes; squeue guesses them, by MinCPUsNode
        (
            {
                **{"num_tasks": "6", "num_cpus": "12", "min_cpus": "2"},
                **{"num_nodes": "2", "max_nodes": "2"},
            },
            f"Gres=gpu:2 NumCPUs=12 CPUsPerTask=2 MinCPUsNode=12 {MEMORY}",
            "pliant-min-cpus=2",
            f"Gres=gpu:4 NumCPUs=12 CPUsPerTask=2 MinCPUsNode=12 {MEMORY}",
            ("MinCPUsNode=2", "NumCPUs=12"),
        ),
        # -N1-2 --mincpus=6
        (
            {"num_cpus": "6", "max_nodes": "2", "min_cpus": "6"},
            f"Gres=gpu:2 NumNodes=1-1 NumCPUs=6 CPUsPerTask=6 MinCPUsNode=6 {MEMORY}",
            "pliant-max-nodes=2",
            f"Gres=gpu:4 NumNodes=1-2 NumCPUs=6 CPUsPerTask=6 MinCPUsNode=6 {MEMORY}",
            (),
        ),
    ],
)
def test_a_job_that_has_its_own_shape_again_says_what_its_owner_wrote(
    said: Mapping[str, str], there: str, noted: str, back: str, later: tuple[str, ...]
) -> None:
    row = replace(ROWS["308"], **{"array_tasks": "N/A", "tres_per_node": "gres:gpu:4", **said})
    assert told(row, "2") == there
    molded = replace(row, **_after(row, there), admin_comment=f"{noted} {_token(row, '2')}")
    if "NumNodes" not in there:
        molded = replace(molded, num_nodes="2", max_nodes="2")
    assert told(molded, "1").count("MinCPUsNode") == 1
    assert told(molded, "4") == back
    left = noted if later else ""
    again = replace(molded, **_after(molded, back), admin_comment=f"{left} {_token(row, '4')}")
    assert giving_back(again, 0)[:-1] == later
    assert told(again, "2") == there
    assert giving_back(replace(molded, **_after(row, there)), 0) == ()


def _token(row: JobRow, shape: str) -> str:
    spec = find_token(row.admin_comment)
    assert spec is not None
    return token_text(replace(spec, set=parse_shape(shape)))


def _after(row: JobRow, call: str) -> dict[str, str]:
    """The fields of a job's row after a call."""
    words = dict(word.split("=", 1) for word in call.split())
    nodes = words.get("NumNodes", f"{row.num_nodes}-{row.max_nodes}").split("-")
    return {
        **{"tres_per_node": f"gres:{words['Gres']}", "num_cpus": words["NumCPUs"]},
        **{"cpus_per_task": words["CPUsPerTask"], "min_cpus": words["MinCPUsNode"]},
        **{"num_nodes": nodes[0], "max_nodes": nodes[1]},
    }


def test_a_half_changed_job_has_its_tasks_by_the_node_and_cpus_by_gpu_again() -> None:
    row = replace(
        ROWS["308"],
        **{"array_tasks": "N/A", "tres_per_node": "gres:gpu:4", "cpus_per_tres": "gres:gpu:3"},
        **{"num_tasks": "4", "num_cpus": "4", "tasks_per_node": "4"},
    )
    *words, _token, memory = restoring(row, asked(row))
    assert (*words, memory) == (
        *("CpusPerTres=", "Gres=gpu:4", "NumNodes=1-1", "NumTasks=4", "NumCPUs=12"),
        *("CPUsPerTask=1", "MinCPUsNode=12", "TasksPerNode=4", MEMORY),
    )


def test_later_releases_take_a_gpu_away_by_the_dummy_gres_and_give_it_back() -> None:
    assert told(ROWS["319"], "1x0@cpu", (24, 11)) == (
        f"Gres=nogpu:1 NumCPUs=8 CPUsPerTask=8 MinCPUsNode=8 {MEMORY}"
    )
    waiting_as_cpu = replace(ROWS["319"], tres_per_node="gres/nogpu:1")
    assert told(waiting_as_cpu, "2", (24, 11)) == f"Gres=gpu:2 {SIZES} {MEMORY}"


def test_in_22_05_no_waiting_job_gives_up_its_gpus() -> None:
    with pytest.raises(Refused, match="cannot give up its GPUs"):
        told(ROWS["319"], "1x0@cpu")


def test_other_tools_words_in_admin_comment_stay() -> None:
    row = ROWS["302"]
    assert row.admin_comment.startswith("site=x pliant=v1:")
    spec = Spec(_spec(row).request, pinned=True)
    assert token_words(row, spec) == (f"AdminComment=site=x {token_text(spec)}",)


def _spec(row: JobRow) -> Spec:
    spec = waiting_job(row, cluster(), 0.0).spec
    assert spec is not None
    return spec


def test_an_array_is_named_by_exactly_its_waiting_tasks() -> None:
    array = ROWS["308"]
    assert (array.array_tasks, job_words(array)) == ("3-4,6-9%2", "308_[3-4,6-9]")
    assert job_words(ROWS["308_5"]) == "308_5"
    assert job_words(replace(ROWS["308_5"], job_id="308")) == "308_5"  # by 308 all would be meant
    last = replace(array, array_tasks="9")
    assert (last.key, job_words(last)) == ("308_9", "308_9")
    assert job_words(ROWS["298"]) == "298"


def test_the_nodes_of_an_array_cannot_change() -> None:
    array = ROWS["308"]
    with pytest.raises(Refused, match="nodes of an array"):
        told(array, "2x2")


def test_shares_that_no_gpu_has_are_refused() -> None:
    job = waiting_job(ROWS["298"], cluster(), 0.0)
    with pytest.raises(Refused, match="no whole number of shards"):
        wanted(job, parse_shape("1/3"), _spec(ROWS["298"]), cluster())


def test_memory_that_nobody_asked_for_is_left_to_slurm() -> None:
    row, here = ROWS["298"], cluster()
    job = waiting_job(row, here, 0.0)
    spec = _spec(row)
    assert spec.footprint is not None
    quiet = replace(spec, footprint=replace(spec.footprint, mem_per_node_mib=0))
    then = wanted(job, parse_shape("2"), quiet, here)
    call = update_words(row, asked(row), then, quiet)
    assert not any(word.startswith("MinMemory") for word in call)


def test_no_call_ever_names_the_time_limit_or_comes_without_gres_first() -> None:
    for key, shape in (("298", "2"), ("306", "2x1"), ("308", "1"), ("311", "2")):
        call = told(ROWS[key], shape)
        assert "TimeLimit" not in call
        assert call.startswith(("Gres=", "TresPerJob= Gres="))


def test_a_half_made_change_is_told_from_one_that_someone_else_made() -> None:
    row = ROWS["306"]
    before = asked(row)
    then = replace(before, gpus=2, nodes=2)
    half = replace(before, gpus=2)
    other = replace(before, gpus=3)
    assert shortfall(half, then) == "nodes: 1 instead of 2"
    assert not by_another(half, (before, then))
    assert by_another(other, (before, then))
    assert shortfall(then, then) == ""
    assert as_started(then, then)
    assert not as_started(half, then)


def test_a_half_made_change_is_put_back_to_exactly_what_was_seen() -> None:
    row = ROWS["306"]
    assert restoring(row, asked(row)) == (
        (
            "Gres=gpu:4",
            "NumNodes=1-1",
            "NumTasks=1",
            "NumCPUs=2",
            "CPUsPerTask=2",
            "MinCPUsNode=2",
            f"AdminComment={row.admin_comment}",
            MEMORY,
        )
    )


class Halfway(Changing):
    """Takes a part of each update of job 306, its GPUs, and refuses the rest."""

    def __init__(self, gpus: int) -> None:
        super().__init__()
        self.gpus = gpus

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[:2] != ("scontrol", "update"):
            return super().run(argv, env=env, stdin=stdin)
        self.said.append(tuple(argv))
        self.job("306", tres_per_node=f"gres:gpu:{self.gpus}")
        return Answer("", "not now", 1)


@pytest.mark.parametrize(
    ("gpus", "updates", "words"),
    [
        (2, 2, "not now; it could not be put back: GPUs a node: 2 instead of 4"),
        (3, 1, "it was changed at the same time; its owner wins"),
    ],
)
def test_what_becomes_of_a_half_made_change_is_said_and_one_of_its_owners_stands(
    gpus: int, updates: int, words: str
) -> None:
    commands, to = Halfway(gpus), parse_shape("2x2")
    slurm = Slurm(commands, clock=lambda: NOW_S)
    job = next(job for job in slurm.observe().waiting if job.id == "306")
    assert job.spec is not None
    (error,) = slurm.change([Change(job, to, replace(job.spec, set=to))])
    assert (str(error), len(commands.said)) == (f"job 306 to 2x2: {words}", updates)


BY_SLURM = {
    *("priority", "start", "end", "reason", "eligible", "num_nodes", "max_nodes", "restarts"),
    *("nodes_expected", "dependency", "nodes_excluded", "array_tasks", "tres", "comment"),
    "name",
}
"""What Slurm changes on a waiting job by itself, or nobody minds."""
BY_OTHERS = {
    *("job_id", "array_id", "state", "submit", "time_limit", "time_min", "num_tasks", "num_cpus"),
    *("cpus_per_task", "tasks_per_node", "min_cpus", "min_memory", "oversubscribe", "het_id"),
    *("contiguous", "batch", "requeue", "origin", "user", "account", "qos", "partition"),
    *("tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task", "cpus_per_tres"),
    *("mem_per_tres", "features", "reservation", "nodes_required", "nodes", "admin_comment"),
    *("deadline", "licenses"),
}


@pytest.mark.parametrize("name", sorted(field.name for field in fields(JobRow)))
def test_what_slurm_changes_by_itself_is_no_change_and_all_else_is(name: str) -> None:
    row = ROWS["298"]
    assert (name in BY_SLURM) != (name in BY_OTHERS)
    assert unchanged(row, replace(row, **{name: "something else"})) == (name in BY_SLURM)


@pytest.mark.parametrize(
    ("by_gpu", "least", "same"),
    [
        ("gres:gpu:100", ("1000M", "0"), True),  # while slurmctld tries to start it
        ("gres:gpu:100", ("0", "1000M"), True),
        ("gres:gpu:100", ("1000M", "2000M"), False),
        ("N/A", ("1000M", "0"), False),
    ],
)
def test_memory_by_the_gpu_is_no_change_while_slurm_tries_to_start_the_job(
    by_gpu: str, least: tuple[str, str], same: bool
) -> None:
    first, then = (replace(ROWS["298"], mem_per_tres=by_gpu, min_memory=memory) for memory in least)
    assert unchanged(first, then) is same


class Refusing(Recorded):
    """The recorded cluster, which takes no update."""

    words = ""

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[:2] == ("scontrol", "update"):
            return Answer("", f"slurm_update error: {self.words}", 1)
        return super().run(argv, env=env, stdin=stdin)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (
            "Job update not available right now, the DB index is being set, try again in a bit",
            NotNow,
        ),
        ("Requested node configuration is not available", Refused),
    ],
)
def test_what_slurm_changes_of_no_job_now_is_told_apart(words: str, kind: type[Refused]) -> None:
    commands = Refusing("22.05")
    commands.words = words
    slurm = Slurm(commands)
    job = next(job for job in slurm.observe().waiting if job.spec and len(job.shapes) > 1)
    assert job.spec is not None
    other = next(shape for shape in job.shapes if shape != job.shape)
    (error,) = slurm.change([Change(job, other, replace(job.spec, set=other))])
    assert type(error) is kind
    assert words in str(error)
