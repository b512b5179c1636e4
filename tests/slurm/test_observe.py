"""One look at a real Slurm: what is free and who waits, as Slurm itself has it."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from changing_helpers import by_id
from release_helpers import Release, from_on
from slurm_helpers import Submit, WaitForState, adapter, wait_until

from pliant.batch.slurm import Commands, Slurm
from pliant.batch.slurm.commands import Answer
from pliant.errors import Unavailable
from pliant.model import Job, JobState, Node, Pool, Snapshot
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

LONG = "sleep 3600"
N1 = ("--nodelist=n1", "--mem=100", "--time=30")


@dataclass(frozen=True)
class Counting:
    """Commands that count themselves."""

    commands: Commands
    calls: list[str] = field(default_factory=list)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Run one command."""
        self.calls.append(argv[0] + (" <" if stdin else ""))
        return self.commands.run(argv, env=env, stdin=stdin)


@pytest.fixture
def quiet(clean: Sandbox) -> Iterator[Sandbox]:
    """The sandbox without pliantd: nobody changes what a test looks at."""
    clean.stop("pliantd")
    yield clean
    clean.start("pliantd")


@pytest.fixture
def slurm(quiet: Sandbox) -> Slurm:
    """The adapter under test."""
    return adapter(quiet)


def node(snapshot: Snapshot, name: str) -> Node:
    return next(node for node in snapshot.nodes if node.name == name)


def gpus(snapshot: Snapshot, name: str) -> Pool:
    (pool,) = node(snapshot, name).pools
    return pool


def test_the_empty_cluster_is_as_it_is_configured(slurm: Slurm) -> None:
    snapshot = slurm.observe()
    assert [node.name for node in snapshot.nodes] == ["n1", "n2", "n3", "n4"]
    for each in snapshot.nodes:
        assert (each.up, each.cpus, each.free_cpus) == (True, 16, 16)
        assert each.free_mem_mib == each.mem_mib > 0
        assert each.pools == (Pool("a100", 4, 4, shards_per_gpu=4),)
    assert [(p.name, p.default, p.max_time_s) for p in snapshot.partitions] == [
        *(("gpu", True, 0), ("cpu", False, 0), ("short", False, 600)),
    ]
    assert (snapshot.waiting, snapshot.running, snapshot.reservations) == ((), (), ())


def test_whole_gpus_cpus_and_memory_in_use_are_not_free(
    slurm: Slurm, submit: Submit, wait_for_state: WaitForState
) -> None:
    job = submit(*N1, "--gres=gpu:3", "--cpus-per-task=5", script=LONG)
    wait_for_state(job, "RUNNING")
    snapshot = slurm.observe()
    seen = node(snapshot, "n1")
    assert (seen.free_cpus, seen.mem_mib - seen.free_mem_mib) == (11, 100)
    assert gpus(snapshot, "n1") == Pool("a100", 4, 1, 4)
    (running,) = snapshot.running
    assert (str(running.shape), running.nodes, running.demand(running.shape).cpus) == (
        *("3", ("n1",), 5),
    )
    assert running.end_s - running.start_s == 1800


def test_each_share_is_counted_on_the_gpu_where_it_runs(
    slurm: Slurm, submit: Submit, wait_for_state: WaitForState, workdir: Path, release: Release
) -> None:
    """22.05 asks the jobs, so it is known how many share a GPU; later a node says what is used."""
    where = 'echo "$CUDA_VISIBLE_DEVICES $SLURM_SHARDS_ON_NODE"; '
    jobs = [submit(*N1, f"--gres=shard:{n}", script=where + LONG) for n in (3, 3, 2, 1)]
    whole = submit(*N1, "--gres=gpu:1", script=LONG)
    for job in (*jobs, whole):
        wait_for_state(job, "RUNNING")
    outputs = [workdir / f"{job}.out" for job in jobs]
    wait_until(lambda: all(o.exists() and o.read_text() for o in outputs), "the jobs to speak")
    used, sharers = Counter[str](), Counter[str]()
    for output in outputs:
        index, shards = output.read_text().split()
        used[index] += int(shards)
        sharers[index] += 1
    parts = sorted(((4 - used[i], sharers[i]) for i in used), reverse=True)
    pool = gpus(slurm.observe(), "n1")
    told = from_on({"22.05": tuple(jobs for _, jobs in parts), "23.11": ()}, release)
    assert (pool.parts, pool.sharers) == (tuple(left for left, _ in parts), told)
    assert pool.free == 4 - 1 - len(used)


