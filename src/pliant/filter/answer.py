"""What the filter says back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from pliant.grammar import token_text
from pliant.model import Shape, Spec


@dataclass(frozen=True)  # no slots: what is said is kept
class Answer:
    """``refusal``, or field changes and lines for the user.

    ``spec``: what the job's token is to say, None for no token; ``shape``: what the job will
    carry, None where it was not looked into. ``started``: the shape fits into the hole right now.
    ``most_gpus``: the most that a trial job may take, None where that is not known. ``once``: the
    next submission that asks the same may get another answer. ``away``: none now, as from a
    daemon that does not run: the job is accepted as written, and looked into while it waits.
    """

    refusal: str = ""
    lines: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    spec: Spec | None = None
    shape: Shape | None = None
    started: bool = False
    most_gpus: Fraction | None = None
    once: bool = False
    away: bool = False

    @cached_property
    def as_fields(self) -> Mapping[str, str]:
        """The answer as fields of the door's protocol: refuse; away; say, token, set.<field>."""
        if self.away:
            return {"away": "1"}
        if self.refusal:
            return {"refuse": self.refusal}
        said = {"say": "\n".join(self.lines)} if self.lines else {}
        token = {"token": token_text(self.spec)} if self.spec else {}
        return said | token | {f"set.{name}": value for name, value in self.fields.items()}
