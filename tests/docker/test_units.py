"""pliantd and the monitor at work as systemd starts them, by the very units that are installed.

On a host of its own, `booted` of compose.yaml, whose first process is systemd: it has a whole Slurm.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_helpers import ALICE, BOB, SUITE, Cluster, wait_until

pytest_plugins = ["cluster_fixtures"]

HOST = "booted"
UNITS = "/etc/systemd/system"
PYTHON = "/usr/lib/pliant/venv/bin/python"
THERE = "/usr/local/lib/unit_probe.py"
OFTEN = "s/--every 60/--every 2/"
"""So that reports come every two seconds; else the unit is the one that is installed."""
SAVES = f"""exec pliant run -- {PYTHON} -c '
import time
import pliant
while not pliant.checkpoint_wanted():
    pliant.heartbeat(1)
    time.sleep(0.05)
pliant.checkpointed()'
"""
NEITHER = {
    "be traced": "not permitted",
    "be less nice": "not permitted",
    "write anywhere": "EROFS",
    "make a namespace": "not permitted",
    "speak to the kernel": "EAFNOSUPPORT",
    "run what it wrote": "not permitted",
}
PLIANTD = {
    **NEITHER,
    "count another's thread": "not permitted",
    "see another's process": False,
    "see the machine's memory": False,
    "see a GPU": False,
    "give a file away": "not permitted",
}
MONITOR = {
    **NEITHER,
    "count another's thread": "done",
    "see another's process": True,
    "see the machine's memory": True,
    "see a GPU": True,
    "give a file away": "not permitted",
}


class Booted(Cluster):
    """A cluster of one host, on which systemd runs."""

    def down(self) -> None:
        """End it, and take its volumes away."""
        done = self.compose("--profile", HOST, "down", "-v", "-t", "2")
        assert done.returncode == 0, done.stderr

    def shell(self, line: str, user: str = "root") -> str:
        """Run a line of a shell, which must not fail, and return what it printed."""
        return self.out(HOST, "sh", "-c", line, user=user)

    def asked(self, *words: str) -> Any:
        """Return what pliantd answers."""
        return json.loads(self.out(HOST, "pliant", *words, "--json"))

    def state(self, job: str) -> str:
        """Return a job's state; "" once squeue has forgotten it."""
        return self.on(HOST, "squeue", "-h", "-t", "all", "-o", "%T", "-j", job).stdout.strip()

    def submits(self, user: str, *options: str, script: str) -> str:
        """Submit a job, and wait until it runs."""
        job = self.submit(HOST, user, *options, script=script)
        wait_until(lambda: self.state(job) == "RUNNING", f"{job} is {self.state(job)}")
        return job

    def no_jobs(self) -> None:
        """End every job."""
        for user in (ALICE, BOB):
            self.out(HOST, "scancel", "-u", user)
        wait_until(lambda: not self.out(HOST, "squeue", "-h"), "jobs do not end")

    def log(self, unit: str) -> str:
        """Return what a unit has written."""
        return self.out(HOST, "journalctl", "-o", "cat", "-u", unit)


@pytest.fixture(scope="module")
def booted(cluster: Cluster) -> Iterator[Booted]:
    """That host with both units enabled, as the administrator's guide says; its image is a host's."""
    made = Booted(f"pliant-booted-{SUITE}", "pliant")
    made.down()
    with made.typing(COMPOSE_PROJECT_NAME=made.project) as here:
        here.types("docker/README.md", "docker compose up -d booted")
    wait_until(lambda: made.on(HOST, "sinfo", "-h", "-t", "idle").stdout, "there is no node")
    with made.typing(HOST) as root:
        root.types("docs/admin.md", "pliant install slurm --part monitor --apply")
        root.run(f"sed -i '{OFTEN}' {UNITS}/pliant-monitor.service")
        root.types(
            "docs/admin.md", "systemctl daemon-reload && systemctl enable --now pliant-monitor"
        )
        assert root.run("systemctl enable --now pliantd")[0] == 0
    yield made
    made.down()


@pytest.fixture
def idle(booted: Booted) -> Iterator[Booted]:
    """The host without jobs."""
    yield booted
    booted.no_jobs()


def shapes(host: Booted, job: str) -> list[str]:
    """Return as what each run of a job ran."""
    return [run["shape"] for run in host.asked("history", job)["runs"]]


def outcomes(host: Booted, job: str) -> list[str]:
    """Return how each hand-over of a job has ended; "" while it is under way."""
    return [change["outcome"] for change in host.asked("history", job)["handovers"]]


