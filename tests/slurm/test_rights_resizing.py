"""What another ordinary user may do to a running malleable job, and read of it: nothing.

Alice's job runs on a real Slurm; Bob tries every door, file and variable there is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from asking_helpers import answer_of, ask, wait_for_look
from daemon_helpers import LONG, slurm_says
from door_helpers import ask_as
from slurm_helpers import wait_until
from user_helpers import commands_for

from limits import HANG_S
from pliant.daemon import answers as a
from pliant.daemon.run_verbs import VERBS
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.accounts import person

pytestmark = pytest.mark.slurm

ALICE, BOB = "pliant-alice", "pliant-bob"
PROGRAM = """
import os, sys, time, pliant
def mark(name, text=""):
    with open(f"{os.environ['MINE']}/{name}", "w") as file:
        file.write(text)
def there(name):
    return os.path.exists(f"{os.environ['MINE']}/{name}")
step, rank = 0, os.environ.get("SLURM_PROCID", "0")
mark(f"began.{rank}", os.environ["PLIANT_CHECKPOINT_REQUESTED"])
mark(f"saves.{rank}", os.environ.get("PLIANT_CHECKPOINT_DIR", ""))
while not there("end"):
    time.sleep(0.05)
    step += 1
    pliant.heartbeat(step)
    if pliant.checkpoint_wanted():
        mark(f"asked.{rank}")
        if there("go"):
            pliant.checkpointed()
"""
NO_TRIALS = f"""
[trial.users.{BOB}]
max_jobs = 0
"""
SAME = ("JobState", "Restarts", "TresPerNode", "NumNodes", "Priority", "TimeLimit", "QOS")
OWNERS: Mapping[str, Mapping[str, str]] = {
    "resize": {"shape": "2"},
    "set": {"spec": "gpus=1"},
    "pin": {},
    "unpin": {},
    "pause": {},
    "resume": {},
}
"""The verbs that change something, with what each asks for."""
MEDDLE = """
for file; do
    cat "$file"; ls "$file"; touch "$file"; echo >"$file"; touch "$file/checkpoint-requested"
    touch "$file/saved"; chmod 777 "$file"; mv "$file" "$file.old"; rm -rf "$file"
done 2>/dev/null
"""


@dataclass(frozen=True)
class Attacked:
    """Alice's job, and what Bob tries."""

    sandbox: Sandbox
    programs: Path  # a folder with `pliant`, and a Python, that users may run
    board: Path  # where everybody may write, as in /tmp
    mine: Path  # Alice's own

    def submit(self, user: str, *options: str, script: str, where: str = "") -> int:
        """Submit a batch script from the board."""
        argv = ["sbatch", "--parsable", "--output=/dev/null", "--time=20", *options]
        text = f"#!/bin/bash\n{script}\n"
        change = ["env", f"--chdir={where or self.board}"]
        done = self.sandbox.run([*change, *argv], user=user, stdin=text, timeout=HANG_S)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    def bob(self, *argv: str, **env: str) -> tuple[int, str, str]:
        """Let Bob run a command."""
        says = [f"{name}={value}" for name, value in env.items()]
        done = self.sandbox.run(["env", *says, *argv], user=BOB)
        return done.returncode, done.stdout, done.stderr

    @property
    def pliant(self) -> str:
        """The command that users may run."""
        return str(self.programs / "pliant")

    def runs(self, job: int) -> bool:
        """Whether a job's program works and may be asked."""
        answer = answer_of(self.sandbox, "history", job=str(job))
        if not answer.is_ok:
            return False
        told = a.from_json(a.HistoryAnswer, answer.fields["json"])
        return bool(told.runs) and told.runs[-1].launched_s > 0

    def look(self, job: int) -> Mapping[str, str]:
        """Return what may not change of a job, and what it carries of Pliant's."""
        told = self.sandbox.run(["scontrol", "show", "job", str(job)], check=True).stdout
        pairs = (word.partition("=") for word in told.split())
        shown = {key: value for key, _, value in pairs if key in SAME}
        form = ["squeue", "-h", "-j", str(job), "-O", "admin_comment:|"]
        return shown | {"token": self.sandbox.run(form, check=True).stdout}


@dataclass(frozen=True)
class Target:
    """The job itself: its number, and how it was before anybody tried anything."""

    at: Attacked
    job: int
    before: Mapping[str, str]

    def is_untouched(self) -> bool:
        """Whether nothing at all came of what was tried; fails in words where something did."""
        wait_for_look(self.at.sandbox)
        assert self.at.look(self.job) == self.before
        told = ask(self.at.sandbox, a.HistoryAnswer, "history", job=str(self.job))
        assert (len(told.runs), told.handovers) == (1, ())
        assert list(self.at.mine.glob("asked.*")) == []
        assert not ask(self.at.sandbox, a.StatusAnswer, "status").paused
        return True


