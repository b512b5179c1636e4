"""What qalter is told, and what must be read back. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.batch.pbs.job_rows import JobRow
from pliant.batch.pbs.jobs import carried, spec_of, written_of
from pliant.batch.pbs.site import Site
from pliant.errors import Refused
from pliant.filter.fields import Fixed
from pliant.filter.pbs.names import TOKEN
from pliant.filter.pbs.places import place_of
from pliant.filter.pbs.written import rewritten, wrote_shape
from pliant.grammar import token_text
from pliant.model import Job, Shape, Spec

Words = Sequence[str]
SAME = ("queue", "state", "holds", "priority", "begin_s", "depend")
"""What of a row must be as it was seen for a change of it to be right, beside its resources."""


def unchanged(seen: JobRow, now: JobRow) -> bool:
    """Whether a job is still as it was looked at."""
    fields = all(getattr(seen, name) == getattr(now, name) for name in SAME)
    return fields and seen.resources == now.resources


def token_words(spec: Spec) -> Words:
    """Return what puts a token onto a job."""
    return ("-l", f"{TOKEN}={token_text(spec)}")


def shape_words(row: JobRow, job: Job, shape: Shape, spec: Spec, site: Site) -> Words:
    """Return what lets a waiting job carry ``shape`` and says so.

    Raises Refused.
    """
    try:
        written = written_of(row, site)
    except Fixed as why:
        raise Refused(str(why)) from None
    if shape.is_share and not site.names.share:
        raise Refused(f"{shape}: a share of a GPU cannot be asked here")
    demand = site.demand(job, shape)
    changes = rewritten(written, shape, demand, site.names.gpu_type, site.names.share)
    own = wrote_shape(row.variables) or spec.own
    if "select" in changes and (shape.nodes == 1 or shape == own):
        changes = {**changes, "place": ""} | _place(row, spec_of(row), site)
    said = ((name, value) for name, value in changes.items() if value or name != "place")
    words = [word for name, value in said for word in ("-l", f"{name}={value}")]
    return (*words, *token_words(spec))


def _place(row: JobRow, spec: Spec | None, site: Site) -> dict[str, str]:
    """Return the place of a job that Pliant spreads over nodes no more; nothing where it has it."""
    default = site.place(row)
    place = place_of(row.variables, row.resources, spec, default)
    wanted = place.wanted(default)
    return {"place": wanted} if place.ours and wanted != row.resources.get("place", "") else {}


def carries(row: JobRow, shape: Shape, spec: Spec, site: Site) -> bool:
    """Whether a job carries what it was to carry, and says so."""
    try:
        return carried(row, site, spec) == shape and spec_of(row) == spec
    except Fixed:
        return False
