"""The words of monitors' reports: what was written is read again, and nothing else."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.daemon.munge_door import MungeDoor
from pliant.errors import BadInput
from pliant.wire import CHALLENGE, SEAL_KEY, Message, decode, encode
from pliant.wire import monitor as wire

NUMBERS = st.integers(1, 10**9).map(str)
TIERS = st.sampled_from(sorted(wire.UNITS))
COUNTS = st.floats(0, 1e15)
PARTS = st.none() | st.floats(0, 1)
UUIDS = st.from_regex(r"GPU-[0-9a-f]{8}", fullmatch=True)
GPUS = st.lists(
    st.builds(wire.GpuUse, UUIDS, st.none() | COUNTS, PARTS), max_size=wire.MOST_GPUS
).map(tuple)
NODE_GPUS = st.lists(
    st.builds(
        wire.NodeGpu,
        *(UUIDS, st.none() | st.integers(0, 255), PARTS, st.none() | COUNTS, st.none() | COUNTS),
        st.none() | st.integers(0, 10**6),
    ),
    max_size=4,
).map(tuple)
NOW_S = 1.8e9


@st.composite
def a_window(draw: st.DrawFn) -> wire.Window:
    tier, end_s = draw(TIERS), draw(st.floats(1e9, NOW_S))
    begin_s = end_s - draw(st.floats(0.1, 600))
    return wire.Window(
        *(draw(NUMBERS), begin_s, end_s, tier, draw(COUNTS), wire.UNITS[tier]),  # type: ignore[arg-type]  # words
        *(draw(st.floats(0.1, 600)), draw(COUNTS), draw(COUNTS), draw(st.integers(0, 10**6))),
        *(draw(PARTS), draw(GPUS), draw(st.booleans()), draw(st.none() | COUNTS)),
    )


WINDOWS = st.lists(a_window(), max_size=2).map(tuple)
REPORTS = st.builds(
    wire.Report,
    st.from_regex(r"[a-z][a-z0-9.-]{0,40}", fullmatch=True),
    st.from_regex(r"[0-9a-f]{32}", fullmatch=True),
    st.integers(1, 2**53),
    st.just(NOW_S),
    WINDOWS,
    NODE_GPUS,
    st.floats(0, NOW_S),
)


@given(REPORTS)
def test_a_report_goes_over_the_wire_and_back(report: wire.Report) -> None:
    line = encode(wire.request(report))
    assert wire.requested(decode(line).fields) == report


@given(st.lists(a_window(), max_size=4), NODE_GPUS)
def test_windows_are_split_in_their_order_into_reports_that_the_door_takes(
    windows: list[wire.Window], node_gpus: tuple[wire.NodeGpu, ...]
) -> None:
    found = list(wire.parts(windows, node_gpus))
    assert [window for part, _ in found for window in part] == windows
    assert [gpus for _, gpus in found] == [None] * (len(found) - 1) + [node_gpus]
    for part, gpus in found:
        report = wire.Report("n" * 255, "f" * 32, 2**53, NOW_S, part, gpus or (), NOW_S)
        assert wire.from_bytes(wire.to_bytes(report)) == report
        assert _as_sent(report) <= MungeDoor.limits.line_bytes


def test_many_small_windows_are_several_reports() -> None:
    window = wire.Window("7", 90.0, 100.0, "cpu", 0.5, "cpu-s/s", 10.0)
    found = [part for part, _ in wire.parts([window] * 300)]
    assert sum(map(len, found)) == 300
    assert max(map(len, found)) <= wire.MOST_WINDOWS
    for part in found:
        wire.from_bytes(wire.to_bytes(wire.Report("n1", "0" * 32, 1, 100.0, part)))


def test_the_largest_report_fits_too() -> None:
    gpus = tuple(wire.GpuUse("G" * 80, 1.2345678901234567e14, 1 / 3) for _ in range(16))
    window = wire.Window("4294967295", 1 / 3, 1e9 + 1 / 3, "counters", 1 / 3, "instructions/s", 1 / 3,
                         1 / 3, 1 / 3, 10**9, 1 / 3, gpus, True, 1 / 3)  # fmt: skip
    node_gpu = wire.NodeGpu("M" * 80, 255, 1 / 3, 1.2345678901234567e14, 1.2345678901234567e14, 9)
    parts = list(wire.parts([window] * 20, [node_gpu] * (wire.MOST_NODE_GPUS + 1)))
    assert len(parts[-1][1] or ()) == wire.MOST_NODE_GPUS
    for part, last in parts:
        report = wire.Report("n" * 255, "f" * 32, 2**53, NOW_S, part, last or (), NOW_S)
        assert _as_sent(report) <= 32768
        assert wire.from_bytes(wire.to_bytes(report)) == report


def _as_sent(report: wire.Report) -> int:
    """How long a line to the door is: a credential has at most 300 bytes beside its payload."""
    message = wire.request(report)
    fields = {**message.fields, CHALLENGE: "f" * 32, SEAL_KEY: "f" * 32}
    return len(b"munge MUNGE::\n") + 4 * (len(encode(Message(message.word, fields))) + 300) // 3


def good() -> dict[str, Any]:
    """A report as JSON has it."""
    window = {
        "job": "7", "begin_s": 90.0, "end_s": 100.0, "tier": "cpu", "value": 0.5, "unit": "cpu-s/s",
        "window_s": 10.0, "waited": 0.25, "gpus": [{"gpu": "GPU-1", "memory_mib": 5, "busy": 0.5}],
    }  # fmt: skip
    return {"node": "n1", "start": "0" * 32, "number": 1, "now_s": 100.0, "windows": [window]}


def each(key: str, *odd: Any) -> list[tuple[str, Any]]:
    """The field with one odd value after the other."""
    return [(key, value) for value in odd]


ODD: list[tuple[str, Any]] = [
    *each("node", "", "-n", "a b", "n1\n", "../n", "n" * 256, 5, None),
    *each("start", "", "0" * 31, "G" * 32, "0" * 33, 7),
    *each("number", 0, -1, 1.5, "1", 2**53 + 1, True),
    *each("now_s", -1, 1e12, "100", None, 50.0, 98.9),
    *each("windows", {}, None, "x", [5], [[]]),
    *each("seen_s", -1, 101.1, "1", None),
    *each("gpus", {}, [{}], [{"gpu": ""}], [{"gpu": "x", "busy": 2}], [{"gpu": "x"}] * 65),
    ("more", 1),
]
ODD_IN_WINDOW: list[tuple[str, Any]] = [
    *each("job", "", "0", "07", "-1", "7_1", "7\n", "12345678901", 7),
    *each("begin_s", 100.1, -1, "90"),
    *each("end_s", 101.1, 89.9, 1e12, None),
    *each("tier", "psi", "CPU", 3, "counters"),
    *each("value", -0.1, 1.1e15, "1", None, []),
    *each("unit", "steps/s", "", "x"),
    *each("window_s", 0, -1, 86401),
    *each("waited", 1.1, -0.1, "1"),
    *each("threads", -1, 1.5, 10**9 + 1),
    *each("gpus", [{}], [{"gpu": "x y", "memory_mib": 1}], [{"gpu": "x", "memory_mib": -1}], 5),
    *each("cpu", -1, "1"),
    *each("all_gpus", 1, None),
    ("gpus", [{"gpu": "x", "memory_mib": 1, "busy": 2}]),
    ("gpus", [{"gpu": "x", "memory_mib": 1}] * 17),
    ("more", 1),
]


def sent(raw: bytes) -> dict[str, str]:
    """The fields that carry these bytes."""
    return {"v": "1", "report": base64.urlsafe_b64encode(raw).rstrip(b"=").decode()}


def refusal(fields: dict[str, str]) -> str:
    with pytest.raises(BadInput) as wrong:
        wire.requested(fields)
    return str(wrong.value)


def test_a_report_that_is_well_formed_is_read() -> None:
    (window,) = wire.requested(sent(json.dumps(good()).encode())).windows
    assert window == wire.Window(
        *("7", 90.0, 100.0, "cpu", 0.5, "cpu-s/s", 10.0),
        waited=0.25,
        gpus=(wire.GpuUse("GPU-1", 5, 0.5),),
    )


@pytest.mark.parametrize(("key", "odd"), ODD)
def test_an_odd_report_is_refused_in_one_line(key: str, odd: object) -> None:
    said = refusal(sent(json.dumps({**good(), key: odd}).encode()))
    assert said.startswith("report: ") and said.isprintable() and len(said) < 250


@pytest.mark.parametrize(("key", "odd"), ODD_IN_WINDOW)
def test_an_odd_window_is_refused_in_one_line(key: str, odd: object) -> None:
    report = good()
    report["windows"][0][key] = odd
    said = refusal(sent(json.dumps(report).encode()))
    assert said.startswith("report: ") and said.isprintable() and len(said) < 250


@pytest.mark.parametrize("key", ["node", "start", "number", "now_s", "windows"])
def test_a_report_without_a_field_is_refused(key: str) -> None:
    report = good()
    del report[key]
    assert f"`{key}`" in refusal(sent(json.dumps(report).encode()))


def test_what_is_wrong_is_said() -> None:
    said = [
        refusal({}),
        refusal({"v": "2", "report": ""}),
        refusal({"v": "1", "report": "a+b"}),
        refusal(sent(b"{")),
        refusal(sent(b" " * (wire.MOST_JSON + 1))),
        refusal(sent(json.dumps({**good(), "now_s": 50.0}).encode())),
        refusal(sent(json.dumps({**good(), "\n\x1b": 1}).encode())),
    ]
    assert said == [
        "report: '': v and report are expected",
        "report: v: '2': 1 is expected: upgrade the node",
        "report: 'a+b': base64url is expected",
        "report: Input data was truncated",
        "report: 16385 bytes: at most 16384 are expected",
        "report: a window ends after now_s: was the node's clock set back?",
        "report: Object contains unknown field `??`",
    ]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    assert refusal(sent(raw)).isprintable()


@given(REPORTS, st.data())
def test_a_report_with_some_bytes_changed_is_read_or_refused(
    report: wire.Report, data: st.DataObject
) -> None:
    raw = bytearray(wire.to_bytes(report))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = wire.requested(sent(bytes(raw)))
    except BadInput as wrong:
        assert str(wrong).isprintable()
    else:
        assert wire.from_bytes(wire.to_bytes(found)) == found


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=40), max_size=3))
def test_any_fields_are_refused(fields: dict[str, str]) -> None:
    assert refusal(fields).isprintable()