@pytest.fixture(scope="module")
def sandbox(users: tuple[str, str]) -> Iterator[Sandbox]:
    """Two nodes under FitGpp, where Bob may have no trial job."""
    options = Options(nodes=2, gpus=4, users=users, policy="fitgpp")
    made = Sandbox(f"pytest-rights-{os.getpid()}", options)
    made.up()
    path = made.layout.pliant_toml
    path.write_text(f"{path.read_text()}\n{NO_TRIALS}")
    made.signal("pliantd", signal.SIGHUP)
    yield made
    made.down()


@pytest.fixture(scope="module")
def attacked(sandbox: Sandbox) -> Iterator[Attacked]:
    folder = Path(tempfile.mkdtemp(prefix="pliant-test-", dir="/tmp"))
    folder.chmod(0o755)
    board, mine = folder / "board", folder / "mine"
    board.mkdir()
    board.chmod(0o1777)
    mine.mkdir(mode=0o700)
    alice = person(ALICE)
    os.chown(mine, alice.uid, alice.gid)
    (folder / "program.py").write_text(PROGRAM)
    yield Attacked(sandbox, commands_for(alice, folder), board, mine)
    shutil.rmtree(folder, ignore_errors=True)


def script(at: Attacked, *before: str, step: str = "", **env: str) -> str:
    """Return a batch script that runs the program under `pliant run`."""
    says = "\n".join(f"export {name}={value}" for name, value in env.items())
    program = at.board.parent / "program.py"
    run = f"{step} {at.pliant} run -- {at.programs}/python {program}"
    return "\n".join((*before, f"export MINE={at.mine}", says, run))


@pytest.fixture(scope="module")
def target(attacked: Attacked) -> Target:
    """A best-effort job of two tasks on n1, whose program works and may be asked."""
    words = ("--malleable=grace=60", "--moldable=gpus=2:4", "--class=best-effort")
    saves = attacked.board / "saves"
    text = script(attacked, step="srun -n2", PLIANT_CHECKPOINT_DIR=str(saves))
    job = attacked.submit(
        *(ALICE, *words, "--gres=gpu:4", "-n2", "--mem=200", "--nodelist=n1"), script=text
    )
    wait_until(lambda: attacked.runs(job), "the program to work")
    return Target(attacked, job, attacked.look(job))


@pytest.fixture
def at(target: Target) -> Attacked:
    return target.at


# Commands and doors


@pytest.mark.parametrize("words", ["resize JOB 2", "set JOB gpus=1", "pin JOB", "pin --undo JOB"])
def test_commands_for_another_users_job_are_refused_in_one_line(
    at: Attacked, target: Target, words: str
) -> None:
    argv = words.replace("JOB", str(target.job)).split()
    says = f"pliant: job {target.job} is not yours: its owner or an administrator may do this\n"
    # Nor does another name in the environment help, or another job's.
    claims = {"USER": ALICE, "LOGNAME": ALICE, "SLURM_JOB_ID": str(target.job), "SUDO_USER": ALICE}
    assert at.bob(at.pliant, *argv) == (1, "", says)
    assert at.bob(at.pliant, *argv, **claims) == (1, "", says)
    assert target.is_untouched()


def test_no_verb_of_the_second_door_changes_another_users_job(at: Attacked, target: Target) -> None:
    claims = {"user": ALICE, "uid": str(person(ALICE).uid), "asker": ALICE, "admin": "1"}
    verbs = {**OWNERS, **{key: {"run": "0", "wish": "0", "launched": "1"} for key in VERBS}}
    for verb, fields in verbs.items():
        for job in (f"{target.job}", f"{target.job} ", f"0{target.job}", f"{target.job}_0"):
            answer = ask_as(at.sandbox, BOB, verb, **{**claims, **fields, "job": job})
            assert (answer.word, verb, list(answer.fields)) == ("no", verb, ["message"])
    assert target.is_untouched()


# The environment, files


