"""Several requests of which PBS runs one: moldable with neither pliantd nor an administrator.

Each shape is submitted as a request, joined to the first by ``-W depend=runone``: it is then joined
to all the others too. When one starts PBS holds the others, and removes them when it has ended;
where it is requeued they take part again.

All are submitted held and released together. Else the first could have ended before the last is
there, and where a server remembers jobs that have ended this one would run as well. What cannot
be submitted whole is taken back: held requests that are left behind, by a fault in between, never
run.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pliant.batch.clients import Runs
from pliant.batch.pbs.values import job_id
from pliant.cli.qsub_words import Found, Option, items_of
from pliant.errors import BadInput, BatchError, Refused, Unavailable
from pliant.filter.fields import Fixed
from pliant.filter.pbs.names import RESOURCES
from pliant.filter.pbs.written import Written, meant_shape, read_written, rewritten
from pliant.grammar import request_text, shapes
from pliant.model import ALL_CORES, Kind, Request, Shape

MOST = 16
"""The most requests for one job: each takes a place in the queue, and counts for limits there."""
STOPS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_TAKEN = {"I": "interactive", "z": "without its ids"}
_NEEDS_ONE = re.compile(r"(?:^|,)\s*(depend|block|interactive)\s*=", re.ASCII)


def variants(request: Request, line: Found, inside: Found) -> list[tuple[Option, ...]]:
    """Return qsub's options for each shape of a request, the fastest or largest first.

    ``line``, ``inside``: what the command line and the script say. Raises BadInput.
    """
    _check(request, line, inside)
    resources = {**inside.resources, **line.resources}
    ours = set(RESOURCES.values())
    try:
        written = read_written({name: v for name, v in resources.items() if name not in ours})
    except Fixed as why:
        raise BadInput(f"--native: {why}") from None
    possible = shapes(request, meant_shape(written, request))
    if len(possible) > MOST:
        raise BadInput(
            f"--native: {len(possible)} shapes: each is a request, and at most {MOST} are made;"
            " name fewer"
        )
    speed = dict(request.throughput)

    def best_first(shape: Shape) -> tuple[object, ...]:
        with_gpu = shape.kind is not Kind.CPU
        return (with_gpu, speed.get(shape, 0.0), shape.amount, -shape.nodes, shape)

    ordered = sorted(possible, key=best_first, reverse=True)
    return [_options(line.options, _changes(request, written, shape)) for shape in ordered]


def _check(request: Request, line: Found, inside: Found) -> None:
    """Refuse what such requests cannot say, or would not do."""
    if not request.is_moldable:
        raise BadInput("--native: --moldable= is needed: which shapes there are to be")
    others = [word.partition("=")[0] for word in request_text(request).split(";")]
    for other in others:
        if other not in ("moldable", "throughput"):
            raise BadInput(f"--native: {other} needs pliantd: leave out one of them")
    for found in (line, inside):
        for letter, what in _TAKEN.items():
            if found.has(letter):
                raise BadInput(f"--native: -{letter}: several requests are not submitted {what}")
        for option in found.options:
            taken = _NEEDS_ONE.search(option.value or "") if option.name == "W" else None
            if taken:
                raise BadInput(f"--native: -W {taken[1]}= is for one request: leave it out")


def _changes(request: Request, written: Written, shape: Shape) -> dict[str, str]:
    """Return the resources that say a shape.

    Raises BadInput.
    """
    demand = written.footprint.demand(shape, request.cores)
    if shape.is_share or shape.gpu_type or demand.cpus == ALL_CORES:
        raise BadInput(f"--native: {shape}: shares and types of GPUs, and cores=all, need pliantd")
    if shape.nodes > 1 and written.old:
        raise BadInput(f"--native: {shape}: several nodes are asked by -l select=")
    return rewritten(written, shape, demand, "")


def _options(options: Sequence[Option], changes: dict[str, str]) -> tuple[Option, ...]:
    """Return a command line's options with some resources changed."""
    kept: list[Option] = []
    for option in options:
        items = items_of(option.value or "") if option.name == "l" else []
        left = [item.written for item in items if item.name not in changes]
        if not items:
            kept.append(option)
        elif left:
            kept.append(Option("l", ",".join(left)))
    return (*kept, *(Option("l", f"{name}={value}") for name, value in changes.items()))


# Submit


def submit_one_of(
    commands: Runs, argvs: Sequence[Sequence[str]], script: str, *, stays_held: bool = False
) -> list[str]:
    """Submit requests of which one is to run, all or none; return their ids.

    ``argvs``: qsub's words for each; ``script`` goes to stdin. ``stays_held``: their owner holds
    them. Raises Refused in PBS's words, Unavailable.
    """
    if len(argvs) == 1:
        return [_submitted(commands, argvs[0], script)]
    ids: list[str] = []
    with _whole() as is_interrupted:
        try:
            for argv in argvs:
                joined = ["-W", f"depend=runone:{ids[0]}"] if ids else []
                held = [] if stays_held else ["-h"]
                ids.append(_submitted(commands, [*held, *joined, *argv], script))
                if is_interrupted():
                    raise Refused("interrupted")
            if not stays_held:
                _tell(commands, ("qrls", "-h", "u", *ids))
        except BaseException as wrong:
            left = _taken_back(commands, ids)
            if left and isinstance(wrong, Unavailable | BatchError):
                raise type(wrong)(f"{wrong}{left}") from None
            raise
    return ids


@contextmanager
def _whole() -> Iterator[Callable[[], bool]]:
    """Let who interrupts wait until all is submitted, or all is taken back; yield if anybody has.

    Blocked, for qsub inherits that and is not ended halfway; and noted, where another thread of
    this process takes a signal that this one blocks.
    """
    noted: list[int] = []
    handlers = {one: signal.signal(one, lambda number, _: noted.append(number)) for one in STOPS}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    try:
        yield lambda: bool(noted or signal.sigpending() & STOPS)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for one, handler in handlers.items():
            signal.signal(one, handler)
        if noted:
            signal.raise_signal(noted[0])


def _submitted(commands: Runs, argv: Sequence[str], script: str) -> str:
    said = _tell(commands, ("qsub", *argv), script).strip()
    if not job_id(said):
        raise BatchError("qsub: it printed no job's id")
    return said


def _tell(commands: Runs, argv: Sequence[str], stdin: str = "") -> str:
    answer = commands.run(argv, stdin=stdin)
    if answer.status:
        raise Refused(answer.words)
    return answer.out


def _taken_back(commands: Runs, ids: Sequence[str]) -> str:
    """Remove what was submitted; return in words what may be left."""
    if not ids:
        return ""
    try:
        _tell(commands, ("qdel", *ids))
    except (Unavailable, BatchError):
        return f"; left behind, held: {' '.join(ids)}"
    return ""
