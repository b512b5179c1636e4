"""A job's number, as the commands take it."""

from __future__ import annotations

import re

import click

from pliant.errors import BadInput
from pliant.grammar import quoted

_TASK = r"(?:_[0-9]{1,9}|\[[0-9]{0,9}\])?"
_SERVER = r"(?:\.[A-Za-z][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,8})?"
_JOB = re.compile(rf"((?:0|[1-9][0-9]{{0,11}}){_TASK}){_SERVER}", re.ASCII)
"""PBS's first job is 0; Slurm has none of that number, which pliantd says."""

_COMPONENT = re.compile(r"[1-9][0-9]{0,11}\+[0-9]{1,9}", re.ASCII)
"""As squeue shows a part of a heterogeneous job; its own number is not always the sum."""


def _checked(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if _COMPONENT.fullmatch(value):
        raise BadInput(
            f"{quoted(value)}: a component of a heterogeneous job has a number of its own: "
            f"JobId= of scontrol show job {value}"
        )
    found = _JOB.fullmatch(value)
    if not found:
        raise BadInput(
            f"{quoted(value)}: a job's number, like 4711 or 4711_3, on PBS 4711[3], is expected"
        )
    return found[1]


job_argument = click.argument("job", callback=_checked)
"""The number without PBS's server: ``4711[3].head`` is ``4711[3]``.

Raises BadInput for what is neither 4711 nor, of an array, 4711_3, 4711[] or 4711[3].
"""
