"""Which shape a submission gets, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pliant.errors import BadSpec
from pliant.filter.answer import Answer
from pliant.filter.normal import Form, normal_fields
from pliant.filter.view import View
from pliant.filter.written import Fixed, Written, number, read_written
from pliant.grammar import (
    MOLDABLE_KEYS,
    OPTIONS,
    check_size,
    from_comment,
    parse,
    parse_option,
    shapes,
)
from pliant.model import Job, Kind, Mode, Request, Shape, Spec, shape_text

OPTION = "option."
"""Before the name of a SPANK option's field."""

NO_GPU_ASKED = (
    "pliant: the job asks for no GPU beside --moldable and runs without one:"
    " add --gres=gpu:N to say what it should run with then"
)


def filter_submission(submission: Mapping[str, str], view: View) -> Answer:
    """Return what is to be done with a submission.

    One that says nothing to Pliant, or goes to a partition where it is off, is left untouched.
    """
    mode = view.mode(submission.get("partition", ""))
    if mode is Mode.OFF or not _says_something(submission):
        return Answer()
    try:
        request = _request(submission)
    except BadSpec as wrong:
        if mode is Mode.ENFORCE:
            return Answer(refusal=f"pliant: {wrong}")
        return Answer(lines=(f"pliant: {wrong}; nothing of it is used",))
    if not request.is_moldable:
        return Answer(spec=Spec(request))
    try:
        written = read_written(submission, view)
        return _molded(_Case.of(submission, view, request, written), mode)
    except Fixed as why:
        return _rigid(submission, request, str(why))


def _says_something(submission: Mapping[str, str]) -> bool:
    flagged = any(OPTION + option in submission for option in OPTIONS)
    return flagged or from_comment(submission.get("comment", "")) is not None


def _request(submission: Mapping[str, str]) -> Request:
    """Read the comment's words and the flags, which win, option by option.

    Raises BadSpec.
    """
    words: dict[str, str] = {}
    said = from_comment(submission.get("comment", ""))
    if said is not None:
        parse(said)  # it must be right even where a flag wins
        for position, word in enumerate(said.split(";")):
            option, _, value = word.partition("=")
            shortened = position == 0 and option in MOLDABLE_KEYS
            words["moldable" if shortened else option] = word if shortened else value
    for option in OPTIONS:
        if OPTION + option in submission:
            value = submission[OPTION + option]
            words[option] = "" if value == "(null)" else value  # spank.h: no argument given
    request = Request()
    for option, value in words.items():
        request = parse_option(request, option, value)
    check_size(request)
    return request


def _rigid(submission: Mapping[str, str], request: Request, why: str) -> Answer:
    """Leave the request as it was written; keep what else the owner said."""
    rest = replace(request, gpus=(), nodes=(), kinds=(), cores=0, gpu_types=(), gpu_mem_mib=0)
    lines = [f"pliant: {why}; the job is submitted as written"]
    if not _asks_for_gpu(submission) and request.gpus and Kind.CPU not in request.kinds:
        lines.append(NO_GPU_ASKED)
    return Answer(lines=tuple(lines), spec=None if rest == Request() else Spec(rest))


def _asks_for_gpu(submission: Mapping[str, str]) -> bool:
    texts = [submission.get(f"tres_per_{way}", "") for way in ("node", "job", "task", "socket")]
    return any("gpu" in text or "shard" in text for text in texts)


@dataclass(frozen=True, slots=True)
class _Case:
    """One moldable submission, and the shapes that this site could ever give it."""

    submission: Mapping[str, str]
    view: View
    request: Request
    written: Written
    allowed: tuple[Shape, ...]
    possible: tuple[Shape, ...]

    @classmethod
    def of(
        cls, submission: Mapping[str, str], view: View, request: Request, written: Written
    ) -> _Case:
        names = submission.get("partition", "")
        footprint = written.footprint
        own = written.own or _unwritten(request, written)
        allowed = shapes(_within(request, own, view.most_gpus(names)), own)
        possible = tuple(
            shape
            for shape in allowed
            if view.ever(
                names,
                footprint.demand(shape, request.cores),
                shape.nodes,
                request.gpu_mem_mib,
            )
            and (not shape.is_share or _whole_share(view, names, shape))
        )
        return cls(submission, view, request, written, allowed, possible)


def _within(request: Request, own: Shape, most: int) -> Request:
    """Leave out the totals that are beyond all that a site has: there may be thousands."""
    nodes = max(request.nodes or (own.nodes,))
    kept = tuple(total for total in request.gpus if total <= nodes * most)
    return replace(request, gpus=kept or request.gpus[:1])


def _unwritten(request: Request, written: Written) -> Shape:
    """The own shape of a job that asks for no GPU, as far as it is known."""
    nodes = max(1, written.nodes)
    if request.gpus or request.gpu_types or {Kind.GPU, Kind.BOTH} & set(request.kinds):
        return Shape(nodes, 1)
    return Shape(nodes, 0, kind=Kind.CPU)


def _whole_share(view: View, names: str, shape: Shape) -> bool:
    shards = view.shards(names, shape.gpu_type)
    return bool(shards) and shards % shape.share == 0


