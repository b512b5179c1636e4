"""A change of a job that is there already: what a qalter means for its token and variables. Pure.

Who takes back all that was said to Pliant has a waiting job as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pliant.errors import BadSpec
from pliant.filter.fields import Fixed
from pliant.filter.pbs.decide import Answer, Known, Submission, answer_to
from pliant.filter.pbs.names import (
    BACK,
    HELD,
    LONGEST,
    RESOURCES,
    RESTARTS,
    RETURNS,
    TOKEN,
    TYPE,
    read_back,
    returns,
    shape_variables,
)
from pliant.filter.pbs.said import read_request, words
from pliant.filter.pbs.written import JOB_WIDE, own_shape, read_written, rewritten
from pliant.grammar.token import find_token, token_text
from pliant.model.cluster import Mode
from pliant.model.footprints import ALL_CORES
from pliant.model.requests import Request, Spec
from pliant.model.shapes import Kind, Shape

_SHAPING = frozenset(("select", "place", *JOB_WIDE))


def decide_change(
    before: Submission, changed: Mapping[str, str], known: Known, run_count: tuple[int, int | None]
) -> Answer:
    """Return what a qalter means for the token and for the job's variables.

    ``changed``: the resources that it names. ``run_count``: before, and what it is set to or None.
    """
    after = replace(before, resources={**before.resources, **changed})
    counts = _restarts(before.variables, *run_count)
    request, answer = _meant(before, after, changed, known)
    if request is None:
        return replace(answer, variables=_news(before, {**dict(answer.variables), **counts}))
    variables = {RETURNS: returns(request), **counts}
    if _SHAPING & set(changed):
        variables.update(_shape_after(after, known))
    return Answer(
        resources=_token_after(before, changed, request), variables=_news(before, variables)
    )


def _meant(
    before: Submission, after: Submission, changed: Mapping[str, str], known: Known
) -> tuple[Request | None, Answer]:
    """Return what a job asks for after a change; None where it is nothing, and what that means.

    What was given by ``pliant set`` stands in the token alone, until the owner says a resource.
    """
    said = words(after.resources, after.variables)
    asked = any(name in changed for name in RESOURCES.values())
    mode, token = known.mode(before.queue), after.resources.get(TOKEN, "")
    noted = find_token(token) if token and not asked else None
    if mode is Mode.OFF or not (said or asked or noted):
        return None, Answer()
    if noted:
        return noted.request, Answer()
    if not said:
        resources, variables = _as_written(before, after, changed, known)
        news = (*resources.items(), (TOKEN, None))
        return None, Answer(resources=news, variables=((RETURNS, ""), *variables.items()))
    try:
        return read_request(said), Answer()
    except BadSpec as wrong:
        return None, answer_to(wrong, mode) if asked else Answer()


def _as_written(
    before: Submission, after: Submission, changed: Mapping[str, str], known: Known
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return what gives a waiting job its own shape back, and its variables then.

    Nothing where the owner names a shape, or has changed the one that Pliant set.
    """
    spec = find_token(before.resources.get(TOKEN, ""))
    if not before.waits or not spec or not spec.own or not spec.set or _SHAPING & set(changed):
        return {}, {}
    try:
        written = read_written(after.resources, *known.names)
    except Fixed:
        return {}, {}
    carries = own_shape(written)
    if carries == spec.own or carries != _as_carried(spec.set):
        return {}, {}
    demand = (spec.footprint or written.footprint).demand(spec.own, spec.request.cores)
    if demand.cpus == ALL_CORES:
        return {}, {}
    return rewritten(written, spec.own, demand, *known.names), shape_variables(spec.own)


def _as_carried(shape: Shape) -> Shape:
    """Return a shape as a request says it, which does not tell GPUs beside cores from GPUs."""
    return replace(shape, kind=Kind.GPU) if shape.kind is Kind.BOTH else shape


def _news(before: Submission, variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Leave out what the job's record says already."""
    return tuple(
        (name, value)
        for name, value in variables.items()
        if before.variables.get(name, "") != value
    )


def _shape_after(after: Submission, known: Known) -> Mapping[str, str]:
    """Return the variables of a new shape; empty ones where it cannot be told."""
    try:
        shape = own_shape(read_written(after.resources, *known.names))
    except Fixed:
        return dict.fromkeys(shape_variables(Shape()), "")
    if shape.gpus and after.variables.get(TYPE) == str(Kind.BOTH):
        shape = replace(shape, kind=Kind.BOTH)
    return shape_variables(shape)


def _restarts(variables: Mapping[str, str], was: int, now: int | None) -> Mapping[str, str]:
    """Return how often the job ran before run_count began anew; a hold of ours stays ours."""
    if now is None or now >= was:
        return {}
    said, back = variables.get(RESTARTS, ""), read_back(variables.get(BACK, ""))
    before = int(said) if said.isdecimal() and len(said) < LONGEST else 0
    news = {RESTARTS: str(before + was - now), HELD: str(now) if variables.get(HELD) else ""}
    if back is None:
        return news
    return {**news, BACK: str(replace(back, runs=max(0, back.runs + now - was)))}


def _token_after(
    before: Submission, changed: Mapping[str, str], request: Request
) -> tuple[tuple[str, str | None], ...]:
    """Return the token with a new request of the owner's; nothing where the token is set itself."""
    if TOKEN in changed or not any(name in changed for name in RESOURCES.values()):
        return ()  # pliantd writes it, or the owner said nothing new
    spec = find_token(before.resources.get(TOKEN, "")) or Spec(request)
    return ((TOKEN, token_text(replace(spec, request=request, renewed=True))),)
