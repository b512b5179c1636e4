"""What a node's monitor and pliantd say to each other at door 2: ``monitor-report``.

A report has the fields ``v`` (:data:`VERSION`) and ``report``: a :class:`Report` as JSON, in
base64url without padding, for nearly every second byte of JSON would be written as ``%XX``. The
answer's ``json`` is a :class:`ReportAnswer`. Only root may report, and of the host that it is on.

A report is told apart by the monitor's own start, drawn anew at each, and its number since then.
pliantd counts each once: what comes again, because the answer was lost, is acknowledged and no
more. Instants are by the node's clock, which may be hours off: pliantd takes their distance to the
report's ``now_s``, the same clock at the moment of sending.

Decoding refuses what is not exactly so. A window is a job's speed between two instants; a value
says something only beside values of its own tier.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from pliant.decoding import Decoder
from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.wire.lines import Message

REPORT = "monitor-report"
VERSION = "1"

UNITS = {"counters": "instructions/s", "heartbeat": "steps/s", "cpu": "cpu-s/s"}
"""What a value of each tier counts, tier 1 first."""

MOST_JSON = 16 * 1024
"""Bytes of a report's JSON: base64 in base64, its credential stays below door 2's 32 KiB."""
MOST_WINDOWS = 128
MOST_GPUS = 16
"""In use by one job on one node."""
MOST_NODE_GPUS = 64
"""GPUs and instances of MIG; a node of eight GPUs has so many at most."""
SLACK_S = 1.0
"""So much later than ``now_s`` a window may end: clocks are corrected by little all the time."""
MOST = 1e15
"""No count that is measured here is larger."""

_Count = Annotated[float, Meta(ge=0, le=MOST)]
_Whole = Annotated[int, Meta(ge=0, le=10**9)]
_Part = Annotated[float, Meta(ge=0, le=1)]
_Instant = Annotated[float, Meta(ge=0, le=1e11)]  # seconds since the epoch
_Number = Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,9}\Z")]
_Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")]
_Start = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
_Gpu = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9/._:-]{0,79}\Z")]


class GpuUse(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a job uses of a GPU, by its UUID; ``busy``: the part of the time; None: not known."""

    gpu: _Gpu
    memory_mib: _Count | None = None
    busy: _Part | None = None


