"""Every change of a waiting job that Pliant relies on, on a real Slurm, and what then ran.

All jobs wait on a full cluster, are changed in one go, read back, and then run; nothing else
changes them: pliantd is stopped meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from changing_helpers import Cluster, Ran, by_id
from release_helpers import Release, from_on, requests
from slurm_helpers import wait_until

from pliant.batch import Change
from pliant.batch.slurm import Slurm
from pliant.errors import Refused
from pliant.grammar import find_token
from pliant.grammar import parse_shape as shape
from pliant.handover import Do, HandOver, Step
from pliant.model import Footprint, Job, Kind, Shape, Spec

pytestmark = pytest.mark.slurm


def change_one(slurm: Slurm, change: Change) -> None:
    """Make one change; raises what the batch system says against it."""
    (error,) = slurm.change([change])
    if error is not None:
        raise error


LONG = "#!/bin/bash\nsleep 3600\n"


@dataclass(frozen=True)
class Case:
    """A job as submitted, what it may be, what it is made, and what it must run as."""

    options: tuple[str, ...]
    request: str
    becomes: tuple[str, ...]  # one shape after another
    ran: Ran | None  # None: as one that was written so
    own: str = ""
    footprint: Footprint | None = None


ONE = ("--nodes=1", "--ntasks=1")
BOUND = ("--nodes=1", "--gres-flags=enforce-binding")
PER_GPU = Footprint(tasks_per_gpu=1, cpus_per_task=2, mem_per_node_mib=100)
CASES = {
    "larger": Case((*ONE, "--gres=gpu:1"), "gpus=1-4", ("3",), Ran(3, accounted=3)),
    "smaller": Case((*ONE, "--gres=gpu:4"), "gpus=1-4", ("1",), Ran(1, accounted=1)),
    "larger and back": Case((*ONE, "--gres=gpu:2"), "gpus=1-4", ("4", "2"), Ran(2, accounted=2)),
    "asked per node": Case((*ONE, "--gpus-per-node=2"), "gpus=1-4", ("3",), Ran(3, accounted=3)),
    "asked in total": Case((*ONE, "--gpus=2"), "gpus=1-4", ("1",), Ran(1, accounted=1)),
    "of a type": Case(
        (*ONE, "--gres=gpu:a100:2"),
        *("gpus=1-4,gpu-type=a100", ("1@a100",), Ran(1, accounted=1)),
    ),
    "bound to the cores of its GPUs": Case(
        ("--gres=gpu:4", *BOUND),
        *("gpus=1-4", ("2",), None),
    ),
    "tasks follow the GPUs": Case(
        ("--nodes=1", "--ntasks=4", "--cpus-per-task=2", "--gres=gpu:4"),
        *("gpus=1-4", ("2",), Ran(2, 1, "4", "2", accounted=2)),
        own="4",
        footprint=PER_GPU,
    ),
    "more nodes": Case(
        ("--nodes=1", "--ntasks=1", "--cpus-per-task=6", "--gres=gpu:4"),
        *("gpus=4-6,nodes=1:2", ("2x3",), Ran(3, 2, "6(x2)", "1(x2)", accounted=6)),
    ),
    "more nodes and back": Case(
        ("--nodes=1", "--ntasks=1", "--cpus-per-task=6", "--gres=gpu:4"),
        *("gpus=4-6,nodes=1:2", ("2x3", "4"), Ran(4, 1, "6", "1", accounted=4)),
    ),
    "fewer nodes": Case(
        ("--nodes=2", "--ntasks=2", "--gpus-per-node=2"),
        *("gpus=4,nodes=1:2", ("4",), Ran(4, 1, "1", "1", accounted=4)),
    ),
    "several tasks on each of two nodes": Case(
        ("--nodes=1", "--ntasks=3", "--gres=gpu:4"),
        *("gpus=4-6,nodes=1:2", ("2x3",), Ran(3, 2, "3(x2)", "3(x2)", accounted=6)),
    ),
    "tasks by the node": Case(
        ("--nodes=1", "--ntasks-per-node=3", "--gres=gpu:4"),
        *("gpus=4-6,nodes=1:2", ("2x2",), Ran(2, 2, "3(x2)", "3(x2)", accounted=4)),
    ),
    "tasks in proportion over two nodes and back": Case(
        ("--nodes=1", "--ntasks=4", "--cpus-per-task=2", "--gres=gpu:4"),
        *("gpus=1-6,nodes=1:2", ("2x3", "1"), Ran(1, 1, "2", "1", accounted=1)),
        own="4",
        footprint=PER_GPU,
    ),
    "a larger share": Case(
        (*ONE, "--gres=shard:1"), "gpus=1/4-1/2", ("1/2",), Ran(1, shards=2, accounted=0)
    ),
    "a GPU instead of CPUs": Case(
        (*ONE, "--cpus-per-task=8"),
        *("gpus=1-2,type=gpu:cpu,cores=8", ("2",), Ran(2, cpus="1", accounted=2)),
        own="1x0@cpu",
        footprint=Footprint(mem_per_node_mib=100),
    ),
    "a GPU instead of the dummy": Case(
        (*ONE, "--gres=nogpu:1", "--cpus-per-task=4"),
        *("gpus=1-2,type=gpu:cpu,cores=4", ("1",), Ran(1, cpus="1", accounted=1)),
        own="1x0@cpu",
        footprint=Footprint(mem_per_node_mib=100),
    ),
    "both kinds": Case(
        (*ONE, "--gres=gpu:1"),
        "gpus=1-2,type=both,cores=all",
        ("2@both",),
        Ran(2, cpus="16", accounted=2),
    ),
}


@dataclass(frozen=True)
class Outcome:
    """What came of one case: the errors of its changes, the job read back, what it ran as."""

    errors: tuple[str, ...]
    carried: Job
    ran: Ran


@pytest.fixture(scope="module")
def outcomes(cluster: Cluster) -> dict[str, Outcome]:
    """Submit all cases, change all, and let all run."""
    cluster.empty()
    cluster.fill()
    slurm = cluster.slurm()
    ids = {name: cluster.submit(*case.options) for name, case in CASES.items()}
    for name, case in CASES.items():
        cluster.flag(ids[name], case.request, case.own, case.footprint)
    errors: dict[str, tuple[str, ...]] = dict.fromkeys(CASES, ())
    for round_ in range(2):
        seen = by_id(slurm.observe().waiting)
        named = [name for name, case in CASES.items() if len(case.becomes) > round_]
        done = slurm.change(
            [_change(seen[ids[name]], CASES[name].becomes[round_]) for name in named]
        )
        for name, error in zip(named, done, strict=True):
            errors[name] += (str(error) if error else "",)
    carried = by_id(slurm.observe().waiting)
    cluster.free()
    return {
        name: Outcome(errors[name], carried[ids[name]], cluster.ran(ids[name])) for name in CASES
    }


def _change(job: Job, to: str | Shape) -> Change:
    target = shape(to) if isinstance(to, str) else to
    assert job.spec is not None
    assert target in job.shapes, f"{job.id}: {target} is not among {job.shapes} ({job.frozen})"
    return Change(job, target, replace(job.spec, set=target))


@pytest.mark.parametrize("name", CASES)
def test_a_waiting_job_becomes_what_it_is_told_and_runs_as_that(
    outcomes: dict[str, Outcome], name: str
) -> None:
    case, outcome = CASES[name], outcomes[name]
    assert outcome.errors == ("",) * len(case.becomes)
    assert (outcome.carried.shape, outcome.carried.frozen) == (shape(case.becomes[-1]), "")
    assert case.ran in (outcome.ran, None)


def test_a_job_bound_to_the_cores_of_its_gpus_has_the_cpus_of_one_written_so(
    cluster: Cluster, outcomes: dict[str, Outcome]
) -> None:
    """On 22.05 one, from 24.11 on all that are free where the cores are bound to no GPU."""
    twin = cluster.ran(cluster.submit("--gres=gpu:2", *BOUND))
    ran = outcomes["bound to the cores of its GPUs"].ran
    assert replace(ran, cpus="", tasks="") == replace(twin, cpus="", tasks="")
    assert (ran.cpus == "1", ran.tasks == ran.cpus) == (twin.cpus == "1", twin.tasks == twin.cpus)


AS_WRITTEN: Mapping[str, set[str]] = {
    "-n12": set(),
    "-n6 --cpus-per-task=2": set(),
    "-n4 --cpus-per-task=3": set(),
    "-N1-2 -n12": set(),
    "-n12 --ntasks-per-node=6": set(),
    "--mincpus=6": {"NumCPUs", "NumNodes", "TRES", "ReqTRES", "CPUs/Task"},  # 1 CPU, then 6
}
"""Options, and what may be shown otherwise afterwards."""
OF_THE_MOMENT = frozenset(
    ("AdminComment", "LastSchedEval", "SchedNodeList", "StartTime", "EndTime", "Reason")
)


def test_a_job_that_has_its_own_shape_again_says_what_its_owner_wrote(cluster: Cluster) -> None:
    """And starts where that does: tasks are spread over nodes where no one has CPUs for all."""
    cluster.empty()
    slurm = cluster.slurm()
    cpus = [cluster.run_long(f"--nodelist={n}", "-c8", "--gres=gpu:1") for n in ("n1", "n2")]
    jobs = [cluster.submit("--hold", "--gres=gpu:1", *said.split()) for said in AS_WRITTEN]
    for job in jobs:
        cluster.flag(job, "gpus=1:2:4")
    written = [cluster.fields(job) for job in jobs]
    own = by_id(slurm.observe().waiting)
    for gpus in (2, 4, 1):
        seen = by_id(slurm.observe().waiting)
        to = {job: replace(own[job].shape, gpus=gpus) for job in jobs}
        changes = [Change(seen[job], to[job], seen[job].noted(to[job])) for job in jobs]
        assert slurm.change(changes) == [None] * len(jobs)
    for owed in (job for job in slurm.observe().waiting if job.owed):  # as pliantd does
        over = HandOver(owed.id, 0, owed.shape, 0.0, 0.0, before=owed.shape)
        slurm.step(Step(Do.GIVE_BACK), over, owed)
    told = [cluster.fields(job) for job in jobs]
    differ = [
        {k for k in {**a, **b} if a.get(k) != b.get(k)} for a, b in zip(written, told, strict=True)
    ]
    may = [keys | OF_THE_MOMENT for keys in AS_WRITTEN.values()]
    assert [keys - other for keys, other in zip(differ, may, strict=True)] == [set()] * len(jobs)
    cluster.run("scontrol", "release", jobs[0])
    wait_until(lambda: cluster.states([jobs[0]]) & {"RUNNING", "COMPLETED"} != set(), "its start")
    cluster.run("scancel", *jobs, *cpus)


def test_the_waiting_tasks_of_an_array_change_as_one_record_and_the_running_ones_not(
    full: Cluster,
) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:2", "--array=1,3,5-9", script=LONG)
    full.flag(job, "gpus=1-4,nodes=1:2")
    full.free("n1")
    running = ("squeue", "-h", "-r", "-t", "R", "-j", job, "-o%K")
    wait_until(lambda: set(full.run(*running).split()) == {"1", "3"}, "two tasks to run")
    seen = by_id(slurm.observe().waiting)[job]
    assert (seen.tasks_waiting, [str(s) for s in seen.shapes]) == (5, ["1", "2", "3", "4"])
    slurm.change([_change(seen, "1")])
    rows = requests(full.run("squeue", "-h", "-a", "-j", job, "-o%i %T %b"))
    assert sorted(rows.splitlines()) == sorted(
        [
            f"{job}_[5-9] PENDING gres:gpu:1",
            f"{job}_1 RUNNING gres:gpu:2",
            f"{job}_3 RUNNING gres:gpu:2",
        ]
    )
    left = by_id(slurm.observe().waiting)[job]
    assert (str(left.shape), left.frozen, left.tasks_waiting) == ("1", "", 5)


def test_the_last_waiting_task_of_an_array_changes_alone(full: Cluster) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:4", "--array=1-2", script=LONG)
    full.flag(job, "gpus=1-4,nodes=1:2")
    full.free("n1")
    wait_until(lambda: f"{job}_2" in by_id(slurm.observe().waiting), "one task to be left")
    last = by_id(slurm.observe().waiting)[f"{job}_2"]
    assert "2x1" in [str(s) for s in last.shapes]
    slurm.change([_change(last, "2x1")])
    assert str(by_id(slurm.observe().waiting)[f"{job}_2"].shape) == "2x1"


def test_a_change_that_arrives_at_a_running_job_is_refused_and_changes_nothing(
    full: Cluster,
) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:2", script=LONG)
    full.flag(job, "gpus=1-4,nodes=1:2")
    seen = by_id(slurm.observe().waiting)[job]
    full.free("n1")
    wait_until(lambda: full.states([job]) == {"RUNNING"}, "the job to start")
    before = _lasting(full.fields(job))
    with pytest.raises(Refused, match="does not wait any more"):
        change_one(slurm, Change(seen, Shape(2, 1), _change(seen, "2x1").spec))
    assert _lasting(full.fields(job)) == before


def test_a_change_sent_in_the_moment_of_the_start_is_refused_by_slurm_as_a_whole(
    full: Cluster, tmp_path: Path
) -> None:
    job = full.submit("--nodes=1", "--gres=gpu:2", "--comment=late", script=LONG)
    full.flag(job, "gpus=1-4,nodes=1:2")
    # this scontrol lets the job start before it passes our update on
    slurm = full.slurm(
        _wrapped(
            tmp_path,
            f'if [ "$1" = update ]; then scancel {full.blockers[0]};'
            f' until [ "$(squeue -h -j {job} -o %T)" = RUNNING ]; do sleep 0.1; done; fi',
        )
    )
    seen = by_id(slurm.observe().waiting)[job]
    with pytest.raises(Refused, match="started meanwhile as it was"):
        change_one(slurm, Change(seen, Shape(2, 1), _change(seen, "2x1").spec))
    fields = full.fields(job)
    assert (fields["NumNodes"], fields["TimeLimit"]) == ("1", "00:30:00")
    assert fields["TresPerNode"] == "gres:gpu:2"
    assert find_token(fields["AdminComment"]) == replace(_spec(seen), own=None, footprint=None)


def test_what_its_owner_changed_since_the_look_stays(full: Cluster) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:2")
    full.flag(job, "gpus=1-4")
    seen = by_id(slurm.observe().waiting)[job]
    full.run("scontrol", "update", f"jobid={job}", "gres=gpu:3")
    with pytest.raises(Refused, match="its owner wins"):
        change_one(slurm, Change(seen, shape("1"), _change(seen, "1").spec))
    assert full.fields(job)["TresPerNode"] == "gres:gpu:3"


def test_what_its_owner_changes_at_the_same_time_stays(full: Cluster, tmp_path: Path) -> None:
    job = full.submit("--nodes=1", "--gres=gpu:2")
    full.flag(job, "gpus=1-4")
    # this scontrol lets the owner change the job right after our update
    slurm = full.slurm(
        _wrapped(tmp_path, "", f'[ "$1" != update ] || REAL update jobid={job} gres=gpu:3')
    )
    seen = by_id(slurm.observe().waiting)[job]
    with pytest.raises(Refused, match="its owner wins"):
        change_one(slurm, Change(seen, shape("1"), _change(seen, "1").spec))
    assert full.fields(job)["TresPerNode"] == "gres:gpu:3"
    after = by_id(slurm.observe().waiting)[job]
    assert (str(after.shape), after.frozen) == (
        "3",
        "its owner or another tool has changed it: it carries 3 instead of 1",
    )


def test_a_half_applied_change_is_put_back(full: Cluster, tmp_path: Path) -> None:
    job = full.submit("--nodes=1", "--cpus-per-task=4", "--gres=gpu:4")
    full.flag(job, "gpus=1-4,nodes=1:2")
    before = _lasting(full.fields(job))
    # this scontrol applies only the GRES of the first update, and complains
    once = tmp_path / "once"
    slurm = full.slurm(
        _wrapped(
            tmp_path,
            f'if [ "$1" = update ] && [ ! -e {once} ]; then touch {once};'
            f' REAL update "$2" Gres=gpu:1; echo "Requested node configuration is not available" >&2;'
            " exit 1; fi",
        )
    )
    seen = by_id(slurm.observe().waiting)[job]
    with pytest.raises(Refused, match="Requested node configuration is not available"):
        change_one(slurm, Change(seen, shape("2x1"), _change(seen, "2x1").spec))
    assert once.exists()
    assert _lasting(full.fields(job)) == before


def test_a_job_that_slurm_holds_for_a_shape_of_ours_gets_its_own_back(full: Cluster) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:2")
    full.flag(job, "gpus=1-9", "2", Footprint(mem_per_node_mib=100))
    seen = by_id(slurm.observe().waiting)[job]
    assert [str(s) for s in seen.shapes] == ["1", "2", "3", "4"]  # no node has more
    change_one(
        slurm, Change(seen, shape("9"), replace(_spec(seen), set=shape("9")))
    )  # a node was replaced, say

    def held() -> Job:
        return by_id(slurm.observe().waiting)[job]

    wait_until(lambda: held().reason == "BadConstraints", "Slurm to hold the job")
    assert (held().priority, held().eligible) == (0, False)
    slurm.rescue(held())
    assert (str(held().shape), held().eligible, held().frozen) == ("2", True, "")
    full.free("n1")
    assert full.ran(job) == Ran(2, accounted=2)


def test_a_spec_is_noted_beside_other_words_and_changes_nothing_else(full: Cluster) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:2")
    full.flag(job, "gpus=1-4")
    words = full.fields(job)["AdminComment"]
    full.run("scontrol", "update", f"jobid={job}", f"AdminComment=site=x {words}")
    token = ("AdminComment", "pliant")
    before = _lasting(full.fields(job), *token)
    seen = by_id(slurm.observe().waiting)[job]
    spec = replace(_spec(seen), pinned=True)
    assert slurm.annotate(seen, lambda _: spec).frozen == "its owner pinned it"
    assert _lasting(full.fields(job), *token) == before
    told = full.run("squeue", "-h", "-j", job, "-O", "admin_comment:|")
    assert told.startswith("site=x pliant=v1:")
    assert find_token(told.rstrip("|")) == spec
    assert by_id(slurm.observe().waiting)[job].frozen == "its owner pinned it"


def test_gpus_are_not_made_a_share_and_where_slurm_refuses_it_nothing_else_is_tried(
    full: Cluster, release: Release
) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--gres=gpu:1")
    full.flag(job, "gpus=1/4-2")
    seen = by_id(slurm.observe().waiting)[job]
    assert [str(s) for s in seen.shapes] == ["1", "2"]
    before = _lasting(full.fields(job))
    change = Change(seen, shape("1/4"), replace(_spec(seen), set=shape("1/4")))
    if from_on({"22.05": False, "24.11": True}, release):
        change_one(slurm, change)
        assert str(by_id(slurm.observe().waiting)[job].shape) == "1/4"
        return
    with pytest.raises(Refused, match="Invalid generic resource"):
        change_one(slurm, change)
    assert _lasting(full.fields(job)) == before


def test_gpus_become_cpus_from_24_11_on_and_one_type_never_another(
    full: Cluster, release: Release
) -> None:
    cpu = from_on({"22.05": [], "24.11": ["1x0@cpu"]}, release)
    slurm = full.slurm()
    plain = full.submit("--nodes=1", "--gres=gpu:1")
    full.flag(plain, "gpus=1-2,type=gpu:cpu,cores=8")
    typed = full.submit("--nodes=1", "--gres=gpu:a100:1")
    full.flag(typed, "gpus=1-2,gpu-type=a100:h100")
    seen = by_id(slurm.observe().waiting)
    assert [str(s) for s in seen[plain].shapes] == [*cpu, "1", "2"]
    assert [str(s) for s in seen[typed].shapes] == ["1@a100", "2@a100"]


def test_tasks_by_the_node_follow_the_gpus(full: Cluster) -> None:
    slurm = full.slurm()
    job = full.submit("--nodes=1", "--ntasks-per-node=4", "--gres=gpu:4")
    footprint = Footprint(tasks_per_gpu=1, mem_per_node_mib=100)
    full.flag(job, "gpus=1-4", "4", footprint)
    seen = by_id(slurm.observe().waiting)[job]
    assert [str(s) for s in seen.shapes] == ["1", "2", "3", "4"]


def test_the_kind_both_is_kept_apart_from_gpu(outcomes: dict[str, Outcome]) -> None:
    assert outcomes["both kinds"].carried.shape.kind is Kind.BOTH


def _spec(job: Job) -> Spec:
    assert job.spec is not None
    return job.spec


CHANGES_BY_ITSELF = (
    *("RunTime", "LastSchedEval", "Reason", "StartTime", "EndTime", "Scheduler", "Priority"),
    "SchedNodeList",
    *("NodeList", "SuspendTime", "Power", "AccrueTime"),
)


def _lasting(fields: Mapping[str, str], *left_out: str) -> dict[str, str]:
    """Return the fields that nobody but a writer changes."""
    return {
        key: value for key, value in fields.items() if key not in (*CHANGES_BY_ITSELF, *left_out)
    }


def _wrapped(directory: Path, before: str, after: str = "") -> str:
    """Make a bin directory whose scontrol does something before and after the real one."""
    real = "/usr/bin/scontrol"
    script = directory / "scontrol"
    text = f'{before}\n{real} "$@"\nstatus=$?\n{after}\nexit $status\n'
    script.write_text("#!/bin/bash\n" + text.replace("REAL", real))
    script.chmod(0o755)
    (directory / "squeue").symlink_to("/usr/bin/squeue")
    return str(directory)
