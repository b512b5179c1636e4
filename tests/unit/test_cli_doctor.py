"""`pliant doctor`: every fault has its cure, and what is well is not complained about."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pliant import resources
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.site import parse_config
from pliant.cli.doctor import SLURM, examine
from pliant.cli.doctor.access import check_access, loads
from pliant.cli.doctor.daemon import check_daemon, modes, unanswered
from pliant.cli.doctor.filter import check_filter
from pliant.cli.doctor.findings import Finding, State
from pliant.cli.doctor.munge import check_munge
from pliant.cli.doctor.slurm import check_gpus, check_host, check_scheduler, check_slurm
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.doctor.spank import check_spank, plugin_line
from pliant.daemon.answers import PartitionRow, StatusAnswer
from pliant.daemon.config import parse
from pliant.errors import Unavailable

WELL = {
    "SLURM_VERSION": "22.05.8",
    "SLURM_CONF": "/etc/slurm/slurm.conf",
    "ClusterName": "c",
    "SlurmUser": "slurm(64030)",
    "SlurmctldHost[0]": "ctl(10.0.0.1)",
    "SchedulerType": "sched/backfill",
    "SchedulerParameters": "bf_interval=5,bf_continue",
    "SelectType": "select/cons_tres",
    "PriorityType": "priority/multifactor",
    "JobSubmitPlugins": "lua",
    "AuthInfo": "socket=/run/m",
}
NODE = (
    "NodeName=n1 CPUAlloc=0 CPUEfctv=16 CPUTot=16 ActiveFeatures=a Gres={} GresUsed=gpu:0 "
    "RealMemory=64000 AllocMem=0 State=IDLE Partitions=gpu \n"
)
GOOD_GRES = "gpu:a100:4(S:0),shard:16,nogpu:no_consume:1"


def healthy(argv: list[str], *, text: str = "") -> Answer:
    """Every command as it is where all is well, and SELinux is not."""
    if argv == ["getenforce"]:
        raise Unavailable("getenforce: No such file or directory")
    said = {"sbatch": "      --moldable=SPEC     shapes\n", "munge": "MUNGE:x:", "unmunge": text}
    return Answer(said[argv[0]], "", 0)


def patient(gres: str = GOOD_GRES, **options: str) -> SlurmPatient:
    lines = "".join(f"{key} = {value}\n" for key, value in {**WELL, **options}.items())
    return SlurmPatient(
        run=healthy,
        site=parse_config(lines),
        site_trouble="",
        nodes=tuple(parse_nodes(NODE.format(gres))),
        config=parse({"partitions": {"default": "observe"}}),
        config_trouble="",
        config_path=Path("/etc/pliant/pliant.toml"),
        hostname="login",
        user="root",
        is_root=True,
    )


def found(
    check: Callable[[SlurmPatient], Iterator[Finding]], of: SlurmPatient
) -> Mapping[str, tuple[State, str]]:
    return {finding.name: (finding.state, finding.says) for finding in check(of)}


def test_a_healthy_slurm_is_not_complained_about() -> None:
    checks = (check_slurm, check_munge, check_gpus, check_scheduler)
    findings = [finding for check in checks for finding in check(patient())]
    assert {finding.state for finding in findings} == {State.OK}


def test_everything_but_ok_has_a_cure_or_could_not_be_seen(tmp_path: Path) -> None:
    sick = replace(
        patient("gpu:4", SchedulerType="sched/builtin", SelectType="select/linear",
                JobSubmitPlugins="(null)", SchedulerParameters="(null)", SLURM_VERSION="19.05.1",
                PlugStackConfig=str(tmp_path / "plugstack.conf")),
        config=None, config_trouble="no file", skew_s=60.0, hostname="ctl",
    )  # fmt: skip
    findings = examine(sick)
    assert len(findings) > len(SLURM)
    bad = [f for f in findings if f.state in (State.ADVICE, State.FAULT)]
    assert [f for f in bad if not (f.cure or f.commands)] == []
    assert [f for f in findings if "\n" in f.says + f.cure + "".join(f.commands)] == []


@pytest.mark.parametrize(
    ("hostname", "toml", "where"),
    [
        ("ctl", "PLIANT_CONFIG names another", ""),
        ("login", "copy it from ctl; PLIANT_CONFIG names another", "on the controller"),
    ],
)
def test_what_belongs_on_the_controller_is_the_cure_there_alone(
    hostname: str, toml: str, where: str, tmp_path: Path
) -> None:
    sick = replace(
        patient(JobSubmitPlugins="(null)", PluginDir=str(tmp_path)),
        config=None,
        config_trouble="no file",
        hostname=hostname,
    )
    cures = {finding.name: (finding.cure, finding.commands) for finding in examine(sick)}
    writes = ("pliant install slurm --part daemon --apply",) if hostname == "ctl" else ()
    assert cures["pliant.toml"] == (toml, writes)
    assert cures["JobSubmitPlugins"] == (
        where,
        ("pliant install slurm --part lua --apply", "scontrol reconfigure"),
    )


def test_no_slurmctld_is_one_fault_and_the_rest_is_still_looked_at() -> None:
    away = replace(patient(), site=None, site_trouble="scontrol: no answer within 10 s", nodes=())
    assert found(check_slurm, away) == {
        "slurmctld": (State.FAULT, "scontrol: no answer within 10 s")
    }
    assert {finding.name for finding in examine(away)} >= {"slurmctld", "munge", "second door"}


def test_where_pbs_is_instead_of_slurm_the_cure_says_what_is_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    away = replace(patient(), site=None, site_trouble="scontrol: no such file", nodes=())
    [finding] = check_slurm(away)
    assert "batch" not in finding.cure
    (tmp_path / "pbs.conf").touch()
    [finding] = check_slurm(away)
    assert finding.cure.endswith('write batch = "pbs" under [daemon]')


@pytest.mark.parametrize(
    ("options", "name", "state", "says"),
    [
        ({"SLURM_VERSION": "27.11.0"}, "release", State.ADVICE, "Slurm 27.11.0 was not measured"),
        ({"SLURM_VERSION": "26.05.5"}, "release", State.OK, "Slurm 26.05.5"),
    ],
)
def test_the_release_is_known_or_said(
    options: dict[str, str], name: str, state: State, says: str
) -> None:
    assert found(check_slurm, patient(**options))[name] == (state, says)


def test_a_clock_that_goes_wrong_is_a_fault() -> None:
    assert found(check_slurm, replace(patient(), skew_s=-30.2))["clock"] == (
        State.FAULT,
        "slurmctld's clock is -30 s from this host's",
    )


@pytest.mark.parametrize(
    ("options", "name", "state", "says"),
    [
        ({"SchedulerParameters": "(null)"}, "backfill", State.ADVICE,
         "bf_interval is 30 s: a job that was made to fit a hole starts as late as that"),
        ({"SchedulerParameters": "bf_interval=5"}, "bf_continue", State.ADVICE,
         "not set: each change of a job ends a running backfill pass"),
        ({"SelectType": "select/cons_res"}, "select", State.FAULT,
         "SelectType is select/cons_res"),
        ({"PrivateData": "jobs,usage"}, "privacy", State.OK,
         "PrivateData=jobs,usage: respected: jobs; of no matter here: usage"),
        ({"PrivateData": "accounts,events,jobs,nodes,partitions,reservations,usage,users"},
         "privacy", State.OK,
         "PrivateData=accounts,events,jobs,nodes,partitions,reservations,usage,users: respected: "
         "jobs, nodes, partitions; of no matter here: accounts, events, reservations, usage, "
         "users"),
        ({"PrivateData": "jobs,weather"}, "privacy", State.ADVICE,
         "PrivateData=jobs,weather: weather is not known to Pliant and not respected"),
        ({"PreemptType": "preempt/partition_prio"}, "preemption", State.OK,
         "by PriorityTier: no job that would preempt others becomes smaller"),
        ({"PreemptType": "preempt/qos"}, "preemption", State.ADVICE,
         "preempt/qos is not seen: a job that would preempt others may get a smaller shape instead"),
    ],
)  # fmt: skip
def test_the_scheduler_is_judged(
    options: dict[str, str], name: str, state: State, says: str
) -> None:
    assert found(check_scheduler, patient(**options))[name] == (state, says)


@pytest.mark.parametrize(
    ("gres", "name", "state"),
    [
        ("(null)", "gpus", State.FAULT),
        ("gpu:4,shard:16", "gpu types", State.ADVICE),
        ("gpu:a100:4", "shares", State.ADVICE),
    ],
)
def test_the_gpus_are_judged(gres: str, name: str, state: State) -> None:
    assert found(check_gpus, patient(gres))[name][0] is state


@pytest.mark.parametrize(
    ("release", "gres", "state", "says"),
    [
        ("22.05.8", GOOD_GRES, State.OK, "in Slurm 22.05.8 a waiting job cannot give up its GPUs:"),
        ("24.05.1", "gpu:a100:4", State.OK, "in Slurm 24.05.1 a waiting job cannot give up its"),
        ("24.11.5", GOOD_GRES, State.OK, "every node has the dummy GRES nogpu: a waiting job can"),
        ("24.11.5", "gpu:a100:4", State.ADVICE, "not every node has the dummy GRES nogpu: a"),
    ],
)
def test_whether_a_waiting_job_can_give_up_its_gpus_is_said_as_it_is(
    release: str, gres: str, state: State, says: str
) -> None:
    finding = found(check_gpus, patient(gres, SLURM_VERSION=release))["cpu or gpu"]
    assert (finding[0], finding[1][: len(says)]) == (state, says)


def asking(access: str, hostname: str = "ctl", **options: str) -> SlurmPatient:
    config = parse({"slurm": {"access": access}, "daemon": {"socket": "/nowhere/pliantd.sock"}})
    counted = {"AccountingStorageTRES": "cpu,gres/gpu", "SLURM_VERSION": "25.11.7", **options}
    return replace(patient(**counted), config=config, hostname=hostname)


INSTEAD = "the commands are used instead"
MISSING = "libslurmfull.so: cannot open shared object file"


@pytest.mark.parametrize(
    ("access", "version", "trouble", "counts", "says"),
    [
        ("mixed", "25.11.2", "", "cpu,gres/gpu", ""),
        ("mixed", "25.11.2", "", "cpu", ""),
        ("native", "25.11.2", "", "cpu,gres/gpu", ""),
        ("native", "25.11.2", "", "cpu",
         "AccountingStorageTRES has no gres/gpu, by which pyslurm counts GPUs"),
        ("mixed", "", "", "cpu,gres/gpu", "pyslurm is not installed"),
        ("native", "24.11.0", "", "cpu", "pyslurm 24.11.0 does not fit Slurm 25.11.7"),
        ("mixed", "25.11.2", MISSING, "cpu,gres/gpu", MISSING),
    ],
)  # fmt: skip
def test_pyslurm_is_looked_for_where_it_is_asked_for(
    access: str, version: str, trouble: str, counts: str, says: str
) -> None:
    asked = asking(access, AccountingStorageTRES=counts)
    [finding] = check_access(asked, version=lambda: version, load=lambda _: trouble)
    if says:
        assert (finding.state, bool(finding.cure)) == (State.ADVICE, True)
        assert finding.says == f'access = "{access}", but {says}: {INSTEAD}'
    else:
        what = "changed" if access == "mixed" else "read and changed"
        assert (finding.state, finding.cure) == (State.OK, "")
        assert finding.says == f"jobs are {what} by pyslurm 25.11.2"


def test_of_pyslurm_nothing_is_said_where_the_commands_do_it_or_on_other_hosts() -> None:
    assert list(check_access(patient())) == []
    assert list(check_access(asking("commands"))) == []
    assert found(check_access, asking("native", hostname="login")) == {
        "access": (State.SKIPPED, "pyslurm is looked at on the controller")
    }


def test_a_pyslurm_that_does_not_load_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyslurm.py").write_text(f"raise ImportError({MISSING!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    config = asking("mixed").config
    assert config is not None
    assert loads(config) == f"pyslurm: ImportError: {MISSING}"
    (tmp_path / "pyslurm.py").write_text("RPCError = OSError\n")
    assert loads(config) == ""


def test_munge_is_asked_at_slurms_own_socket() -> None:
    asked: list[list[str]] = []

    def broken(argv: list[str], *, text: str = "") -> Answer:
        asked.append(argv)
        return Answer("", "munge: Error: no socket\n", 1)

    findings = found(check_munge, replace(patient(), run=broken))
    assert asked == [["munge", "--socket=/run/m"], ["unmunge", "--socket=/run/m"]]
    assert findings["munge"][0] is State.FAULT


def test_a_missing_munge_is_a_fault() -> None:
    def missing(argv: list[str], *, text: str = "") -> Answer:
        raise Unavailable("munge: No such file or directory")

    assert found(check_munge, replace(patient(), run=missing)) == {
        "munge": (State.FAULT, "munge: No such file or directory")
    }


def test_the_filters_files_are_looked_at_on_the_controller_alone() -> None:
    assert found(check_filter, patient()) == {
        "JobSubmitPlugins": (State.OK, "names lua"),
        "submit filter": (State.SKIPPED, "its files are looked at on the controller"),
    }


def test_a_controller_without_slurms_lua_plugin_is_told(tmp_path: Path) -> None:
    ctl = replace(patient(JobSubmitPlugins="defaults", PluginDir=str(tmp_path)), hostname="ctl.x")
    assert found(check_filter, ctl) == {
        "JobSubmitPlugins": (State.FAULT, "defaults: lua is not among them"),
        "slurmctld's Lua": (State.FAULT, f"job_submit_lua.so is in none of {tmp_path}"),
    }


@pytest.fixture
def filtered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., SlurmPatient]:
    """A controller with the filter's files, on a Lua that takes everything."""
    monkeypatch.setattr("pliant.cli.doctor.filter._library", lambda _patient: "liblua")
    monkeypatch.setattr("pliant.cli.doctor.script.compiles", lambda *_: "")
    monkeypatch.setattr("pliant.cli.doctor.filter.runs", lambda *_: ("table", ""))
    for name in ("job_submit.lua", "pliant.lua"):
        shutil.copy(resources.find("plugins", "slurm", name), tmp_path / name)
        os.utime(tmp_path / name, (1000, 1000))

    def controller(ping: str = "", **options: str) -> SlurmPatient:
        def run(argv: list[str], *, text: str = "") -> Answer:
            return Answer(ping, "", 0)

        here = patient(SLURM_CONF=str(tmp_path / "slurm.conf"), **options)
        return replace(here, run=run, hostname="ctl")

    return controller


