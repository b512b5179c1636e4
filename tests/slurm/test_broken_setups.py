"""Broken installations on a real Slurm: the doctor names each fault, and its own words cure it.

One thing is broken, `pliant doctor` names it and ends with 1; each command that it prints under
`run:` is executed as it stands, without a shell; `pliant doctor` then finds no fault. Where it prints
no command, the test does what its words say. tests/unit/test_doctor_cures.py has what needs no Slurm.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from slurm_helpers import wait_until

from pliant.errors import PliantError
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

PLIANT = str(Path(sys.executable).with_name("pliant"))
SITE_RULE = (Path(__file__).parents[1] / "assets" / "site_job_submit.lua").read_text()
ITS_OWN = "function slurm_job_submit(a, b, c)\n   return slurm.SUCCESS\nend\n"
BEGIN, END = "-- pliant: begin\n", "-- pliant: end\n"
UNITS = {"pliantd": "pliantd", "munge": "munged", "slurmctld": "slurmctld"}
"""The parts of a sandbox that systemd's units are on a host."""


@pytest.fixture(scope="module")
def site() -> Iterator[Sandbox]:
    """A Slurm with a job_submit.lua of its own, into which Pliant was installed by its command."""
    made = Sandbox(f"pytest-doctor-{os.getpid()}", Options(nodes=1, gpus=2, mode="observe"))
    made.up()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PLIANT_RECORD", str(made.layout.top / "record"))
            patch.setenv("PLIANT_LIBDIR", str(made.layout.plugin.parent))
            made.layout.job_submit.write_text(SITE_RULE)
            for path in (made.layout.etc / "pliant.lua", made.layout.plugin):
                path.unlink()
            made.layout.plugstack.write_text("# the site's\n")
            words = ["install", "slurm", "--part", "lua", "--part", "spank", "--apply"]
            made.run([PLIANT, *words], check=True)
            yield made
    finally:
        made.down()


