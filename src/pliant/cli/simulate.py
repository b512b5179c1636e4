"""`pliant simulate` and `pliant compare`: what policies would do with a workload.

What they call is imported when they run: every `pliant --help` loads this module.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from pliant.cli.output import json_option
from pliant.cli.reporting import REPORT_OPTIONS
from pliant.cli.sweeping import SWEEP_OPTIONS
from pliant.policies import DEFAULT

Command = Callable[..., Any]

_SIZE = click.IntRange(min=1, max=10_000_000)  # more than any cluster has, and still looked at
_count = functools.partial(click.option, type=_SIZE, metavar="N")
WORKLOAD_OPTIONS = (
    click.option("--trace", metavar="FILE", default="", help="A trace; it may be packed (gzip)."),
    click.option(
        "--format",
        metavar="swf|sacct|sacct-json|gpus",
        default="",
        help="Of the trace.  [default: as it begins]",
    ),
    click.option(
        "--workload",
        metavar="NAME[:OPTION=VALUE,...]",
        default="",
        help="Another than a trace's own jobs.",
    ),
    click.option(
        "--processors", type=_SIZE, metavar="N", help="A machine of so many, all on one node."
    ),
    _count("--nodes", help="A cluster of so many nodes."),
    _count("--gpus-per-node", help="With --nodes: GPUs on each."),
    _count("--cpus-per-node", help="With --nodes: CPUs on each."),
    click.option(
        "--jobs", type=_SIZE, metavar="N", help="So many jobs, the first ones of a trace."
    ),
)
OUT = click.option("--out", metavar="FILE", default="", help="Write it there instead of printing.")
RESULT_OPTIONS = (
    click.option("--no-idle", is_flag=True, help="Leave out avoidable idle GPU time: quicker."),
    json_option,
    OUT,
)
LISTS = (
    click.option("--list-policies", is_flag=True, help="List the policies and their options."),
    click.option("--list-workloads", is_flag=True, help="List the workloads and their options."),
)


def with_options(*groups: tuple[Callable[[Command], Command], ...]) -> Callable[[Command], Command]:
    """Add options to a command, in their order."""
    options = [option for group in groups for option in group]
    return lambda command: functools.reduce(
        lambda so_far, option: option(so_far), reversed(options), command
    )


@click.command("simulate", short_help="What a policy would do with a workload.")
@click.option(
    "--policy",
    metavar="NAME[:OPTION=VALUE,...]",
    default=DEFAULT,
    show_default=True,
    help="The policy.",
)
@click.option(
    "--with",
    "options",
    multiple=True,
    metavar="OPTION=VALUE",
    help="An option of the policy; may stand several times.",
)
@with_options(LISTS, WORKLOAD_OPTIONS)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Of what is drawn.  [default: 1]"
)
@with_options(RESULT_OPTIONS)
def simulate(**said: Any) -> None:
    """Replay a workload under a policy and print what became of it.

    The jobs are a trace's (--trace: SWF, what sacct --parsable2 or sacct --json printed, or what
    pliant monitor --trace wrote), or a workload's that --list-workloads names. It is the same
    decision as pliantd's, and the same policies, on a simulated cluster and clock. The same call
    prints the same figures.
    """
    from pliant.cli.simulating import run_simulate  # noqa: PLC0415  # the simulator is large

    run_simulate(**said)


@click.command("compare", short_help="Several policies on the same workloads.")
@click.argument("choices", metavar="POLICY[:OPTION=VALUE,...]...", nargs=-1)
@with_options(LISTS, WORKLOAD_OPTIONS)
@_count(
    "--seeds",
    default=1,
    show_default=True,
    help="So many draws of the workload, from seed 1 on.",
)
@with_options(SWEEP_OPTIONS, RESULT_OPTIONS, REPORT_OPTIONS)
def compare(**said: Any) -> None:
    """Replay workloads under several policies and print what differs from the first.

    Each figure has its mean over the seeds and, with two seeds or more, half the width of its
    95 % confidence interval (Student's t); changes are paired seed by seed. The user who is
    worst hit is the one whose mean flow time grew most.
    """
    from pliant.cli.comparing import run_compare  # noqa: PLC0415  # the simulator is large

    run_compare(**said)