def test_a_lua_without_luasocket_is_a_fault(
    filtered: Callable[..., SlurmPatient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def runs(_library: str, name: str, _chunk: str) -> tuple[str, str]:
        texts = {"version": "Lua 5.1", "socket": ""}
        return texts.get(name, "table"), ""

    monkeypatch.setattr("pliant.cli.doctor.filter.runs", runs)
    (socket,) = [f for f in check_filter(filtered()) if f.name == "luasocket"]
    assert (socket.state, socket.cure) == (
        State.FAULT,
        "install it for Lua 5.1: lua-socket (Debian), lua-socket-compat (RHEL), luarocks",
    )


RAISED = "attempt to index local 'x' (a nil value)"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("[2026-11-23T23:25:08.973] error: job_submit/lua: {script}: {script}:3: " + RAISED,
         "{script}:3: " + RAISED),  # as Slurm 22.05 wrote it
        ("[2026-11-23T23:25:08.973] error: lua: slurm_job_submit failed: {script}:3: " + RAISED,
         "{script}:3: " + RAISED),  # as Slurm 22.05 writes what a script logs
        ("[1970-01-01T00:00:01.000] error: job_submit/lua: {script}: {script}:3: " + RAISED, ""),
        ("[2026-11-23T23:25:08.973] error: job_submit/lua: /else.lua: " + RAISED, ""),
        ("[2026-11-23T23:25:08.973] _update_job: setting comment to slurm_job_submit failed: run: sh",
         ""),
        ("[2026-11-23T23:25:08.973] _update_job: setting comment to error: job_submit/lua: {script}: x",
         ""),
    ],
)  # fmt: skip
def test_an_error_that_the_sites_own_script_raised_is_a_fault(
    filtered: Callable[..., SlurmPatient], tmp_path: Path, line: str, says: str
) -> None:
    script, log = tmp_path / "job_submit.lua", tmp_path / "slurmctld.log"
    os.utime(script, (100_000, 100_000))  # of 1970 too: what came before is of another script
    os.utime(tmp_path / "pliant.lua", (100_000, 100_000))
    log.write_text(f"[2026-11-23T23:00:00.000] up\n{line.format(script=script)}\n")
    told = found(check_filter, filtered(SlurmctldLogFile=str(log))).get("job_submit.lua runs")
    failed = f"slurmctld's log says that it failed at a submission: {says.format(script=script)}"
    assert told == ((State.FAULT, failed) if says else None)


