"""A waiting job that is moved: where it may not go as Pliant has set it. Pure.

PBS holds the limits of a queue against what a job says at that moment, deletes one that all
destinations of a routing queue refuse, and lets no hook of a move change what it says. So a job
that may be refused for what Pliant made of it is given its own shape back, and is then moved: what
is to be set is the token of its own shape, from which the change itself does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pliant.filter.fields import Fixed
from pliant.filter.pbs.change import Set, set_of
from pliant.filter.pbs.decide import Answer, Known, Submission
from pliant.filter.pbs.defaults import NO_DEFAULTS
from pliant.filter.pbs.limits import Bounds
from pliant.filter.pbs.names import PLACE, TOKEN
from pliant.filter.pbs.places import Place, place_of, read_note
from pliant.filter.pbs.written import read_written
from pliant.grammar.token import find_token, token_text
from pliant.model.footprints import ALL_CORES
from pliant.model.limits import totals
from pliant.model.shapes import shape_text


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a job is moved to, and what bounds one job there; None: not known.

    ``molds``: whether jobs get shapes there. They do not in queues of reservations, in those that
    route jobs, and on another server.
    """

    name: str
    bounds: Bounds | None = None
    molds: bool = False


def decide_move(job: Submission, known: Known, to: Destination) -> Answer:
    """Return what is to be set before a job may be moved from its queue, and words for who asks.

    Nothing where it may go there as it is, or where its own shape may not either.
    """
    was_set = set_of(job, known)
    if not was_set:
        return _place_alone(job, to)
    own = was_set.demand(was_set.own, was_set.spec.request)
    if own.cpus == ALL_CORES or (to.bounds and to.bounds.limits.why_not(was_set.own.nodes, own)):
        return Answer()
    if _may_go(was_set, to) and not _keeps_shapes(job, known, to):
        return Answer()
    token = token_text(replace(was_set.spec, own=was_set.own, set=None))
    shapes = f"{shape_text(was_set.own)} again instead of {shape_text(was_set.shape)}"
    words = f"queue {to.name}: not as Pliant has set the job: it gets {shapes}: move it once more"
    return Answer(
        refusal=f"pliant: {words}", resources=((TOKEN, token), *_place(was_set.place, job, to))
    )


def _place_alone(job: Submission, to: Destination) -> Answer:
    """Answer for a job that has its own shape, and perhaps a place of Pliant's still."""
    noted = read_note(job.variables.get(PLACE, "")) if job.waits else None
    spec = find_token(job.resources.get(TOKEN, ""))
    changes = _place(noted, job, to) if noted else ()
    if not changes or (spec and spec.set and spec.set.nodes > 1):
        return Answer()
    ((_, place),) = changes
    token = ((TOKEN, token_text(spec)),) if spec else ()  # by which it is known for Pliant's
    words = f"queue {to.name}: not with the place that Pliant has set: it gets place={place}"
    return Answer(refusal=f"pliant: {words}: move it once more", resources=(*token, *changes))


def _place(place: Place, job: Submission, to: Destination) -> tuple[tuple[str, str], ...]:
    """Return what gives a job the place that it would have had there without Pliant."""
    wanted = place.wanted(to.bounds.defaults.place if to.bounds else "")
    has = job.resources.get("place", "")
    return (("place", wanted),) if place.ours and wanted != has else ()


def _may_go(was_set: Set, to: Destination) -> bool:
    """Whether it is a queue in which jobs get shapes, and one job may have so much there."""
    if not to.molds or to.bounds is None:
        return False
    request = was_set.spec.request
    has = was_set.demand(was_set.shape, request)
    own = was_set.demand(was_set.own, request)
    if has.cpus == ALL_CORES or to.bounds.limits.why_not(was_set.shape.nodes, has):
        return False
    if to.bounds.sets and was_set.shape.nodes > 1:
        return False
    had = totals(was_set.own.nodes, own)
    more = any(many > had[name] for name, many in totals(was_set.shape.nodes, has).items())
    return not (to.bounds.careful and more)


def _keeps_shapes(job: Submission, known: Known, to: Destination) -> bool:
    """Whether what each chunk has there by default would have kept its shape at submission."""
    resources, spec = dict(job.resources), find_token(job.resources.get(TOKEN, ""))
    place = place_of(job.variables, resources, spec, known.defaults.place)
    if place.ours:
        resources["place"] = place.own
    try:
        read_written(resources, *known.names, to.bounds.defaults if to.bounds else NO_DEFAULTS)
    except Fixed:
        return True
    return False
