"""Gavel's measured speeds: 26 models alone on 1, 2, 4 and 8 GPUs, and pairs that share one.

The file is JSON: by type of GPU, then by model (with its number of GPUs), steps per second alone
under ``null``, and beside each other model a pair of speeds: its own and that one's. A type that
ends in ``_unconsolidated`` was measured with each GPU on a node of its own; else n GPUs are taken
to be on one node. Some tables only have models on one GPU, without a number. What was not measured
lacks, or is 0.

Source: stanford-futuredata/gavel (MIT).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pliant.errors import BadInput
from pliant.grammar import quoted
from pliant.model import Shape
from pliant.simulator.traces.json_file import read_json
from pliant.simulator.traces.lines import MOST
from pliant.simulator.workloads.curves import Table, table

_APART = "_unconsolidated"
_MODEL = re.compile(
    r"\('(?P<name>[^']+)', (?P<gpus>[1-9][0-9]{0,3})\)|(?P<alone>[^()'\"]+(\([^()]*\))?)"
)

Model = tuple[str, int]
"""A model and its GPUs."""
Pair = tuple[Model, Model]


@dataclass(frozen=True, slots=True)
class Gavel:
    """All of one file, by type of GPU.

    ``alone``: f by model. ``pairs``: how fast two models run on the same GPUs, each relative to
    itself alone there; both 0.0 where they cannot.
    """

    alone: Mapping[str, Mapping[str, Table]]
    pairs: Mapping[str, Mapping[Pair, tuple[float, float]]]


_Said = dict[str, dict[str, dict[str, Any]]]


def read_gavel(path: Path) -> Gavel:
    """Return the speeds of one file.

    Raises BadInput for what is no such file, with the place of what cannot be right.
    """
    said, _ = read_json(path, _Said)
    alone: dict[str, dict[str, dict[Shape, float]]] = {}
    pairs: dict[str, dict[Pair, tuple[float, float]]] = {}
    for where, models in said.items():
        gpu_type = where.removesuffix(_APART)
        apart = gpu_type != where
        rates = alone.setdefault(gpu_type, {})
        for key, beside in models.items():
            name, gpus = _model(key, f"{path}: {where}")
            rate = _rate(beside.get("null", 0.0), f"{path}: {where}, {key}, null")
            if rate and (gpus > 1 or not apart):
                shape = Shape(gpus, 1) if apart else Shape(1, gpus)
                rates.setdefault(name, {})[shape] = rate
        if not apart:
            pairs[gpu_type] = _pairs(models, rates, f"{path}: {where}")
    tables = {
        of: {name: table(f"{name} on {of}", some) for name, some in rates.items()}
        for of, rates in alone.items()
    }
    return Gavel(tables, pairs)


def read_pairs(path: Path, gpu_type: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the speeds of pairs of models that share one GPU, each relative to itself alone.

    Two that do not fit on one are not in it. Raises BadInput as :func:`read_gavel` does, and for a
    type of GPU that is not there.
    """
    found = read_gavel(path).pairs
    if gpu_type not in found:
        known = ", ".join(sorted(found))
        right = f"one of {known} is expected" if known else "the file has none"
        raise BadInput(f"{path}: type of GPU: {quoted(gpu_type)}: {right}")
    return {
        (name, other): speeds
        for ((name, gpus), (other, its)), speeds in found[gpu_type].items()
        if gpus == its == 1 and min(speeds) > 0
    }


def models(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the models of which pairs are known."""
    return sorted({name for pair in pairs for name in pair})


def _pairs(
    models: Mapping[str, Mapping[str, Any]], alone: Mapping[str, Mapping[Shape, float]], where: str
) -> dict[Pair, tuple[float, float]]:
    found: dict[Pair, tuple[float, float]] = {}
    for key, beside in models.items():
        one = _model(key, where)
        for other_key, speeds in beside.items():
            if other_key == "null":
                continue
            place = f"{where}, {key}, {other_key}"
            other = _model(other_key, where)
            if not isinstance(speeds, list) or len(speeds) != 2:
                raise BadInput(f"{place}: {quoted(str(speeds))}: two speeds are expected")
            mine, its = (_rate(speed, place) for speed in speeds)
            mine_alone, its_alone = (_alone(alone, model) for model in (one, other))
            if mine_alone and its_alone:
                found[one, other] = (mine / mine_alone, its / its_alone)
    return found


def _alone(alone: Mapping[str, Mapping[Shape, float]], model: Model) -> float:
    name, gpus = model
    return alone.get(name, {}).get(Shape(1, gpus), 0.0)


def _model(key: str, where: str) -> Model:
    found = _MODEL.fullmatch(key)
    if found is None:
        raise BadInput(f"{where}: {quoted(key)}: ('MODEL', GPUS), or a model, is expected")
    return (found["name"], int(found["gpus"])) if found["name"] else (found["alone"], 1)


def _rate(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise BadInput(f"{place}: {quoted(str(value))}: steps per second are expected")
    return float(value)