def test_a_module_that_slurmctld_has_not_read_is_told(
    filtered: Callable[..., SlurmPatient], tmp_path: Path
) -> None:
    assert {state for state, _ in found(check_filter, filtered()).values()} == {State.OK}
    os.utime(tmp_path / "pliant.lua", (2000, 2000))
    state, says = found(check_filter, filtered(BOOT_TIME="1500"))["pliant.lua in force"]
    assert (state, says) == (
        State.ADVICE,
        f"{tmp_path}/pliant.lua is newer than {tmp_path}/job_submit.lua, so slurmctld may still run "
        "the one before",
    )
    assert "pliant.lua in force" not in found(check_filter, filtered(BOOT_TIME="2500"))


@pytest.mark.parametrize(
    ("state", "expected", "says"),
    [
        ("UP", State.SKIPPED, "whether ctl2 has job_submit.lua and pliant.lua, without which"),
        ("DOWN", State.ADVICE, "slurmctld does not run on ctl2; without a job_submit.lua it"),
    ],
)
def test_the_other_controllers_are_not_forgotten(
    filtered: Callable[..., SlurmPatient], state: str, expected: State, says: str
) -> None:
    ping = f"Slurmctld(primary) at ctl is UP\nSlurmctld(backup) at ctl2 is {state}\n"
    here = filtered(ping, **{"SlurmctldHost[1]": "ctl2(10.0.0.2)"})
    said = found(check_filter, here)["other controllers"]
    assert said[0] is expected
    assert said[1].startswith(says)
    assert "other controllers" not in found(check_filter, filtered(ping))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("optional /usr/lib/pliant/pliant.so shards=4 # x\n", "optional /usr/lib/pliant/pliant.so shards=4"),
        ("# optional pliant.so\n", ""),
        ("include more.d/*.conf\n", "required pliant.so"),
        ("include nothing.d/*.conf\n", ""),
        ("include plugstack.conf\n", ""),
    ],
)  # fmt: skip
def test_the_plugins_line_is_found_through_includes(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "more.d").mkdir()
    (tmp_path / "more.d" / "a.conf").write_text("required pliant.so\n")
    stack = tmp_path / "plugstack.conf"
    stack.write_text(text)
    assert plugin_line(stack) == line


