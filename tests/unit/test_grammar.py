"""What an owner may say, what it means, and what is said back when it is wrong."""

from __future__ import annotations

import string
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.errors import BadSpec
from pliant.grammar import (
    dropped,
    from_comment,
    no_larger,
    parse,
    parse_option,
    parse_shape,
    quoted,
    request_text,
    shapes,
)
from pliant.model import ALL_CORES, JobClass, Kind, Malleable, Request, Shape

QUARTER, THIRD, HALF = Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)


def whole(*numbers: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(number) for number in numbers)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("4", Shape(1, 4)),
        ("2x4", Shape(2, 4)),
        ("1/4", Shape(1, 1, 4)),
        ("1x0@cpu", Shape(1, 0, kind=Kind.CPU)),
        ("3x0@cpu", Shape(3, 0, kind=Kind.CPU)),
        ("2x4@a100", Shape(2, 4, gpu_type="a100")),
        ("1@both", Shape(1, 1, kind=Kind.BOTH)),
        ("2x1@a100:both", Shape(2, 1, kind=Kind.BOTH, gpu_type="a100")),
        ("1/2@h100", Shape(1, 1, 2, gpu_type="h100")),
    ],
)
def test_a_shape_is_read_and_written_back(text: str, shape: Shape) -> None:
    assert parse_shape(text) == shape
    assert str(shape) == text


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("gpus=1-4", Request(gpus=whole(1, 2, 3, 4))),
        ("gpus=1:2:4:8", Request(gpus=whole(1, 2, 4, 8))),
        ("gpus=8:1-2", Request(gpus=whole(1, 2, 8))),
        ("gpus=1/4-4", Request(gpus=(QUARTER, THIRD, HALF, *whole(1, 2, 3, 4)))),
        ("gpus=1/4:1/2", Request(gpus=(QUARTER, HALF))),
        ("gpus=1/3-1/2", Request(gpus=(THIRD, HALF))),
        ("moldable=gpus=2,nodes=1-2", Request(gpus=whole(2), nodes=(1, 2))),
        ("gpus=2+nodes=1-2", Request(gpus=whole(2), nodes=(1, 2))),
        (
            "type=cpu:gpu,cores=16",
            Request(kinds=(Kind.GPU, Kind.CPU), cores=16),
        ),
        ("type=both,cores=all", Request(kinds=(Kind.BOTH,), cores=ALL_CORES)),
        ("gpus=1,gpu-type=a100:h100", Request(gpus=whole(1), gpu_types=("a100", "h100"))),
        (
            "gpus=1/4-1,gpu-mem=6G",
            Request(gpus=(QUARTER, THIRD, HALF, *whole(1)), gpu_mem_mib=6144),
        ),
        ("malleable", Request(malleable=Malleable())),
        ("malleable=grace=2m,signal=SIGUSR1", Request(malleable=Malleable(120, "USR1"))),
        ("malleable=stalled=requeue", Request(malleable=Malleable(requeues_stalled=True))),
        ("malleable=stalled=leave", Request(malleable=Malleable())),
        (
            "malleable=max-resizes=5,min-run=2h",
            Request(malleable=Malleable(max_resizes=5, min_run_s=7200)),
        ),
        ("malleable=max-resizes=0", Request(malleable=Malleable(max_resizes=0))),
        ("job-class=best-effort", Request(job_class=JobClass.BEST_EFFORT)),
        ("colocate", Request(colocate=True)),
        ("colocate=no", Request(colocate=False)),
        (
            "throughput=1:5.2,2x4:16.9,1x0@cpu:0.4;steps=20000",
            Request(
                throughput=(
                    (Shape(1, 0, kind=Kind.CPU), 0.4),
                    (Shape(1, 1), 5.2),
                    (Shape(2, 4), 16.9),
                ),
                steps=20000,
            ),
        ),
    ],
)
def test_words_mean_what_the_page_says(text: str, request_: Request) -> None:
    assert parse(text) == request_
    assert parse(request_text(request_)) == request_


