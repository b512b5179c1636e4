"""Which shape a submission gets, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from pliant.errors import BadSpec
from pliant.filter.answer import Answer
from pliant.filter.case import Case, TooMany
from pliant.filter.choose import shape_now, waiting_shape
from pliant.filter.fields import Fixed
from pliant.filter.inventory import Inventory
from pliant.filter.normal import Form, normal_fields
from pliant.filter.remarks import list_text, remarks
from pliant.filter.requeue import requeue_fields
from pliant.filter.trials import USER
from pliant.filter.view import View
from pliant.filter.words import read_request, says_something
from pliant.filter.written import read_written
from pliant.model import JobClass, Kind, Mode, Request, Shape, Spec

NO_GPU_ASKED = (
    "pliant: the job asks for no GPU beside --moldable and runs without one:"
    " add --gres=gpu:N to say what it should run with then"
)


_OF_NOW = frozenset(("time_limit", "begin_time", "priority", "since", USER))
"""What does not bear upon which shapes there are, but only upon whether one can start now."""

_MOST_KNOWN = 1024


def filter_submission(submission: Mapping[str, str], view: View, *, fresh: bool = True) -> Answer:
    """Return what is to be done with a submission.

    ``fresh``: no other job was submitted since what ``view`` was looked at.
    One that says nothing to Pliant, or goes to a partition where it is off, is left untouched.
    """
    case = known_case(submission, view.inventory)
    if isinstance(case, Answer):
        answer = case
    else:
        base = waiting_shape(case, view.molds)
        now = shape_now(case, base, submission, view, fresh)
        answer = _chosen(case, base, now)
    return view.trials.judge(answer, submission, view.inventory) if view.trials else answer


def known_case(submission: Mapping[str, str], inventory: Inventory) -> Case | Answer:
    """Look into what is not known yet: most submissions ask for what another one asked for."""
    key = tuple([(name, text) for name, text in submission.items() if name not in _OF_NOW])
    known: Case | Answer | None = inventory.known.get(key)
    if known is None:
        if len(inventory.known) >= _MOST_KNOWN:
            inventory.known.clear()
        known = inventory.known[key] = _look_into(submission, inventory)
    return known


def _look_into(submission: Mapping[str, str], inventory: Inventory) -> Case | Answer:
    """Return the case, or the answer where there is nothing to choose."""
    mode = inventory.mode(submission.get("partition", ""))
    if mode is Mode.OFF or not says_something(submission):
        return Answer()
    try:
        request = read_request(submission)
    except BadSpec as wrong:
        if mode is Mode.ENFORCE:
            return Answer(refusal=f"pliant: {wrong}")
        return Answer(lines=(f"pliant: {wrong}; nothing of it is used",))
    fields, lines = requeue_fields(submission, request, mode)
    found = _shapes(submission, inventory, request, mode)
    if isinstance(found, Case):
        return replace(found, requeue=fields, remarks=lines)
    return replace(found, fields={**found.fields, **fields}, lines=(*found.lines, *lines))


def _shapes(
    submission: Mapping[str, str], inventory: Inventory, request: Request, mode: Mode
) -> Case | Answer:
    if not request.is_moldable:
        return Answer(spec=Spec(request), most_gpus=_written_gpus(submission, inventory, request))
    try:
        case = Case.of(submission, inventory, request, read_written(submission, inventory))
        return _observed(case) if mode is Mode.OBSERVE else _possible(case)
    except TooMany:
        return Answer(away=True)
    except Fixed as why:
        return _rigid(submission, request, str(why))


def _written_gpus(
    submission: Mapping[str, str], inventory: Inventory, request: Request
) -> Fraction | None:
    """The GPUs that a trial job of one shape asks for; None where they cannot be told."""
    if request.job_class is not JobClass.TRIAL:
        return None
    try:
        own = read_written(submission, inventory).own
    except Fixed:
        return None
    return own.amount if own is not None else Fraction(0)


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


def _observed(case: Case) -> Answer:
    lines = (NO_GPU_ASKED,) if case.own is None else ()
    spec = Spec(case.request, case.own, None, case.written.footprint)
    return Answer(lines=lines, spec=spec, most_gpus=_most_gpus(case))


def _most_gpus(case: Case) -> Fraction | None:
    """The GPUs of a trial job in the largest of its shapes; None for others."""
    if case.request.job_class is not JobClass.TRIAL:
        return None
    own = (case.own,) if case.own is not None else ()
    return max((shape.amount for shape in (*case.possible, *own)), default=None)


def _possible(case: Case) -> Case:
    if case.possible:
        return case
    most = case.inventory.most_gpus(case.submission.get("partition", ""))
    gpus = case.request.gpus
    too_large = not case.request.nodes and gpus and gpus[0] > most > 0
    hint = "; nodes= would spread the job over several" if too_large else ""
    if case.small:
        hint += "; not every GPU here is known to have gpu-mem= for a share"
    raise Fixed(f"no node here could ever give {list_text(case.allowed)}{hint}")


def _chosen(case: Case, base: Shape, now: Shape | None) -> Answer:
    answer = case.answers.get((base, now))
    if answer is None:
        answer = case.answers[base, now] = _answer(case, base, now)
    return answer


def _answer(case: Case, base: Shape, now: Shape | None) -> Answer:
    shape, own, footprint = now or base, case.own or base, case.written.footprint
    waits_as_written = case.as_written and now is None and shape == own
    form = Form(
        shape,
        footprint.demand(shape, case.request.cores),
        case.wants_gpu,
        tasks_follow=footprint.tasks_per_gpu > 0,
        mem_follows=footprint.mem_per_gpu_mib > 0,
        is_open=case.written.is_open and shape == own,
    )
    normal = {} if waits_as_written else normal_fields(case.submission, form, case.inventory)
    return Answer(
        lines=(*remarks(case, own, shape), *case.remarks),
        fields={**normal, **case.requeue},
        spec=Spec(case.request, own, shape if shape != own else None, footprint),
        shape=shape,
        started=now is not None,
        most_gpus=_most_gpus(case),
    )
