"""``pliant completion``: the script that teaches a shell Pliant's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


def script(shell: str, program: click.Command) -> str:
    """Return the completion script of one shell for the command ``pliant``."""
    return SHELLS[shell](program, {}, "pliant", "_PLIANT_COMPLETE").source()


@click.command(short_help="A completion script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(tuple(SHELLS)), default="bash")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a completion script for a shell: bash, zsh or fish.

    \b
    For one user:   pliant completion bash >>~/.bash_completion
    For everybody:  pliant completion bash >/etc/bash_completion.d/pliant
    """
    click.echo(script(shell, context.find_root().command))