AMOUNT = "a number of GPUs from 1 to 4096, or a share like 1/4, is expected"
OPTION = "one of moldable, malleable, job-class, throughput, steps, colocate is expected"
KEY = "one of gpus=, nodes=, type=, cores=, gpu-type=, gpu-mem= is expected"
COUNT = "a whole number from 1 to 4096 is expected"
SPEED = "a shape and its steps per second, like 2x4:16.9, is expected"
TIME = "a time like 90s, 2m or 1h, at most 24h, is expected"

MALFORMED = {
    "": f"'': {OPTION}",
    "gpus": "moldable: 'gpus': a value is expected after gpus=",
    "gpus=": "moldable: 'gpus=': a value is expected after gpus=",
    "gpus=0": f"moldable gpus: '0': {AMOUNT}",
    "gpus=-1": f"moldable gpus: '': {AMOUNT}",
    "gpus=1-": f"moldable gpus: '': {AMOUNT}",
    "gpus=1-2-3": f"moldable gpus: '2-3': {AMOUNT}",
    "gpus=4-1": "moldable gpus: '4-1': the range runs backwards; write 1-4",
    "gpus=1/2-1/4": "moldable gpus: '1/2-1/4': the range runs backwards; write 1/4-1/2",
    "gpus=2/4": f"moldable gpus: '2/4': {AMOUNT}",
    "gpus=1/1": "moldable gpus: '1/1': a share is 1/2 to 1/64 of one GPU",
    "gpus=1/65": "moldable gpus: '1/65': a share is 1/2 to 1/64 of one GPU",
    "gpus=1/": "moldable gpus: '1/': a share is 1/2 to 1/64 of one GPU",
    "gpus=1.5": f"moldable gpus: '1.5': {AMOUNT}",
    "gpus=1::2": f"moldable gpus: '': {AMOUNT}",
    "gpus=4097": f"moldable gpus: '4097': {AMOUNT}",
    "gpus=9999999999999": f"moldable gpus: '9999999999999': {AMOUNT}",
    "gpus=١-٤": f"moldable gpus: '??': {AMOUNT}",
    "gpus=1-4,gpus=2": "moldable: 'gpus=2': gpus= stands twice; say it once",
    "gpus=1,": f"moldable: '': {KEY}",
    "gpus=1,gpu=2": f"moldable: 'gpu': {KEY}",
    "gpus=1 ,nodes=2": f"moldable gpus: '1 ': {AMOUNT}",
    "nodes=0": f"moldable nodes: '0': {COUNT}",
    "nodes=1/2": f"moldable nodes: '1/2': {COUNT}",
    "nodes=4-2": "moldable nodes: '4-2': the range runs backwards; write 2-4",
    "type=tpu": "moldable type: 'tpu': one of gpu, cpu, both is expected",
    "type=GPU": "moldable type: 'GPU': one of gpu, cpu, both is expected",
    "cores=4": "moldable: 'cores=4': one of gpus=, nodes=, type=, gpu-type= is needed",
    "type=cpu,cores=many": "moldable cores: 'many': a whole number from 1 to 4096, or all, is expected",
    "gpu-type=": "moldable: 'gpu-type=': a value is expected after gpu-type=",
    "gpu-type=cpu": "moldable gpu-type: 'cpu': the name of a GPU type, like a100, is expected",
    "gpu-type=$(id)": "moldable gpu-type: '$(id)': the name of a GPU type, like a100, is expected",
    "gpus=1/2,gpu-mem=6K": "moldable gpu-mem: '6K': a size like 6G or 512M is expected",
    "gpus=1/2,gpu-mem=0": "moldable gpu-mem: '0': a size like 6G or 512M is expected",
    "malleable=grace=0": f"malleable grace: '0': {TIME}",
    "malleable=grace=2d": f"malleable grace: '2d': {TIME}",
    "malleable=signal=KILL": "malleable signal: 'KILL': one of HUP, INT, QUIT, USR1, USR2, TERM, CONT, URG, WINCH is expected",
    "malleable=yes": "malleable: 'yes': one of grace=, signal=, stalled=, max-resizes=, min-run=, checkpoint= is expected",
    "malleable=stalled=yes": "malleable stalled: 'yes': one of requeue, leave is expected",
    "malleable=max-resizes=-1": "malleable max-resizes: '-1': a whole number from 0 to 4096 is expected",
    "malleable=checkpoint=~/x": "malleable checkpoint: '~/x': a path of at most 255 letters, digits and ._/@- is expected",
    "malleable=min-run=2d": f"malleable min-run: '2d': {TIME}",
    "job-class=": "job-class: '': one of trial, best-effort is expected",
    "throughput=1": f"throughput: '1': {SPEED}",
    "throughput=1:fast": f"throughput: '1:fast': {SPEED}",
    "throughput=0:1": "throughput: '0': a shape without a GPU is written 1x0@cpu",
    "throughput=4@cpu:both:1": "throughput: '4@cpu:both': after @ stands cpu, both, or the name of a GPU type",
    "throughput=2x1/4:1": "throughput: '2x1/4': a share lies on one node: write 1/4, without a number of nodes",
    "throughput=1:1,1:2": "throughput: '1:2': this shape stands twice; say it once",
    "steps=0": "steps: '0': a whole number of steps is expected",
    "steps=1e6": "steps: '1e6': a whole number of steps is expected",
    "colocate=maybe": "colocate: 'maybe': yes or no is expected",
    "steps=1;steps=2": "steps: 'steps=2': it stands twice; say it once",
    "gpus=1;rm -rf /": f"'rm -rf /': {OPTION}",
    "gpus=1\n2": f"moldable gpus: '1?2': {AMOUNT}",
    "gpus=1 AdminComment=x": f"moldable gpus: '1 AdminComment=x': {AMOUNT}",
}


