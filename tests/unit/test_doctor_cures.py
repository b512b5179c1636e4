"""`pliant doctor`: each fault that it finds is gone after the very commands that it prints."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.site import parse_config
from pliant.cli.commands import run
from pliant.cli.doctor.daemon import broken
from pliant.cli.doctor.eyes import Eyes
from pliant.cli.doctor.findings import Finding, State, command
from pliant.cli.doctor.memory import check_memory
from pliant.cli.doctor.partitions import check_partitions
from pliant.cli.doctor.paths import check_paths, judged
from pliant.cli.doctor.selinux import COPY, DEVEL, check_selinux
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.doctor.toml_lines import mended
from pliant.daemon.config import load, parse
from pliant.errors import BadConfig

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root looks with another's eyes")
ELSE = Eyes("daemon", 1, 1, (1,))


def patient(tmp_path: Path, slurm_conf: str = "", **known: str) -> SlurmPatient:
    """A controller whose files lie in a temporary directory, with what its slurmctld has read."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(slurm_conf)
    options = {"SLURM_VERSION": "24.11.5", "SLURM_CONF": str(conf), **known}
    return SlurmPatient(
        run=lambda argv, text="": run(argv, text=text),
        site=parse_config("".join(f"{key} = {value}\n" for key, value in options.items())),
        site_trouble="",
        nodes=(),
        config=parse({}),
        config_trouble="",
        config_path=tmp_path / "pliant.toml",
        is_root=True,
    )


def execute(findings: Iterable[Finding]) -> None:
    """Run what is printed, as it is printed: without a shell."""
    for finding in findings:
        for line in finding.commands:
            subprocess.run(shlex.split(line), check=True, timeout=HANG_S)


def faults(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state is State.FAULT]


# A pliant.toml that is wrong


BROKEN: dict[str, tuple[str, dict[str, Any]]] = {
    "a word without quotes": (
        '[partitions]\ndefault = "off"\ngpu = enforce  # since May\n',
        {"partitions": {"default": "off", "gpu": "enforce"}},
    ),
    "a quote is missing": (
        '[daemon]\nlisten = "0.0.0.0:6830\n[partitions]\ngpu = "enforce\n',
        {"daemon": {"listen": "0.0.0.0:6830"}, "partitions": {"gpu": "enforce"}},
    ),
    "a key is misspelt": ("[daemon]\ncycel_s = 2.0\n", {"daemon": {"cycle_s": 2.0}}),
    "a key is not known": ("[daemon]\ncycle_s = 2.0\nbeauty = 1\n", {"daemon": {"cycle_s": 2.0}}),
    "a section is misspelt": ("[deamon]\ncycle_s = 2.0\n", {"daemon": {"cycle_s": 2.0}}),
    "a value is out of range": ("[daemon]\ncycle_s = 0.001 # fast\n", {}),
    "a value is misspelt": ('[daemon]\nlog_level = "debgu"\n', {"daemon": {"log_level": "debug"}}),
    "a mode is misspelt": (
        '[partitions]\ndefault = "enforce"\ngpu = "Obsreve"\n',
        {"partitions": {"default": "enforce", "gpu": "observe"}},
    ),
    "a mode is no mode": (  # not the default, which enforces
        '[partitions]\ndefault = "enforce"\ngpu = true\n',
        {"partitions": {"default": "enforce", "gpu": "observe"}},
    ),
    "no pair": ("[daemon]\ncycle_s = 2.0\n%%\n", {"daemon": {"cycle_s": 2.0}}),
    "several": (
        '[deamon]\ncycle_s = x\n[trial]\nmax_jbos = 2\n[partitions]\ncpu = "of"\n',
        {"partitions": {"cpu": "off"}},
    ),
}


