"""No text of a user or an administrator becomes another's row or field, or stops the reader."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slurm_recorded import NONCE, printed, recorded

from pliant.batch.slurm.cluster import Cluster
from pliant.batch.slurm.details import detail_commands, parse_details, parse_throttles
from pliant.batch.slurm.gres import Gres
from pliant.batch.slurm.job_rows import (
    NUMBERS,
    JobRow,
    excluded_format,
    job_format,
    parse_excluded,
    parse_jobs,
)
from pliant.batch.slurm.jobs import running_job, waiting_job
from pliant.batch.slurm.node_rows import parse_nodes
from pliant.batch.slurm.partition_rows import parse_partitions, parse_reservations
from pliant.errors import BadAnswer

OLD, NEW = (22, 5), (26, 5)
FORGED = (
    "x\n999|999|RUNNING|1|||",
    "x|y|z|\n|\n",
    " AdminComment=pliant=v1:x:00000000",
    "JobId=1 JobName=x\n",
    "N0000000000000000\nN0000000000000000",
    "é\u2028\x00\x7f$(id)`id`'\"",
    "%i|%j",
    "x" * 65536,
)
ROWS = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, OLD)
HOSTILE = st.one_of(st.sampled_from(FORGED), st.text(max_size=60))


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([field.name for field in fields(JobRow)][len(NUMBERS) :]), HOSTILE
        ),
        max_size=4,
    ),
    st.sampled_from([OLD, NEW]),
)
def test_each_job_keeps_its_own_text(texts: list[dict[str, str]], version: tuple[int, int]) -> None:
    rows = [_with(ROWS[number], text, version) for number, text in enumerate(texts)]
    answer = "".join(printed(row, NONCE, version) for row in rows)
    assert parse_jobs(answer, NONCE, version) == rows


def _with(row: JobRow, texts: Mapping[str, str], version: tuple[int, int]) -> JobRow:
    values = {field.name: getattr(row, field.name) for field in fields(JobRow)}
    hidden = {"nodes_excluded": ""} if version < (23, 11) else {}
    return JobRow(**{**values, **texts, **hidden})


@pytest.mark.parametrize("word", ["OK", "YES", "NO", "USER", "MCS", "TOPO"])
def test_whom_a_job_shares_its_nodes_with_is_one_word_in_every_release(word: str) -> None:
    row = replace(ROWS[0], oversubscribe=word, nodes_excluded="")
    assert [parse_jobs(printed(row, NONCE, v), NONCE, v) for v in (OLD, NEW)] == [[row], [row]]


def test_the_format_asks_user_text_last_and_never_cut() -> None:
    told = job_format(NONCE, NEW)
    assert told.startswith("JobID:|,ArrayJobID:|,State:|,")
    assert told.endswith(
        f",ExcNodes:{NONCE},Licenses:{NONCE},Name:{NONCE},admin_comment:{NONCE},Comment:{NONCE}{NONCE}"
    )
    assert "ExcNodes" not in job_format(NONCE, OLD)
    assert excluded_format(NONCE) == f"%A|%x{NONCE}"


@given(st.dictionaries(st.from_regex(r"[1-9][0-9]{0,5}", fullmatch=True), HOSTILE, max_size=4))
def test_excluded_nodes_are_those_of_their_job(nodes: dict[str, str]) -> None:
    answer = "".join(f"{job}|{text}{NONCE}\n" for job, text in nodes.items())
    assert parse_excluded(answer, NONCE) == nodes


PARSERS: list[tuple[str, Callable[[str], object]]] = [
    ("jobs.txt", lambda text: parse_jobs(text, NONCE, OLD)),
    ("excluded.txt", lambda text: parse_excluded(text, NONCE)),
    ("nodes.txt", parse_nodes),
    ("partitions.txt", parse_partitions),
    ("reservations.txt", parse_reservations),
    ("details.txt", lambda text: parse_details(text, ["289"], NONCE, {"289": "n1"})),
]


@given(st.sampled_from(PARSERS), st.integers(0, 30000), st.integers(0, 400), HOSTILE)
def test_a_damaged_answer_is_a_bad_answer_and_nothing_else(
    parser: tuple[str, Callable[[str], object]], place: int, length: int, text: str
) -> None:
    name, parse = parser
    whole = recorded("22.05", name)
    place %= len(whole)
    with contextlib.suppress(BadAnswer):
        parse(whole[:place] + text + whole[place + length :])


@given(st.sampled_from(PARSERS), st.text())
def test_any_text_is_read_or_a_bad_answer(
    parser: tuple[str, Callable[[str], object]], text: str
) -> None:
    with contextlib.suppress(BadAnswer):
        parser[1](text)


CLUSTER = Cluster(
    OLD,
    {row.name: row for row in parse_nodes(recorded("22.05", "nodes.txt"))},
    {row.name: row for row in parse_partitions(recorded("22.05", "partitions.txt"))},
)


@given(
    st.sampled_from(ROWS),
    st.dictionaries(st.sampled_from([field.name for field in fields(JobRow)]), HOSTILE),
)
def test_a_row_with_any_text_is_a_job_that_is_left_alone_or_a_bad_answer(
    row: JobRow, texts: dict[str, str]
) -> None:
    texts.pop("state", None)
    with contextlib.suppress(BadAnswer):
        changed = _with(row, texts, NEW)
        if changed.waits:
            waiting_job(changed, CLUSTER, 0.0)
        else:
            running_job(changed, CLUSTER)


@pytest.mark.parametrize(("told", "restarts"), [("2", 2), ("x", 0)])
def test_of_a_job_that_is_not_understood_the_run_is_known_by_which_its_wrapper_goes(
    told: str, restarts: int
) -> None:
    row = next(row for row in ROWS if not row.waits)
    job = running_job(_with(row, {"start": "x", "restarts": told}, NEW), CLUSTER)
    assert (job.restarts, job.frozen != "") == (restarts, True)


def record(name: str, allocation: str) -> str:
    return (
        f"scontrol: show job 5\nJobId=5 JobName={name} JobState=RUNNING Reason=None"
        f" JOB_GRES=shard:3  {allocation} MinCPUsNode=1 Comment=x \nscontrol: show hostnames M0\nM0\n"
    )


TRUE = " Nodes=n1 CPU_IDs=0 Mem=100 GRES=shard:3(IDX:2)"


def test_a_jobs_place_is_read_from_its_own_record() -> None:
    told = parse_details(record("x", TRUE), ["5"], "M", {"5": "n1"})
    assert told == {"5": {"n1": (Gres("shard", "", 3, (2,)),)}}
    assert detail_commands(["5", "7"], "M") == (
        "show job 5\nshow hostnames M0\nshow job 7\nshow hostnames M1\n"
    )


@pytest.mark.parametrize(
    "name",
    [
        "x Nodes=n1 CPU_IDs=0 Mem=1 GRES=shard:1(IDX:0)",
        "x\n Nodes=n2 CPU_IDs=0 Mem=1 GRES=shard:1(IDX:0)",
        "x Nodes=n[1 CPU_IDs=0 Mem=1 GRES=gpu:1",
    ],
)
def test_a_name_that_contradicts_the_record_leaves_the_place_unknown(name: str) -> None:
    assert parse_details(record(name, TRUE), ["5"], "M", {"5": "n1"}) == {}


def test_a_job_that_is_gone_has_no_place() -> None:
    gone = "scontrol: show job 5\nscontrol: show hostnames M0\nM0\n"
    assert parse_details(
        gone + record("x", TRUE).replace("M0", "M1"), ["4", "5"], "M", {"4": "n1", "5": "n1"}
    ) == {"5": {"n1": (Gres("shard", "", 3, (2,)),)}}


def test_how_many_tasks_may_run_stands_before_all_that_a_user_writes() -> None:
    says = "scontrol: show job {0}\nJobId={0} ArrayJobId=5 ArrayTaskId=3 {1}JobName={2} \n\nM{3}\n"
    lie = "JobId=5 ArrayJobId=5 ArrayTaskId=3 ArrayTaskThrottle=9 x"
    text = says.format(5, "ArrayTaskThrottle=2 ", lie, 0) + says.format(6, "", lie, 1)
    assert parse_throttles(text, ["5", "6"], "M") == {"5": 2}


def test_whatever_bytes_a_job_is_named_by_its_name_is_text_that_can_be_kept() -> None:
    row = replace(ROWS[0], name="\udcff\x00" * 40_000)
    name = running_job(row, Cluster((22, 5), {}, {}), None).name
    assert len(name.encode()) < 2000
    assert name.startswith("\\udcff")
