"""pliantd beside a real Slurm and a real munge: its doors, who may do what, its signals."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from asking_helpers import ask
from daemon_helpers import LONG, OneNode, configured, slurm_says, why
from door_helpers import ask_as, credential, second_door, send
from slurm_helpers import wait_until

from pliant.daemon import answers as a
from pliant.sandbox import Sandbox
from pliant.wire import Message

pytestmark = pytest.mark.slurm

ALICE, BOB = "pliant-alice", "pliant-bob"
FLAGGED = ("--moldable=gpus=2-4", "--gres=gpu:4")


@pytest.fixture
def job(n1: OneNode) -> int:
    """A job of pliant-alice that waits: n1 is full."""
    n1.fill("gpu:4")
    made = n1.wait_in_line(*FLAGGED, script=LONG)
    n1.look()
    return made


# The second door


def test_everybody_may_look(n1: OneNode, job: int) -> None:
    answers = [ask_as(n1.sandbox, user, "why", job=str(job)) for user in (ALICE, BOB, "root")]
    told = [a.from_json(a.WhyAnswer, answer.fields["json"]) for answer in answers]
    assert [why.job.user for why in told] == [ALICE] * 3
    assert [(s.shape, s.now) for s in told[0].shapes] == [("2", False), ("3", False), ("4", False)]
    assert "the most free on one node is 0" in told[0].shapes[0].reason


def test_only_the_owner_and_administrators_change_a_job(n1: OneNode, job: int) -> None:
    refused = ask_as(n1.sandbox, BOB, "pin", job=str(job))
    assert (refused.word, refused.message) == (
        "no",
        f"job {job} is not yours: its owner or an administrator may do this",
    )
    assert ask_as(n1.sandbox, ALICE, "pin", job=str(job)).is_ok
    assert ask_as(n1.sandbox, "root", "unpin", job=str(job)).is_ok
    slurm_user = pwd.getpwuid(n1.sandbox.layout.ctld_state.stat().st_uid).pw_name
    assert ask_as(n1.sandbox, slurm_user, "pin", job=str(job)).is_ok


def test_only_administrators_pause(n1: OneNode, job: int) -> None:
    refused = ask_as(n1.sandbox, ALICE, "pause")
    assert "only an administrator" in refused.message
    assert not ask(n1.sandbox, a.StatusAnswer, "status").paused


def refused(sandbox: Sandbox, kind: str) -> int:
    """How many credentials of a kind pliantd has refused since its start."""
    return ask(sandbox, a.StatusAnswer, "status").refused_credentials.get(kind, 0)


def test_a_credential_counts_once(clean: Sandbox) -> None:
    before = refused(clean, "replayed")
    with second_door(clean) as send_line:
        made = credential(clean, ALICE, "status", **send_line(b"hello").fields)
        assert send_line(b"munge " + made).is_ok
    again = send(clean, b"hello", b"munge " + made)
    assert again == Message("no", {"message": "munge refused the credential: it was used before"})
    assert refused(clean, "replayed") == before + 1


def test_a_credential_counts_on_the_connection_alone_that_it_was_made_for(clean: Sandbox) -> None:
    elsewhere = send(clean, b"hello").fields
    made = b"munge " + credential(clean, ALICE, "status", **elsewhere)
    answer = send(clean, b"hello", made)
    assert answer.message == "this munge credential was made for another connection"
    answer = send(clean, b"munge " + credential(clean, ALICE, "status"))
    assert answer.message.startswith("this pliant is of an earlier release than pliantd")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"status", "munge <credential> is expected"),
        (b"munge MUNGE:AwQDAAD:", "munge refused the credential: "),
        (b"munge " + b"A" * 30_000, "a munge credential is expected"),
        (b"\xff\0", "munge <credential> is expected"),
    ],
)
def test_without_a_credential_nothing_is_said(clean: Sandbox, line: bytes, message: str) -> None:
    answer = send(clean, line)
    assert answer.word == "no" and answer.message.startswith(message)


def test_connections_that_say_nothing_keep_nobody_from_asking(clean: Sandbox) -> None:
    where = ("127.0.0.1", clean.record.ports.pliant)
    with ExitStack() as silent:
        for _ in range(600):
            silent.enter_context(socket.create_connection(where, 10))
        answer = ask_as(clean, ALICE, "status")
    assert answer.is_ok, answer
    assert a.from_json(a.StatusAnswer, answer.fields["json"]).troubles == ()


def test_a_request_that_is_garbage_is_said_to_be(clean: Sandbox) -> None:
    argv = ["munge", f"--socket={clean.layout.munge_socket}"]
    made = clean.run(argv, stdin="why job=1&job=2&&&", check=True).stdout.strip()
    answer = send(clean, b"munge " + made.encode())
    assert answer.word == "no" and answer.message.startswith("line: ")


def seen_by(sandbox: Sandbox, user: str) -> list[str]:
    """Return the jobs that a user sees."""
    answer = ask_as(sandbox, user, "jobs").fields["json"]
    return [row.id for row in a.from_json(a.JobsAnswer, answer).jobs]


def test_private_data_holds_here_too(n1: OneNode, job: int) -> None:
    assert seen_by(n1.sandbox, BOB) == [str(job)]
    with slurm_says(n1.sandbox, "PrivateData=jobs,nodes,partitions"):
        wait_until(lambda: not seen_by(n1.sandbox, BOB), "pliantd to know of PrivateData")
        assert seen_by(n1.sandbox, ALICE) == [str(job)]
        told = ask_as(n1.sandbox, BOB, "why", job=str(job))
        own = ask_as(n1.sandbox, ALICE, "why", job=str(job))
        status = ask_as(n1.sandbox, BOB, "status")
    assert told.message == f"'{job}': no waiting or running job of this number is known"
    assert "n1" not in own.fields["json"]
    assert a.from_json(a.StatusAnswer, status.fields["json"]).partitions == ()
    wait_until(lambda: seen_by(n1.sandbox, BOB) == [str(job)], "all to be seen again")


# What an owner says is done


def test_another_range_is_used_at_once(n1: OneNode) -> None:
    n1.fill("gpu:3")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    n1.look()
    assert n1.gpus(job) == "gres:gpu:4"
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1-4").is_ok
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:1"


@pytest.mark.parametrize("flags", [("--moldable=gpus=1-4",), ()])
def test_a_single_shape_is_carried_at_once_though_it_cannot_start(
    n1: OneNode, flags: tuple[str, ...]
) -> None:
    leaving = n1.fill("gpu:4")
    job = n1.wait_in_line(*flags, "--gres=gpu:4", script=LONG)
    n1.look()
    assert n1.gpus(job) == "gres:gpu:4"
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1").is_ok
    wait_until(lambda: n1.gpus(job) == "gres:gpu:1", "the job to carry what its owner set")
    assert n1.states(job) == ["PENDING"]
    n1.cancel(leaving)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:1"


def test_a_held_job_carries_what_its_owner_set_and_stays_held(n1: OneNode) -> None:
    job = n1.submit("--hold", "--moldable=gpus=1-4", "--gres=gpu:4", "--time=10", script=LONG)
    n1.look()
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=2").is_ok
    wait_until(lambda: n1.gpus(job) == "gres:gpu:2", "the job to carry what its owner set")
    n1.look()
    assert (n1.show(job)["Reason"], n1.states(job)) == ("JobHeldUser", ["PENDING"])
    n1.run("scontrol", "release", str(job), user=ALICE)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


def test_what_an_owner_set_last_stays_when_pliant_is_switched_off(n1: OneNode) -> None:
    n1.fill("gpu:4")
    job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4", script=LONG)
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=2-3").is_ok
    wait_until(lambda: n1.gpus(job) == "gres:gpu:3", "the job to carry what its owner set")
    with configured(n1.sandbox, default='"off"'):
        n1.look()
        assert n1.gpus(job) == "gres:gpu:3"


def test_a_bad_range_is_refused_in_the_parsers_words(n1: OneNode, job: int) -> None:
    answer = ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=4-1")
    assert answer.message == "moldable gpus: '4-1': the range runs backwards; write 1-4"


def test_a_pinned_job_is_left_alone_until_it_is_unpinned(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    assert ask_as(n1.sandbox, ALICE, "pin", job=str(job)).is_ok
    n1.cancel(leaving)
    n1.look()
    assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:4", ["PENDING"])
    assert ask_as(n1.sandbox, ALICE, "unpin", job=str(job)).is_ok
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


def test_a_job_changed_by_hand_is_taken_up_again_when_its_owner_sets_a_range(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    n1.run("scontrol", "update", f"jobid={job}", "gres=gpu:3", user=ALICE)
    n1.cancel(leaving)
    n1.look()
    assert n1.gpus(job) == "gres:gpu:3"
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1-3").is_ok
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:2"


def test_what_pliant_set_is_not_the_owners_own_where_something_else_was_changed_by_hand(
    n1: OneNode,
) -> None:
    job = n1.submit("--hold", "--moldable=gpus=1-4", "--gres=gpu:1", "--time=10", script=LONG)
    n1.look()
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=4").is_ok
    wait_until(lambda: n1.gpus(job) == "gres:gpu:4", "the job to carry what its owner set")
    n1.run("scontrol", "update", f"jobid={job}", "cpuspertask=2", "numcpus=2", user=ALICE)
    assert ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1-4").is_ok
    wait_until(lambda: n1.gpus(job) == "gres:gpu:1", "the held job to be given back its own")
    now = why(n1.sandbox, job).job
    assert (now.own, now.frozen, n1.show(job)["NumCPUs"]) == ("1", "", "2")


@pytest.mark.parametrize(
    ("flags", "by_hand"),
    [
        (("--gres=gpu:4", "--cpus-per-gpu=2"), ("gres=gpu:2",)),
        (("--gpus=4", "--mem-per-gpu=200"), ("gres=gpu:2",)),
        (("--gres=gpu:4", "-n4"), ("numtasks=2", "numcpus=2")),
        (("--gres=gpu:4", "-c2"), ("cpuspertask=4", "numcpus=4")),
        (("--gres=gpu:4", "-c4", "--mem=800"), ("minmemorycpu=300",)),
    ],
)
def test_cpus_tasks_and_memory_changed_by_hand_are_its_owners_once_a_range_is_set(
    n1: OneNode, flags: tuple[str, ...], by_hand: tuple[str, ...]
) -> None:
    leaving = n1.fill("gpu:4")
    job = n1.wait_in_line("--moldable=gpus=1-4", *flags, script=LONG)
    n1.look()
    n1.run("scontrol", "update", f"jobid={job}", *by_hand, user=ALICE)
    before = n1.show(job)
    answer = ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1")
    done = a.from_json(a.DoneAnswer, answer.fields["json"])
    assert done.message == f"job {job} now says moldable=gpus=1"
    wait_until(lambda: n1.gpus(job) == "gres:gpu:1", "the job to carry what its owner set")
    carried = ("NumTasks", "NumCPUs", "MinMemoryNode", "MinMemoryCPU")
    assert {n: before.get(n) for n in carried} == {n: n1.show(job).get(n) for n in carried}
    n1.cancel(leaving)
    n1.wait_for_state(job, "RUNNING")
    assert n1.gpus(job) == "gres:gpu:1"


def test_other_cores_are_set_once_the_waiting_cpu_form_has_them(n1: OneNode) -> None:
    options = ("--hold", "--moldable=type=gpu:cpu,cores=4", "-c4", "--time=10")
    job = n1.submit(*options, script=LONG)
    n1.look()
    assert why(n1.sandbox, job).job.carried == "1x0@cpu"
    other = {"job": str(job), "spec": "type=gpu:cpu,cores=2"}
    refused = ask_as(n1.sandbox, ALICE, "set", **other)
    assert "it waits with 4 CPUs a node instead of 2, which Pliant does not" in refused.message
    n1.look()
    assert why(n1.sandbox, job).job.frozen == ""
    cores = ("numcpus=2", "cpuspertask=2", "mincpusnode=2")
    n1.run("scontrol", "update", f"jobid={job}", *cores, user=ALICE)
    answer = ask_as(n1.sandbox, ALICE, "set", **other)
    done = a.from_json(a.DoneAnswer, answer.fields["json"])
    assert done.message == f"job {job} now says moldable={other['spec']}"
    n1.look()
    now = why(n1.sandbox, job).job
    assert (now.carried, now.frozen, n1.show(job)["NumCPUs"]) == ("1x0@cpu", "", "2")


def test_what_cannot_be_taken_up_again_is_said_at_once(n1: OneNode) -> None:
    n1.fill("gpu:4")
    job = n1.wait_in_line("--moldable=gpus=1-4", "--gres=gpu:4", "-n4", script=LONG)
    n1.look()
    n1.run("scontrol", "update", f"jobid={job}", "numcpus=6", user=ALICE)
    answer = ask_as(n1.sandbox, ALICE, "set", job=str(job), spec="gpus=1")
    done = a.from_json(a.DoneAnswer, answer.fields["json"])
    assert "; it is not applied: its owner or another tool has changed it: " in done.message
    assert done.message.endswith("its 6 CPUs a node do not divide over its 4 tasks there")
    n1.look()
    assert n1.gpus(job) == "gres:gpu:4"


def test_a_pause_holds_through_a_restart(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    assert ask_as(n1.sandbox, "root", "pause").is_ok
    try:
        n1.sandbox.restart("pliantd")
        n1.cancel(leaving)
        n1.look()
        assert (n1.gpus(job), n1.states(job)) == ("gres:gpu:4", ["PENDING"])
    finally:
        assert ask_as(n1.sandbox, "root", "resume").is_ok
    n1.wait_for_state(job, "RUNNING")


def test_a_partition_is_switched_by_reading_the_file_again(n1: OneNode) -> None:
    n1.fill("gpu:2")
    leaving = n1.fill("gpu:2")
    job = n1.wait_in_line(*FLAGGED, script=LONG)
    with configured(n1.sandbox, default='"observe"'):
        n1.cancel(leaving)
        n1.look()
        assert n1.gpus(job) == "gres:gpu:4"
        assert why(n1.sandbox, job).job.mode == "observe"
    n1.wait_for_state(job, "RUNNING")


# The first door


def test_the_filters_door_is_slurmctlds_alone(clean: Sandbox) -> None:
    path = clean.layout.pliant_socket
    slurm_uid = clean.layout.ctld_state.stat().st_uid
    wait_until(lambda: path.stat().st_uid == slurm_uid, "the door to be handed over")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    knock = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
        "s.sendall(b'ping\\n'); print(s.recv(100))"
    )
    argv = ["python3", "-c", knock, str(path)]
    answers = [clean.run(argv, user=user) for user in (ALICE, "root")]
    assert "PermissionError" in answers[0].stderr
    assert answers[1].stdout == "b'ok\\n'\n"


# The process


@pytest.fixture
def pliantd(clean: Sandbox) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command pliantd."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return clean.run([str(Path(sys.executable).with_name("pliantd")), *words])

    return run


Pliantd = Callable[..., subprocess.CompletedProcess[str]]


def test_a_second_one_does_not_start(clean: Sandbox, pliantd: Pliantd) -> None:
    second = pliantd()
    assert (second.returncode, second.stderr) == (
        2,
        f"pliantd: {clean.layout.pliant_state}: another pliantd runs with this state_dir\n",
    )
    assert ask(clean, a.StatusAnswer, "status").troubles == ()


def test_one_with_a_configuration_of_its_own_does_not_start_beside_it(
    clean: Sandbox, pliantd: Pliantd, workdir: Path
) -> None:
    """To it the programs of jobs would be silent: it would preempt them without a checkpoint."""
    file = workdir / "pliant.toml"
    conf = clean.layout.slurm_conf
    file.write_text(
        f'[daemon]\nsocket = "{workdir}/socket"\nstate_dir = "{workdir}/state"\n'
        f'[slurm]\nconf = "{conf}"\n'
    )
    second = pliantd("--config", str(file))
    words = f"another pliantd, process {clean.pid('pliantd')}, is this cluster's on this host"
    said = f"pliantd: {conf}: {words}: end it first\n"
    assert (second.returncode, second.stderr) == (2, said)


def test_a_configuration_is_checked_without_starting(
    clean: Sandbox, pliantd: Pliantd, workdir: Path
) -> None:
    file = workdir / "pliant.toml"
    file.write_text('[daemon]\ncycle_s = "often"\n')
    wrong = pliantd("--check", "--config", str(file))
    assert (wrong.returncode, wrong.stderr) == (
        2,
        f"pliantd: {file}: [daemon] cycle_s: 'often': "
        "a number of seconds from 0.2 to 3600 is expected\n",
    )
    assert pliantd("--check").stdout == f"{clean.layout.pliant_toml} is right\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_cleanly(clean: Sandbox, number: signal.Signals) -> None:
    clean.signal("pliantd", number)
    wait_until(lambda: clean.pid("pliantd") is None, "pliantd to end")
    assert not clean.layout.pliant_socket.exists()
    assert clean.layout.output("pliantd").read_text().endswith("INFO pliant.daemon: pliantd ends\n")


def test_its_state_is_its_own_users_alone(clean: Sandbox) -> None:
    files = list(clean.layout.pliant_state.glob("pliant.db*"))
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert {file.stat().st_uid for file in files} == {os.getuid()}
