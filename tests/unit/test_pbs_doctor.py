"""`pliant doctor` on PBS: what can go wrong there, over a recorded server and a double of qmgr."""

from __future__ import annotations

import base64
import getpass
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from pbs_qmgr import TEXT, qmgr
from pbs_recorded import Recorded

from pliant.batch.clients import Answer
from pliant.cli import cli
from pliant.cli.doctor import PBS, examine, pbs_hooks
from pliant.cli.doctor.daemon import check_daemon
from pliant.cli.doctor.findings import State
from pliant.cli.doctor.munge import check_munge
from pliant.cli.doctor.patient import Host
from pliant.cli.doctor.pbs_patient import PbsPatient, looked_at
from pliant.cli.door import controllers
from pliant.daemon.config import Config, parse
from pliant.errors import Unavailable
from pliant.filter.pbs import state as filed
from pliant.hooks import HOOKS

ME = getpass.getuser()
LISTED = """\
Sched default
    sched_host = head
    sched_priv = {priv}
    scheduling = True
    state = idle

"""
SCHED_CONFIG = """\
# it has more lines than these
round_robin: False\tall
fair_share: false\tALL
resources: "ncpus, mem, arch, host, vnode, ngpus, gpu_model"
"""


class Site:
    """A server with Pliant in it, as it is where all is well."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.recorded, self.qmgr = Recorded(), qmgr(directory, monkeypatch)
        self.server = self.recorded.answers["server"]["Server"]["head"]
        self.server["managers"] = f"other@*,{ME}@head"
        self.queue = self.recorded.answers["queues"]["Queue"]["workq"]
        self.nodes = self.recorded.answers["nodes"]["nodes"]
        self.qmgr.state["resource"]["gpu_model"] = {"type": "string", "flag": "h"}
        self.refuses: Mapping[str, str] = {}
        self.listed = LISTED.format(priv=directory)
        (directory / "sched_config").write_text(SCHED_CONFIG)
        self.says()
        toml = f'[pbs]\nstate = "{self.state}"\n'
        (directory / "pliant.toml").write_text(toml)
        self.qmgr.install("--apply", "--user", ME)

    @property
    def state(self) -> Path:
        return self.directory / "state.json"

    @property
    def hooks(self) -> dict[str, dict[str, str]]:
        return self.qmgr.state["hook"]

    def says(self, age_s: float = 0.0) -> None:
        self.state.write_text(filed.state_text(filed.State(time.time() - age_s)))
        self.state.chmod(0o644)

    def configured(self, hook: str, **changes: object) -> None:
        """Give one hook another configuration; what is None is taken away."""
        said = json.loads(base64.b64decode(self.hooks[hook]["config"]))
        kept = {key: value for key, value in {**said, **changes}.items() if value is not None}
        self.hooks[hook]["config"] = base64.b64encode(json.dumps(kept).encode()).decode()

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer as PBS."""
        words = " ".join(argv)
        for asked, complaint in self.refuses.items():
            if asked in words:
                return Answer("", complaint, 1)
        if words == "qmgr -c list sched":
            return Answer(self.listed, "", 0)
        return (self.qmgr if argv[0] == "qmgr" else self.recorded).run(argv, env=env, stdin=stdin)

    def beside(self, argv: list[str], *, text: str = "") -> Answer:
        """Answer as munge, where it is broken."""
        return Answer("", f"{argv[0]}: no socket for {text}\n", 1)

    def config(self, share: str = "", **daemon: str) -> Config:
        said = {"batch": "pbs", "socket": str(self.directory / "none.sock"), **daemon}
        pbs = {"state": str(self.state), "type_resource": "gpu_model", "share_resource": share}
        return parse({"daemon": said, "pbs": pbs})

    def patient(self, **changes: object) -> PbsPatient:
        known = PbsPatient(
            run=self.beside,
            commands=self,
            config=self.config(),
            config_trouble="",
            config_path=self.directory / "pliant.toml",
            hostname="head.cluster.org",
            user=ME,
            is_root=True,
            now_s=time.time(),
        )
        return replace(looked_at(known), **changes)  # type: ignore[arg-type]  # each has its own type


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(pbs_hooks, "hook_text", TEXT)
    return Site(tmp_path, monkeypatch)


def told(patient: PbsPatient) -> dict[str, tuple[State, str]]:
    """What is told of PBS itself: pliantd does not run here."""
    checks = [check for check in PBS if check not in (check_munge, check_daemon)]
    return {one.name: (one.state, one.says) for check in checks for one in check(patient)}


