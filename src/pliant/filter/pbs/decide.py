"""A submission to PBS, and what is known: what is refused, set, or left. Pure.

Where the state file is missing, damaged or old, pliantd may be away: the request is noted in the
token and in the job's variables, so that pliantd finds it, and nothing else of the job is changed
or refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pliant.errors import BadSpec
from pliant.filter.fields import Fixed
from pliant.filter.pbs.choose import Case, case_of, shape_now, waiting_shape
from pliant.filter.pbs.defaults import NO_DEFAULTS, Defaults
from pliant.filter.pbs.limits import Bounds
from pliant.filter.pbs.names import (
    PLACE,
    RESTARTS,
    RETURNS,
    TOKEN,
    UNANSWERED,
    WROTE,
    returns,
    shape_variables,
)
from pliant.filter.pbs.places import Place
from pliant.filter.pbs.said import read_request, words
from pliant.filter.pbs.state import State
from pliant.filter.pbs.written import (
    Written,
    known_own,
    own_shape,
    read_written,
    rewritten,
)
from pliant.grammar.token import token_text
from pliant.model.cluster import Mode
from pliant.model.requests import Request, Spec
from pliant.model.shapes import Shape, shape_text

FOREVER = float("inf")


@dataclass(frozen=True, slots=True)
class Submission:
    """What a hook sees of a job: resources and variables as text.

    ``queue`` "": the default one. ``walltime_s`` 0: no limit. ``later``: it cannot start at once
    whatever is free (an array, a dependency, a hold, a time to begin). ``waits``: of a job that is
    changed, whether it certainly does not run.
    """

    queue: str
    resources: Mapping[str, str]
    variables: Mapping[str, str]
    walltime_s: int = 0
    later: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What the hook knows: the state file, "now", and whether nobody was submitted since it.

    ``bounds``: what bounds one job, as the server will hold it against this one; None: not known,
    and no shape is given that PBS might refuse. ``resources``: ``names``, where there is no file.
    """

    state: State | None = None
    now_s: float = 0.0
    fresh: bool = True
    bounds: Bounds | None = None
    resources: tuple[str, str] = ("", "")

    @property
    def names(self) -> tuple[str, str]:
        """The resources of a chunk that name the type of its GPUs and a part of one; "": none."""
        state = self.state
        return (state.type_resource, state.share_resource) if state else self.resources

    @property
    def defaults(self) -> Defaults:
        """What PBS adds to the job, as far as that is known."""
        return self.bounds.defaults if self.bounds else NO_DEFAULTS

    def mode(self, queue: str) -> Mode | None:
        """Return what may be done in a queue; None where that is not known, or was long ago."""
        if self.state is None:
            return None
        mode = self.state.mode_of(queue)
        return mode if mode is Mode.OFF or self.state.is_live(self.now_s) else None


@dataclass(frozen=True, slots=True)
class Answer:
    """``refusal``, one sentence for who asked; or what to set. None unsets a resource.

    ``remark`` is for the server's log: a hook that accepts cannot speak to the user.
    """

    refusal: str = ""
    resources: tuple[tuple[str, str | None], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    remark: str = ""


def decide(job: Submission, known: Known) -> Answer:
    """Return what is to be done with a submission; one for which pliantd is away says so."""
    said = words(job.resources, job.variables)
    mode = known.mode(job.queue)
    if not said or mode is Mode.OFF:
        return Answer()
    answer = _decided(job, known, mode, said)
    if mode is None and answer.resources:
        return replace(answer, variables=(*answer.variables, (UNANSWERED, "1")))
    return answer


def _decided(job: Submission, known: Known, mode: Mode | None, said: Mapping[str, str]) -> Answer:
    try:
        request = read_request(said)
    except BadSpec as wrong:
        return answer_to(wrong, mode)
    try:
        written = read_written(job.resources, *known.names, known.defaults)
    except Fixed as why:
        return _rigid(request, str(why))
    bounds = known.bounds if known.bounds and not known.bounds.ordered else None
    if known.state and bounds and mode is Mode.ENFORCE and request.is_moldable:
        ground = known.state.ground(job.queue)
        case = case_of(request, written, known.state, ground, bounds)
        return _chosen(job, known, known.state, case)
    return _as_written(job, request, written)


def answer_to(wrong: BadSpec, mode: Mode | None) -> Answer:
    """Refuse a request that is wrong where Pliant acts, else leave a remark."""
    if mode is Mode.ENFORCE:
        return Answer(refusal=f"pliant: {wrong}")
    return Answer(remark=f"{wrong}; nothing of it is used")


def _rigid(request: Request, why: str) -> Answer:
    """Leave the job as it was written; keep what else the owner said."""
    rest = replace(request, gpus=(), nodes=(), kinds=(), cores=0, gpu_types=(), gpu_mem_mib=0)
    if rest == Request():
        return Answer(remark=why)
    token = (TOKEN, token_text(Spec(rest)))
    return Answer(resources=(token,), variables=((RETURNS, returns(rest)),), remark=why)


def _as_written(job: Submission, request: Request, written: Written) -> Answer:
    spec = Spec(request)
    if request.is_moldable:
        spec = replace(spec, own=known_own(written, request), footprint=written.footprint)
    return _noted(job, spec, own_shape(written))


def _chosen(job: Submission, known: Known, state: State, case: Case) -> Answer:
    base = waiting_shape(case)
    if base is None:
        return _as_written(job, case.request, case.written)
    shape = base
    if not job.later:
        until_s = known.now_s + job.walltime_s if job.walltime_s else FOREVER
        ground = state.ground(job.queue)
        shape = shape_now(case, base, state, ground, until_s, fresh=known.fresh) or base
    if shape == case.own:
        return _as_written(job, case.request, case.written)
    own = case.own or base
    spec = Spec(case.request, own, shape if shape != own else None, case.written.footprint)
    changes = rewritten(case.written, shape, case.demand(shape), *known.names)
    noted = _noted(job, spec, shape, changes)
    if case.own:
        return noted
    wrote = (WROTE, shape_text(own_shape(case.written)))
    return replace(noted, variables=(*noted.variables, wrote))


def _noted(
    job: Submission, spec: Spec, shape: Shape, changes: Mapping[str, str] | None = None
) -> Answer:
    said = {**shape_variables(shape), RESTARTS: "0", RETURNS: returns(spec.request)}
    if spec.own and max(spec.request.nodes, default=1) > 1:  # it may be spread some day
        said[PLACE] = str(Place(job.resources.get("place", ""), ours="place" in (changes or ())))
    resources = ((TOKEN, token_text(spec)), *(changes or {}).items())
    return Answer(resources=resources, variables=tuple(said.items()))
