"""One option each, and a job's words together, from text to Request."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import prod

from pliant.errors import BadSpec
from pliant.grammar.values import (
    MAX_SHAPES,
    MAX_VALUE,
    NUMBER,
    bad,
    parse_shape,
    quoted,
    raw_bytes,
    read_amount,
    read_cores,
    read_count,
    read_list,
    read_names,
    read_path,
    read_size_mib,
    read_time_s,
    read_words,
)
from pliant.model import ALL_CORES, JobClass, Kind, Malleable, Request, Shape

OPTIONS = ("moldable", "malleable", "job-class", "throughput", "steps", "colocate")
MOLDABLE_KEYS = ("gpus", "nodes", "type", "cores", "gpu-type", "gpu-mem")
MAX_PAIRS = 4096
"""The most combinations of totals, numbers of nodes and types of GPU in one request."""
MALLEABLE_KEYS = ("grace", "signal", "stalled", "max-resizes", "min-run", "checkpoint")
STALLED = ("requeue", "leave")
SIGNALS = ("HUP", "INT", "QUIT", "USR1", "USR2", "TERM", "CONT", "URG", "WINCH")


def _pairs(option: str, text: str, keys: tuple[str, ...]) -> dict[str, str]:
    """Split ``KEY=VALUE,KEY=VALUE`` (PBS: ``+``)."""
    found: dict[str, str] = {}
    for item in text.replace("+", ",").split(","):
        key, equals, value = item.partition("=")
        if key not in keys:
            raise bad(option, key, f"one of {', '.join(f'{k}=' for k in keys)} is expected")
        if not equals or not value:
            raise bad(option, item, f"a value is expected after {key}=")
        if key in found:
            raise bad(option, item, f"{key}= stands twice; say it once")
        found[key] = value
    return found


def _moldable(request: Request, text: str) -> Request:
    pairs = _pairs("moldable", text, MOLDABLE_KEYS)
    changes: dict[str, object] = {}
    for key, value in pairs.items():
        option = f"moldable {key}"
        match key:
            case "gpus":
                changes["gpus"] = read_list(option, value, read_amount)
            case "nodes":
                nodes = read_list(option, value, lambda o, t: Fraction(read_count(o, t)))
                changes["nodes"] = tuple(int(n) for n in nodes)
            case "type":
                changes["kinds"] = tuple(Kind(w) for w in read_words(option, value, tuple(Kind)))
            case "cores":
                changes["cores"] = ALL_CORES if value == "all" else read_cores(option, value)
            case "gpu-type":
                changes["gpu_types"] = read_names(option, value)
            case _:
                changes["gpu_mem_mib"] = read_size_mib(option, value)
    if not {"gpus", "nodes", "type", "gpu-type"} & pairs.keys():
        raise bad("moldable", text, "one of gpus=, nodes=, type=, gpu-type= is needed")
    moldable = replace(request, **changes)  # type: ignore[arg-type]  # keys are Request's fields
    _check_size(moldable)
    return moldable


def _check_size(request: Request) -> None:
    """See that a request names no more shapes than can be looked at in every cycle."""
    named = (request.gpus, request.nodes, request.gpu_types)
    pairs = prod(max(1, len(values)) for values in named)
    if pairs > MAX_PAIRS:
        right = f"gpus= times nodes= times gpu-type= may be at most {MAX_PAIRS}: name fewer of them"
        raise bad("moldable", str(pairs), right)


def _malleable(request: Request, text: str) -> Request:
    if not text:
        return replace(request, malleable=Malleable())
    pairs = _pairs("malleable", text, MALLEABLE_KEYS)
    grace_s = read_time_s("malleable grace", pairs["grace"]) if "grace" in pairs else 0
    signal = pairs.get("signal", "")
    if signal and signal.removeprefix("SIG") not in SIGNALS:
        raise bad("malleable signal", signal, f"one of {', '.join(SIGNALS)} is expected")
    stalled = pairs.get("stalled", "leave")
    if stalled not in STALLED:
        raise bad("malleable stalled", stalled, f"one of {', '.join(STALLED)} is expected")
    most, least = pairs.get("max-resizes"), pairs.get("min-run")
    said = Malleable(
        grace_s,
        signal.removeprefix("SIG"),
        stalled == "requeue",
        None if most is None else read_count("malleable max-resizes", most, least=0),
        read_time_s("malleable min-run", least) if least is not None else 0,
        read_path("malleable checkpoint", pairs["checkpoint"]) if "checkpoint" in pairs else "",
    )
    return replace(request, malleable=said)


def _job_class(request: Request, text: str) -> Request:
    if text not in tuple(JobClass):
        raise bad("job-class", text, f"one of {', '.join(JobClass)} is expected")
    return replace(request, job_class=JobClass(text))


def _throughput(request: Request, text: str) -> Request:
    items = text.replace("+", ",").split(",")
    if len(items) > MAX_SHAPES:
        raise bad("throughput", text, f"at most {MAX_SHAPES} shapes are expected")
    found: dict[Shape, float] = {}
    for item in items:
        shape_part, colon, number = item.rpartition(":")
        if not colon or not NUMBER.fullmatch(number):
            raise bad(
                "throughput", item, "a shape and its steps per second, like 2x4:16.9, is expected"
            )
        shape = parse_shape(shape_part, "throughput")
        if shape in found:
            raise bad("throughput", item, "this shape stands twice; say it once")
        found[shape] = float(number)
    return replace(request, throughput=tuple(sorted(found.items())))


def _steps(request: Request, text: str) -> Request:
    if not re.fullmatch(r"[0-9]{1,15}", text, re.ASCII) or int(text) == 0:
        raise bad("steps", text, "a whole number of steps is expected")
    return replace(request, steps=int(text))


def _colocate(request: Request, text: str) -> Request:
    if text not in ("", "yes", "no"):
        raise bad("colocate", text, "yes or no is expected")
    return replace(request, colocate=text != "no")


_READERS: dict[str, Callable[[Request, str], Request]] = {
    "moldable": _moldable,
    "malleable": _malleable,
    "job-class": _job_class,
    "throughput": _throughput,
    "steps": _steps,
    "colocate": _colocate,
}


@lru_cache(maxsize=64)
def parse_option(request: Request, option: str, value: str) -> Request:
    """Return ``request`` with one option's value added.

    Raises BadSpec in one line: the option, the value, what would be right.
    """
    if option not in _READERS:
        raise BadSpec(f"{quoted(option)}: one of {', '.join(OPTIONS)} is expected")
    if len(raw_bytes(value)) > MAX_VALUE:
        raise bad(option, value, f"at most {MAX_VALUE} bytes are expected")
    return _READERS[option](request, value)


def parse(text: str) -> Request:
    """Read one job's words, ``OPTION[=VALUE]{;OPTION[=VALUE]}``.

    Raises BadSpec.
    """
    request = Request()
    seen: set[str] = set()
    for position, word in enumerate(text.split(";")):
        option, _, value = word.partition("=")
        if position == 0 and option in MOLDABLE_KEYS:
            option, value = "moldable", word
        if option in seen:
            raise BadSpec(f"{option}: {quoted(word)}: it stands twice; say it once")
        seen.add(option)
        request = parse_option(request, option, value)
    return request