def _molded(case: _Case, mode: Mode) -> Answer:
    written, request = case.written, case.request
    wants_gpu = any(shape.kind is not Kind.CPU for shape in case.allowed)
    own = written.own if wants_gpu else written.own or _unwritten(request, written)
    if mode is Mode.OBSERVE:
        lines = (NO_GPU_ASKED,) if own is None and not _has_cpu(case.allowed) else ()
        return Answer(lines=lines, spec=Spec(request, own, None, written.footprint))
    if not case.possible:
        raise Fixed(f"no node of this partition could ever give {_list(case.allowed)}")
    if own is None and _has_cpu(case.allowed):
        own = Shape(max(1, written.nodes), 0, kind=Kind.CPU)
    base = _base(case, own)
    now = _now(case, base)
    shape = now or base
    own = own or base
    footprint = written.footprint
    spec = Spec(request, own, shape if shape != own else None, footprint)
    demand = footprint.demand(shape, request.cores)
    form = Form(shape, demand, wants_gpu, tasks_follow=footprint.tasks_per_gpu > 0)
    return Answer(
        lines=tuple(_remarks(case, own, shape)),
        fields=normal_fields(case.submission, form, case.view),
        spec=spec,
        shape=shape,
        started=now is not None,
    )


def _has_cpu(some: tuple[Shape, ...]) -> bool:
    return any(shape.kind is Kind.CPU for shape in some)


def _base(case: _Case, own: Shape | None) -> Shape:
    """Return the shape to wait with: the own one, else the nearest to it, else the largest.

    A job that may run on CPUs waits so where a waiting job cannot give up its GPUs.
    """
    possible = case.possible
    if _has_cpu(possible) and not case.view.abilities.gpu_to_cpu:
        possible = tuple(shape for shape in possible if shape.kind is Kind.CPU)
    if own is None:
        return max(possible, key=lambda shape: (shape.amount, -shape.nodes, shape))
    if own in possible:
        return own
    return min(possible, key=lambda shape: (*_distance(shape, own), shape))


def _distance(shape: Shape, own: Shape) -> tuple[bool, Fraction, int]:
    return (
        shape.kind is not own.kind,
        abs(shape.amount - own.amount),
        abs(shape.nodes - own.nodes),
    )


def _now(case: _Case, base: Shape) -> Shape | None:
    """Return the best shape that fits into the hole right now, and take it from there."""
    free = case.view.free
    if free is None or not case.view.molds or not _can_start(case.submission):
        return None
    job = _as_job(case, base)
    with_gpu = [shape for shape in case.possible if shape.kind is not Kind.CPU]
    for shape in sorted(with_gpu or case.possible, key=_worth(case.request), reverse=True):
        nodes = free.fit(job, shape)
        if nodes is not None:
            free.take(job, shape, nodes)
            return shape
    return None


def _worth(request: Request) -> Callable[[Shape], tuple[float, Fraction, int, Shape]]:
    """Order shapes by the speed that the owner said, then by GPUs, then by fewer nodes."""
    speed = dict(request.throughput)

    def worth(shape: Shape) -> tuple[float, Fraction, int, Shape]:
        nodes = shape.nodes if shape.kind is Kind.CPU else -shape.nodes
        return (speed.get(shape, 0.0), shape.amount, nodes, shape)

    return worth


_LATER = ("array_inx", "dependency", "req_nodes", "exc_nodes", "licenses")
"""Fields of jobs that wait for more than GPUs, or that the snapshot says little about."""


def _can_start(submission: Mapping[str, str]) -> bool:
    if number(submission, "priority") == 0 or number(submission, "begin_time"):
        return False
    if any(submission.get(name) for name in _LATER):
        return False
    return all(sign not in submission.get("features", "") for sign in "|[]()*,:")


def _as_job(case: _Case, base: Shape) -> Job:
    names = case.submission.get("partition", "")
    features = case.submission.get("features", "")
    return Job(
        id="",
        partitions=tuple(partition.name for partition in case.view.partitions(names)),
        shape=base,
        shapes=case.possible,
        footprint=case.written.footprint,
        spec=Spec(case.request),
        time_limit_s=60 * (number(case.submission, "time_limit") or 0),
        features=frozenset(word for word in features.split("&") if word),
    )


def _remarks(case: _Case, own: Shape, shape: Shape) -> list[str]:
    """What the owner should know: totals that no shape has, and an own shape outside the range."""
    lines = []
    nodes = case.request.nodes or (own.nodes,)
    gpus = case.request.gpus
    uneven = [total for total in gpus if not any(_divides(total, n) for n in nodes)]
    if uneven:
        lines.append(f"pliant: gpus={_totals(uneven)}: does not divide over the nodes, left out")
    said = {shape.amount for shape in case.possible}.union(uneven)
    never = [total for total in gpus if total not in said]
    if never:
        lines.append(f"pliant: gpus={_totals(never)}: no node here could ever give it, left out")
    if case.written.own is not None and case.written.own not in case.allowed:
        lines.append(
            f"pliant: it asks for {shape_text(case.written.own)} besides, which is not among the"
            f" shapes that it may have: it is submitted with {shape_text(shape)}"
        )
    return lines


def _divides(total: Fraction, nodes: int) -> bool:
    return nodes == 1 if total < 1 else total.numerator % nodes == 0


def _totals(some: Sequence[Fraction]) -> str:
    most = 8
    return ":".join(str(total) for total in some[:most]) + (":..." if len(some) > most else "")


def _list(some: Sequence[Shape]) -> str:
    most = 8
    text = ", ".join(shape_text(shape) for shape in some[:most])
    return text + (", ..." if len(some) > most else "")
