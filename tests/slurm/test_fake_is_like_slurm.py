"""The fake cluster of the explorations and seeds does to a job what a real Slurm does.

Each script is told to both, word by word as Pliant tells it: both take a command or both refuse it,
and then both show the job alike, through the same reader. Seconds are not compared: the fake's
clock is moved by hand.

Not tried here, for no command brings it about, or not soon: a start that is refused or killed, a
slurmctld that forgets, a priority that backfill writes back, limits, nodes that fail. Those come
about in the drill (`make drill`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from changing_helpers import Cluster
from slurm_helpers import wait_until

from pliant.batch.slurm import Commands
from pliant.batch.slurm.job_rows import count
from pliant.batch.slurm.queries import Queries
from pliant.batch.slurm.values import instant_s, whole
from pliant.handover import OURS, PINNED
from prove.fake_slurm import BY_OWNER, FakeSlurm, Jobs, Record

FAKES = 7
"""The number of the job in the fake."""
SHORT_S = 60.0
"""What is to begin sooner was told to; Slurm itself lets a requeued job wait for longer."""


@dataclass(frozen=True)
class Shown:
    """What Pliant reads of a job, as far as it does not depend on the second."""

    state: str
    gpus: int
    place: str  # held, pinned, or its own
    run: int
    begins: str  # soon, or later
    reason: str  # where its owner holds it; others follow at some later pass of the scheduler


@dataclass
class Both:
    """One job that runs on n1, in a real Slurm and in the fake."""

    real: Commands
    fake: FakeSlurm
    job: str

    def tell(self, text: str, *, refused: bool = False) -> None:
        """Tell both; ``{job}`` is the job, ``{+60}`` is 60 s from now."""
        answers = {
            "Slurm": self.real.run(_as_root(self._argv(text, self.job, time.time()))),
            "the fake": self.fake.run(self._argv(text, str(FAKES), self.fake.now_s)),
        }
        told = {who: answer.words for who, answer in answers.items() if answer.status}
        assert [*told] == (["Slurm", "the fake"] if refused else []), (text, told)

    @staticmethod
    def _argv(text: str, job: str, now_s: float) -> tuple[str, ...]:
        words = text.replace("{job}", job).split()
        for place, word in enumerate(words):
            name, at, offset = word.partition("={+")
            if at:
                instant = datetime.fromtimestamp(now_s + float(offset.rstrip("}")), UTC)
                words[place] = f"{name}={instant:%Y-%m-%dT%H:%M:%S}"
        return ("scontrol", *words)

    def come_to(self, expected: Shown | None) -> None:
        """Wait until both show the job so."""
        for _ in range(4):
            self.fake.pass_to(self.fake.now_s + 1)
            self.fake.schedule()
        assert _shown(self.fake, str(FAKES)) == expected
        try:
            wait_until(lambda: _shown(self.real, self.job) == expected, "Slurm to show it so")
        except AssertionError:
            assert _shown(self.real, self.job) == expected
            raise


def _as_root(argv: tuple[str, ...]) -> tuple[str, ...]:
    """What an owner says: root's own hold would be an administrator's."""
    match argv:
        case ("scontrol", "hold", *rest):
            return ("scontrol", "uhold", *rest)
        case ("scontrol", "cancel", *rest):
            return ("scancel", *rest)
    return argv


def _shown(commands: Commands | FakeSlurm, job: str) -> Shown | None:
    row = Queries(commands).again([job]).get(job)
    if row is None:
        return None
    priority, later_s = whole(row.priority), instant_s(row.eligible) - instant_s(row.submit)
    place = "pinned" if priority in OURS else "its own" if priority else "held"
    begins = "later" if row.waits and later_s > SHORT_S else "soon"
    gpus = int(row.tres_per_node.rpartition(":")[2])
    said = row.reason if row.reason == BY_OWNER else ""
    return Shown(row.state, gpus, place, count(row.restarts), begins, said)


RUNS = Shown("RUNNING", 4, "its own", 0, "soon", "")
AGAIN = Shown("RUNNING", 4, "its own", 1, "soon", "")
FENCE = "ReservationName=pliant_{job}"


@pytest.fixture
def both(cluster: Cluster) -> Iterator[Both]:
    cluster.empty()
    cluster.run_long("-N3", "--exclusive", "--nodelist=n2,n3,n4", "--gres=gpu:4")
    job = cluster.run_long("-N1", "--gres=gpu:4", "--cpus-per-task=8", "--requeue")
    env = cluster.sandbox.env
    real = Commands(conf=env["SLURM_CONF"], env={"PATH": env["PATH"]})
    now_s = 1_700_000_000.0
    record = Record(FAKES, state="RUNNING", start_s=now_s - 60, submit_s=now_s - 60)
    yield Both(real, FakeSlurm(Jobs({FAKES: record}, {}), now_s), job)
    cluster.run("scontrol", "delete", f"ReservationName=pliant_{job}", check=False)
    cluster.empty()


@pytest.mark.parametrize("opens", [f"delete {FENCE}", f"update {FENCE} Nodes=n2"])
def test_a_resize(both: Both, opens: str) -> None:
    both.come_to(RUNS)
    both.tell(f"update jobid={{job}} Priority={PINNED}")
    both.come_to(Shown("RUNNING", 4, "pinned", 0, "soon", ""))
    both.tell(
        f"create reservation {FENCE} StartTime={{+-60}} EndTime={{+150}} Users=root Nodes=n1"
        " Flags=IGNORE_JOBS,OVERLAP"
    )
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "pinned", 1, "later", ""))
    both.tell("update jobid={job} Gres=gpu:2 StartTime={+1}")
    both.come_to(Shown("PENDING", 2, "pinned", 1, "soon", ""))  # behind its fence
    both.tell(f"update {FENCE} Nodes=n1,n2")
    both.come_to(Shown("PENDING", 2, "pinned", 1, "soon", ""))
    both.tell(opens)
    both.come_to(Shown("RUNNING", 2, "pinned", 1, "soon", ""))
    both.tell("release {job}")
    both.come_to(Shown("RUNNING", 2, "its own", 1, "soon", ""))


def test_a_request_that_no_node_can_meet(both: Both) -> None:
    """An update frees the job, but one of its priority, and the next pass of the scheduler holds it again."""
    record = both.fake.state.jobs[FAKES]
    both.fake.state = both.fake.state.with_job(replace(record, unfit=9))
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))
    both.tell("update jobid={job} Gres=gpu:9 StartTime={+1}")
    held = Shown("PENDING", 9, "held", 1, "soon", "")
    both.come_to(held)
    both.tell("update jobid={job} AdminComment=x")
    both.come_to(held)
    both.tell(f"update jobid={{job}} Priority={PINNED} AdminComment=y", refused=True)
    both.come_to(held)
    both.tell("update jobid={job} Gres=gpu:4")
    both.come_to(AGAIN)


def test_what_is_said_of_a_job_whose_run_ends_for_a_requeue_stays(both: Both) -> None:
    both.tell("requeue {job}")
    both.tell("update jobid={job} Gres=gpu:2 TimeLimit=7 StartTime={+600}")
    both.come_to(Shown("PENDING", 2, "its own", 1, "later", ""))
    both.tell("update jobid={job} StartTime={+1}")
    both.come_to(replace(AGAIN, gpus=2))


def test_a_fence_that_has_ended_keeps_its_name_for_a_while(both: Both) -> None:
    """Neither minds when a fence ends; it holds nobody out from then on."""
    nodes = "Users=root Nodes=n1 Flags=IGNORE_JOBS,OVERLAP"
    both.tell(f"create reservation {FENCE} StartTime={{+-60}} EndTime={{+-2}} {nodes}")
    both.tell(
        f"create reservation {FENCE} StartTime={{+-60}} EndTime={{+60}} {nodes}", refused=True
    )
    both.tell(f"delete {FENCE}")
    both.tell(f"create reservation {FENCE} StartTime={{+-60}} EndTime={{+60}} {nodes}")
    both.tell(f"delete {FENCE}")


def test_what_is_not_taken_of_a_job_that_runs(both: Both) -> None:
    both.tell("update jobid={job} Gres=gpu:2", refused=True)
    both.tell("update jobid={job} StartTime={+60}", refused=True)
    both.come_to(RUNS)


def test_a_fence_around_nothing_and_one_that_is_not_there(both: Both) -> None:
    both.tell(
        f"create reservation {FENCE} StartTime={{+0}} EndTime={{+150}} Users=root Nodes=",
        refused=True,
    )
    both.tell(f"delete {FENCE}", refused=True)
    both.tell(f"update {FENCE} EndTime={{+150}}", refused=True)


def test_a_job_that_is_held_while_it_runs_waits_held(both: Both) -> None:
    both.tell("hold {job}")
    both.come_to(Shown("RUNNING", 4, "held", 0, "soon", BY_OWNER))
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "held", 1, "later", BY_OWNER))
    both.tell("requeue {job}", refused=True)
    both.tell("release {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))
    both.tell("update jobid={job} StartTime={+1}")
    both.come_to(AGAIN)


def test_a_time_to_begin_that_is_given_to_a_job_that_was_held_is_shown(both: Both) -> None:
    both.tell(
        f"create reservation {FENCE} StartTime={{+-60}} EndTime={{+150}} Users=root Nodes=n1"
        " Flags=IGNORE_JOBS,OVERLAP"
    )
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))
    both.tell("update jobid={job} StartTime={+1}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "soon", ""))
    both.tell("hold {job}")
    both.come_to(Shown("PENDING", 4, "held", 1, "soon", BY_OWNER))
    both.tell("update jobid={job} StartTime={+600}")
    both.come_to(Shown("PENDING", 4, "held", 1, "later", BY_OWNER))
    both.tell("release {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))
    both.tell("update jobid={job} StartTime={+1}")
    both.tell(f"delete {FENCE}")
    both.come_to(AGAIN)


def test_a_job_that_is_suspended(both: Both) -> None:
    both.tell("suspend {job}")
    both.come_to(Shown("SUSPENDED", 4, "held", 0, "soon", ""))
    both.tell("resume {job}")
    both.come_to(RUNS)


def test_a_job_that_its_owner_lets_nobody_requeue(both: Both) -> None:
    both.tell("update jobid={job} Requeue=0")
    both.tell("requeue {job}", refused=True)
    both.come_to(RUNS)


def test_a_job_that_is_cancelled_between_two_runs(both: Both) -> None:
    both.tell(f"update jobid={{job}} Priority={PINNED}")
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "pinned", 1, "later", ""))
    both.tell("cancel {job}")
    both.come_to(None)
    both.tell("update jobid={job} StartTime={+1}", refused=True)


def test_a_job_that_is_requeued_just_as_it_is_cancelled_comes_back(both: Both) -> None:
    both.tell("cancel {job}")
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))


def test_a_job_that_has_been_cancelled_comes_back_too(both: Both) -> None:
    both.tell("cancel {job}")
    both.come_to(None)
    both.tell("requeue {job}")
    both.come_to(Shown("PENDING", 4, "its own", 1, "later", ""))
    both.tell("requeue {job}", refused=True)


def test_a_job_that_is_cancelled_just_as_it_is_requeued_does_not_come_back(both: Both) -> None:
    both.tell("requeue {job}")
    both.tell("cancel {job}")
    both.come_to(None)
