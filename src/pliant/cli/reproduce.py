"""``pliant reproduce``: what the papers claim, run again in simulations."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

from pliant.cli.output import solvers_on_stderr
from pliant.cli.reporting import HTML, PLOTS, check_report, write_report
from pliant.cli.simulate import OUT, with_options
from pliant.cli.sweeping import SWEEP_OPTIONS, sweep_asked
from pliant.cli.written import check_written, printed_to
from pliant.errors import Unavailable
from pliant.simulator.report.papers import page
from pliant.simulator.reproduce.asked import Asked, Progress, in_silence
from pliant.simulator.reproduce.claims import Section
from pliant.simulator.reproduce.papers import ALL, PAPERS, check_solver, chosen, document
from pliant.simulator.reproduce.papers import reproduce as one


@click.command(short_help="What the papers claim, run again.")
@click.argument("papers", metavar=f"[{'|'.join([*PAPERS, ALL])}]...", nargs=-1)
@click.option(
    "--quick",
    is_flag=True,
    help="Fewer runs: a first look, within half a minute of CPU time for most.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="A directory with traces and measurements that are not Pliant's.",
)
@OUT
@HTML
@PLOTS
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="The first of the seeds.",
)
@with_options(SWEEP_OPTIONS)
def reproduce(
    *,
    papers: Sequence[str],
    quick: bool,
    data: Path | None,
    out: str,
    html: str,
    plots: str,
    seed: int,
    processes: int | None,
    slurm: bool,
    sbatch: tuple[str, ...],
) -> None:
    """Run the claims of papers again, and say which hold.

    Each claim says whether it was predicted, fitted, or cannot be tested, what stands in the paper,
    what came out here, and why it does not hold where it does not. The same seed gives the same
    text, in Markdown.
    """
    names = chosen(papers)
    if data is not None and not data.is_dir():
        raise Unavailable(f"{data}: a directory is expected")
    check_written({"--out": out, "--html": html})
    pictured = check_report(html, plots)
    check_solver(names)
    sweep = sweep_asked(processes, slurm, sbatch)
    asked = Asked(quick, seed, data, sweep)
    sections: list[Section] = []
    try:
        with solvers_on_stderr(), _progress() as progress:
            for name in names:
                sections.append(one(name, replace(asked, progress=progress)))
    finally:  # what has been run is not lost where a later one cannot be
        if sections:
            with printed_to(out):
                click.echo("\n".join(document(sections, asked)))
            if pictured:
                write_report(page(sections, asked), html, plots)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show on stderr how far it is, where that is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield in_silence
        return
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import Progress as Bars  # noqa: PLC0415  # the same

    # No thread of its own: the runs' processes begin beside it.
    with Bars(console=Console(stderr=True), auto_refresh=False, transient=True) as bars:
        known = {}

        def tell(what: str, done: int, of: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=of)
            bars.update(known[what], completed=done, refresh=True)

        yield tell