@pytest.mark.parametrize(("text", "meant"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_pliant_toml_is_put_right_by_what_the_doctor_prints(
    tmp_path: Path, text: str, meant: dict[str, Any]
) -> None:
    here = patient(tmp_path)
    here.config_path.write_text(text)
    with pytest.raises(BadConfig) as wrong:
        load(here.config_path)
    found = broken(replace(here, config=None, config_trouble=str(wrong.value)))
    assert found.state is State.FAULT
    execute([found])
    assert load(here.config_path) == parse(meant)


ITS_OWNERS = {
    "a partition's name cannot be guessed": '[partitions]\ndefault = "enforce"\n= "off"\n',
    "said twice": '[partitions]\ngpu = "off"\ngpu = "enforce"\n',
    "an option of the policy": '[policy]\npays = "perhaps"\n',
    "no section": "[weather]\nsun = 1\n",
    "sed would read it as something else": '[daemon]\nlog_level = "in\\\\fo"\nbeauty = "\\\\"\n[x]\n',
    "right": "[daemon]\n",
}


@pytest.mark.parametrize("text", ITS_OWNERS.values(), ids=ITS_OWNERS)
def test_what_only_its_owner_knows_is_left_to_words(tmp_path: Path, text: str) -> None:
    assert mended(text) == {}
    here = patient(tmp_path)
    here.config_path.write_text(text)
    found = broken(replace(here, config=None, config_trouble="wrong"))
    assert (found.commands, found.cure) == (
        (),
        "write what is expected, then systemctl reload pliantd",
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('[partitions]\ngup = "enforce"\n', {"gpu": "enforce"}),
        ('[partitions]\ngup = "enforce"\ngpu = "off"\n', {"gpu": "off"}),
        ('[partitions]\n"weather" = "enforce"\n', {}),
    ],
)
def test_a_partition_that_slurm_does_not_have_gets_the_name_that_was_meant(
    tmp_path: Path, text: str, after: dict[str, str]
) -> None:
    (tmp_path / "pliant.toml").write_text(text)

    def here() -> SlurmPatient:
        config = load(tmp_path / "pliant.toml")
        return replace(patient(tmp_path), config=config, partitions=("gpu", "cpu"))

    found = list(check_partitions(here()))
    assert [finding.name for finding in faults(found)] == ["partitions"]
    execute(found)
    assert list(check_partitions(here())) == []
    assert load(tmp_path / "pliant.toml").partitions == after


# slurm.conf against slurmctld's memory


READ = {"SchedulerType": "sched/backfill", "SchedulerParameters": "bf_continue,bf_interval=5",
        "SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CORE_MEMORY",
        "JobSubmitPlugins": "lua", "PreemptType": "preempt/none",
        "SlurmctldHost[0]": "here", "HASH_VAL": "Match"}  # fmt: skip
SAYS = (
    "SchedulerType=backfill\nschedulerparameters=bf_interval=5,bf_continue\n"
    "SelectTypeParameters=CR_Core_Memory # all\nJobSubmitPlugins=job_submit/lua\n"
    "PartitionName=DEFAULT PreemptMode=off\nPartitionName=gpu Nodes=n1\n"
)


@pytest.mark.parametrize(
    ("text", "hash_val", "state", "says", "commands"),
    [
        (SAYS, "Match", State.OK, "as slurmctld has it", ()),
        (f"{SAYS}PreemptType=none\nPlugStackConfig=plugstack.conf\nPartitionName=Default\n",
         "Match", State.OK, "as slurmctld has it", ()),
        (SAYS, "Different Ours=0x1 Slurmctld=0x2", State.ADVICE,
         "is not the one that slurmctld has read, in what", ("scontrol reconfigure",)),
        (SAYS.replace("=5", "=9"), "Different", State.FAULT,
         "it says SchedulerParameters=bf_interval=9,bf_continue, slurmctld has bf_continue,"
         "bf_interval=5: ", ("scontrol reconfigure",)),
        (SAYS.replace("JobSubmitPlugins=job_submit/lua\n", ""), "", State.FAULT,
         "it says JobSubmitPlugins=(nothing), slurmctld has lua: ", ("scontrol reconfigure",)),
        (f"{SAYS}PartitionName=big Nodes=n1\n", "", State.FAULT,
         "it has the partition big, slurmctld has not: ", ("scontrol reconfigure",)),
        (f"{SAYS}SelectType=select/linear\n", "", State.FAULT,
         "it says SelectType=select/linear, slurmctld has select/cons_tres: ",
         ("systemctl restart slurmctld",)),
    ],
)  # fmt: skip
def test_an_edit_of_slurm_conf_that_slurmctld_has_not_read_is_found(  # noqa: PLR0917  # a table's columns
    tmp_path: Path, text: str, hash_val: str, state: State, says: str, commands: tuple[str, ...]
) -> None:
    known = {**READ, "HASH_VAL": hash_val, "SLURM_VERSION": "22.05.8"}
    here = replace(patient(tmp_path, text, **known), hostname="here", partitions=("gpu",))
    (found,) = check_memory(here)
    assert (found.state, found.commands) == (state, commands)
    assert says in found.says
    assert list(check_memory(replace(here, hostname="login"))) == []


def test_a_partition_that_slurmctld_may_hide_from_us_is_not_called_unknown(tmp_path: Path) -> None:
    here = patient(tmp_path, f"{SAYS}PartitionName=secret\n", PrivateData="partitions", **READ)
    seen = replace(here, hostname="here", partitions=("gpu",))
    wishes = parse({"partitions": {"secret": "observe"}})
    for is_root, states in ((True, [State.FAULT, State.FAULT]), (False, [State.OK])):
        one = replace(seen, config=wishes, is_root=is_root, user="ann")
        found = [*check_memory(one), *check_partitions(one)]
        assert [finding.state for finding in found] == states


def test_what_slurm_conf_includes_counts_too(tmp_path: Path) -> None:
    here = patient(tmp_path, "include more.conf\n", **READ)
    here = replace(here, hostname="here")
    assert [finding.state for finding in check_memory(here)] == [State.SKIPPED]
    (tmp_path / "more.conf").write_text(SAYS)
    assert [finding.state for finding in check_memory(here)] == [State.OK]


# The modes along each path


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A file that everybody may read, below directories that everybody may enter."""
    for parent in (tmp_path, *tmp_path.parents[: len(tmp_path.parents) - 1]):
        if parent.stat().st_mode & 0o001 == 0:
            parent.chmod(parent.stat().st_mode | 0o001)  # pytest's own are for one user
    path = tmp_path / "etc" / "slurm" / "pliant.lua"
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def _owned(path: Path, mode: int, uid: int = 0, gid: int = 0) -> None:
    os.chown(path, uid, gid)
    path.chmod(mode)


Break = Callable[[Path], None]

CLOSED: dict[str, tuple[Break, str, str, str]] = {
    "a directory above": (
        lambda path: _owned(path.parents[1], 0o700), "r",
        "daemon may not enter {0}/etc, on the way to {0}/etc/slurm/pliant.lua",
        "chmod o+x {0}/etc"),
    "the group's directory": (
        lambda path: _owned(path.parent, 0o700, gid=1), "r",
        "daemon may not enter {0}/etc/slurm, on the way to {0}/etc/slurm/pliant.lua",
        "chmod g+x {0}/etc/slurm"),
    "the file": (
        lambda path: _owned(path, 0o600), "r",
        "daemon may not read {0}/etc/slurm/pliant.lua",
        "chmod o+r {0}/etc/slurm/pliant.lua"),
    "one's own file": (
        lambda path: _owned(path, 0o444, uid=1), "rw",
        "daemon may not write {0}/etc/slurm/pliant.lua",
        "chmod u+w {0}/etc/slurm/pliant.lua"),
    "another's file that is to be written": (
        lambda path: _owned(path, 0o644), "rw",
        "daemon may not write {0}/etc/slurm/pliant.lua",
        "chown daemon {0}/etc/slurm/pliant.lua"),
}  # fmt: skip


@as_root
@pytest.mark.parametrize(("breaks", "letters", "says", "cure"), CLOSED.values(), ids=CLOSED)
def test_a_path_that_is_closed_to_a_user_is_opened_by_the_command(  # noqa: PLR0917  # a table's columns
    closed: Path, tmp_path: Path, breaks: Break, letters: str, says: str, cure: str
) -> None:
    def look() -> list[Finding]:
        return list(judged("paths", ELSE, [(closed, letters)]))

    if "w" not in letters:
        assert [finding.state for finding in look()] == [State.OK]
    breaks(closed)
    (found,) = look()
    assert (found.state, found.says) == (State.FAULT, says.format(tmp_path))
    assert found.commands == (cure.format(tmp_path),)
    execute([found])
    assert [finding.state for finding in look()] == [State.OK]
    assert (os.geteuid(), os.getegid()) == (0, 0)


@as_root
def test_pliantds_history_that_root_made_is_given_to_pliantd(closed: Path, tmp_path: Path) -> None:
    state, door = tmp_path / "state", tmp_path / "run"
    for directory in (state, door):
        directory.mkdir()
        directory.chmod(0o755)
    (state / "pliant.db").touch(0o644)
    toml = {"state_dir": str(state), "socket": str(door / "pliantd.sock"), "user": "daemon"}
    base = patient(closed.parent, **{"SlurmUser": "root(0)", "SlurmctldHost[0]": "here"})
    base.config_path.touch()
    here = replace(base, config=parse({"daemon": toml}), hostname="here")

    def look() -> list[Finding]:
        return faults(check_paths(here))

    found = look()
    assert [finding.commands for finding in found] == [
        (f"chown daemon {state}",),
        (f"chown daemon {state}/pliant.db",),
        (f"chown daemon {door}",),
    ]
    execute(found)
    assert look() == []


@as_root
def test_a_user_sees_what_is_closed_to_that_very_user(closed: Path, tmp_path: Path) -> None:
    _owned(closed.parent, 0o700)
    child = os.fork()
    if child == 0:  # nothing here goes back to pytest
        says = ""
        try:
            os.setgroups([])
            os.setgid(1)
            os.setuid(1)
            says = "".join(finding.says for finding in judged("paths", ELSE, [(closed, "r")]))
        finally:
            os._exit(0 if says.startswith(f"daemon may not enter {tmp_path}/etc/slurm") else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@as_root
def test_where_root_may_not_take_anothers_rights_it_is_said(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_groups: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr("os.setgroups", refuse)
        (found,) = judged("paths", ELSE, [(closed, "r")])
    assert (found.state, found.says) == (
        State.SKIPPED,
        "the eyes of daemon cannot be had here: Operation not permitted",
    )


def test_without_roots_rights_others_eyes_are_not_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    (found,) = judged("paths", ELSE, [(tmp_path, "r")])
    assert (found.state, found.says) == (
        State.SKIPPED,
        "only root can look with the eyes of daemon",
    )


# SELinux


class FakeSelinux:
    """getenforce, semodule, matchpathcon and restorecon of a policy that gives all files one label."""

    def __init__(self, mode: str, labels: dict[str, str], modules: str = "") -> None:
        self.mode, self.labels, self.modules = mode, labels, modules

    def run(self, argv: list[str], *, text: str = "") -> Answer:
        if argv[0] == "getenforce":
            return Answer(f"{self.mode}\n", text, 0)
        if argv[0] == "semodule":
            return Answer(self.modules, "", 0)
        path = argv[-1]
        if argv[0] == "restorecon":
            self.labels.pop(path)
        elif path in self.labels:
            says = f"{path} has context {self.labels[path]}, should be etc_t\n"
            return Answer(says, "", 1)
        return Answer("", "", 0)


LOADED = "apache\npliant\t1.0.0\nzabbix\n"
"""As semodule(8) printed it before 2.4; later releases print names alone."""


def controller(tmp_path: Path, fake: FakeSelinux) -> SlurmPatient:
    """The controller of a cluster, with SELinux."""
    here = patient(tmp_path, **{"SlurmctldHost[0]": "ctl(10.0.0.1)"})
    return replace(here, run=fake.run, hostname="ctl")


def test_a_label_that_selinuxs_policy_would_have_otherwise_is_restored(tmp_path: Path) -> None:
    (tmp_path / "pliant.lua").touch()
    path = str(tmp_path / "pliant.lua")
    fake = FakeSelinux("Enforcing", {path: "user_tmp_t"}, LOADED)
    here = controller(tmp_path, fake)
    module, label = check_selinux(here)
    assert (module.state, module.says) == (State.OK, "Enforcing, module pliant is loaded")
    assert (label.state, label.says) == (
        State.FAULT,
        f"Enforcing, and {path} has context user_tmp_t, should be etc_t",
    )
    assert label.commands == (command("restorecon", "-v", path),)
    fake.mode = "Permissive"
    assert [finding.state for finding in check_selinux(here)] == [State.OK, State.ADVICE]
    fake.run(shlex.split(label.commands[0]))
    assert [finding.state for finding in check_selinux(here)] == [State.OK, State.OK]


@pytest.mark.parametrize("mode", ["Disabled", ""])
def test_nothing_is_said_of_selinux_where_it_is_off(tmp_path: Path, mode: str) -> None:
    here = controller(tmp_path, FakeSelinux(mode, {}))
    assert list(check_selinux(here)) == []


def test_the_module_is_missed_where_pliantd_is(tmp_path: Path) -> None:
    fake = FakeSelinux("Enforcing", {}, "apache\nzabbix\n")
    here = controller(tmp_path, fake)
    module, _ = check_selinux(here)
    assert (module.state, module.says.partition(":")[0]) == (
        State.ADVICE,
        "Enforcing, without the module pliant",
    )
    assert module.commands[-1] == "semodule -i /root/pliant-selinux/pliant.pp"
    user, _ = check_selinux(replace(here, is_root=False))
    assert (user.state, user.says) == (
        State.SKIPPED,
        "Enforcing; only root sees which modules are loaded",
    )
    node, _ = check_selinux(replace(here, hostname="n1"))
    assert (node.state, node.says) == (State.OK, "Enforcing")


def test_what_the_doctor_prints_makes_the_module(tmp_path: Path) -> None:
    if not DEVEL.exists():
        pytest.skip("selinux-policy-dev is not installed")
    here = controller(tmp_path, FakeSelinux("Enforcing", {}))
    module, _ = check_selinux(here)
    there = tmp_path / "module"
    for line in module.commands[:2]:  # the third loads it, which is for a kernel with SELinux
        words = shlex.split(line.replace(str(COPY), str(there)))
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=HANG_S)
        assert done.returncode == 0, done.stdout + done.stderr
    assert module.commands[2] == command("semodule", "-i", COPY / "pliant.pp")
    assert (there / "pliant.pp").stat().st_size > 0