def replaced(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def lua(change: Callable[[str], str]) -> Callable[[Sandbox], None]:
    """Change the text of job_submit.lua."""

    def do(site: Sandbox) -> None:
        path = site.layout.job_submit
        path.write_text(change(path.read_text()))

    return do


def without_ours(text: str) -> str:
    return re.sub(f"{BEGIN}.*{END}", "", text, flags=re.DOTALL)


def toml(before: str, after: str) -> Callable[[Sandbox], None]:
    return lambda site: replaced(site.layout.pliant_toml, before, after)


def conf(before: str, after: str) -> Callable[[Sandbox], None]:
    return lambda site: replaced(site.layout.slurm_conf, before, after)


def drop_in(site: Sandbox) -> Path:
    return site.layout.etc / "plugstack.conf.d" / "pliant.conf"


def no_lua(site: Sandbox) -> None:
    def names() -> str:
        lines = site.run(["scontrol", "show", "config"]).stdout.splitlines()
        return next(line.split()[-1] for line in lines if line.startswith("JobSubmitPlugins"))

    conf("JobSubmitPlugins=lua\n", "")(site)
    site.reconfigure()
    wait_until(lambda: names() == "(null)", "slurmctld to forget the filter")


def sleeping(site: Sandbox) -> None:
    no_lua(site)
    lua(without_ours)(site)


def slurmctld_ends(breaks: Callable[[Sandbox], None]) -> Callable[[Sandbox], None]:
    """Break something, and slurmctld with it: it does not start again as things are."""

    def do(site: Sandbox) -> None:
        site.stop("slurmctld")
        breaks(site)
        with pytest.raises(PliantError):
            site.start("slurmctld")

    return do


def cut_off(path: Path, length: int) -> None:
    """Put a part of a file in its place; whoever has the whole one open keeps it."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(path.read_bytes()[:length])
    part.chmod(path.stat().st_mode)
    part.replace(path)


def closed(path: Path) -> None:
    """As an administrator does whose umask is 077."""
    shutil.chown(path, "root", "root")
    path.chmod(0o700 if path.is_dir() else 0o600)


@dataclass(frozen=True)
class Case:
    """What is broken, the fault's name, a part of what is said, and what no command cures."""

    breaks: Callable[[Sandbox], object]
    name: str
    says: str
    by_hand: Callable[[Sandbox], object] | None = None


CASES = {
    # job_submit.lua, pliant.lua
    "job_submit.lua is deleted": Case(
        lambda site: site.layout.job_submit.unlink(), "job_submit.lua", "is not there"),
    "another job_submit.lua without our lines": Case(
        lua(without_ours), "job_submit.lua", "does not call Pliant"),
    "it returns before our lines": Case(
        lua(lambda text: text.replace(BEGIN, f"do return slurm.SUCCESS end\n{BEGIN}")),
        "job_submit.lua", "returns before it comes to what calls Pliant"),
    "a function of its own behind our lines": Case(
        lua(lambda text: text.replace(END, f"{END}{ITS_OWN}")), "job_submit.lua", "sets slurm_job_submit anew"),
    "it does not compile": Case(
        lua(lambda text: f"{text}if true then\n"), "job_submit.lua", "it does not compile",
        by_hand=lua(lambda text: text.removesuffix("if true then\n"))),
    "pliant.lua is deleted": Case(
        lambda site: (site.layout.etc / "pliant.lua").unlink(), "pliant.lua", "is not there"),
    "pliant.lua is cut off": Case(
        lambda site: cut_off(site.layout.etc / "pliant.lua", 2000),
        "pliant.lua", "does not load"),
    # slurmctld does not start with one that it cannot load
    "slurmctld is dead": Case(
        lambda site: site.stop("slurmctld"), "slurmctld", "no answer within"),
    "slurmctld ended, for its job_submit.lua is gone": Case(
        slurmctld_ends(lambda site: site.layout.job_submit.unlink()),
        "job_submit.lua", "is not there"),
    "slurmctld ended, for that does not compile": Case(
        slurmctld_ends(lua(lambda text: f"{text}if true then\n")),
        "job_submit.lua", "it does not compile",
        by_hand=lua(lambda text: text.removesuffix("if true then\n"))),
    # slurm.conf
    "JobSubmitPlugins lost lua": Case(no_lua, "JobSubmitPlugins", "lua is not among them"),
    "and job_submit.lua lost our lines": Case(
        sleeping, "JobSubmitPlugins", "lua is not among them"),
    "slurm.conf was edited": Case(
        conf("bf_max_job_test=1000", "bf_max_job_test=999"), "slurm.conf", "bf_max_job_test=999"),
    "slurm.conf has a partition more": Case(
        lambda site: site.layout.slurm_conf.write_text(
            f"{site.layout.slurm_conf.read_text()}PartitionName=new Nodes=n1\n"),
        "slurm.conf", "it has the partition new, slurmctld has not"),
    # the SPANK plugin
    "plugstack.conf lost its include": Case(
        lambda site: site.layout.plugstack.write_text("# the site's\n"),
        "plugstack.conf", "do not name it"),
    "the drop-in is deleted": Case(
        lambda site: drop_in(site).unlink(), "plugstack.conf", "do not name it"),
    "pliant.so is deleted": Case(
        lambda site: site.layout.plugin.unlink(), "sbatch", "it does not know --moldable"),
    "pliant.so is cut off": Case(
        lambda site: cut_off(site.layout.plugin, 5000),
        "sbatch", "it does not know --moldable"),
    # pliant.toml
    "a mode without quotes": Case(
        toml('default = "observe"', "default = observe"), "pliant.toml", "line"),
    "a misspelt key": Case(
        toml("cycle_s", "cycel_s"), "pliant.toml", "[daemon] cycel_s"),
    "a misspelt policy": Case(
        toml('policy = "', 'policy = "x'), "pliant.toml", "[daemon] policy"),
    "a misspelt partition": Case(
        toml("[partitions]\n", '[partitions]\ngpuu = "observe"\n'), "partitions", "names gpuu"),
    # modes
    "slurm.conf's directory is closed": Case(
        lambda site: closed(site.layout.etc), "slurmctld's paths", "slurm may not enter"),
    "pliant.lua is closed": Case(
        lambda site: closed(site.layout.etc / "pliant.lua"),
        "slurmctld's paths", "slurm may not read"),
    "the socket's directory is closed": Case(
        lambda site: site.layout.run.chmod(0o600), "slurmctld's paths", "slurm may not enter"),
    "plugstack.conf is closed": Case(
        lambda site: closed(site.layout.plugstack), "users' paths", "a user may not read"),
    "pliant.so is closed": Case(
        lambda site: closed(site.layout.plugin), "users' paths", "a user may not read"),
    # services
    "pliantd is stopped": Case(lambda site: site.stop("pliantd"), "filter's door", "pliantd at "),
    "munged is stopped": Case(lambda site: site.stop("munged"), "munge", ""),
}  # fmt: skip


def test_there_are_twenty_and_more() -> None:
    assert len(CASES) >= 20


def systemctl(site: Sandbox, verb: str, unit: str) -> None:
    """What systemd does on a host: the parts of a sandbox have no units."""
    part = UNITS[unit]
    if verb == "reload":
        site.signal(part, signal.SIGHUP)
    elif site.pid(part) is None:
        assert verb == "start"
        site.start(part)


def doctor(site: Sandbox) -> tuple[int, list[tuple[str, str]], list[str]]:
    """Return its exit status, the faults by name and words, and the commands under them."""
    done = site.run([PLIANT, "doctor"])
    assert done.stderr == ""
    faults, commands = [], []
    at_fault = False
    for line in done.stdout.splitlines():
        if found := re.match(r"(ok|advice|fault|skipped) +(.*?)  +(.*)", line):
            at_fault = found[1] == "fault"
            faults += [(found[2], found[3])] if at_fault else []
        elif at_fault and (command := re.fullmatch(r" +run:  (.*)", line)):
            commands.append(command[1])
    return done.returncode, faults, commands


def execute(site: Sandbox, line: str) -> None:
    argv = shlex.split(line)
    if argv[0] == "systemctl":
        systemctl(site, *argv[1:])
    else:
        program = PLIANT if argv[0] == "pliant" else argv[0]
        done = site.run([program, *argv[1:]])
        assert done.returncode == 0, (line, done.stdout, done.stderr)


def until_well(site: Sandbox) -> None:
    """Wait for pliantd's next look: what it says of itself is of the last one."""
    found: list[tuple[str, str]] = []

    def is_well() -> bool:
        code, faults, _ = doctor(site)
        found[:] = faults
        return (code, faults) == (0, [])

    try:
        wait_until(is_well, "the doctor to find no fault")
    except AssertionError as late:
        raise AssertionError(f"{late}: {found}") from None


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_the_doctor_prints_cures_what_it_finds(site: Sandbox, case: Case) -> None:
    until_well(site)
    case.breaks(site)
    code, faults, commands = doctor(site)
    assert code == 1
    assert [says for name, says in faults if name == case.name and case.says in says], faults
    if case.by_hand is None:
        assert commands
    else:
        assert commands in ([], ["systemctl start slurmctld"])
        case.by_hand(site)
    for line in commands:
        execute(site, line)
    until_well(site)


def test_after_all_of_it_a_job_is_marked_and_slurmctld_starts(site: Sandbox) -> None:
    site.restart("slurmctld")
    words = ["sbatch", "--parsable", "--hold", "-o", "/dev/null", "--moldable=gpus=1-2"]
    assert site.layout.job_submit.read_text().startswith(
        SITE_RULE.removesuffix("return slurm.SUCCESS\n")
    )
    done: subprocess.CompletedProcess[str] = site.run([*words, "--gres=gpu:1", "--wrap", "true"])
    job = done.stdout.strip()
    assert "AdminComment=pliant=v1:" in site.run(["scontrol", "show", "job", job]).stdout
    site.run(["scancel", job])
