"""Sandboxes of their own: several at once, after crashes, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from release_helpers import Release, from_on
from slurm_helpers import wait_until

from limits import HANG_S
from pliant.errors import BadInput, Unavailable
from pliant.sandbox import Options, Sandbox
from pliant.sandbox.layout import Layout, base_directory
from pliant.sandbox.processes import find
from pliant.sandbox.record import claim

pytestmark = pytest.mark.slurm

SMALL = Options(nodes=2, gpus=2, mode="none")


@pytest.fixture
def name() -> Iterator[str]:
    chosen = f"own-{os.getpid()}"
    yield chosen
    Sandbox(chosen).down()


@pytest.fixture
def small(name: str) -> Sandbox:
    made = Sandbox(name, SMALL)
    made.up()
    return made


def pliant(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("pliant")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


def traces(name: str) -> list[str]:
    """Everything on this machine that speaks of a sandbox: processes, files, sockets."""
    top = str(base_directory() / name)
    found = [str(path) for path in base_directory().glob(f"{name}*")]
    found += [line for line in Path("/proc/net/unix").read_text().splitlines() if top in line]
    for process in psutil.process_iter():
        try:
            said = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(top in word for word in said):
            found.append(f"{process.pid} {said[:1]}")
    return found


def test_a_sandbox_comes_up_and_leaves_nothing(name: str, release: Release) -> None:
    up = pliant("sandbox", "up", "--name", name, "--nodes", "3", "--gpus", "2", "--mode", "none")
    assert (up.returncode, up.stderr) == (0, "")
    nodes = pliant("sandbox", "exec", "--name", name, "--", "sinfo", "-hNpgpu", "-o%N %t %c %G")
    dummy = from_on({"22.05": "nogpu:1", "24.11": "nogpu:no_consume:1"}, release)
    gres = f"gpu:a100:2,shard:a100:8,{dummy}"
    assert nodes.stdout.splitlines() == [f"n{i} idle 16 {gres}" for i in (1, 2, 3)]
    assert pliant("sandbox", "down", "--name", name).stdout == f"sandbox {name} is down\n"
    assert traces(name) == []
    assert pliant("sandbox", "down", "--name", name).stdout == f"no sandbox {name}\n"


def test_several_run_at_once_and_each_is_its_own(name: str, small: Sandbox) -> None:
    other = Sandbox(f"{name}-b", Options(nodes=1, gpus=1, gpu_types=("h100",), mode="none"))
    other.up()
    try:
        for sandbox, jobs in ((small, 3), (other, 1)):
            for _ in range(jobs):
                sandbox.run(["sbatch", "-o/dev/null", "--wrap=sleep 60"], check=True)
        counts = [len(s.run(["squeue", "-h"]).stdout.splitlines()) for s in (small, other)]
        assert counts == [3, 1]
        small.down()
        assert other.run(["sinfo", "-hpgpu", "-o%D %G"]).stdout.startswith("1 gpu:h100:1,")
    finally:
        other.down()
    assert traces(name) == []


def test_types_of_gpu_take_turns_over_the_nodes(name: str) -> None:
    mixed = Sandbox(name, Options(nodes=3, gpus=1, gpu_types=("a100", "h100"), mode="none"))
    mixed.up()
    types = mixed.run(["sinfo", "-hNpgpu", "-o%N %f"]).stdout.splitlines()
    assert types == ["n1 a100", "n2 h100", "n3 a100"]
    given = mixed.run(["srun", "--gres=gpu:h100:1", "-l", "printenv", "SLURMD_NODENAME"])
    assert given.stdout == "0: n2\n"


def test_a_sandbox_is_there_for_all_users_whatever_the_umask(
    name: str, users: tuple[str, str]
) -> None:
    made = Sandbox(name, Options(nodes=1, gpus=1))
    umask = os.umask(0o077)
    try:
        made.up()
    finally:
        os.umask(umask)
    words = ["srun", "--gres=gpu:1", "--moldable=gpus=1", "id", "-un"]
    assert made.run(words, user=users[0], timeout=HANG_S).stdout == f"{users[0]}\n"


def test_a_running_sandbox_is_not_brought_up_again(small: Sandbox) -> None:
    again = pliant("sandbox", "up", "--name", small.name, "--mode", "none")
    assert again.returncode == 2
    assert again.stderr.startswith(f"pliant: sandbox {small.name} is running (")
    assert small.status()["state"] == "up"


def test_a_sandboxs_database_leaves_the_temporary_tables_of_others(name: str) -> None:
    foreign = Path(tempfile.gettempdir(), f"#sql-temptable-{name}.MAD")
    foreign.touch()
    shutil.chown(foreign, "mysql")
    try:
        Sandbox(name, Options(nodes=1, gpus=1, mode="none", accounting=True)).up()
        assert foreign.exists()
    finally:
        foreign.unlink(missing_ok=True)


@pytest.mark.parametrize("code", [0, 1, 2, 77, 255])
def test_exec_passes_on_the_exit_code(small: Sandbox, code: int) -> None:
    done = pliant("sandbox", "exec", "--name", small.name, "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_exec_passes_options_and_strange_words_as_they_are(small: Sandbox) -> None:
    words = ["--name", "x", "--help", "a b", "$(id)", "'", "", "--", "new\nline", "ü"]
    done = pliant("sandbox", "exec", "--name", small.name, "--", "printf", "%s|", *words)
    assert done.stdout == "".join(f"{word}|" for word in words)


def test_exec_says_what_it_cannot_run(small: Sandbox) -> None:
    for words, code, line in (
        (["no-such-command"], 127, "pliant: no-such-command: No such file or directory\n"),
        (["/etc"], 126, "pliant: /etc: Permission denied\n"),
    ):
        done = pliant("sandbox", "exec", "--name", small.name, "--", *words)
        assert (done.returncode, done.stderr) == (code, line)


def test_exec_runs_as_another_user(small: Sandbox, users: tuple[str, str]) -> None:
    command = ("srun", "sh", "-c", 'echo "$(id -un) $HOME"')
    done = pliant("sandbox", "exec", "--name", small.name, "--user", users[0], "--", *command)
    assert done.stdout == "pliant-alice /home/pliant-alice\n"
    stranger = pliant("sandbox", "exec", "--name", small.name, "--user", "no one", "--", "id")
    assert stranger.returncode == 2
    assert stranger.stderr.startswith("pliant: 'no one': no such user on this machine")


@pytest.mark.parametrize("verb", ["up", "down", "status", "exec", "shell"])
@pytest.mark.parametrize("bad", ["../x", "", "a/b", "A", "x" * 33, "-x", "x\ny", "$(id)", "ü"])
def test_hostile_names_are_refused_in_one_line(verb: str, bad: str) -> None:
    command = ["--", "true"] if verb == "exec" else []
    done = pliant("sandbox", verb, f"--name={bad}", *command)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "up to 32 of a-z, 0-9, '_' and '-'" in done.stderr


def test_status_tells_what_runs(small: Sandbox) -> None:
    done = pliant("sandbox", "status", "--name", small.name, "--json")
    parts = json.loads(done.stdout)["parts"]
    assert (done.returncode, list(parts)) == (0, ["munged", "slurmctld", "slurmd-n1", "slurmd-n2"])
    assert psutil.Process(parts["slurmctld"]).name() == "slurmctld"
    small.signal("slurmctld", signal.SIGKILL)
    wait_until(lambda: small.pid("slurmctld") is None, "slurmctld to be dead")
    damaged = pliant("sandbox", "status", "--name", small.name)
    assert damaged.returncode == 1
    assert "slurmctld    not running\n" in damaged.stdout


@pytest.mark.parametrize("part", ["munged", "slurmctld", "slurmd-n1", "all"])
def test_down_cleans_up_after_any_part_was_killed(name: str, small: Sandbox, part: str) -> None:
    small.run(["sbatch", "-o/dev/null", "--wrap=sleep 600 & srun sleep 600"], check=True)
    wait_until(lambda: _sleeping(small) >= 2, "the job's steps")
    for victim in small.status()["parts"] if part == "all" else [part]:
        small.signal(victim, signal.SIGKILL)
    small.down()
    assert traces(name) == []
    small.up()
    assert small.status()["state"] == "up"


def _sleeping(sandbox: Sandbox) -> int:
    return sum(_is_sleep(found.pid) for found in sandbox.processes())


def _is_sleep(pid: int) -> bool:
    try:
        words = psutil.Process(pid).cmdline()  # srun starts it by its full path
        return [word.removeprefix("/usr/bin/") for word in words] == ["sleep", "600"]
    except psutil.Error:
        return False


def test_a_job_that_goes_into_the_background_ends_with_the_sandbox(small: Sandbox) -> None:
    small.run(["sbatch", "-o/dev/null", "--wrap=setsid sleep 600 & sleep 1"], check=True)
    wait_until(lambda: _sleeping(small) == 1, "the background process")
    pids = [found.pid for found in small.processes() if _is_sleep(found.pid)]
    small.down()
    assert [pid for pid in pids if _is_sleep(pid)] == []


def test_waiting_clients_end_with_the_sandbox(small: Sandbox) -> None:
    argv = ["srun", "sleep", "600"]
    with subprocess.Popen(argv, env=small.env, stderr=subprocess.DEVNULL) as client:
        wait_until(lambda: _sleeping(small) >= 1, "the step")
        small.down()
        assert client.wait(timeout=HANG_S) != 0


@pytest.mark.usefixtures("_interrupts")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("after_s", [0.3, 0.7, 1.5])
def test_an_up_that_is_cut_short_is_no_hindrance(
    name: str, number: signal.Signals, after_s: float
) -> None:
    script = str(Path(sys.executable).with_name("pliant"))
    options = ["--name", name, "--accounting", "--mode", "none"]
    with subprocess.Popen(
        [script, "sandbox", "up", *options],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as half:
        time.sleep(after_s)
        half.send_signal(number)
    if number is not signal.SIGKILL:
        assert traces(name) == []
    Sandbox(name).down()
    assert traces(name) == []
    Sandbox(name, SMALL).up()


def test_what_makes_the_database_is_known_and_ends_with_the_sandbox(name: str) -> None:
    script = str(Path(sys.executable).with_name("pliant"))
    layout = Sandbox(name).layout
    with subprocess.Popen(
        [script, "sandbox", "up", "--name", name, "--accounting", "--mode", "none"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as half:
        wait_until(
            lambda: "mariadb-install-db" in {one.part for one in find(layout)}, "the database"
        )
        half.kill()
    Sandbox(name).down()
    assert traces(name) == []


@pytest.mark.usefixtures("_interrupts")
def test_an_up_that_is_cut_short_as_it_takes_its_name_leaves_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def claimed(layout: Layout, options: Options) -> int:
        held = claim(layout, options)
        signal.raise_signal(signal.SIGINT)
        return held

    monkeypatch.setattr("pliant.sandbox.sandbox.claim", claimed)
    with pytest.raises(KeyboardInterrupt):
        Sandbox(name, SMALL).up()
    assert traces(name) == []


@pytest.fixture
def _interrupts() -> Iterator[None]:
    """What is started heeds them, also where the tests run behind a script's `&`: sh(1)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_two_ups_of_one_name_do_not_meet(name: str) -> None:
    script = str(Path(sys.executable).with_name("pliant"))
    argv = [script, "sandbox", "up", "--name", name, "--mode", "none"]
    both = [subprocess.Popen(argv, stdout=-1, stderr=-1, text=True) for _ in range(2)]
    said = sorted((p.communicate(timeout=HANG_S)[1], p.returncode) for p in both)
    assert [code for _, code in said] == [0, 2]
    assert said[1][0].startswith(f"pliant: sandbox {name} is ")
    assert Sandbox(name).status()["state"] == "up"


