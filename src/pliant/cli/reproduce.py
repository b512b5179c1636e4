"""``pliant reproduce``: what the papers claim, run again in simulations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from pliant.cli.install.record import write
from pliant.cli.reporting import HTML, PLOTS, check_report, write_report
from pliant.cli.simulate import with_options
from pliant.cli.sweeping import SWEEP_OPTIONS, sweep_asked
from pliant.errors import Unavailable
from pliant.simulator.report.papers import page
from pliant.simulator.reproduce.asked import Asked, Progress, in_silence
from pliant.simulator.reproduce.papers import ALL, PAPERS, chosen, document
from pliant.simulator.reproduce.papers import reproduce as one


@click.command(short_help="What the papers claim, run again.")
@click.argument("papers", metavar=f"[{'|'.join([*PAPERS, ALL])}]...", nargs=-1)
@click.option("--quick", is_flag=True, help="Fewer runs: a first look, within half a minute each.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="A directory with traces and measurements that are not Pliant's.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Write it to a file.")
@HTML
@PLOTS
@click.option("--seed", default=0, show_default=True, help="The first of the seeds.")
@with_options(SWEEP_OPTIONS)
def reproduce(
    *,
    papers: Sequence[str],
    quick: bool,
    data: Path | None,
    out: Path | None,
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
    drawn = check_report(html, plots)
    sweep = sweep_asked(processes, slurm, sbatch)
    with _solvers_on_stderr(), _progress() as progress:
        asked = Asked(quick, seed, data, sweep, progress)
        sections = [one(name, asked) for name in names]
    if html or plots:
        would = any(section.charts for section in sections)
        write_report(page(sections, asked, drawn=drawn), html, plots, drawn=would)
    text = "\n".join(document(sections, asked))
    if out is None:
        click.echo(text)
    else:
        write(out, text + "\n", 0o644)


@contextmanager
def _solvers_on_stderr() -> Iterator[None]:
    """Keep stdout for the text: HiGHS now and then prints a line there, whatever it is told."""
    sys.stdout.flush()
    stdout = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show on stderr how far it is, where that is a terminal."""
    if not sys.stderr.isatty():
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