def test_a_healthy_pbs_is_not_complained_about(site: Site) -> None:
    found = told(site.patient())
    assert {name: said for name, said in found.items() if said[0] is not State.OK} == {}
    assert {name: found[name][1] for name in ("gpus", "gpu types", "scheduler", "order")} == {
        "gpus": "12 on 3 nodes",
        "gpu types": "a100, v100",
        "scheduler": "default on head is idle",
        "order": "queues by priority, then as jobs came: Pliant keeps to it",
    }
    assert {f"pliant_{event}" for event in HOOKS} <= found.keys()


def server_says(**said: object) -> Callable[[Site], None]:
    return lambda site: site.server.update(said)


def hook_is(event: str, /, **said: str) -> Callable[[Site], None]:
    return lambda site: site.hooks[f"pliant_{event}"].update(said)


def settings(event: str, /, **said: object) -> Callable[[Site], None]:
    return lambda site: site.configured(f"pliant_{event}", **said)


def resource(name: str, /, **said: str) -> Callable[[Site], None]:
    return lambda site: site.qmgr.state["resource"][name].update(said)


def without(kind: str, name: str) -> Callable[[Site], None]:
    return lambda site: site.qmgr.state[kind].__delitem__(name)


def scheduler(before: str, after: str) -> Callable[[Site], None]:
    def changed(site: Site) -> None:
        site.listed = site.listed.replace(before, after)

    return changed


def sched_config(before: str, after: str) -> Callable[[Site], None]:
    def changed(site: Site) -> None:
        (site.directory / "sched_config").write_text(SCHED_CONFIG.replace(before, after))

    return changed


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


OLD = TEXT("queuejob").replace("# Pliant ", "# Pliant 0.0.", 1)


