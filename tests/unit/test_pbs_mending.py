"""PBS's JSON where it is none, by the values and variables that a job's user may give."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pbs_printing import kept, printed
from pbs_recorded import ASSETS

from pliant.batch.pbs.job_rows import JobRow, parse_jobs
from pliant.batch.pbs.node_rows import parse_nodes
from pliant.errors import BadAnswer

JOBS = (ASSETS / "jobs.json").read_text()
_HEAD = '        "31.head":{\n'
_LETTERS = st.sampled_from(list(".+-01e5x\\\"',:{}[] \n\tainfn=("))
_VALUES = st.text(_LETTERS, max_size=12) | st.text(
    st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=8
)


def said(line: str) -> str:
    """The recorded answer, with a line more of job 31."""
    return JOBS.replace(_HEAD, f"{_HEAD}            {line},\n")


def rows(text: str) -> dict[str, JobRow]:
    return {row.id: row for row in parse_jobs(text)}


@pytest.mark.parametrize(
    ("line", "account"),
    [
        *((f'"Account_Name":{one}', one) for one in (".5", "5.", "0.", "+1", "00", "1.e5")),
        *((f'"Account_Name":{one}', one) for one in ("inf", "-inf", "nan(1_a)", "0x.8p0")),
        ('"Account_Name":\n1.\n', "1."),
        ('"Account_Name":\f1.', "1."),
        ('"Account_Name":"a\\"', "a\\"),
        ('"Account_Name":""x"', '"x'),
        ('"Account_Name":"x\\q"', "x\\q"),
        ('"Account_Name":"1.",\n            "A\nB":2.', "1."),
        ('"Account_Name":"1.",\n            "A\\\'B":2.', "1."),
    ],
)
def test_a_value_that_makes_the_answer_no_json_is_read_for_what_it_says(
    line: str, account: str
) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(said(line), strict=False)
    expected = rows(JOBS)
    assert rows(said(line)) == expected | {"31": replace(expected["31"], account=account)}


@given(value=_VALUES, name=_VALUES.filter(lambda name: name and "=" not in name))
@example(value='a\n        },\n        "30.head":{\n            "queue":"mine', name="A")
@example(value="1.", name='A\n        },\n        "30.head":{\n            "queue":"mine')
@example(value="1.", name="A\n        },\n    }\n}\n")
def test_whatever_a_job_says_all_others_are_read_the_same(value: str, name: str) -> None:
    alone = rows(JOBS)
    for key in ("Account_Name", "project", "Submit_arguments"):
        found = rows(said(printed(key, value)))
        own = found.pop("31")
        assert found == {job: row for job, row in alone.items() if job != "31"}
        assert replace(own, account="", project="") == replace(alone["31"], account="", project="")
    inside = '"Variable_List":{\n                "A":1.,\n                '
    found = rows(said(f"{inside}{printed(kept(name), value)}\n            }}"))
    assert found == alone  # of it too


def test_a_job_of_which_nothing_can_be_made_is_left_out_and_that_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = said('"Account_Name":{}}').replace("31.head", "3117.head")  # told of in no other test
    for _ in range(2):
        found = rows(text)
        assert found == {job: row for job, row in rows(JOBS).items() if job != "31"}
    (logged,) = caplog.messages
    assert logged == "3117.head: PBS's JSON of it cannot be read: it is left out"


@pytest.mark.parametrize(
    "text",
    [
        said('"Account_Name":1.')[:-3],  # cut short
        said('"Account_Name":1.').replace("32.head", "30.head"),
        json.dumps(json.loads(JOBS))[:-1],
        said('"Account_Name":1.').replace('"Jobs"', '"Others"'),
    ],
)
def test_jobs_that_cannot_be_told_apart_are_not_understood(text: str) -> None:
    with pytest.raises(BadAnswer, match="not understood"):
        parse_jobs(text)


def test_a_nodes_comment_costs_no_node() -> None:
    text = (ASSETS / "nodes.json").read_text()
    other = text.replace('"gn1":{\n', '"gn1":{\n            "comment":1.,\n')
    assert parse_nodes(other) == parse_nodes(text)
