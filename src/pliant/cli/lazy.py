"""A group of commands whose modules are imported when they are used: `pliant why` stays quick."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Mapping
from typing import Any

import click

_CALLED = "pliant.called"


def command_line() -> str:
    """Return the command that runs, as a shell would take it."""
    return str(click.get_current_context().meta[_CALLED])


class LazyGroup(click.Group):
    """Commands named by ``module:attribute``, in sections with a title each."""

    def __init__(self, *args: Any, sections: Mapping[str, Mapping[str, str]], **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.sections = sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember how the command was called, and go on."""
        ctx.meta[_CALLED] = shlex.join([ctx.info_name or "", *args])
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the commands in the order in which they were given."""
        return [name for section in self.sections.values() for name in section]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the command's module; None for an unknown command."""
        for section in self.sections.values():
            if cmd_name in section:
                module, _, attribute = section[cmd_name].partition(":")
                command: click.Command = getattr(importlib.import_module(module), attribute)
                return command
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, section by section."""
        for title, section in self.sections.items():
            found = [(name, self.get_command(ctx, name)) for name in section]
            with formatter.section(title):
                formatter.write_dl(
                    [(name, command.get_short_help_str(60)) for name, command in found if command],
                    col_max=12,
                )
