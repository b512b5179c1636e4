"""The form that a waiting job can change: pliant.lua's rule and the filter's, by one table."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from limits import HANG_S
from pliant.filter import Inventory, View, filter_submission
from pliant.grammar.token import unpack
from pliant.model import Node, Partition, Pool, Snapshot

HERE = Path(__file__).parent
PLUGINS = HERE.parents[1] / "plugins" / "slurm"
CASES: list[dict[str, Any]] = json.loads((HERE.parent / "assets" / "forms.json").read_text())[
    "cases"
]
LUAS = ("lua5.1", "lua5.2", "lua5.3", "lua5.4")
NODES = tuple(Node(f"n{n}", 64, 64, 64000, 64000, (Pool("a100", 4, 4),)) for n in range(1, 5))
PARTITION = Partition("gpu", tuple(node.name for node in NODES), default=True)
VIEW = View(Inventory.of(Snapshot(now_s=0.0, nodes=NODES, partitions=(PARTITION,))))
MOLDABLE = "gpus=1-8"
FLAG = f"_SLURM_SPANK_OPTION_pliant_moldable={MOLDABLE}"
UNSET = {
    "cpus_per_task": 65534,
    "ntasks_per_node": 65534,
    "ntasks_per_tres": 65534,
    "shared": 65534,
    "pn_min_cpus": 65534,
    "min_nodes": 4294967294,
    "num_tasks": 4294967294,
    "script": "#!/bin/sh",
}
"""As Slurm shows what was not asked for, and a script."""


def literal(value: object) -> str:
    """Write a value in Lua."""
    if isinstance(value, str):
        return '"' + "".join(f"\\{byte:03d}" for byte in value.encode()) + '"'
    return "nil" if value is None else str(value)


def step(fields: dict[str, Any], by_comment: bool = False, unset: str = "", parts: str = "") -> str:
    """Write one submission as a step of fake_slurm.lua."""
    said = {"comment": f"pliant:{MOLDABLE}"} if by_comment else {"spank_job_env_size": 1}
    texts = [f"{name} = {literal(value)}" for name, value in (UNSET | fields | said).items()]
    spank = "" if by_comment else f", spank_job_env = {{[0] = {literal(FLAG)}}}"
    refuses = f", unset = {literal(unset)}" if unset else ""
    known = f", parts = {{{parts}}}" if parts else ""
    return f"{{fields = {{{', '.join(texts)}{spank}}}{refuses}{known}}}"


def submitted(
    lua: str, tmp_path: Path, steps: list[str], answer: str = "", conf: str | None = ""
) -> list[list[str]]:
    """Submit jobs while nobody answers, or all is; return what was told of each, but for reads.

    ``conf``: what stands in slurm.conf, None where there is none.
    """
    slurm_conf = tmp_path / "slurm.conf"
    if conf is not None:
        slurm_conf.write_text(conf)
    found = shutil.which(lua)
    assert found, f"{lua} is needed by these tests"
    script = tmp_path / "steps.lua"
    setup = f"socket = {literal(str(tmp_path / 'nobody'))}"
    door = "missing = {['socket.unix'] = true}"
    if answer:
        door = f"door = {{answer = {literal(answer)}}}"
    script.write_text(f"return {{clock = 1000, setup = {{{setup}}}, {door}, {', '.join(steps)}}}")
    done = subprocess.run(
        [found, str(HERE / "fake_slurm.lua"), "module", str(script)],
        env={"LUA_PATH": f"{PLUGINS}/?.lua;;", "SLURM_CONF": str(slurm_conf)},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    jobs: list[list[str]] = [[]]
    for line in done.stdout.splitlines():
        if line.startswith("rc "):
            assert line == "rc 0"
            jobs.append([])
        elif line.startswith("set "):
            jobs[-1].append(line.removeprefix("set "))
    return jobs[:-1]


def fields_and_token(told: list[str]) -> tuple[dict[str, str], str]:
    """Split what was set into the fields and what the token says."""
    fields = dict(line.split("=", 1) for line in told)
    word, *beside = fields.pop("admin_comment").split(" ")
    assert beside == ["pliant-unanswered=1"]
    return fields, unpack(word) or ""


def texts(fields: dict[str, Any] | None) -> dict[str, str]:
    return {name: str(value) for name, value in (fields or {}).items()}


@pytest.mark.parametrize("lua", LUAS)
def test_pliant_lua_writes_the_form_of_each_case(lua: str, tmp_path: Path) -> None:
    jobs = submitted(lua, tmp_path, [step(case["fields"]) for case in CASES])
    found = [
        {"options": case["options"], "lua": fields, "token": token}
        for case, (fields, token) in zip(CASES, map(fields_and_token, jobs), strict=True)
    ]
    assert found == [
        {
            "options": case["options"],
            "lua": texts(case["lua"]),
            "token": f"moldable={MOLDABLE}" + (f";fp={case['fp']}" if case["fp"] else ""),
        }
        for case in CASES
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["options"])
def test_the_filter_gives_each_case_the_same_form(case: dict[str, Any]) -> None:
    asked = {name: str(value) for name, value in case["fields"].items() if name != "script"}
    batch = "0" if "script" in case["fields"] else "1"
    answer = filter_submission({"batch": batch, "option.moldable": MOLDABLE, **asked}, VIEW)
    wanted = case.get("filter", case["lua"])
    assert answer.fields == texts(wanted)
    if case["fp"]:
        footprint = answer.spec.footprint if answer.spec else None
        assert footprint is not None
        numbers = [int(number) for number in case["fp"].split(",")]
        assert footprint == type(footprint)(*numbers)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["lua"]], ids=lambda case: case["options"]
)
def test_the_filter_gives_what_lua_has_written_no_other_form(case: dict[str, Any]) -> None:
    """What pliantd would have said of the request, it says of the form that Lua gave it."""

    def after(fields: dict[str, Any], changes: dict[str, str]) -> dict[str, str]:
        changed = texts(fields) | changes
        if gres := changed.pop("gres", ""):
            changed["tres_per_node"] = f"gres:{gres}"
        if "array_inx" in changed:  # the filter notes a footprint instead
            changed.pop("pn_min_cpus", None)
        return {name: text for name, text in changed.items() if text not in ("", "65534")}

    def answered(submission: dict[str, str]) -> dict[str, str]:
        said = {"batch": "1", "option.moldable": MOLDABLE}
        return dict(filter_submission({**said, **submission}, VIEW).fields)

    by_lua = after(case["fields"], texts(case["lua"]))
    by_both = after(by_lua, answered(by_lua))
    assert by_both == after(case["fields"], answered(after(case["fields"], {})))


@pytest.mark.parametrize("lua", LUAS)
def test_memory_per_gpu_stays_where_no_plugin_takes_it_out_of_the_environment(
    lua: str, tmp_path: Path
) -> None:
    fields = {"tres_per_node": "gres:gpu:2", "mem_per_tres": "gres:gpu:500"}
    (told,) = submitted(lua, tmp_path, [step(fields, by_comment=True)])
    assert fields_and_token(told) == ({}, f"moldable={MOLDABLE}")


@pytest.mark.parametrize("lua", LUAS)
def test_where_slurm_refuses_one_field_all_are_as_they_were_written(
    lua: str, tmp_path: Path
) -> None:
    case = next(case for case in CASES if len(case["lua"] or ()) > 4)
    (told,) = submitted(lua, tmp_path, [step(case["fields"], unset="min_mem_per_node")])
    fields, token = fields_and_token(told)
    assert token == f"moldable={MOLDABLE}"
    as_written = UNSET | case["fields"]
    assert fields == {name: str(as_written.get(name, "")) for name in fields}
    assert len(fields) > 3


BY_GPU = {"tres_per_node": "gres:gpu:2", "mem_per_tres": "gres:gpu:500"}
LIMITS = {
    "gpu = {max_mem_per_cpu = 300}, cpu = {max_mem_per_node = 0}": ({"partition": "gpu"}, True),
    "gpu = {max_share = 0}": ({"partition": "gpu"}, True),
    "gpu = {max_share = 1, max_mem_per_node = 0}": ({"partition": "gpu"}, False),
    "gpu = {max_mem_per_node = 3000}": ({"partition": "cpu,gpu"}, True),
    "gpu = {max_mem_per_cpu = 300, flag_default = 1}": ({}, True),
    "gpu = {max_mem_per_cpu = 300, flag_default = 0}, cpu = {flag_default = 1}": ({}, False),
    "gpu = {max_mem_per_cpu = 300}": ({"partition": "gpu2"}, False),
}


@pytest.mark.parametrize("lua", LUAS)
@pytest.mark.parametrize("parts", LIMITS)
def test_where_memory_is_limited_what_is_said_by_the_gpu_stays(
    lua: str, parts: str, tmp_path: Path
) -> None:
    """Slurm gives memory that is said per node more CPUs there, or refuses it."""
    where, stays = LIMITS[parts]
    steps = [step(BY_GPU | where, parts=parts), step({"tres_per_node": "gres:gpu:2"}, parts=parts)]
    told, plain = submitted(lua, tmp_path, steps)
    assert (fields_and_token(told)[0] == {}) is stays
    assert fields_and_token(plain)[0] == {}


@pytest.mark.parametrize("lua", LUAS)
@pytest.mark.parametrize("answer", ["ok away=1", "ok away=1&mem_limit=1"])
def test_so_it_does_where_pliantd_told_of_a_limit_that_only_slurm_conf_has(
    lua: str, answer: str, tmp_path: Path
) -> None:
    parts = "gpu = {max_mem_per_node = 0, max_share = 1}"
    steps = [step(BY_GPU | {"partition": "gpu"}, parts=parts)]
    (told,) = submitted(lua, tmp_path, steps, answer)
    assert (fields_and_token(told)[0] == {}) is ("mem_limit" in answer)


@pytest.mark.parametrize("lua", LUAS)
@pytest.mark.parametrize(
    ("conf", "stays"),
    [
        ("ClusterName=c\n#MaxMemPerCPU=300\nMaxMemPerNode=0\n", False),
        ("MaxMemPerNode=UNLIMITED\nPartitionName=x MaxMemPerCPU=300\n", False),
        ("ClusterName=c\n  maxmempercpu = 300\n", True),
        ("MaxMemPerNode=3000", True),
        ("include /etc/slurm/more.conf\n", True),
        (None, True),
    ],
)
def test_before_pliantd_has_answered_slurm_conf_itself_tells(
    lua: str, conf: str | None, stays: bool, tmp_path: Path
) -> None:
    """It may be dead since slurmctld began, and a refused submission would be Pliant's doing."""
    steps = [step(BY_GPU), step({"tres_per_node": "gres:gpu:2"})]
    told, plain = submitted(lua, tmp_path, steps, conf=conf)
    assert (fields_and_token(told)[0] == {}) is stays
    assert fields_and_token(plain)[0] == {}
