"""A change of a job that is there already: what a qalter means for its token and variables. Pure.

Who says that a waiting job may not be any more what Pliant made of it has it as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from pliant.errors import BadSpec
from pliant.filter.fields import Fixed
from pliant.filter.pbs.choose import MAX_LOOKED_AT
from pliant.filter.pbs.decide import Answer, Known, Submission, answer_to
from pliant.filter.pbs.defaults import NO_DEFAULTS
from pliant.filter.pbs.names import (
    BACK,
    PLACE,
    RESOURCES,
    RESTARTS,
    RETURNS,
    TOKEN,
    TYPE,
    WROTE,
    earlier_runs,
    read_back,
    returns,
    shape_variables,
)
from pliant.filter.pbs.places import Place, place_of
from pliant.filter.pbs.said import read_request, words
from pliant.filter.pbs.written import (
    JOB_WIDE,
    Written,
    own_shape,
    read_written,
    rewritten,
    wrote_shape,
)
from pliant.grammar.shapes import shapes
from pliant.grammar.token import find_token, token_text
from pliant.model.cluster import Mode
from pliant.model.footprints import ALL_CORES, Demand
from pliant.model.requests import Request, Spec
from pliant.model.shapes import Kind, Shape

_SHAPING = frozenset(("select", "place", *JOB_WIDE))


def decide_change(
    before: Submission,
    changed: Mapping[str, str],
    known: Known,
    run_count: tuple[int, int | None],
    *,
    limited: bool = False,
) -> Answer:
    """Return what a qalter means for the token and for the job's variables.

    ``changed``: the resources that it names. ``run_count``: before, and what it is set to or None.
    ``limited``: whether it names any at all, so that PBS holds limits against the whole job.
    """
    after = replace(before, resources={**before.resources, **changed})
    counts = _restarts(before.variables, *run_count)
    request, answer = _meant(before, after, changed, known)
    ours = TOKEN in changed
    noted = {**counts, **_place_after(before, changed, known, ours=ours)}
    if request is None and not answer.resources:
        return replace(answer, variables=_news(before, noted))
    variables = {RETURNS: returns(request or Request()), **noted}
    shaping = not _SHAPING.isdisjoint(changed.keys() - ({"place"} if ours else set()))
    back: Mapping[str, str] = {}
    own: Shape | None = None
    if shaping:
        variables.update({**_shape_after(after, known), WROTE: ""})
    else:
        asked = request or Request()
        own, back = _own_again(before, changed, known, asked, limited=limited)
        variables.update(shape_variables(own) if own else {})
        back = {name: text for name, text in back.items() if name not in changed}
    token = answer.resources if request is None else _token_after(before, changed, request, own)
    return Answer(resources=(*back.items(), *token), variables=_news(before, variables))


def _meant(
    before: Submission, after: Submission, changed: Mapping[str, str], known: Known
) -> tuple[Request | None, Answer]:
    """Return what a job asks for after a change; None where it is nothing, and what that means.

    What was given by ``pliant set`` stands in the token alone, until the owner says a resource.
    """
    said = words(after.resources, after.variables)
    asked = _asks(changed)
    mode, token = known.mode(before.queue), after.resources.get(TOKEN, "")
    noted = find_token(token) if token and not asked else None
    if mode is Mode.OFF or not (said or asked or noted):
        return None, Answer()
    if noted:
        return noted.request, Answer()
    if not said:
        return None, Answer(resources=((TOKEN, None),))
    try:
        return read_request(said), Answer()
    except BadSpec as wrong:
        return None, answer_to(wrong, mode) if asked else Answer()


def _own_again(
    before: Submission,
    changed: Mapping[str, str],
    known: Known,
    request: Request,
    *,
    limited: bool,
) -> tuple[Shape | None, Mapping[str, str]]:
    """Return a waiting job's own shape, and what gives it back where it may not be as it was set.

    Who wrote no GPU has none again once nothing else is allowed. It is nothing where its owner
    allows that shape still, or has changed it, unless a limit that came since would have PBS refuse
    any change of a resource. The token alone, that of the own shape, asks for it too: so the
    movejob hook does, and the server decides on the job as it is by then.
    """
    if TOKEN in changed:
        return _asked_back(before, changed[TOKEN], known)
    was_set = set_of(before, known) if limited or _asks(changed) else None
    if not was_set or known.bounds is None:
        return None, {}
    own = was_set.meant if request.is_moldable else was_set.own
    limits, has = known.bounds.limits, was_set.demand(was_set.shape, request)
    if limited and limits.why_not(was_set.shape.nodes, has):
        own = was_set.own
    elif not _asks(changed) or _may_be(request, own, was_set.shape):
        return None, {}
    demand = was_set.demand(own, request)
    if demand.cpus == ALL_CORES or limits.why_not(own.nodes, demand):
        return None, {}  # PBS would refuse the whole change
    return own, was_set.as_set(own, demand, known)


def _asked_back(
    before: Submission, token: str, known: Known
) -> tuple[Shape | None, Mapping[str, str]]:
    spec, was_set = find_token(token), set_of(before, known)
    if spec is None or not was_set or spec.set or spec.own != was_set.own:
        return None, {}
    demand = was_set.demand(was_set.own, spec.request)
    return was_set.own, was_set.as_set(was_set.own, demand, known)


@dataclass(frozen=True, slots=True)
class Set:
    """A waiting job that carries the ``shape`` that Pliant gave it last, in place of its own.

    ``own``: as its owner wrote it; ``meant``: the own one of its token, which has GPUs where its
    owner forgot them.
    """

    spec: Spec
    written: Written
    own: Shape
    meant: Shape
    shape: Shape
    place: Place
    has_place: str

    def demand(self, shape: Shape, request: Request) -> Demand:
        """Return what a shape takes on each node."""
        cores = request.cores if self.own == self.meant or shape != self.own else 0
        return (self.spec.footprint or self.written.footprint).demand(shape, cores)

    def as_set(self, shape: Shape, demand: Demand, known: Known) -> Mapping[str, str]:
        """Return the resources that give it its own shape, or what it meant, of this demand."""
        changes = rewritten(self.written, shape, demand, *known.names)
        if shape != self.own and shape.nodes > 1:
            return changes
        changes.pop("place", None)  # to fewer nodes it was left as the owner wrote it
        wanted = self.place.wanted(known.defaults.place)
        if self.place.ours and wanted != self.has_place:
            changes["place"] = wanted
        return changes


def set_of(job: Submission, known: Known) -> Set | None:
    """Return what a waiting job is as Pliant has set it; None where it has not, or not any more."""
    spec = find_token(job.resources.get(TOKEN, ""))
    wrote = wrote_shape(job.variables)
    shape = spec and (spec.set or (spec.own if wrote else None))
    if not job.waits or not spec or not spec.own or not shape:
        return None
    written = _as_set(job.resources, known)
    if written is None:
        return None
    carries = own_shape(written)
    own = wrote or spec.own
    if carries == own or carries != _as_carried(shape):
        return None
    place = place_of(job.variables, job.resources, spec, known.defaults.place)
    return Set(spec, written, own, spec.own, shape, place, job.resources.get("place", ""))


def _as_set(resources: Mapping[str, str], known: Known) -> Written | None:
    """Read a request that Pliant has set; a default that keeps shapes may have come after that."""
    for defaults in (known.defaults, NO_DEFAULTS):
        try:
            return read_written(resources, *known.names, defaults)
        except Fixed:
            continue
    return None


def _may_be(request: Request, own: Shape, shape: Shape) -> bool:
    """Whether a request allows a shape; one of very many shapes is left to pliantd."""
    many = prod(max(1, len(n)) for n in (request.gpus, request.nodes, request.gpu_types))
    return many > MAX_LOOKED_AT or shape in shapes(request, own) or own not in shapes(request, own)


def _asks(changed: Mapping[str, str]) -> bool:
    return any(name in changed for name in RESOURCES.values())


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


def _place_after(
    before: Submission, changed: Mapping[str, str], known: Known, *, ours: bool
) -> Mapping[str, str]:
    """Return what is noted of a place that is changed, by Pliant or by somebody else."""
    if "place" not in changed:
        return {}
    if not ours:
        return {PLACE: str(Place(changed["place"]))} if PLACE in before.variables else {}
    spec = find_token(before.resources.get(TOKEN, ""))
    was = place_of(before.variables, before.resources, spec, known.defaults.place)
    return {PLACE: str(Place(was.own, ours=True))}


def _shape_after(after: Submission, known: Known) -> Mapping[str, str]:
    """Return the variables of a new shape; empty ones where it cannot be told."""
    try:
        shape = own_shape(read_written(after.resources, *known.names, known.defaults))
    except Fixed:
        return dict.fromkeys(shape_variables(Shape()), "")
    if shape.gpus and after.variables.get(TYPE) == str(Kind.BOTH):
        shape = replace(shape, kind=Kind.BOTH)
    return shape_variables(shape)


def _restarts(variables: Mapping[str, str], was: int, now: int | None) -> Mapping[str, str]:
    """Return how often the job ran before run_count began anew, and how it was sent back."""
    if now is None or now >= was:
        return {}
    before, back = earlier_runs(variables.get(RESTARTS, "")), read_back(variables.get(BACK, ""))
    news = {RESTARTS: str(before + was - now)}
    if back is None:
        return news
    return {**news, BACK: str(replace(back, runs=max(0, back.runs + now - was)))}


def _token_after(
    before: Submission, changed: Mapping[str, str], request: Request, own: Shape | None
) -> tuple[tuple[str, str | None], ...]:
    """Return the token with what is new; nothing where that is nothing, or the token itself is set.

    ``own``: the shape that the job gets back, if it does.
    """
    asks = _asks(changed)
    if TOKEN in changed or not (asks or own):
        return ()
    spec = find_token(before.resources.get(TOKEN, "")) or Spec(request)
    spec = replace(spec, own=own, set=None) if own else spec
    spec = replace(spec, request=request, renewed=True) if asks else spec
    return ((TOKEN, token_text(spec)),)
