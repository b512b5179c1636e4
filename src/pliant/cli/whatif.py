"""`pliant whatif`: what policies would have done to a site's own month.

What it calls is imported when it runs: every `pliant --help` loads this module.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import click
from click.core import ParameterSource

from pliant.cli.output import json_option
from pliant.cli.reporting import REPORT_OPTIONS
from pliant.cli.simulate import OUT, with_options
from pliant.cli.sweeping import PROCESSES
from pliant.errors import BadInput


class _Seconds(click.FloatRange):
    """A range that "nan" is not in: to click it is neither too small nor too large."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if isnan(found):
            self.fail(f"{found} is not in the range {self._describe_range()}.", param, ctx)
        return found


_SIZE = click.IntRange(min=1, max=10_000_000)  # as for pliant simulate
_RECORDED = (
    click.option(
        "--since",
        metavar="TIME",
        default="30days",
        show_default=True,
        help="sacct's jobs since then: 30days (ago), 12hours, 2026-10-01 (UTC).",
    ),
    click.option(
        "--until", metavar="TIME", default="now", show_default=True, help="And until then."
    ),
    click.option(
        "--save", metavar="FILE", default="", help="Keep what sacct printed, for --trace."
    ),
    click.option(
        "--trace", metavar="FILE", default="", help="What sacct printed before; sacct is not run."
    ),
    click.option(
        "--format",
        metavar="sacct|sacct-json",
        default="",
        help="Of the trace.  [default: as it begins]",
    ),
)
_CLUSTER = (
    click.option(
        "--nodes",
        type=_SIZE,
        metavar="N",
        help="So many nodes.  [default: the site's own, by scontrol]",
    ),
    click.option("--gpus-per-node", type=_SIZE, metavar="N", help="With --nodes: GPUs on each."),
    click.option("--cpus-per-node", type=_SIZE, metavar="N", help="With --nodes: CPUs on each."),
)
_ASSUMED = (
    click.option(
        "--shrink",
        type=_SIZE,
        default=4,
        show_default=True,
        metavar="N",
        help="Jobs may be halved, down to an N-th of their GPUs.",
    ),
    click.option(
        "--grow",
        type=_SIZE,
        default=1,
        show_default=True,
        metavar="N",
        help="Jobs may be doubled, up to N times their GPUs.",
    ),
    click.option(
        "--speedup",
        metavar="CURVE",
        default="power:0.8",
        show_default=True,
        help="How fast jobs run on more GPUs: power:EXPONENT, amdahl:PART, linear.",
    ),
    click.option(
        "--restart",
        type=_Seconds(min=0, max=1e6),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="What resizing a running job costs it, each time.",
    ),
    click.option(
        "--malleable",
        metavar="SPEC",
        default="",
        help="What owners say of their jobs: max-resizes=N,min-run=TIME.  [default: neither]",
    ),
    click.option(
        "--users",
        metavar="USER,...",
        default="",
        help="Only their jobs are moldable.  [default: all]",
    ),
)


def _check_window(context: click.Context) -> None:
    """Raise BadInput where sacct is not run, and yet told from when to when."""
    for name in ("since", "until") if context.params["trace"] else ():
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise BadInput(
                f"--{name} is for sacct: it does not go with --trace, which is taken whole"
            )


@click.command("whatif", short_help="What policies would have done to your own month.")
@click.argument("choices", metavar="[POLICY[:OPTION=VALUE,...]]...", nargs=-1)
@with_options(_RECORDED, _CLUSTER, _ASSUMED, (PROCESSES, json_option, OUT), REPORT_OPTIONS)
@click.pass_context
def whatif(context: click.Context, /, **said: Any) -> None:
    """Replay the jobs that this cluster has behind it as policies would have run them.

    sacct says which jobs there were, scontrol which nodes there are; nothing is changed. Without
    a policy it is pliantd's default.

    All is compared with easy-backfill on the jobs as they were, which is about what Slurm does.
    How well that agrees with what really happened is said, and so is all that is assumed: which
    jobs could have had another size, and how fast they would have been so. Users and
    jobs are told apart: for whom it is better, for whom worse.
    """
    _check_window(context)
    from pliant.cli.month import run_whatif  # noqa: PLC0415  # the simulator is large

    run_whatif(**said)
