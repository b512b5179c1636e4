"""``pliant set``, ``pliant pin``, ``pliant resize``: what an owner may still say about a job."""

from __future__ import annotations

import click

from pliant.cli.door import ask
from pliant.cli.job_number import job_argument
from pliant.cli.output import json_option, print_json, say
from pliant.daemon.answers import DoneAnswer
from pliant.grammar import parse, parse_shape, request_text
from pliant.model import shape_text


def tell(answer: DoneAnswer, as_json: bool) -> None:
    """Print what was done."""
    if as_json:
        print_json(answer)
    else:
        say(answer.message)


@click.command("set", short_help="Give a waiting job another request.")
@job_argument
@click.argument("spec")
@json_option
def set_request(job: str, spec: str, as_json: bool) -> None:
    """Give a waiting JOB another request. Only its owner or an administrator may.

    SPEC is written as in --comment=pliant:SPEC: options separated by semicolons, and a first
    gpus=, nodes=, type= or gpu-type= needs no moldable=. All that was said before is replaced.
    Waiting tasks of an array change together: 4711_3 means all of them.

    \b
    pliant set 4711 gpus=1-8
    pliant set 4711 'gpus=1:2:4;steps=20000'
    """
    tell(ask(DoneAnswer, "set", job=job, spec=request_text(parse(spec))), as_json)


@click.command(short_help="Let a running malleable job go on at another shape.")
@job_argument
@click.argument("shape")
@json_option
def resize(job: str, shape: str, as_json: bool) -> None:
    """Let a running malleable JOB save and go on as SHAPE, one of those that it allows.

    Its program is asked for a checkpoint; where none is made in time the job stays as it is. Only
    its owner or an administrator may. A job whose program hung since an earlier request is not
    asked again; with --malleable=stalled=requeue it is then requeued from its last checkpoint.
    Its max-resizes and min-run bind policies alone, not this command.

    \b
    pliant resize 4711 2
    pliant resize 4711 2x4
    """
    tell(ask(DoneAnswer, "resize", job=job, shape=shape_text(parse_shape(shape))), as_json)


@click.command(short_help="Leave a job as it is.")
@job_argument
@click.option("--undo", is_flag=True, help="Let Pliant change the job again.")
@json_option
def pin(job: str, undo: bool, as_json: bool) -> None:
    """Leave a JOB as it is. Only its owner or an administrator may.

    One that runs is asked for no checkpoint any more, until --undo. Waiting tasks of an array stay
    together: 4711_3 means all of them.
    """
    tell(ask(DoneAnswer, "unpin" if undo else "pin", job=job), as_json)