def test_a_plugin_of_another_release_is_told_in_slurms_words(tmp_path: Path) -> None:
    stack = tmp_path / "plugstack.conf"
    stack.write_text("optional /x/pliant.so\n")

    def complaining(argv: list[str], *, text: str = "") -> Answer:
        return Answer("usage", "sbatch: error: spank: /x/pliant.so: Incompatible\n", 0)

    sick = replace(patient(PlugStackConfig=str(stack)), run=complaining)
    assert found(check_spank, sick) == {
        "plugstack.conf": (State.OK, "names /x/pliant.so"),
        "sbatch": (
            State.FAULT,
            "it does not know --moldable: sbatch: error: spank: /x/pliant.so: Incompatible",
        ),
    }


def test_where_slurmctld_has_plugstack_conf_sbatch_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = tmp_path / "fetched.conf"
    monkeypatch.setattr("pliant.cli.doctor.spank.FETCHED", fetched)
    there = {"PlugStackConfig": str(tmp_path / "plugstack.conf")}
    configless = patient(**there, SlurmctldParameters="enable_configless")
    assert found(check_spank, configless) == {
        "plugstack.conf": (
            State.SKIPPED,
            "slurmctld has it: what it says is to be seen there",
        ),
        "sbatch": (State.OK, "knows --moldable"),
    }
    assert found(check_spank, patient(**there))["plugstack.conf"][0] is State.FAULT
    fetched.write_text("optional /x/pliant.so\n")
    assert found(check_spank, configless)["plugstack.conf"] == (State.OK, "names /x/pliant.so")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("required /x/pliant.so", "it says `required`: where the plugin is missing, jobs are refused"),
        ("optional /x/pliant.so off", "it says `off`: options are taken and do nothing"),
    ],
)  # fmt: skip
def test_the_plugins_line_is_judged(tmp_path: Path, line: str, says: str) -> None:
    stack = tmp_path / "plugstack.conf"
    stack.write_text(f"{line}\n")
    findings = found(check_spank, patient(PlugStackConfig=str(stack)))
    assert findings["plugstack.conf"] == (State.ADVICE, says)


