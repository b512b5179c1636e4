"""A job's number, as the commands take it."""

from __future__ import annotations

import re

import click

from pliant.errors import BadInput
from pliant.grammar import quoted

_JOB = re.compile(r"[1-9][0-9]{0,9}(?:_[0-9]{1,9})?", re.ASCII)


def _checked(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _JOB.fullmatch(value):
        raise BadInput(f"{quoted(value)}: a job's number, like 4711 or 4711_3, is expected")
    return value


job_argument = click.argument("job", callback=_checked)
"""Raises BadInput for what is neither 4711 nor, of an array, 4711_3."""
