"""`pliant demo`: one mix of jobs with Pliant off and on.

What it calls is imported when it runs: every `pliant --help` loads this module.
"""

from __future__ import annotations

import click

from pliant.demo.mix import SEED
from pliant.sandbox.options import check_name


@click.command(short_help="One mix of jobs with Pliant off and on, compared.")
@click.option("--seed", default=SEED, show_default=True, help="Draw another mix of jobs.")
@click.option("--simulated", is_flag=True, help="On the simulated cluster, even where Slurm is.")
@click.option("--name", default="demo", show_default=True, help="The sandbox's name.")
def demo(seed: int, simulated: bool, name: str) -> None:
    """Run one mix of jobs with Pliant off and with Pliant enforcing, and compare.

    As root on a machine with Slurm's packages this is a real Slurm in a sandbox (about two and a
    half minutes), with two system users that are removed again; elsewhere a simulation.
    """
    from pliant.demo.play import play_dry, play_live, why_not_live  # noqa: PLC0415  # a simulator

    check_name(name)
    reason = "as asked" if simulated else why_not_live()
    if reason:
        play_dry(reason, seed, click.echo)
    else:
        play_live(name, seed, click.echo)
