"""Slurm's accounting as JSON, of several releases: what is read, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.simulator.traces import Record, read_sacct, read_sacct_json
from pliant.simulator.traces.sacct import FORMAT

TRES = [
    {"type": "cpu", "name": "", "id": 1, "count": 4},
    {"type": "mem", "name": "", "id": 2, "count": 8192},
    {"type": "node", "name": "", "id": 4, "count": 1},
    {"type": "gres", "name": "gpu", "id": 1001, "count": 2},
    {"type": "gres", "name": "gpu:a100", "id": 1002, "count": 2},
]
GPUS, GPU = TRES[3], "AllocTRES: gres/gpu"
TIME = {"submission": 100, "start": 130, "end": 190}
WHOLE = "a whole number is expected"
A_JOB = Record("7", 100, 60, 4, 4, 1800, 30, "alice", "lab", "train", "gpu", gpus=2, nodes=1)


def job(
    number: int = 7, submit: Any = 100, start: Any = 130, end: Any = 190, **said: Any
) -> dict[str, Any]:
    """One run as 22.05 prints it, with what is read of it and some that is not."""
    return {
        "account": "lab",
        "allocation_nodes": 1,
        "array": {
            "job_id": 0,
            "limits": {"max": {"running": {"tasks": 0}}},
            "task": None,
            "task_id": None,
        },
        "exit_code": {"status": "SUCCESS", "return_code": 0},
        "het": {"job_id": 0, "job_offset": None},
        "job_id": number,
        "name": "train",
        "partition": "gpu",
        "state": {"current": "COMPLETED", "reason": "None"},
        "steps": [{"time": {"start": 130}, "state": "COMPLETED"}],
        "time": {"elapsed": 60, "submission": submit, "start": start, "end": end, "limit": 30},
        "tres": {"allocated": TRES, "requested": TRES},
        "user": "alice",
        **said,
    }


def number(value: int) -> dict[str, Any]:
    """A number as releases since 23.02 print it."""
    return {"set": True, "infinite": False, "number": value}


UNSET = {"set": False, "infinite": False, "number": 0}
ENDLESS = {"set": True, "infinite": True, "number": 0}


def read(folder: Path, *jobs: dict[str, Any]) -> list[Record]:
    path = folder / "sacct.json"
    path.write_text(json.dumps({"meta": {}, "jobs": jobs, "errors": []}, indent=2))
    return list(read_sacct_json(path))


def test_a_job_of_22_05_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, job()) == [A_JOB]


@pytest.mark.parametrize("instant", [int, number])
def test_a_job_of_later_releases_is_read(tmp_path: Path, instant: Any) -> None:
    time = {
        "submission": instant(100),
        "start": instant(130),
        "end": instant(190),
        "limit": number(30),
    }
    array = {"job_id": 0, "task_id": UNSET}
    het = {"job_id": 0, "job_offset": UNSET}
    state = {"current": ["COMPLETED"], "reason": "None"}
    assert read(tmp_path, job(time=time, array=array, het=het, state=state)) == [A_JOB]


def test_text_and_json_of_the_same_runs_are_the_same_records(tmp_path: Path) -> None:
    rows = (
        "7|alice|100|130|190|REQUEUED|30|cpu=4,gres/gpu=2,gres/gpu:a100=2,mem=8G,node=1|lab|gpu|1|train",
        "7|alice|190|200|500|CANCELLED by 0||cpu=4,gres/gpu=2,gres/gpu:a100=2,mem=8G,node=1|lab|gpu|1|train",
    )
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join((FORMAT.replace(",", "|"), *rows)))
    runs = (
        job(state={"current": ["REQUEUED"]}),
        job(
            state={"current": ["CANCELLED"]},
            time={"submission": 190, "start": 200, "end": 500, "limit": ENDLESS},
        ),
    )
    assert read(tmp_path, *runs) == list(read_sacct(path))


def test_what_a_real_22_05_prints_as_text_and_as_json_are_the_same_records() -> None:
    # recorded; of the JSON, each job was put on one line, and most steps were left out
    recorded = Path(__file__).parents[1] / "assets" / "slurm-22.05"
    found = list(read_sacct_json(recorded / "sacct.json"))
    assert found == list(read_sacct(recorded / "sacct.txt"))
    assert [(r.id, r.run_s, r.wait_s, r.gpus, r.failed, r.requeues) for r in found] == [
        ("1", 3, 1, 2, False, 0),
        ("2_0", 2, 1, 0, False, 0),
        ("2_1", 2, 1, 0, False, 0),
        ("3", 2, 1, 0, True, 0),
        ("4", 2, 1, 0, False, 0),
        ("5", 6, 8, 1, False, 1),
        ("6", 3, 1, 0, True, 0),
        ("7+0", 2, 1, 1, False, 0),
        ("7+1", 2, 1, 0, False, 0),
    ]
    assert [r.limit_s for r in found if r.id in "14"] == [300, 0]
    assert found[3].program == "a|`b`"


def test_tasks_of_arrays_and_parts_of_jobs_have_their_names(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        job(12, array={"job_id": 11, "task_id": number(0)}),
        job(13, array={"job_id": 11, "task_id": 3}),
        job(15, het={"job_id": 14, "job_offset": number(1)}),
    )
    assert [record.id for record in found] == ["11_0", "11_3", "14+1"]


def test_jobs_that_did_not_run_or_still_do_are_left_out(tmp_path: Path) -> None:
    jobs = (
        job(start=0, end=0),
        job(end=0),
        job(start=UNSET),
        job(end=130),
        job(tres={"allocated": []}),
    )
    assert read(tmp_path, *jobs) == []


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sacct.json.gz"
    path.write_bytes(gzip.compress(json.dumps({"jobs": [job(user=None, name=None)]}).encode()))
    assert [(record.user, record.program) for record in read_sacct_json(path)] == [("", "")]


def test_what_cannot_be_right_is_refused_with_the_line_where_its_job_begins(tmp_path: Path) -> None:
    path = tmp_path / "sacct.json"
    for wrong, why in (
        (job(8, end=129), "End 129 is before Start 130"),
        (job(8, submit="soon"), "Submit: 'soon': a time is expected"),
        (job(8, submit=-5), "Submit: '-5': a time is expected"),
        (job(8, start="²"), f"Start: {quoted('²')}: a time is expected"),
        (job(8, time={**TIME, "limit": "soon"}), f"TimelimitRaw: 'soon': {WHOLE}"),
        (job(8, time={**TIME, "limit": -5}), f"TimelimitRaw: '-5': {WHOLE}"),
        *(
            (job(8, tres={"allocated": [{**GPUS, "count": count}]}), f"{GPU}: '{count}': {WHOLE}")
            for count in ("two", 2.5, -4, 10**13)
        ),
        ({"job_id": 8}, "Object missing required field `state`"),
        (job(8, time=7), "Expected `object`, got `int` - at `$.time`"),
    ):
        with pytest.raises(BadInput) as refused:
            read(tmp_path, job(), wrong)
        _, begin = (
            at for at, line in enumerate(path.read_text().split("\n"), 1) if line == "    {"
        )
        assert str(refused.value) == f"{path}, line {begin}: {why}"


def test_what_is_no_json_or_cut_off_is_refused_with_a_line(tmp_path: Path) -> None:
    path = tmp_path / "sacct.json"
    whole = json.dumps({"jobs": [job()]}, indent=1)
    for text, line, why in (
        (whole[:-30], whole[:-30].count("\n") + 1, "Input data was truncated"),
        ('{"jobs":\n[1,}', 2, "JSON is malformed: invalid character (byte 12)"),
        ("[]", 1, "Expected `object`, got `array`"),
        ("", 1, "Input data was truncated"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput) as refused:
            list(read_sacct_json(path))
        assert str(refused.value) == f"{path}, line {line}: {why}"
    path.write_bytes(gzip.compress(whole.encode())[:-12])
    with pytest.raises(BadInput, match="the file is cut off or damaged"):
        list(read_sacct_json(path))
    path.unlink()
    with pytest.raises(BadInput, match="No such file"):
        list(read_sacct_json(path))


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda b: b'{"jobs": [{' + b + b"}]}"))
def test_any_bytes_are_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    path = tmp_path_factory.mktemp("json") / "any"
    path.write_bytes(text)
    try:
        list(read_sacct_json(path))
    except BadInput as refused:
        assert "\n" not in str(refused)
