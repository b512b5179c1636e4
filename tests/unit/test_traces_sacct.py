"""Slurm's accounting as a trace: what is read, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.simulator.traces import Record, read_sacct
from pliant.simulator.traces.sacct import FORMAT

WHOLE = "a whole number is expected"
HEAD = FORMAT.replace(",", "|")
TRES = "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=8G,node=1"


def row(job: str = "7", **said: str) -> str:
    """One run of a job: submitted at 100, from 130 to 190."""
    fields = {
        **{"JobID": job, "User": "alice", "Submit": "100", "Start": "130", "End": "190"},
        **{"State": "COMPLETED", "TimelimitRaw": "30", "AllocTRES": TRES, "Account": "lab"},
        **{"Partition": "gpu", "NNodes": "1", "JobName": "train", **said},
    }
    return "|".join(fields[name] for name in FORMAT.split(","))


def read(folder: Path, *rows: str, head: str = HEAD) -> list[Record]:
    path = folder / "sacct.txt"
    path.write_text("\n".join((head, *rows)) + "\n")
    return list(read_sacct(path))


def test_a_job_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, row(), row("7.batch"), row("7.0", User="")) == [
        Record("7", 100, 60, 4, 4, 1800, 30, "alice", "lab", "train", "gpu", gpus=2, nodes=1)
    ]


def test_runs_of_a_job_that_was_requeued_are_one_job(tmp_path: Path) -> None:
    runs = (
        row(State="REQUEUED"),
        row(Submit="190", Start="200", End="500", AllocTRES="cpu=2,gres/gpu=1,node=1"),
        row("8", Submit="120"),
    )
    for printed in (runs, runs[::-1]):
        found = read(tmp_path, *printed)
        assert [(r.id, r.submit_s, r.wait_s, r.run_s, r.gpus, r.requeues) for r in found] == [
            ("7", 100, 100, 300, 1, 1),
            ("8", 120, 10, 60, 2, 0),
        ]


def test_a_mark_of_unicode_before_the_header_is_no_part_of_it(tmp_path: Path) -> None:
    assert read(tmp_path, row(), head=f"\ufeff{HEAD}") == read(tmp_path, row())


def test_jobs_that_did_not_run_or_still_do_are_left_out(tmp_path: Path) -> None:
    rows = [
        *(row(Start="Unknown"), row(Start="None", State="CANCELLED by 0"), row(End="Unknown")),
        *(row(End="130"), row(AllocTRES=""), row("9_3", JobName="a|b|c", TimelimitRaw="UNLIMITED")),
    ]
    assert [(r.id, r.program, r.limit_s) for r in read(tmp_path, *rows)] == [("9_3", "a|b|c", 0)]


def test_times_may_be_written_out_and_states_say_who_failed(tmp_path: Path) -> None:
    times = {"Submit": "2026-01-01T00:00:00", "Start": "2026-01-01T00:01:00"}
    found = read(tmp_path, row(**times, End="2026-01-01T01:01:00", State="CANCELLED by 1001"))
    assert [(r.wait_s, r.run_s, r.failed) for r in found] == [(60, 3600, True)]


def test_times_may_say_how_far_they_are_from_utc(tmp_path: Path) -> None:
    times = {"Submit": "2026-10-25T02:30:00+02:00", "Start": "2026-10-25T02:10:00+01:00"}
    found = read(tmp_path, row(**times, End="2026-10-25T01:40:00Z"))
    assert [(r.submit_s, r.wait_s, r.run_s) for r in found] == [(1792888200, 2400, 1800)]


@pytest.mark.parametrize(
    ("rows", "number", "why"),
    [
        (["7|alice"], 2, "2 fields: 12 are expected"),
        ([row(), row(Submit="soon")], 3, "Submit: 'soon': a time is expected"),
        ([row(End="99")], 2, "End 99 is before Start 130"),
        ([row(Start="9" * 20)], 2, "Start: '99999999999999999999': a time is expected"),
        ([row(Submit="²")], 2, f"Submit: {quoted('²')}: a time is expected"),
        *(
            ([row(AllocTRES=f"cpu=4,{name}={count}")], 2, f"{name}: {quoted(count)}: {WHOLE}")
            for name in ("gres/gpu", "gres/gpu:a100", "cpu", "node")
            for count in ("notanumber", "-2", "2.5", "9999999999999999", "²", "")
        ),
        ([row(), row(TimelimitRaw="soon")], 3, f"TimelimitRaw: 'soon': {WHOLE}"),
        ([row(TimelimitRaw="²")], 2, f"TimelimitRaw: {quoted('²')}: {WHOLE}"),
        ([row(AllocTRES="many")], 2, "AllocTRES: 'many': NAME=COUNT,… is expected"),
    ],
)
def test_what_cannot_be_right_is_refused_with_its_line(
    tmp_path: Path, rows: list[str], number: int, why: str
) -> None:
    with pytest.raises(BadInput, match=f"line {number}: ") as refused:
        read(tmp_path, *rows)
    assert str(refused.value).endswith(why)


def test_a_field_too_many_is_refused_where_no_column_can_hold_it(tmp_path: Path) -> None:
    head, line = HEAD.removesuffix("|JobName"), row().removesuffix("|train")
    assert [record.id for record in read(tmp_path, line, head=head)] == ["7"]
    with pytest.raises(BadInput, match="line 3: 12 fields: 11 are expected"):
        read(tmp_path, line, f"{line}|", head=head)


def test_a_column_that_lacks_is_named_with_the_command_that_prints_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="line 1: no column AllocTRES: sacct --parsable2"):
        read(tmp_path, head=HEAD.replace("AllocTRES", "TRES"))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("sacct") / "any"
    path.write_bytes(f"{HEAD}\n{text}".encode("utf-8", "surrogatepass"))
    try:
        list(read_sacct(path))
    except BadInput as refused:
        assert "\n" not in str(refused)