class NodeGpu(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A GPU of the node, or instance of MIG, now; what is None is not known.

    ``minor``: N of its /dev/nvidiaN. ``busy``: the part of the time in which kernels of anybody
    ran. ``processes``: how many are on it.
    """

    gpu: _Gpu
    minor: _Whole | None = None
    busy: _Part | None = None
    memory_mib: _Count | None = None
    total_mib: _Count | None = None
    processes: _Whole | None = None


class Window(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """How fast a job ran between two instants, and what it used at their end.

    ``job``: its own number, as SLURM_JOB_ID. ``value`` in ``unit``, over ``window_s`` seconds by a
    clock that no correction moves. ``cpu_s``: CPU seconds until now; ``cpu``: per second of the
    window. ``waited``: the part of the time in which its threads wanted to run that they waited for
    a CPU. ``gpus``: those that its processes were on at the end; with ``all_gpus`` it was on no
    others that could be read. None: not known.
    """

    job: _Number
    begin_s: _Instant
    end_s: _Instant
    tier: Literal["counters", "heartbeat", "cpu"]
    value: _Count
    unit: Literal["instructions/s", "steps/s", "cpu-s/s"]
    window_s: Annotated[float, Meta(gt=0, le=86400)]
    cpu_s: _Count = 0.0
    memory_mib: _Count = 0.0
    threads: _Whole = 0
    waited: _Part | None = None
    gpus: Annotated[tuple[GpuUse, ...], Meta(max_length=MOST_GPUS)] = ()
    all_gpus: bool = False
    cpu: _Count | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for what no field alone shows."""
        if self.unit != UNITS[self.tier]:
            raise ValueError(f"the unit of {self.tier} is {UNITS[self.tier]}, not {self.unit}")
        if self.begin_s > self.end_s:
            raise ValueError("a window begins before it ends")


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """Windows of a node; ``number`` counts the reports since ``start``, from 1.

    ``gpus``: of the node, as they were seen last, at ``seen_s``. A monitor reports where no job
    runs too.
    """

    node: _Name
    start: _Start
    number: Annotated[int, Meta(ge=1, le=2**53)]
    now_s: _Instant
    windows: Annotated[tuple[Window, ...], Meta(max_length=MOST_WINDOWS)]
    gpus: Annotated[tuple[NodeGpu, ...], Meta(max_length=MOST_NODE_GPUS)] = ()
    seen_s: _Instant = 0.0


class ReportAnswer(Struct, frozen=True):
    """What becomes of a report, which is kept by the node until it is taken or refused.

    ``again``: not now. ``why``: in one line, where it is not taken, or ``left`` of its windows
    were left out: of jobs that do not run there.
    """

    verdict: Literal["taken", "again", "refused"]
    why: str = ""
    left: int = 0


def request(report: Report) -> Message:
    """Return the request that carries a report."""
    raw = base64.urlsafe_b64encode(to_bytes(report)).rstrip(b"=")
    return Message(REPORT, {"v": VERSION, "report": raw.decode()})


def requested(fields: Mapping[str, str]) -> Report:
    """Return the report that a request's fields carry.

    Raises BadInput in one line.
    """
    if fields.keys() != {"v", "report"}:
        raise BadInput(f"report: {quoted(','.join(sorted(fields)))}: v and report are expected")
    if fields["v"] != VERSION:
        raise BadInput(f"report: v: {quoted(fields['v'])}: {VERSION} is expected: upgrade the node")
    text = fields["report"]
    if not _BASE64URL.fullmatch(text) or len(text) % 4 == 1:
        raise BadInput(f"report: {quoted(text)}: base64url is expected")
    return from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def to_bytes(report: Report) -> bytes:
    """Write a report."""
    return msgspec.json.encode(report)


_REPORT = Decoder(Report)


def from_bytes(raw: bytes) -> Report:
    """Read a report.

    Raises BadInput in one line.
    """
    if len(raw) > MOST_JSON:
        raise BadInput(f"report: {len(raw)} bytes: at most {MOST_JSON} are expected")
    try:
        report = _REPORT.json(raw)
    except (msgspec.DecodeError, ValueError, RecursionError) as wrong:
        raise BadInput(f"report: {_in_one_line(str(wrong))}") from None
    latest_s = max((window.end_s for window in report.windows), default=report.seen_s)
    if max(latest_s, report.seen_s) > report.now_s + SLACK_S:
        raise BadInput("report: a window ends after now_s: was the node's clock set back?")
    return report


def _in_one_line(words: str) -> str:
    """Make one short line of msgspec's words, in which names of fields may be anything."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in words[:200])


def parts(
    windows: Sequence[Window], gpus: Sequence[NodeGpu] = ()
) -> Iterator[tuple[tuple[Window, ...], tuple[NodeGpu, ...] | None]]:
    """Split what was seen so that each part fits into a report: windows in their order.

    The node's GPUs go with the last part, which may be the only one and without a window; with the
    others goes None.
    """
    last = tuple(gpus[:MOST_NODE_GPUS])
    envelope = _ENVELOPE + len(msgspec.json.encode(last))
    part: list[Window] = []
    size = envelope
    for window in windows:
        takes = len(msgspec.json.encode(window)) + 1  # and a comma
        if part and (size + takes > MOST_JSON or len(part) == MOST_WINDOWS):
            yield tuple(part), None
            part, size = [], envelope
        part.append(window)
        size += takes
    yield tuple(part), last


_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_ENVELOPE = 512
"""More than a report's JSON takes beside its windows; a name takes 255 at most."""