@pytest.mark.parametrize("asked", [True, False])
def test_a_wrapper_that_claims_to_be_another_users_job_changes_nothing(
    at: Attacked, target: Target, asked: bool
) -> None:
    request = (at.mine / "began.0").read_text()
    claims = {
        **{"SLURM_JOB_ID": str(target.job), "SLURM_JOBID": str(target.job), "USER": ALICE},
        **{"SLURM_RESTART_COUNT": "0", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"},
        **{"SLURM_SUBMIT_DIR": str(at.board), "PLIANT_CHECKPOINT_DIR": f"{at.board}/saves"},
        **({"PLIANT_CHECKPOINT_REQUESTED": request} if asked else {}),
    }
    saves = "import pliant; pliant.heartbeat(9); pliant.checkpointed()"
    code, out, _ = at.bob(at.pliant, "run", "--", f"{at.programs}/python", "-c", saves, **claims)
    assert (code, out) == (85, "")
    assert target.is_untouched()


def test_another_user_reads_and_changes_no_file_of_a_run(at: Attacked, target: Target) -> None:
    layout, board = at.sandbox.layout, at.board
    asked = [Path((at.mine / f"began.{rank}").read_text()).parent for rank in (0, 1)]
    (ranks,) = (board / "saves").glob(f".pliant-{target.job}-0-*")
    files = [layout.pliant_state, *layout.pliant_state.iterdir(), *asked, *asked[0].iterdir()]
    files += [board / "saves", ranks, *ranks.iterdir()]
    there = [file for file in files if file.name != "heartbeat"]
    assert at.bob("sh", "-c", MEDDLE, "sh", *map(str, files))[1] == ""
    assert [file for file in there if not file.exists()] == []
    assert list((board / "saves").iterdir()) == [ranks]
    assert target.is_untouched()


def test_what_another_user_laid_out_for_the_next_job_is_not_used(
    at: Attacked, target: Target
) -> None:
    """A directory of the next job's name, and one that an old variable names."""
    stale = at.board / f"pliant-{target.job}-x"
    traps = [at.board / f"pliant-{target.job + more}" for more in range(1, 6)]
    at.bob("sh", "-c", 'umask 0; mkdir "$@"; touch "$1/checkpoint-requested"', "sh", str(stale))
    at.bob("sh", "-c", 'umask 0; mkdir "$@"', "sh", *map(str, traps))
    names = {"PLIANT_CHECKPOINT_REQUESTED": f"{stale}/checkpoint-requested"}
    mine = at.mine / "next"
    mine.mkdir(mode=0o700)
    os.chown(mine, person(ALICE).uid, person(ALICE).gid)
    text = script(at, **names).replace(f"MINE={at.mine}", f"MINE={mine}")
    job = at.submit(ALICE, "--malleable", "--gres=gpu:1", script=text)
    wait_until(lambda: at.runs(job), "the next job's program to work")
    assert not (mine / "asked.0").exists()
    saves = (mine / "saves.0").read_text()
    assert saves and Path(saves) not in traps
    assert Path(saves).stat().st_uid == person(ALICE).uid
    at.sandbox.run(["scancel", str(job)], check=True)
    assert target.is_untouched()


# Jobs of the other user


def forged(job: int, token: str) -> Sequence[Sequence[str]]:
    """Return how jobs are submitted that look as if something were said of another one."""
    alice = f"UserId={ALICE}({person(ALICE).uid})"
    return (
        [f"--job-name=x JobId={job} {alice} AdminComment={token}"],
        [f"--job-name=x\nJobId={job} JobName=y {alice} Comment=pliant:gpus=1"],
        [f"--job-name={job}|{ALICE}|RUNNING|gpu:4|{token}"],
        [f"--comment=pliant:gpus=1;job={job}"],
        [f"--comment={token}"],
        [f"--moldable=gpus=1,job={job}"],
        [f"--moldable=gpus=1\nJobId={job}"],
        ["--moldable=gpus=2-4", f"--comment=JobId={job} {token}"],
    )


def test_no_text_of_another_job_is_taken_for_something_said_of_this_one(
    at: Attacked, target: Target
) -> None:
    token = target.before["token"].strip().rstrip("|")
    assert token.startswith("pliant=v1:")
    for options in forged(target.job, token):
        argv = ["sbatch", "--parsable", "-o", "/dev/null", "-t5", "--gres=gpu:4", *options]
        argv += ["--nodelist=n1", f"--wrap={LONG}"]
        at.sandbox.run(argv, user=BOB)  # some are refused, which is right too
    assert target.is_untouched()
    rows = ask(at.sandbox, a.JobsAnswer, "jobs").jobs
    assert [row.user for row in rows if row.id == str(target.job)] == [ALICE]
    assert {row.user for row in rows if row.id != str(target.job)} <= {BOB}
    at.sandbox.run(["scancel", "-u", BOB], check=True)


def test_who_may_have_no_trial_job_preempts_nobody(at: Attacked, target: Target) -> None:
    options = ("--gres=gpu:4", "--nodelist=n1", "--class=trial", "-t1")
    trials = [at.submit(BOB, *options, script=LONG, where="/") for _ in range(2)]
    at.bob(at.pliant, "set", str(trials[0]), "gpus=4;job-class=trial")
    seen = ask(at.sandbox, a.StatusAnswer, "status").cycles
    wait_until(lambda: ask(at.sandbox, a.StatusAnswer, "status").cycles > seen + 5, "cycles")
    assert target.is_untouched()
    at.sandbox.run(["scancel", "-u", BOB], check=True)


# What is private


def test_where_jobs_are_private_another_users_is_as_one_that_never_was(
    at: Attacked, target: Target
) -> None:
    never = target.job + 1000
    with slurm_says(at.sandbox, "PrivateData=jobs"):
        shown = (at.pliant, "jobs", "--json")
        wait_until(lambda: ALICE not in at.bob(*shown)[1], "PrivateData to be known")
        for words in ("why JOB", "history JOB", "resize JOB 2", "pin JOB"):
            hers, none = (
                at.bob(at.pliant, *words.replace("JOB", str(job)).split())
                for job in (target.job, never)
            )
            code, out, err = hers
            assert (code, out, len(err.splitlines())) == (1, "", 1)
            assert (code, out, err.replace(f"'{target.job}'", f"'{never}'")) == none
    assert target.is_untouched()


# While pliantd is away


IMPOSTOR = """
import json, socket, sys, time, urllib.parse
now_s = time.time()
wish = {"wish": "0.1", "why": "resize", "shape": "2", "until_s": now_s + 60, "now_s": now_s}
answer = "ok json=" + urllib.parse.quote(json.dumps(wish), safe="")
door = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    peer = door.accept()[0]
    with peer, peer.makefile("rwb") as stream:
        for says in ("ok challenge=c", answer):
            line = stream.readline()
            stream.write(says.encode() + b"\\n")
            stream.flush()
    print(line.decode(), end="", flush=True)
"""
"""Listens at pliantd's port, and asks every run for a checkpoint."""


def test_who_listens_at_pliantds_port_while_it_is_away_asks_no_run_for_a_checkpoint(
    at: Attacked, target: Target
) -> None:
    port = str(at.sandbox.record.ports.pliant)
    at.sandbox.stop("pliantd")
    try:
        # The wrapper asks again after 1 s, 2 s, 4 s.
        asked = at.bob("timeout", "10", "/usr/bin/python3", "-c", IMPOSTOR, port)[1]
    finally:
        at.sandbox.start("pliantd")
    assert asked.startswith("munge MUNGE:")
    credential = asked.split()[1]
    read = ("unmunge", f"--socket={at.sandbox.layout.munge_socket}")
    done = at.sandbox.run(read, user=BOB, stdin=credential)
    assert (done.returncode != 0, "run-" in done.stdout) == (True, False)
    assert target.is_untouched()


# While its owner resizes it


def test_nobody_else_speaks_for_a_run_that_was_asked_for_its_checkpoint(
    at: Attacked, target: Target
) -> None:
    """The last one: it is resized in the end, as its owner asked."""
    resize = (at.pliant, "resize", str(target.job), "2")
    listens = "its program to be one that may be asked"
    wait_until(lambda: at.sandbox.run(resize, user=ALICE).returncode == 0, listens)
    asked = at.mine / "asked.0"
    wait_until(asked.exists, "the program to be asked")
    (ranks,) = (at.board / "saves").glob(f".pliant-{target.job}-0-*")
    wish = json.loads((ranks / "told").read_text())["wish"]
    for verb in VERBS:
        claims = {"run": "0", "wish": wish, "took": "1", "code": "0", "user": ALICE}
        answer = ask_as(at.sandbox, BOB, verb, job=str(target.job), **claims)
        assert answer.message == f"'{target.job}': no running job of yours has this number"
    wait_for_look(at.sandbox)
    assert at.look(target.job)["Restarts"] == "0"
    (change,) = ask(at.sandbox, a.HistoryAnswer, "history", job=str(target.job)).handovers
    assert (change.saved_s, change.outcome) == (0.0, "")
    (at.mine / "go").touch()

    def resized() -> bool:
        told = ask(at.sandbox, a.HistoryAnswer, "history", job=str(target.job)).handovers
        return [row.outcome for row in told] == ["done"]

    wait_until(resized, "the job to be what its owner asked for")
    (at.mine / "end").touch()