def answered(host: Booted) -> None:
    """Submit until pliantd has answered: on a busy host it may come too late for one."""

    def is_one() -> bool:
        host.submit(HOST, ALICE, "--gres=gpu:4", "--moldable=gpus=1-4")
        return bool(host.asked("status")["submissions"])

    wait_until(is_one, lambda: host.out(HOST, "pliant", "doctor"))


def test_pliantd_answers_submissions_and_hands_a_job_over(idle: Booted) -> None:
    answered(idle)
    idle.no_jobs()
    idle.submits(BOB, "--gres=gpu:1", script="sleep 600")
    options = ("--gres=gpu:4", "--moldable=gpus=1-4", "--malleable=grace=60,min-run=1s")
    job = idle.submits(ALICE, *options, script=SAVES)
    wait_until(lambda: shapes(idle, job) == ["3"], lambda: idle.out(HOST, "pliant", "why", job))
    asks = ("pliant", "resize", job, "2")
    wait_until(lambda: not idle.on(HOST, *asks).returncode, lambda: idle.on(HOST, *asks).stderr)
    wait_until(lambda: shapes(idle, job) == ["3", "2"], lambda: idle.log("pliantd"))
    wait_until(lambda: outcomes(idle, job) == ["done"], lambda: idle.log("pliantd"))


def test_pliantd_is_told_to_read_and_to_end(idle: Booted) -> None:
    idle.out(HOST, "systemctl", "reload", "pliantd")
    wait_until(lambda: "pliant.toml was read again" in idle.log("pliantd"), "not read")
    idle.out(HOST, "systemctl", "stop", "pliantd")
    assert "\npliantd ends\n" in idle.log("pliantd")
    shown = idle.out(HOST, "systemctl", "show", "-p", "ExecStopPost", "pliantd")
    assert "--unmark ;" in shown
    assert "code=exited ; status=0 }" in shown
    idle.out(HOST, "systemctl", "start", "pliantd")


def test_the_monitor_reports_what_a_job_of_the_host_does(idle: Booted) -> None:
    job = idle.submits(ALICE, script="while :; do :; done")

    def heard() -> list[str]:
        last = idle.asked("status")["monitors"]["last"]
        return [speed["job"] for node in last for speed in node["speeds"] if speed["value"]]

    wait_until(lambda: heard() == [job], lambda: idle.log("pliant-monitor"))


@pytest.mark.parametrize(("unit", "may"), [("pliantd", PLIANTD), ("pliant-monitor", MONITOR)])
def test_the_unit_lets_a_program_do_this_and_no_more(
    idle: Booted, unit: str, may: dict[str, str | bool]
) -> None:
    idle.submits(ALICE, script="echo $$ >pid; while :; do :; done")
    pid = f"/home/{ALICE}/pid"
    wait_until(lambda: not idle.on(HOST, "test", "-s", pid).returncode, "no process")
    idle.compose("cp", str(Path(__file__).with_name("unit_probe.py")), f"{HOST}:{THERE}")
    runs = f"ExecStart={PYTHON} {THERE} {idle.out(HOST, 'cat', pid)}"
    service = rf"[Service]\nType=oneshot\n{runs}\nStandardOutput=truncate:/run/probe\nStandardError=journal"
    idle.shell(
        f"sed -e '/^Exec/d; /^Type=/d; /^Watchdog/d; /^Restart/d; s|^.Service.|{service}|'"
        f" {UNITS}/{unit}.service >/run/systemd/system/probe.service; rm {pid}"
        " && systemctl daemon-reload"
    )
    assert idle.on(HOST, "systemctl", "start", "probe").returncode == 0, idle.log("probe")
    assert json.loads(idle.out(HOST, "cat", "/run/probe")) == may


def test_systemd_calls_it_as_the_page_says(booted: Booted) -> None:
    with booted.typing(HOST) as root:
        root.types("docs/admin.md", "systemd-analyze security pliantd | tail -n 1")


def test_as_root_it_lets_the_user_of_slurmctld_ask(idle: Booted) -> None:
    again = "systemctl daemon-reload && systemctl restart pliantd"
    user = "sed -i 's/^user = .*/user = \"{}\"/' /etc/pliant/pliant.toml"
    idle.shell(f"pliant install slurm --user root --apply && {user.format('root')} && {again}")
    try:
        answered(idle)
        look = idle.shell("stat -c '%U %a' /run/pliant/pliantd.sock; ps -o user= -C pliantd")
        assert look.split() == ["slurm", "660", "root"]
    finally:
        idle.shell(f"pliant install slurm --apply && {user.format('slurm')} && {again}")
