"""Metrics in Prometheus' text format 0.0.4, by our own hand: every installation can tell them.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Labels = tuple[str, ...]
TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""As HTTP calls it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A metric, its name without ``pliant_``, and its values by those of its ``labels``.

    A counter's name is told with ``_total``.
    """

    name: str
    words: str
    values: Mapping[Labels, float]
    labels: Labels = ()
    kind: Literal["gauge", "counter"] = "gauge"


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values were no larger than each of ``bounds``, how many in all, and their sum."""

    name: str
    words: str
    bounds: Sequence[float]
    within: Sequence[int]
    count: int
    total: float


def written(told: Iterable[Told | Histogram]) -> str:
    """Write metrics; one without a value is left out."""
    return "".join(f"{line}\n" for one in told for line in _lines(one))


def _lines(one: Told | Histogram) -> Iterator[str]:
    name = f"pliant_{one.name}"
    if isinstance(one, Histogram):
        yield from _head(name, one.words, "histogram")
        yield from _of_histogram(name, one)
    elif one.values:
        name += "_total" if one.kind == "counter" else ""
        yield from _head(name, one.words, one.kind)
        for values, number in one.values.items():
            yield f"{name}{_labels(one.labels, values)} {float(number)}"


def _head(name: str, words: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_escaped(words)}"
    yield f"# TYPE {name} {kind}"


def _of_histogram(name: str, one: Histogram) -> Iterator[str]:
    for bound, number in zip(one.bounds, one.within, strict=True):
        yield f"{name}_bucket{_labels(('le',), (str(bound),))} {float(number)}"
    yield f"{name}_bucket{_labels(('le',), ('+Inf',))} {float(one.count)}"
    yield f"{name}_sum {float(one.total)}"
    yield f"{name}_count {float(one.count)}"


def _labels(names: Labels, values: Labels) -> str:
    pairs = zip(names, values, strict=True)
    words = ",".join(
        f'{name}="{_escaped(value).replace(chr(34), chr(92) + chr(34))}"' for name, value in pairs
    )
    return f"{{{words}}}" if words else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
