"""The token keeps all that is known of a job, among other people's words."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.grammar import (
    NICE,
    PRIORITY,
    TIME_MIN,
    find_token,
    note,
    noted,
    parse,
    put_token,
    token_text,
    tokens,
)
from pliant.grammar.token import pack, spec_text, unpack
from pliant.model import Footprint, Malleable, Request, Shape, Spec

SPEC = Spec(
    parse("gpus=1-4,nodes=1-2;throughput=1:5.2"),
    own=Shape(1, 2),
    set=Shape(2, 2),
    footprint=Footprint(1, 1, 4, 0, 0, 0, 2048),
    pinned=True,
    renewed=True,
)


def test_a_token_is_one_word_that_reads_back() -> None:
    word = token_text(SPEC)
    assert " " not in word
    assert "|" not in word
    assert find_token(word) == SPEC


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, pinned=False, mark="n1")])
def test_the_token_of_another_footprint_differs_in_that_alone(spec: Spec) -> None:
    write = tokens(spec)
    for footprint in (Footprint(), Footprint(1, 1, 4), Footprint(2, 0, 3, 4, 5, 6, 7)):
        assert write(footprint) == token_text(replace(spec, footprint=footprint))


def test_a_bare_request_is_a_whole_token() -> None:
    spec = Spec(parse("gpus=1-4"))
    assert find_token(pack("gpus=1-4")) == spec


def test_other_words_stay_as_they_are() -> None:
    comment = put_token("ticket 42  renewed", SPEC)
    assert comment == f"ticket 42  renewed {token_text(SPEC)}"
    changed = Spec(parse("gpus=8"))
    assert put_token(comment, changed) == f"ticket 42  renewed {token_text(changed)}"
    assert find_token(put_token(comment, changed)) == changed


def test_a_cut_damaged_or_foreign_token_is_no_token() -> None:
    word = token_text(SPEC)
    assert find_token("") is None
    assert find_token("no token here") is None
    assert find_token(word[:-1]) is None
    assert find_token(word.replace("v1", "v2")) is None
    assert find_token(word[:20] + "A" + word[21:]) is None
    assert find_token(pack("gpus=4-1")) is None
    assert find_token(f"{word[:-1]} {word}") == SPEC


@given(st.text(max_size=200))
def test_any_text_survives_the_wrapping(text: str) -> None:
    clean = text.encode(errors="ignore").decode()
    assert unpack(pack(clean)) == clean


@given(st.text(max_size=120))
def test_any_admin_comment_is_read_without_harm(text: str) -> None:
    assert find_token(text) is None
    assert find_token(f"{text.replace(chr(10), ' ')} {token_text(SPEC)}") == SPEC


def test_a_job_says_what_is_to_become_of_it_where_a_request_hangs_it() -> None:
    spec = Spec(Request(malleable=Malleable(120, "USR1", requeues_stalled=True)))
    assert spec_text(spec) == "malleable=grace=120s,signal=USR1,stalled=requeue"
    assert find_token(token_text(spec)) == spec


def test_a_job_says_what_it_leaves_to_policies_and_what_it_saves() -> None:
    spec = Spec(Request(malleable=Malleable(max_resizes=0, min_run_s=7200, checkpoint="a/b.pt")))
    assert spec_text(spec) == "malleable=max-resizes=0,min-run=7200s,checkpoint=a/b.pt"
    assert find_token(token_text(spec)) == spec


def test_what_a_later_release_says_leaves_the_job_rigid_and_the_rest_of_the_comment_alone() -> None:
    """A pliantd that reads no ``stalled=``, 0.1.0, takes that of a later one so."""
    later = pack("malleable=grace=2m,later=yes")
    assert find_token(f"cluster {later} ours") is None


@pytest.mark.parametrize(
    ("key", "number", "word"),
    [
        (TIME_MIN, 20, "pliant-time-min=20"),
        (NICE, -100, "pliant-nice=-100"),
        (PRIORITY, 4_294_901_400, "pliant-priority=4294901400"),
    ],
)
def test_what_an_owner_lends_is_noted_beside_the_token_which_any_release_reads(
    key: str, number: int, word: str
) -> None:
    """A key that an older pliantd does not know would cost the whole token."""
    spec = Spec(parse("moldable=gpus=1-4"), own=Shape(1, 2))
    comment = note(put_token("by hand", spec), key, number)
    assert (noted(comment, key), find_token(comment)) == (number, spec)
    assert comment.split(" ")[3:] == [word]
    again = put_token(comment, replace(spec, set=Shape(1, 1)))  # as any pliantd writes
    assert noted(again, key) == number
    assert note(note(again, key, 30), key, 0) == put_token("by hand", find_token(again) or spec)


@given(st.text(max_size=60))
def test_what_is_noted_and_no_number_is_none(text: str) -> None:
    word = text.split(" ", maxsplit=1)[0]
    is_number = len(word) <= 10 and word.isascii() and word.removeprefix("-").isdecimal()
    assert noted(f"pliant-nice={text}", NICE) == (int(word) if is_number else 0)
