"""Gavel's measured pairs: how fast two programs run on one GPU, against each alone.

The files are ``*_throughputs.json.gz`` of the artifact of Narayanan et al., "Heterogeneity-Aware
Cluster Scheduling Policies for Deep Learning Workloads" (OSDI 2020): by type of GPU and program,
under "null" the steps per second alone, and under each other program those of the two together. A
program is named "ResNet-18 (batch size 16)", or as a pair of that and the number of GPUs: only
programs on one GPU are read. Two that have 0 steps per second together did not fit there.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pliant.cosched import Pairs
from pliant.errors import BadInput
from pliant.grammar import quoted

_ALONE = "null"
_MAX_BYTES = 64 << 20


def read_pairs(path: Path, gpu_type: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the speeds of pairs on a type of GPU, each relative to the program alone.

    Raises BadInput, saying what is wrong where.
    """
    by_type = _object(f"{path}", _decoded(path))
    if gpu_type not in by_type:
        right = ", ".join(sorted(by_type))
        raise BadInput(f"{path}: type of GPU: {quoted(gpu_type)}: one of {right} is expected")
    rows = _on_one_gpu(_object(f"{path}: {gpu_type}", by_type[gpu_type]))
    where = {name: f"{path}: {gpu_type}: {quoted(name)}" for name in rows}
    table = {name: _on_one_gpu(_object(where[name], row)) for name, row in rows.items()}
    alone = {name: _steps(where[name], row[_ALONE]) for name, row in table.items() if _ALONE in row}
    return {
        (name, other): (found[0] / alone[name], found[1] / alone[other])
        for name, row in table.items()
        for other, steps in row.items()
        if alone.get(name) and alone.get(other)
        if min(found := _pair(where[name], steps)) > 0
    }


def programs(pairs: Pairs) -> list[str]:
    """Return the programs of which pairs are known."""
    return sorted({name for pair in pairs for name in pair})


def _decoded(path: Path) -> Any:
    try:
        with gzip.open(path, "rb") as file:
            text = file.read(_MAX_BYTES + 1)
        if len(text) > _MAX_BYTES:
            raise BadInput(f"{path}: more than {_MAX_BYTES >> 20} MiB: no such table is as large")
        return json.loads(text)
    except (OSError, EOFError, ValueError, RecursionError) as wrong:
        raise BadInput(f"{path}: {wrong}: a table of throughputs (json.gz) is expected") from wrong


def _object(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{where}: {quoted(str(value))}: a table by name is expected")
    return value


def _on_one_gpu(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the programs on one GPU, by their names alone."""
    found = {}
    for key, value in rows.items():
        name, comma, gpus = key.removeprefix("('").rpartition("', ")
        if not comma:
            found[key] = value
        elif gpus == "1)":
            found[name] = value
    return found


def _pair(where: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise BadInput(f"{where}: {quoted(str(value))}: the steps per second of two is expected")
    return (_steps(where, value[0]), _steps(where, value[1]))


def _steps(where: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 0:
        raise BadInput(f"{where}: {quoted(str(value))}: a number of steps per second is expected")
    return float(value)