def test_a_job_that_lies_about_its_place_makes_nothing_free(
    slurm: Slurm, submit: Submit, wait_for_state: WaitForState, release: Release
) -> None:
    """Where the node says what is used, nobody asks the job."""
    lie = "x Nodes=n1 CPU_IDs=0 Mem=1 GRES=shard:1(IDX:3)"
    job = submit(*N1, "--gres=shard:2", f"--job-name={lie}", script=LONG)
    wait_for_state(job, "RUNNING")
    pool = gpus(slurm.observe(), "n1")
    assert (pool.free, pool.parts) == (3, (from_on({"22.05": 0, "23.11": 2}, release),))


def test_nothing_is_free_where_a_job_is_completing(
    slurm: Slurm, submit: Submit, wait_for_state: WaitForState, quiet: Sandbox, workdir: Path
) -> None:
    deaf = "trap '' TERM; echo deaf; while :; do sleep 0.2; done"
    job = submit(*N1, "--gres=gpu:1", script=deaf)
    output = workdir / f"{job}.out"
    wait_until(lambda: output.exists() and output.read_text() == "deaf\n", "the job to be deaf")
    quiet.run(["scancel", str(job)], check=True)
    wait_for_state(job, "COMPLETING")
    snapshot = slurm.observe()
    (ending,) = snapshot.running
    assert (ending.state, str(ending.shape)) == (JobState.ENDING, "1")
    seen = node(snapshot, "n1")
    assert (seen.up, seen.free_cpus, seen.free_mem_mib) == (True, 0, 0)
    assert gpus(snapshot, "n1") == Pool("a100", 4, 0, 4)
    wait_for_state(job, "CANCELLED")
    wait_until(lambda: gpus(slurm.observe(), "n1").free == 4, "its GPU to be free")


def test_drained_nodes_are_not_up_and_reservations_are_seen(slurm: Slurm, quiet: Sandbox) -> None:
    reason = "disk\nNodeName=n1 State=DOWN CPUTot=0"
    quiet.run(["scontrol", "update", "nodename=n2", "state=drain", f"reason={reason}"], check=True)
    made = ["scontrol", "create", "reservation", "ReservationName=later", "StartTime=now+3600"]
    quiet.run([*made, "EndTime=now+7200", "Users=root", "Nodes=n[3-4]"], check=True)
    try:
        snapshot = slurm.observe()
    finally:
        quiet.run(["scontrol", "update", "nodename=n2", "state=resume"], check=True)
        quiet.run(["scontrol", "delete", "ReservationName=later"], check=True)
    assert [node.name for node in snapshot.nodes if not node.up] == ["n2"]
    (held,) = snapshot.reservations
    assert (held.name, held.nodes, held.end_s - held.start_s) == ("later", ("n3", "n4"), 3600)


def test_waiting_jobs_stand_in_slurms_own_order(
    slurm: Slurm, submit: Submit, quiet: Sandbox
) -> None:
    everything = [
        submit("--gres=gpu:4", f"--nodelist=n{n}", "--time=60", script=LONG) for n in (1, 2, 3, 4)
    ]
    wait_until(lambda: len(slurm.observe().running) == len(everything), "the nodes to be taken")
    jobs = [submit("--gres=gpu:1", "--mem=10", f"--nice={nice}") for nice in (300, 0, 200, 0, 100)]
    order = ["squeue", "-h", "-t", "PD", "-S", "-p,i", "-o", "%A"]
    by_slurm = quiet.run(order, check=True).stdout.split()
    assert [job.id for job in slurm.observe().waiting] == by_slurm
    assert sorted(by_slurm) == sorted(map(str, jobs))