@pytest.mark.parametrize(("text", "error"), MALFORMED.items())
def test_a_malformed_word_gets_one_clear_line(text: str, error: str) -> None:
    with pytest.raises(BadSpec) as caught:
        parse(text)
    assert str(caught.value) == error


def test_a_value_of_64_kib_is_refused_without_being_repeated() -> None:
    with pytest.raises(BadSpec) as caught:
        parse_option(Request(), "moldable", "gpus=" + "1:" * 32768)
    assert str(caught.value) == (
        "moldable: 'gpus=1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1...': at most 4096 bytes are expected"
    )


def test_a_quoted_value_is_printable_and_short() -> None:
    assert quoted("a'b\n\x1b[31m\u00e9") == "'a'b??[31m??'"
    assert quoted("x" * 41) == "'" + "x" * 40 + "...'"


# As a JSON text over pliantd's door can hold it: a surrogate that stands for no byte.
LONE = "1\ud800"


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("steps", "steps: '1???': a whole number of steps is expected"),
        ("colocate", "colocate: '1???': yes or no is expected"),
        (
            LONE,
            "'1???': one of moldable, malleable, job-class, throughput, steps, colocate is "
            "expected",
        ),
    ],
)
def test_a_lone_surrogate_is_refused_like_any_other_character(option: str, error: str) -> None:
    with pytest.raises(BadSpec) as caught:
        parse_option(Request(), option, LONE)
    assert str(caught.value) == error


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_any_text_is_read_or_refused_in_one_printable_line(text: str) -> None:
    try:
        request = parse(text)
    except BadSpec as error:
        line = str(error)
        assert line.isascii()
        assert line.isprintable()
        return
    assert parse(request_text(request)) == request


WORDS = st.lists(
    st.sampled_from(
        "gpus= nodes= type= cores= gpu-type= gpu-mem= throughput= malleable= steps= grace= signal= "
        "colocate job-class= trial USR1 all cpu 1 2 4 1/4 16 - : , + ; x @ a100 . G m".split()
    ),
    max_size=14,
).map("".join)


@given(WORDS)
def test_words_of_the_grammar_in_any_order_are_read_or_refused(text: str) -> None:
    try:
        request = parse(text)
    except BadSpec:
        return
    assert parse(request_text(request)) == request