def test_an_up_that_fails_says_why_and_leaves_nothing(name: str) -> None:
    with pytest.raises(Unavailable) as told:
        Broken(name, SMALL).up()
    assert str(told.value).startswith("slurmctld ended (1): ")
    assert "NoSuchParameter" in str(told.value)
    assert len(str(told.value).splitlines()) == 1
    assert traces(name) == []


class Broken(Sandbox):
    """Its slurm.conf is wrong."""

    def _start(self, part: str, wait: bool) -> None:
        if part == "slurmctld":
            with self.layout.slurm_conf.open("a") as conf:
                conf.write("NoSuchParameter=1\n")
        super()._start(part, wait)


def test_a_missing_package_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pliant.sandbox.programs._MORE", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Unavailable) as told:
        Sandbox(name, SMALL).up()
    assert str(told.value) == (
        "slurmctld, slurmd, scontrol, sinfo, munged: not found; apt-get install slurm-wlm munge"
    )
    assert traces(name) == []


def test_a_part_restarts_and_jobs_survive_it(small: Sandbox) -> None:
    small.run(["sbatch", "-o/dev/null", "--wrap=sleep 600"], check=True)
    before = small.pid("slurmctld")
    small.restart("slurmctld")
    assert small.pid("slurmctld") not in (None, before)
    assert small.run(["squeue", "-h", "-o%i"]).stdout == "1\n"


