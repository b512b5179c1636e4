"""Which shape a submission gets, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.errors import BadSpec
from pliant.filter.answer import Answer
from pliant.filter.case import Case, has_cpu, unwritten
from pliant.filter.choose import shape_now, waiting_shape
from pliant.filter.fields import Fixed
from pliant.filter.normal import Form, normal_fields
from pliant.filter.remarks import list_text, remarks
from pliant.filter.spread import with_nodes
from pliant.filter.view import View
from pliant.filter.words import read_request, says_something
from pliant.filter.written import read_written
from pliant.model import Kind, Mode, Request, Shape, Spec

NO_GPU_ASKED = (
    "pliant: the job asks for no GPU beside --moldable and runs without one:"
    " add --gres=gpu:N to say what it should run with then"
)


def filter_submission(submission: Mapping[str, str], view: View) -> Answer:
    """Return what is to be done with a submission.

    One that says nothing to Pliant, or goes to a partition where it is off, is left untouched.
    """
    mode = view.mode(submission.get("partition", ""))
    if mode is Mode.OFF or not says_something(submission):
        return Answer()
    try:
        request = read_request(submission)
    except BadSpec as wrong:
        if mode is Mode.ENFORCE:
            return Answer(refusal=f"pliant: {wrong}")
        return Answer(lines=(f"pliant: {wrong}; nothing of it is used",))
    if not request.is_moldable:
        return Answer(spec=Spec(request))
    try:
        written = read_written(submission, view)
        bounded = with_nodes(submission, view, request, written)
        return _molded(Case.of(submission, view, bounded, written), mode, bounded == request)
    except Fixed as why:
        return _rigid(submission, request, str(why))


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


def _molded(case: Case, mode: Mode, all_said: bool) -> Answer:
    written, request = case.written, case.request
    wants_gpu = any(shape.kind is not Kind.CPU for shape in case.allowed)
    own = written.own if wants_gpu else written.own or unwritten(request, written)
    if mode is Mode.OBSERVE:
        lines = (NO_GPU_ASKED,) if own is None and not has_cpu(case.allowed) else ()
        return Answer(lines=lines, spec=Spec(request, own, None, written.footprint))
    if not case.possible:
        most = case.view.most_gpus(case.submission.get("partition", ""))
        too_large = not request.nodes and request.gpus and request.gpus[0] > most > 0
        hint = "; nodes= would spread the job over several" if too_large else ""
        raise Fixed(f"no node here could ever give {list_text(case.allowed)}{hint}")
    if own is None and has_cpu(case.allowed):
        own = Shape(max(1, written.nodes), 0, kind=Kind.CPU)
    base = waiting_shape(case, own)
    now = shape_now(case, base)
    shape = now or base
    own = own or base
    footprint = written.footprint
    spec = Spec(request, own, shape if shape != own else None, footprint)
    demand = footprint.demand(shape, request.cores)
    form = Form(
        shape,
        demand,
        wants_gpu,
        tasks_follow=footprint.tasks_per_gpu > 0,
        mem_follows=footprint.mem_per_gpu_mib > 0,
    )
    return Answer(
        lines=tuple(remarks(case, own, shape, all_said)),
        fields=normal_fields(case.submission, form, case.view),
        spec=spec,
        shape=shape,
        started=now is not None,
    )