amounts = st.one_of(
    st.integers(1, 64).map(Fraction), st.integers(2, 64).map(lambda n: Fraction(1, n))
)


@given(
    st.lists(amounts, min_size=1, max_size=8, unique=True),
    st.lists(st.integers(1, 16), max_size=4, unique=True),
    st.lists(st.sampled_from(list(Kind)), max_size=3, unique=True),
    st.lists(st.text(string.ascii_lowercase, min_size=4, max_size=6), max_size=2, unique=True),
)
def test_every_request_comes_back_from_its_text_and_its_shapes_obey_it(
    gpus: list[Fraction], nodes: list[int], kinds: list[Kind], types: list[str]
) -> None:
    request = Request(
        gpus=tuple(sorted(gpus)),
        nodes=tuple(sorted(nodes)),
        kinds=tuple(kind for kind in Kind if kind in kinds),
        gpu_types=tuple(name for name in types if name not in ("both",)),
    )
    assert parse(request_text(request)) == request
    own = Shape(1, 1)
    allowed = shapes(request, own)
    assert len(set(allowed)) == len(allowed)
    if allowed == (own,):
        return
    for shape in allowed:
        assert shape.kind in (request.kinds or (own.kind,))
        assert shape.nodes in (request.nodes or (1,))
        assert shape.kind is Kind.CPU or shape.amount in request.gpus
        assert shape.kind is Kind.CPU or shape.gpu_type in (request.gpu_types or ("",))
    kept = {shape.amount for shape in allowed}
    assert not kept & set(dropped(request, own))


@pytest.mark.parametrize(
    ("words", "own", "expected"),
    [
        ("gpus=1-4", "2", "1 2 3 4"),
        ("gpus=1-4,nodes=1-2", "2", "1 2 2x1 3 4 2x2"),
        ("gpus=1:3,nodes=2", "2", "2"),  # nothing divides: as it was written
        ("nodes=1-3", "2", "2 2x2 3x2"),
        ("gpus=1/2-2", "1", "1/2 1 2"),
        ("type=gpu:cpu", "1", "1x0@cpu 1"),
        ("type=cpu:both,gpus=1-2", "1", "1x0@cpu 1@both 2@both"),
        ("gpu-type=a100:h100", "2", "2@a100 2@h100"),
        ("gpus=1-2", "2@a100", "1@a100 2@a100"),
        ("type=gpu:cpu", "1x0@cpu", "1x0@cpu 1"),
        ("steps=5", "3", "3"),
    ],
)
def test_a_request_allows_these_shapes(words: str, own: str, expected: str) -> None:
    found = shapes(parse(words), parse_shape(own))
    assert " ".join(str(shape) for shape in found) == expected


def test_totals_that_do_not_divide_over_the_nodes_are_named() -> None:
    assert dropped(parse("gpus=1:3:4,nodes=2"), Shape(1, 1)) == whole(1, 3)


def test_a_comment_speaks_to_pliant_only_from_its_start() -> None:
    assert from_comment("pliant:gpus=1-4;steps=9 and my own words") == "gpus=1-4;steps=9"
    assert from_comment("my pliant:gpus=1-4") is None
    assert from_comment("pliant: gpus=1") == "gpus=1"
    assert from_comment("pliant:") == ""


@pytest.mark.parametrize(
    ("own", "left"),
    [
        ("2", "1/4 1/2 1 2"),
        ("2x2", "1/4 1/2 1 2x1 2 2x2"),
        ("4", "1/4 1/2 1 2 4"),
        ("1/2", "1/4 1/2"),
        ("2@h100", "2@h100"),
        ("8", "1/4"),  # not among them: the smallest stands in its place
    ],
)
def test_no_larger_is_less_in_all_and_on_each_node(own: str, left: str) -> None:
    words = "1/4 1/2 1 2x1 2 2@h100 2x2 4 2x4"
    some = tuple(parse_shape(word) for word in words.split())
    assert no_larger(some, parse_shape(own)) == tuple(parse_shape(w) for w in left.split())