def test_a_part_that_runs_is_not_started_twice(small: Sandbox) -> None:
    with pytest.raises(BadInput, match="slurmctld runs already: "):
        small.start("slurmctld")


def test_a_stopped_part_can_be_stopped_for_good(small: Sandbox) -> None:
    small.signal("slurmctld", signal.SIGSTOP)
    small.stop("slurmctld")
    assert small.pid("slurmctld") is None


def test_a_place_that_cannot_be_written_is_told_in_one_line(name: str) -> None:
    with pytest.raises(Unavailable) as told:
        Sandbox(name, SMALL, base=Path("/proc/sandbox")).up()
    assert str(told.value) == "/proc/sandbox: No such file or directory"


def test_pliant_runs_inside_and_its_parts_are_the_sandboxs(name: str) -> None:
    whole = Sandbox(name, Options(nodes=2, gpus=2))
    whole.up()
    assert list(whole.status()["parts"])[-1] == "pliantd"
    argv = ["sbatch", "--parsable", "-o/dev/null", "--moldable=gpus=1-2", "--gres=gpu:1"]
    job = whole.run([*argv, "--wrap=true"])
    told = whole.run(["scontrol", "show", "job", job.stdout.strip()]).stdout
    assert "AdminComment=pliant=v1:" in told
    before = whole.pid("pliantd")
    whole.restart("pliantd")
    assert whole.pid("pliantd") not in (None, before)
    assert whole.run(["pliant", "status"]).returncode == 0
    whole.down()
    assert traces(name) == []


def test_the_directory_of_a_dead_sandbox_is_taken_over(name: str, small: Sandbox) -> None:
    """As after a reboot: the files are there, the processes are not."""
    for part in reversed(list(small.status()["parts"])):
        small.signal(part, signal.SIGKILL)
    wait_until(lambda: small.processes() == [], "all parts to be dead")
    Sandbox(name, SMALL).up()
    assert small.status()["state"] == "up"
