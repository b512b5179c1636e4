"""``pliant report``: what Pliant did over a time, and would have done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import click

from pliant.cli.door import ask
from pliant.cli.output import Column, Style, json_option, print_json, print_table, say
from pliant.cli.report_words import (
    PARTITION_COLUMNS,
    REFUSAL_COLUMNS,
    RESIZE_COLUMNS,
    head,
    sentences,
    used,
)
from pliant.cli.reporting import HTML, write_report
from pliant.cli.seconds import span_s
from pliant.cli.written import check_written
from pliant.daemon.reporting import ReportAnswer

T = TypeVar("T")


@click.command(short_help="What Pliant did over a time, and would have done.")
@click.option(
    "--since",
    metavar="TIME",
    default="1d",
    show_default=True,
    help="How far back: 90m, 12h, 1d, 2w.",
)
@HTML
@json_option
def report(since: str, html: str, as_json: bool) -> None:
    """Tell what Pliant did in the last day or so: for administrators.

    It counts the jobs with Pliant's options that were there in that time, as far as Pliant's
    history goes back: in which shapes they started and how long they waited, what it would have
    done where it only observes, what resizes cost, what was refused, submissions that got no answer
    in time, and GPUs that stood idle although a job could have had them.
    """
    check_written({"--html": html})
    answer = ask(ReportAnswer, "report", since=str(span_s("--since", since)))
    if html:
        from pliant.cli.report_page import page  # noqa: PLC0415  # only where one is written

        write_report(page(answer), html)
    if as_json:
        print_json(answer)
    else:
        print_report(answer)


def print_report(answer: ReportAnswer) -> None:
    """Print an answer for a person."""
    say(head(answer))
    click.echo()
    for sentence in sentences(answer.report):
        say(sentence.text)
    found = answer.report
    _print_part("", used(found), PARTITION_COLUMNS)
    _print_part("changes of running jobs:", found.resizes, RESIZE_COLUMNS)
    _print_part("changes of waiting jobs that were refused:", found.refusals, REFUSAL_COLUMNS)


def _print_part(title: str, rows: Sequence[T], columns: list[Column[T]]) -> None:
    if rows:
        click.echo()
        if title:
            say(title)
        print_table(rows, columns, Style())
