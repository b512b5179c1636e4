"""What a late answer leaves of a request: form by form, what pliant.lua and later pliantd make of it.

Each request is submitted to pliant.lua alone, and shown to pliantd as Slurm shows a waiting job. What
it may become then is held to what the filter would have said of the same request.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from slurm_recorded import recorded
from test_forms import LUAS, MOLDABLE, VIEW, fields_and_token, step, submitted
from test_slurm_request import WAITING

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.gres import Gres
from pliant.batch.slurm.job_rows import JobRow
from pliant.batch.slurm.node_rows import NodeRow
from pliant.batch.slurm.requested import IN_TOTAL, Requested, requested
from pliant.filter import Answer, filter_submission
from pliant.grammar.token import pack

ARRAY = {"array_inx": "0-3"}
PARTITION = VIEW.inventory.all_partitions[0]
EMPTY = NodeRow("", 64, 64, 64000, 64000, (Gres("gpu", "a100", 4),), (), frozenset(), up=True)
SPREAD = "Slurm may spread its tasks over nodes as it likes, and changes no array's number of nodes"


def cluster(release: tuple[int, int]) -> Cluster:
    return Cluster(release, dict.fromkeys(PARTITION.nodes, EMPTY), {PARTITION.name: PARTITION})


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """What was recorded of sbatch, and the same as an array."""
    for line in recorded("22.05", "requests.txt").splitlines():
        if not line.startswith("#"):
            options, *said = line.split("|")
            pairs = [field.split("=", 1) for field in said]
            fields = {name: int(text) if text.isdigit() else text for name, text in pairs}
            yield options, fields
            yield f"--array=0-3 {options}", fields | ARRAY


REQUESTS = dict(requests())


def waiting(fields: Mapping[str, Any], token: str) -> JobRow:
    """A waiting job of these fields, as squeue of 22.05 shows it (measured)."""

    def said(name: str, default: int = 0) -> int:
        return int(fields.get(name) or default)

    each, per_task = said("ntasks_per_node"), said("cpus_per_task", 1)
    nodes = max(1, said("min_nodes"), -(-said("num_tasks") // each) if each else 0)
    tasks = said("num_tasks", nodes * max(1, each))
    cpus = max(said("min_cpus"), tasks * per_task)
    mem_mib = said("min_mem_per_node") * nodes or said("min_mem_per_cpu") * cpus
    numbers = {
        "num_nodes": nodes,
        "max_nodes": nodes,
        "num_tasks": tasks,
        "num_cpus": cpus,
        "cpus_per_task": per_task,
        "tasks_per_node": each,
        "min_cpus": max(said("pn_min_cpus"), per_task * max(1, each)),
        "min_memory": said("min_mem_per_node") or said("min_mem_per_cpu"),
    }
    shown = {name: str(number) for name, number in numbers.items()}
    by_gpu_mib = str(fields.get("mem_per_tres", "")).partition("gres/gpu:")[2]  # as 24.11 shows it
    shown["min_memory"] = by_gpu_mib or shown["min_memory"]
    shown["min_memory"] += "M" if shown["min_memory"] != "0" else ""
    ways = ("per_node", "per_job", "per_task", "per_socket")
    gres = {f"tres_{way}": str(fields.get(f"tres_{way}", "")) for way in ways}
    by_gpu = {name: str(fields.get(name, "")) for name in ("cpus_per_tres", "mem_per_tres")}
    whole = {
        "job_id": "7",
        "array_id": "7",
        "array_tasks": str(fields.get("array_inx", "N/A")),
        "tres": f"cpu={cpus},mem={mem_mib}M,node={nodes}",
        "admin_comment": token,
        **{"batch": "1", "contiguous": "0", "het_id": "0", "partition": PARTITION.name},
    }
    return JobRow(**(WAITING | shown | gres | by_gpu | whole))


def after(fields: Mapping[str, Any], changes: Mapping[str, str]) -> dict[str, Any]:
    changed = {**fields, **changes}
    if gres := changed.pop("gres", ""):
        slash = any("gres/" in str(value) for value in fields.values())
        changed["tres_per_node"] = f"gres{'/' if slash else ':'}{gres}"
    return {name: value for name, value in changed.items() if str(value) not in ("", "65534")}


def written(fields: Mapping[str, Any], release: tuple[int, int]) -> dict[str, Any]:
    """The same request as sbatch writes it from 23.11 on: with a slash, and -c beside the GPUs."""
    if release < (23, 11):
        return dict(fields)
    said = {
        name: value.replace("gres:gpu", "gres/gpu") if isinstance(value, str) else value
        for name, value in fields.items()
    }
    per_task = [f"cpu={said['cpus_per_task']}"] if "cpus_per_task" in said else []
    per_task += [said["tres_per_task"]] if "tres_per_task" in said else []
    return said | ({"tres_per_task": ",".join(per_task)} if per_task else {})


def late(lua: str, tmp_path: Path, release: tuple[int, int]) -> dict[str, Requested]:
    """What pliantd finds of each request that it did not answer."""
    asked = {options: written(fields, release) for options, fields in REQUESTS.items()}
    told = submitted(lua, tmp_path, [step(fields) for fields in asked.values()])
    here, found = cluster(release), {}
    for (options, fields), lines in zip(asked.items(), told, strict=True):
        changes, words = fields_and_token(lines)
        found[options] = requested(waiting(after(fields, changes), pack(words)), here)
    return found


def in_time(fields: Mapping[str, Any]) -> Answer:
    """What pliantd says of a request when nothing is free."""
    said = {name: str(value) for name, value in fields.items()}
    return filter_submission({"batch": "1", "option.moldable": MOLDABLE, **said}, VIEW)


def is_moldable(answer: Answer) -> bool:
    return answer.spec is not None and answer.spec.request.is_moldable


def differs(answer: Answer, found: Requested) -> str:
    """How a job whose answer came late differs from what it would be, in a word; or ""."""
    spec = answer.spec
    if found.frozen or spec is None or found.spec is None:
        return found.frozen or "no token"
    if spec.own != found.spec.own:
        return f"its own shape is {found.spec.own}, not {spec.own}"
    assert spec.footprint is not None
    for shape in found.shapes:
        meant, taken = spec.footprint.demand(shape), found.footprint.demand(shape)
        if meant != taken:
            return f"{shape} takes {taken}, not {meant}"
    return "" if len(found.shapes) > 1 else "one shape only"


def reason(options: str, release: tuple[int, int]) -> str:
    """Why a form that pliantd changes in time stays after a late answer; "" for all others.

    On how many nodes Slurm puts such a job, and how many of its tasks on each, only pliantd knows:
    it is not a matter of the request.
    """
    words = set(options.split())
    spread = {"-N2", "-n4"} <= words
    in_total = "--gpus-per-task=1 -c" in options and not by_gpu(options) and release >= (23, 11)
    said = in_total or words & {"-N1", "-n8"} or ("-N2" in words and not spread)
    if "--array=0-3" in words and not said and words & SEVERAL:
        return SPREAD
    of_several = {"-N1-2", "-n8"} <= words or spread
    by_task = of_several and "--gpus-per-task=1" in words
    return IN_TOTAL if by_task and release < (23, 11) else ""


def by_gpu(options: str) -> bool:
    return "-per-gpu=" in options


SEVERAL = {"-n2", "-n4", "--ntasks-per-gpu=1"}


@pytest.mark.parametrize("release", [(22, 5), (24, 11)])
@pytest.mark.parametrize("lua", LUAS)
def test_a_late_answer_leaves_each_form_what_it_would_be_or_says_why_not(
    lua: str, release: tuple[int, int], tmp_path: Path
) -> None:
    answers = {options: in_time(fields) for options, fields in REQUESTS.items()}
    moldable = [options for options, answer in answers.items() if is_moldable(answer)]
    assert len(moldable) > 1000
    found = late(lua, tmp_path, release)
    told = {options: differs(answers[options], found[options]) for options in moldable}
    assert {options: why.partition(": -N")[0] for options, why in told.items()} == {
        options: reason(options, release) for options in moldable
    }