def test_no_configuration_is_a_fault_with_the_command_that_writes_one() -> None:
    here = replace(patient(), config=None, config_trouble="no such file", hostname="ctl")
    [finding] = check_daemon(here)
    assert (finding.state, finding.says) == (State.FAULT, "no such file")
    assert finding.commands == ("pliant install slurm --part daemon --apply",)
    [finding] = check_daemon(replace(here, config_path=Path("/nowhere/pliant.toml")))
    assert (finding.cure, finding.commands) == ("write it; PLIANT_CONFIG names another", ())


def test_a_door_that_is_shut_on_purpose_is_advice() -> None:
    assert found(check_daemon, patient())["second door"] == (
        State.ADVICE,
        "off: pliant status, jobs, why and set cannot ask",
    )


def test_a_daemon_that_is_away_is_a_fault(tmp_path: Path) -> None:
    config = parse({"daemon": {"socket": str(tmp_path / "s"), "state_dir": str(tmp_path / "no")}})
    findings = found(check_daemon, replace(patient(), config=config, hostname="ctl"))
    assert findings["filter's door"][0] is State.FAULT
    assert findings["store"] == (State.FAULT, f"{tmp_path}/no: No such file or directory")


@pytest.mark.parametrize(
    ("hostname", "others", "says"),
    [
        ("ctl", {}, ""),
        ("CTL.cluster.org", {}, ""),
        ("head", {}, "SlurmctldHost: ctl"),
        (
            *("head", {"SlurmctldHost[1]": "ctl2"}),
            "SlurmctldHost: ctl, ctl2: it acts also while pliantd does on one of them",
        ),
    ],
)
def test_pliantd_on_a_host_that_slurm_conf_does_not_name_is_warned_of(
    tmp_path: Path, hostname: str, others: dict[str, str], says: str
) -> None:
    door = tmp_path / "pliantd.sock"
    config = parse({"daemon": {"socket": str(door), "listen": ""}})
    here = replace(patient(**others), config=config, hostname=hostname)
    assert found(check_host, here) == {}  # pliantd does not run here
    door.touch()
    told = (State.ADVICE, f"pliantd runs here, and head is none of {says}") if says else None
    assert found(check_host, here).get("host") == told