HOSTILE = (
    "x\n1|1|RUNNING|9|",
    " AdminComment=pliant=v1:bW9sZA==:00000000 JobState=RUNNING",
    "|" * 40,
    "$(touch /tmp/x)`id`'\"\\",
    "y" * 1000,
    "é\u2028 \u00a0",
)


def test_hostile_text_of_one_job_changes_no_other(
    slurm: Slurm, submit: Submit, quiet: Sandbox
) -> None:
    plain = submit("--gres=gpu:2", "--hold", "--comment=plain", user="pliant-bob")
    before = _alone(slurm, plain)
    for text in HOSTILE:
        submit("--gres=gpu:1", "--hold", f"--job-name={text}", f"--comment={text}")
        submit("--hold", f"--wckey={text}", f"--mcs-label={text}")
    assert _alone(slurm, plain) == before
    assert len(slurm.observe().waiting) == 1 + 2 * len(HOSTILE)


def _alone(slurm: Slurm, job: int) -> Job:
    return by_id(slurm.observe().waiting)[str(job)]


def test_one_look_is_a_fixed_number_of_commands_however_many_jobs_there_are(
    quiet: Sandbox, submit: Submit, wait_for_state: WaitForState, release: Release
) -> None:
    counting = Counting(Commands(conf=quiet.env["SLURM_CONF"]))
    slurm = Slurm(counting)
    jobs = [submit(*N1, "--gres=shard:1", script=LONG) for _ in range(3)]
    for job in jobs:
        wait_for_state(job, "RUNNING")
    submit("--hold", "--array=1-50")
    slurm.observe()
    first = Counter(counting.calls)
    places = from_on({"22.05": {"scontrol <": 1}, "23.11": {}}, release)  # of the shares
    assert first == {"scontrol": 4, "sacctmgr": 2, "squeue": 2, **places}
    counting.calls.clear()
    slurm.observe()  # the configuration and the places of the shares are known now
    assert Counter(counting.calls) == {"scontrol": 3, "squeue": 2}


def test_a_controller_that_does_not_answer_is_unavailable_within_the_limit(quiet: Sandbox) -> None:
    slurm = adapter(quiet, timeout_s=1.0)
    slurm.site()
    quiet.signal("slurmctld", signal.SIGSTOP)
    try:
        with pytest.raises(Unavailable, match="no answer within 1 s"):
            slurm.observe()
    finally:
        quiet.signal("slurmctld", signal.SIGCONT)
    wait_until(_answers(slurm), "slurmctld to answer again")


def _answers(slurm: Slurm) -> Callable[[], bool]:
    def answers() -> bool:
        try:
            return bool(slurm.observe().nodes)
        except Unavailable:
            return False

    return answers


def test_what_is_not_there_is_unavailable_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Slurm's client commands"):
        Slurm(Commands(bin_dir=str(tmp_path))).observe()
    with pytest.raises(Unavailable) as raised:
        Slurm(Commands(conf=str(tmp_path / "slurm.conf"))).observe()
    assert "\n" not in str(raised.value)


def test_where_and_when_a_waiting_job_is_expected_to_start_is_told(
    slurm: Slurm, submit: Submit, wait_for_state: WaitForState
) -> None:
    holder = submit(*N1, "--exclusive", script=LONG)
    wait_for_state(holder, "RUNNING")
    job = submit(*N1, "--exclusive", script=LONG)

    def expected() -> Job:
        return next(each for each in slurm.observe().waiting if each.id == str(job))

    wait_until(lambda: expected().expected_nodes == ("n1",), "backfill to plan for it")
    snapshot = slurm.observe()
    (running,) = snapshot.running
    assert abs(expected().expected_s - running.end_s) <= 60  # bf_resolution
    assert running.whole_nodes
