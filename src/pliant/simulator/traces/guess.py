"""Which format a trace has, told by how it begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pliant.errors import BadInput
from pliant.simulator.traces.gpus import gpus_of, read_gpus
from pliant.simulator.traces.lines import Record, trace_lines, wrong
from pliant.simulator.traces.sacct import read_sacct
from pliant.simulator.traces.sacct_json import read_sacct_json
from pliant.simulator.traces.swf import read_swf
from pliant.wire.gpu_trace import HEADER

_HEADER = 200  # lines at most, of which a trace's header is one
_PROCESSORS = re.compile(r";\s*MaxProcs:\s*([1-9][0-9]{0,8})\b")


@dataclass(frozen=True, slots=True)
class Format:
    """A reader; ``tells_gpus``: whether jobs without GPUs are told from those with some."""

    read: Callable[[Path], Iterator[Record]]
    tells_gpus: bool


FORMATS = {
    "swf": Format(read_swf, tells_gpus=False),
    "sacct": Format(read_sacct, tells_gpus=True),
    "sacct-json": Format(read_sacct_json, tells_gpus=True),
    "gpus": Format(read_gpus, tells_gpus=True),
}


def guess(path: Path) -> Format:
    """Return the format of a file, by its first line that is not empty.

    Raises BadInput where it is none of them, or cannot be read.
    """
    for number, line in trace_lines(path):
        begin = line.strip()
        if begin.startswith("{"):
            return FORMATS["sacct-json"]
        if begin == HEADER:
            return FORMATS["gpus"]
        if "|" in begin:
            return FORMATS["sacct"]
        if begin.startswith(";") or re.fullmatch(r"[-+0-9.\s]+", begin):
            return FORMATS["swf"]
        if begin:
            known = ", ".join(FORMATS)
            raise wrong(path, number, f"no trace that is known begins so: --format {known}")
    raise BadInput(f"{path}: an empty file is no trace")


def processors_of(path: Path, of: Format) -> int:
    """Return how many processors a trace says that its machine has.

    MaxProcs of SWF's header; the GPUs that a monitor saw. Raises BadInput where it does not say.
    """
    if of is FORMATS["swf"]:
        for _, line in islice(trace_lines(path), _HEADER):
            if found := _PROCESSORS.match(line):
                return int(found[1])
    if of is FORMATS["gpus"] and (gpus := gpus_of(path)):
        return gpus
    raise BadInput(
        f"{path}: how large is the machine? --processors N, or --nodes N --gpus-per-node G"
    )
