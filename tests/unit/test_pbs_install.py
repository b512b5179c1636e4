"""`pliant install pbs`, over a small double of qmgr."""

from __future__ import annotations

import base64
import json
import time
from copy import deepcopy
from pathlib import Path
from socket import gethostname

import pytest
from click.testing import CliRunner
from pbs_qmgr import Server, qmgr
from pbs_recorded import Recorded

from pliant.cli import cli
from pliant.cli.install.pbs_held import held_jobs, release
from pliant.cli.install.pbs_parts import found_in
from pliant.errors import Refused
from pliant.filter.pbs.fences import Fence, fences_text
from pliant.filter.pbs.names import RESOURCES, TOKEN
from pliant.hooks import HOOKS


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    return qmgr(tmp_path, monkeypatch)


def test_what_is_shown_is_what_is_done_and_done_once(server: Server) -> None:
    before = deepcopy(server.state)
    shown = server.install("--print").output
    assert server.state == before
    assert server.install("--apply").output.startswith(shown)
    assert server.install().output == "all is installed\n"
    assert server.install("--apply").output == "all is installed\n"


def test_the_line_by_which_the_scheduler_counts_gpus_is_shown_and_left_to_the_administrator(
    server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "sched_config"
    text = 'fair_share: false\nresources: "ncpus, mem, host"  # and more\n'
    path.write_text(text)
    host = f"sched_host = {gethostname()}"
    server.schedulers = f"Sched default\n    {host}\n    sched_priv = {tmp_path}\n"
    words = f"to be written in {path}, then kill -HUP the scheduler: resources:"
    line = f'{words} "ncpus, mem, host, ngpus"\n'
    shown = server.install("--print").output
    assert shown.endswith(line)
    assert server.install("--apply").output.startswith(shown)
    assert server.install().output == "all is installed\n" + line
    assert path.read_text() == text
    path.write_text(text.replace("host", "host, ngpus"))
    assert server.install().output == "all is installed\n"
    path.unlink()
    assert server.install().output == "all is installed\n"  # no business of this host


def test_all_stands_before_a_job_is_changed(server: Server) -> None:
    lines = server.install("--apply").output.splitlines()
    assert lines[-2] == "set hook pliant_queuejob enabled = true"
    state = server.state
    assert {"ngpus", TOKEN, *RESOURCES.values()} == set(state["resource"])
    assert state["resource"][TOKEN] == {"type": "string", "flag": "r"}
    assert {name.removeprefix("pliant_") for name in state["hook"]} == set(HOOKS)
    for one in state["hook"].values():
        compile(base64.b64decode(one["python"]), "hook", "exec")
        assert json.loads(base64.b64decode(one["config"]))["owner"] == 0
    orders = {name for name, one in state["hook"].items() if one.get("order") == "1000"}
    last = {"pliant_queuejob", "pliant_modifyjob", "pliant_movejob"}
    assert orders == last  # after the site's own
    alarms = {name: int(one["alarm"]) for name, one in state["hook"].items()}
    assert alarms["pliant_queuejob"] <= 5  # the server stands still meanwhile
    assert alarms["pliant_execjob_launch"] >= 300  # its end would be the job's


def test_what_somebody_changed_is_put_right_and_nothing_else(server: Server) -> None:
    server.install("--apply")
    server.state["hook"]["pliant_queuejob"]["alarm"] = "90"
    server.state["hook"]["pliant_launch"] = {"event": "execjob_launch"}
    assert server.install().output == "set hook pliant_queuejob alarm = 5\n"


@pytest.mark.parametrize("word", ["--apply", "--remove"])
def test_a_hook_that_is_none_any_more_is_taken_away(server: Server, word: str) -> None:
    server.install("--apply")
    server.state["hook"]["pliant_execjob_prologue"] = {"event": "execjob_prologue"}
    assert "delete hook pliant_execjob_prologue\n" in server.install(word).output
    assert "pliant_execjob_prologue" not in server.state["hook"]


def test_removal_leaves_the_server_as_it_was(server: Server) -> None:
    server.state["resource"]["steps"] = {"type": "string"}  # the site has one of this name
    before = deepcopy(server.state)
    server.install("--apply")
    server.install("--remove")
    assert (server.state, server.record.exists()) == (before, False)
    assert server.install("--remove").output == "nothing is installed\n"


def test_nor_does_it_leave_what_the_hooks_have_noted(server: Server, tmp_path: Path) -> None:
    (tmp_path / "pliant.toml").write_text(f'[pbs]\nstate = "{tmp_path}/pbs_state.json"\n')
    server.install("--apply")
    config = json.loads(base64.b64decode(server.state["hook"]["pliant_runjob"]["config"]))
    noted = Path(config["taken"])
    assert noted.parent == tmp_path
    noted.touch()
    server.install("--remove")
    assert not noted.exists()


def test_the_hook_that_sends_jobs_back_ends_before_all_others_but_one(server: Server) -> None:
    server.install("--apply")
    server.told.clear()
    server.install("--remove")
    assert server.told[:3] == [
        "set hook pliant_execjob_epilogue enabled = false",
        "delete hook pliant_queuejob",
        "delete hook pliant_execjob_epilogue",
    ]


BACK = {"run_count": 2, "Variable_List": {"PLIANT_BACK": "2:1"}}
STARTS = {"run_count": 3, "job_state": "R", "Variable_List": {"PLIANT_BACK": "2:1"}}


@pytest.mark.parametrize("one", [{**BACK, "job_state": "W"}, {**BACK, "job_state": "H"}, STARTS])
@pytest.mark.parametrize("looks", [0, 1])
def test_nothing_is_removed_while_a_job_is_between_two_runs(
    server: Server, one: dict[str, object], looks: int
) -> None:
    server.install("--apply")
    before = deepcopy(server.state)
    rest: dict[str, object] = {"8.head": {"job_state": "R", "run_count": 1}}
    server.looks = [*[rest] * looks, {"7.head": one}]
    with pytest.raises(Refused, match=r"^job 7 is between two runs: nothing was removed"):
        server.install("--remove", catches=False)
    assert server.state == before
    server.looks = [{"7.head": {**one, "job_state": "Q", "run_count": 3}}] * 2
    server.install("--remove")
    assert server.state["hook"] == {}


def test_nor_while_one_that_has_saved_is_to_end(server: Server, tmp_path: Path) -> None:
    (tmp_path / "pliant.toml").write_text(f'[pbs]\nstate = "{tmp_path}/pbs_state.json"\n')
    server.install("--apply")
    fence = Fence("7", time.time() + 60, ("gn1",), ("7",), ("workq",))
    (tmp_path / "pbs_fences.json").write_text(fences_text([fence]))
    with pytest.raises(Refused, match=r"^job 7 is between two runs"):
        server.install("--remove", catches=False)
    assert len(server.state["hook"]) == len(HOOKS)


HELD = {
    "job_state": "H",
    "Hold_Types": "s",
    "run_count": 4,
    "Variable_List": {"PLIANT_HELD": 4, "PLIANT_BACK": "4:1"},
}
"""A job as the hook of 0.1.0 left it where the site had it do so."""


def test_whom_the_hook_of_0_1_0_holds_is_shown_and_released_once_all_is_installed(
    server: Server,
) -> None:
    server.looks = [{"7.head": HELD, "8.head": {**HELD, "run_count": 5}}] * 2
    line = "qrls -h s 7: the hook of 0.1.0 holds job 7\n"
    assert server.install("--print").output.endswith(line)
    assert server.told == []
    assert line in server.install("--apply").output
    assert server.told[-1] == "qrls -h s 7"
    assert server.install("--apply").output == "all is installed\n"


def test_whom_pbs_does_not_release_is_named(server: Server) -> None:
    server.looks, server.holds = [{"7.head": HELD}], {"7": "qrls: Unauthorized Request"}
    with pytest.raises(Refused, match=r"^job 7: it stays held: qrls: Unauthorized Request"):
        server.install("--apply", catches=False)
    assert len(server.state["hook"]) == len(HOOKS)


@pytest.mark.parametrize(
    ("more", "held"),
    [
        ({}, ["30"]),
        ({"run_count": 0, "Variable_List": {"PLIANT_HELD": 0}}, ["30"]),  # it was to be resized
        ({"comment": "Job held by root"}, []),
        ({"comment": "Not Running: Job held"}, ["30"]),
        ({"depend": "beforeany:35.head@head,afterok:31.head@head"}, []),
        ({"Hold_Types": "us"}, []),
        ({"Hold_Types": "n"}, []),
        ({"job_state": "R"}, []),
        ({"run_count": 5}, []),  # it has run since
        ({"Variable_List": {"PLIANT_HELD": ""}}, []),
        ({"Variable_List": {"PLIANT_BACK": "4:1"}}, []),
    ],
)
def test_nobody_elses_hold_is_taken_for_that_of_0_1_0(
    more: dict[str, object], held: list[str]
) -> None:
    site = Recorded()
    site.job("30").update({**HELD, **more})
    assert held_jobs(site) == held
    for job in held:
        release(site, job)
    assert site.said == [("qrls", "-h", "s", job) for job in held]


@pytest.mark.parametrize(
    ("name", "has", "words"),
    [
        ("moldable", {"type": "string_array"}, "its type is string_array, and Pliant's is string"),
        ("steps", {"type": "string", "flag": "q"}, "its flag is q, and Pliant's is not set"),
        ("throughput", {"type": "string", "flag": "h"}, "its flag is h, and"),
        (TOKEN, {"type": "string"}, "its flag is not set, and Pliant's is r"),
    ],
)
def test_another_sort_of_resource_that_the_site_has_is_left_and_named(
    server: Server, name: str, has: dict[str, str], words: str
) -> None:
    server.state["resource"][name] = has
    before = deepcopy(server.state)
    for how in ("--print", "--apply"):
        with pytest.raises(Refused, match=f"resource {name}: .*: {words}"):
            server.install(how, catches=False)
    assert (server.state, server.record.exists()) == (before, False)


def test_what_a_job_still_has_is_left_and_said(server: Server) -> None:
    server.install("--apply")
    server.busy = frozenset({"moldable"})
    output = server.install("--remove", status=1).output
    assert "left: delete resource moldable: qmgr obj= svr=default: Resource busy on job" in output
    assert (list(server.state["resource"]), server.state["hook"]) == (["ngpus", "moldable"], {})
    server.busy = frozenset()
    assert server.install("--remove").output == "delete resource moldable\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--apply", "--remove"), "one of them is expected"),
        (("--user", "nobody-here"), "the name of a user here is expected"),
        (("--record", "x"), "an absolute path is expected"),
    ],
)
def test_bad_words_are_said_in_one_line(
    server: Server, words: tuple[str, ...], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        CliRunner().invoke(cli, ["install", "pbs", *words], catch_exceptions=False)
    assert server.state["hook"] == {}


def test_what_qmgr_prints_of_a_file_in_pieces_is_one_file() -> None:
    text = b"x" * 3000
    pieces = "\n".join(base64.b64encode(text[i : i + 512]).decode() for i in range(0, 3000, 512))
    out = (
        f"create hook a\nimport hook a application/x-python base64 -\n{pieces}\n\nset hook a b = c"
    )
    found = found_in(out)
    assert found.files == {("a", "python"): text}
    assert found.attributes == {("hook", "a"): {"b": "c"}}