STATUS = StatusAnswer(
    "0.1.0", "ctl", "fms", 0.0, 5.0, False,
    partitions=(PartitionRow("gpu", "observe"), PartitionRow("cpu", "off")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("partitions", "status", "expected"),
    [
        ({"default": "observe"}, STATUS, [("mode", State.ADVICE)]),
        ({"gup": "enforce"}, STATUS, [("partitions", State.FAULT), ("mode", State.ADVICE)]),
        (
            {"gpu": "enforce"},
            replace(STATUS, partitions=(PartitionRow("gpu", "enforce"),)),
            [("mode", State.OK)],
        ),
        ({}, replace(STATUS, paused=True), [("mode", State.ADVICE), ("mode", State.ADVICE)]),
    ],
)
def test_the_modes_are_judged(
    partitions: dict[str, str], status: StatusAnswer, expected: list[tuple[str, State]]
) -> None:
    config = parse({"partitions": partitions})
    assert [
        (finding.name, finding.state) for finding in modes(patient(), config, status)
    ] == expected


def test_submissions_without_an_answer_are_told() -> None:
    (found,) = unanswered(patient(), replace(STATUS, unanswered=132, submissions=269))
    assert found.state is State.ADVICE
    assert found.says.startswith("132 jobs with Pliant's options got no answer in time")
    assert [*unanswered(patient(), STATUS)] == []