@pytest.mark.parametrize(
    ("change", "name", "state", "says"),
    [
        (server_says(pbs_version="2029.1"), "release", State.ADVICE, "PBS 2029.1 was not measured"),
        (server_says(query_other_jobs="False"), "query_other_jobs", State.FAULT, "False: nobody"),
        (server_says(scheduling="False"), "scheduling", State.ADVICE, "off: PBS starts no job"),
        (server_says(job_sort_formula="eligible_time"), "order", State.ADVICE,
         "job_sort_formula eligible_time: not seen"),
        (server_says(job_sort_formula="9*ncpus"), "order", State.ADVICE,
         "job_sort_formula names ncpus: no job is given another shape"),
        (scheduler("state =", "job_sort_formula = ngpus\n    state ="), "order", State.ADVICE,
         "job_sort_formula of default names ngpus: no job is given"),
        (sched_config("round_robin", 'job_sort_key: "mem LOW" ALL\nround_robin'), "order",
         State.ADVICE, "job_sort_key of default names mem: no job is given"),
        (server_says(node_group_enable="True", node_group_key="rack,switch"), "placement sets",
         State.OK, "node_group_key rack,switch of the server: no job is spread"),
        (lambda s: s.queue.update(partition="p1"), "scheduler", State.FAULT,
         "partition p1 of queue workq has none: no job there starts"),
        (server_says(max_run_res="x"), "limits", State.OK, "max_run_res: no job is made larger"),
        (server_says(resources_max={"ngpus": 4, "walltime": "9:00"}), "limits", State.OK,
         "resources_max.ngpus=4 of the server: no job is given more"),
        (lambda s: s.queue.update(resources_min={"mem": "1gb"}), "limits", State.OK,
         "resources_min.mem=1gb of queue workq: no job is given less"),
        (lambda s: s.queue.update({"max_group_res.ngpus": 4}), "limits", State.OK,
         "limits of queue workq: no job is made larger"),
        (server_says(resources_available={"ngpus": 4, "licences": 9}), "limits", State.OK,
         "resources_available.ngpus: no job is made larger"),
        (lambda s: s.queue.update(default_chunk={"ncpus": 1, "Qlist": "q"}), "defaults",
         State.ADVICE, "default_chunk.qlist of queue workq: jobs there keep their shapes"),
        (scheduler("= idle", "= down"), "scheduler", State.FAULT, "default is down: no job starts"),
        (scheduler("scheduling = True", "scheduling = False"), "scheduler", State.ADVICE,
         "default does not schedule"),
        (scheduler("state =", "job_sort_formula = a+b\n    state ="), "order", State.ADVICE,
         "job_sort_formula a+b: not seen"),
        (scheduler("sched_priv", "nothing"), "sched_config", State.SKIPPED, "that of default is"),
        (sched_config("fair_share: false", "fair_share: True"), "order", State.ADVICE, "fair_share:"),
        (sched_config("round_robin: False", "round_robin: True prime\nround_robin: False"), "order",
         State.ADVICE, "round_robin: not seen"),
        (sched_config("round_robin", 'job_sort_key: "cput LOW" ALL\nround_robin'), "order",
         State.ADVICE, "job_sort_key: not seen"),
        (sched_config(", ngpus", ""), "sched_config", State.FAULT, "ngpus is not in resources"),
        (sched_config("resources:", "#resources:"), "sched_config", State.FAULT, "gpu_model, ngpus"),
        (without("resource", "ngpus"), "ngpus", State.FAULT, "there is no resource of this name"),
        (resource("ngpus", flag="h"), "ngpus", State.FAULT, "its type is long, its flag h:"),
        (resource("ngpus", type="string"), "ngpus", State.FAULT, "its type is string, its flag hn"),
        (lambda s: [n["resources_available"].pop("ngpus") for n in s.nodes.values()], "gpus",
         State.FAULT, "no node has ngpus"),
        (lambda s: s.nodes["gn2"]["resources_available"].pop("gpu_model"), "gpu types",
         State.ADVICE, "gn2 says nothing of gpu_model"),
        (without("resource", "gpu_model"), "gpu types", State.FAULT, "[pbs] type_resource is gpu_m"),
        (without("resource", "steps"), "resources", State.FAULT, "steps: not there"),
        (resource("pliant", flag="q"), "resources", State.FAULT, "pliant: flag is q instead of r"),
        (resource("steps", type="long"), "resources", State.FAULT, "steps: type is long instead of"),
        (without("hook", "pliant_periodic"), "pliant_periodic", State.FAULT, "it is not there"),
        (lambda s: s.hooks.update(pliant_execjob_prologue={"event": "execjob_prologue"}),
         "pliant_execjob_prologue", State.ADVICE, "of an earlier release: each job starts later"),
        (hook_is("queuejob", enabled="false"), "pliant_queuejob", State.FAULT,
         "enabled is false instead of true"),
        (hook_is("queuejob", event="modifyjob"), "pliant_queuejob", State.FAULT, "event is modifyjob"),
        (hook_is("queuejob", alarm="60"), "pliant_queuejob", State.ADVICE, "alarm is 60 instead of 5"),
        (hook_is("execjob_launch", alarm="30"), "pliant_execjob_launch", State.FAULT,
         "alarm is 30 instead of 300"),
        (hook_is("execjob_launch", alarm="900"), "pliant_execjob_launch", State.ADVICE,
         "alarm is 900 instead of 300"),
        (hook_is("queuejob", python=base64_of(OLD)), "pliant_queuejob", State.ADVICE, "it is of 0.0."),
        (hook_is("queuejob", python=base64_of("import pbs")), "pliant_queuejob", State.ADVICE,
         "it is of another text"),
        (hook_is("queuejob", python=""), "pliant_queuejob", State.FAULT, "it has no text"),
        (settings("periodic", state="/x"), "hooks' settings", State.FAULT,
         "pliant_periodic: state is /x, and pliantd writes /"),
        (settings("queuejob", statt="/x"), "hooks' settings", State.ADVICE,
         "pliant_queuejob: statt is no key that it reads"),
        (settings("queuejob", wait_s="60"), "hooks' settings", State.ADVICE,
         "pliant_queuejob: wait_s is '60': a value of type int is expected"),
        (settings("queuejob", wait_s=30), "hooks' settings", State.OK, "they read "),
        (settings("queuejob", back="hold"), "hooks' settings", State.ADVICE,
         "pliant_queuejob: back is no key that it reads"),
        (hook_is("modifyjob", config=base64_of("[1]")), "hooks' settings", State.FAULT,
         "pliant_modifyjob: no JSON object: they take their defaults"),
        (lambda s: s.says(age_s=45), "state file", State.FAULT, "written 45 s ago; hooks believe it"),
        (lambda s: s.state.unlink(), "state file", State.FAULT, "No such file or directory"),
        (lambda s: s.state.chmod(0o666), "state file", State.FAULT, "others may write it: -rw-rw-rw-"),
        (lambda s: s.state.write_text("{}"), "state file", State.FAULT, "the state file is damaged"),
        (lambda s: s.state.write_text(" " * 300_000), "state file", State.FAULT, "it is larger than"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(
    site: Site, change: Callable[[Site], object], name: str, state: State, says: str
) -> None:
    change(site)
    found = told(site.patient())[name]
    assert found[0] is state
    assert says in found[1]


def test_a_file_that_the_hooks_do_not_believe_is_told(site: Site) -> None:
    site.state.rename(site.directory / "there")
    site.state.symlink_to(site.directory / "there")
    assert told(site.patient())["state file"][1].endswith("it is no regular file")
    site.state.unlink()
    site.says()
    if os.geteuid() == 0:
        os.chown(site.state, 1, -1)
    else:
        site.configured("pliant_queuejob", owner=1)
    state, says = told(site.patient())["state file"]
    assert (state, "whom the hooks do not believe" in says) == (State.FAULT, True)


def test_a_pliantd_that_may_change_nothing_is_told(site: Site) -> None:
    site.server["managers"] = "root@head"
    asked = site.config(user="daemon")
    found = told(site.patient(config=asked))
    assert found["rights"] == (
        State.FAULT,
        "pliantd's user daemon is no manager: PBS refuses it all changes",
    )
    assert found["hooks' settings"][0] is State.FAULT  # they believe another user
    site.server["managers"] = "daemon@*"
    assert told(site.patient(config=asked))["rights"][0] is State.OK
    unknown = site.patient(config=site.config(user="not-here"))
    assert told(unknown)["rights"] == (State.FAULT, "pliantd's user not-here is not known here")


@pytest.mark.parametrize(
    ("events", "order", "enabled", "is_told"),
    [
        ("execjob_begin,execjob_epilogue", "1", "true", True),
        ("execjob_epilogue", "100", "true", True),
        ("execjob_epilogue", "100", "false", False),
        ("execjob_epilogue,execjob_end", "100", "true", False),  # as pbs_cgroups
        ("execjob_epilogue", "-5", "true", False),
        ("execjob_end", "1", "true", False),
    ],
)
def test_a_hook_that_is_not_called_for_a_run_that_goes_back_is_named(
    site: Site, events: str, order: str, enabled: str, is_told: bool
) -> None:
    site.hooks["cleans"] = {"event": events, "order": order, "enabled": enabled}
    said = (
        State.ADVICE,
        "execjob_epilogue: not called for a run that pliant_execjob_epilogue sends back",
    )
    assert told(site.patient()).get("cleans") == (said if is_told else None)


def test_where_nothing_is_installed_the_hooks_are_one_fault(site: Site) -> None:
    site.hooks.clear()
    found = told(site.patient())
    assert found["hooks"] == (State.FAULT, "none of Pliant's is there")
    assert not [name for name in found if name.startswith(("pliant_", "hooks'"))]


def test_no_server_is_one_fault_and_the_rest_is_still_looked_at(site: Site) -> None:
    site.refuses = {"qstat -B": "qstat: cannot connect to server head (errno=111)"}
    findings = examine(site.patient(missing=("qmgr",)))
    assert [(one.name, one.state) for one in findings[:2]] == [
        ("commands", State.FAULT),
        ("server", State.FAULT),
    ]
    assert findings[1].says == "qstat -B: qstat: cannot connect to server head (errno=111)"
    assert {one.name for one in findings} >= {"munge", "pliant.toml", "second door"}


def test_what_qmgr_does_not_tell_is_skipped_for_a_user_and_a_fault_for_root(site: Site) -> None:
    site.refuses = {"print hook": "qmgr obj= svr=default: Unauthorized Request"}
    as_root = told(site.patient())
    assert as_root["qmgr"][0] is State.FAULT
    assert as_root["hooks"] == (State.SKIPPED, f"qmgr tells {ME} nothing of them here")
    user = told(site.patient(is_root=False, user="ada"))
    assert user["doctor"] == (
        State.SKIPPED,
        "ada does not see all here: root on head does",
    )
    assert user["resources"][0] is State.OK  # everybody may see them
    assert user["rights"] == (State.SKIPPED, "those of pliantd's user are seen by root on head")
    assert not [name for name, said in user.items() if said[0] is State.FAULT]


def test_another_host_than_the_servers_looks_at_what_it_can(site: Site) -> None:
    login = site.patient(hostname="login")
    found = told(login)
    assert found["state file"] == (State.SKIPPED, "it is looked at on head")
    assert found["rights"][0] is State.SKIPPED
    assert found["sched_config"][0] is State.SKIPPED  # a file of this name is here too
    (site.directory / "none.sock").touch()
    assert told(login)["host"][0] is State.FAULT  # pliantd runs here: the hooks do not hear of it


def test_shares_are_to_be_counted_as_gpus_are(site: Site) -> None:
    config = site.config(share="gpu_share")
    found = told(site.patient(config=config))
    assert found["gpu_share"] == (State.FAULT, "there is no resource of this name")
    assert "gpu_share is not in resources" in found["sched_config"][1]
    site.qmgr.state["resource"]["gpu_share"] = {"type": "float", "flag": "h"}
    found = told(site.patient(config=config))
    assert "its flag h: nodes do not count it" in found["gpu_share"][1]
    site.qmgr.state["resource"]["gpu_share"]["flag"] = "hn"
    sched_config("ngpus", "ngpus, gpu_share")(site)
    found = told(site.patient(config=config))
    assert found["gpu_share"] == (State.OK, "type float, flag hn")
    assert found["sched_config"] == (State.OK, "default looks at gpu_model, gpu_share, ngpus")


def test_vnodes_of_single_gpus_are_told_by_their_hosts(site: Site) -> None:
    site.qmgr.state["resource"]["gpu_share"] = {"type": "float", "flag": "hn"}
    here = {"host": "gn1", "gpu_model": "a100"}
    for gpu in range(2):
        one = {**site.nodes["gn1"], "resources_available": {**here, "ngpus": 1}}
        site.nodes[f"gn1-gpu{gpu}"] = one
    shared = {**site.nodes["gn1"], "resources_available": {**here, "gpu_share": 1}}
    site.nodes["gn1-gpu2"] = shared
    found = told(site.patient(config=site.config(share="gpu_share")))
    assert found["gpus"] == (State.OK, "14 on 3 nodes, and 1 in shares")


def test_everything_but_ok_has_a_cure_or_could_not_be_seen(site: Site) -> None:
    server_says(pbs_version="9", query_other_jobs="False", job_sort_formula="x")(site)
    site.qmgr.state = {"resource": {}, "hook": {}}
    site.state.unlink()
    sched_config("resources", "nothing")(site)
    findings = examine(site.patient(config=None, config_trouble="no file", missing=("qrun",)))
    assert [f for f in findings if f.state in (State.ADVICE, State.FAULT) and not f.cure] == []
    assert [f for f in findings if "\n" in f.says + f.cure] == []
    assert len([f for f in findings if f.state is State.FAULT]) > 6


@pytest.mark.parametrize(
    ("text", "conf", "expected"),
    [
        ('[daemon]\nbatch = "pbs"\n', False, True),
        ('[daemon]\nbatch = "pbs"\ncycle_s = "soon"\n', False, True),
        ("[daemon]\n", True, False),
        ('[daemon]\nbatch = "pbs', False, False),
        (None, True, True),
        (None, False, False),
    ],
)
def test_the_system_is_the_one_that_pliant_toml_names_or_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, conf: bool, expected: bool
) -> None:
    toml = tmp_path / "pliant.toml"
    if text is not None:
        toml.write_text(text)
    if conf:
        (tmp_path / "pbs.conf").touch()
    monkeypatch.setenv("PLIANT_CONFIG", str(toml))
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    monkeypatch.setenv("PATH", str(tmp_path))  # no scontrol
    assert Host.of("ada").is_of_pbs is expected


def test_the_command_looks_at_pbs_and_exits_as_it_does_on_slurm(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = f'[daemon]\nbatch = "pbs"\n[pbs]\nbin_dir = "{site.directory}"\n'
    (site.directory / "pliant.toml").write_text(toml)
    result = CliRunner().invoke(cli, ["doctor", "--json"])
    findings = {one["name"]: one for one in json.loads(result.output)}
    assert (result.exit_code, findings["commands"]["state"]) == (1, "fault")
    assert findings["commands"]["cure"].startswith("[pbs] bin_dir")
    monkeypatch.setattr("pliant.cli.doctor.gather_pbs", lambda _host: site.patient())
    monkeypatch.setattr("pliant.cli.doctor.PBS", PBS[:1])
    result = CliRunner().invoke(cli, ["doctor"])
    assert result.exit_code == 0
    assert result.output.endswith("\nfaults: 0, advice: 0\n")


@pytest.mark.parametrize(
    ("said", "server", "expected"),
    [
        ("PBS_SERVER=head\n", "", ["head"]),
        ("PBS_SERVER=head # this one\nPBS_PRIMARY=a\nPBS_SECONDARY='b'\n", "", ["a", "b"]),
        ("PBS_SERVER=pool\nPBS_SERVER_HOST_NAME=head.x\n", "", ["head.x"]),
        ("PBS_SERVER=head\n", "other", ["other"]),
    ],
)
def test_pliantd_is_looked_for_where_the_server_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, server: str, expected: list[str]
) -> None:
    (tmp_path / "pbs.conf").write_text(said)
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    config = parse({"daemon": {"batch": "pbs"}, "pbs": {"server": server}})
    assert list(controllers(config)) == expected


def test_where_nothing_names_a_server_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    with pytest.raises(Unavailable, match="names no PBS_SERVER: set PLIANT_HOST"):
        controllers(parse({"daemon": {"batch": "pbs"}}))
