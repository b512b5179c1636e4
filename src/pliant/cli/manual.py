"""Write docs/commands.md and the man page pliant(1) from the commands themselves.

``python -m pliant.cli.manual docs`` writes both; a test says when that was forgotten.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from pliant.cli import cli
from pliant.cli.templates import render

PREFORMATTED = "\b"


@dataclass(frozen=True, slots=True)
class Page:
    """One command: its path, its usage, its help in paragraphs, its options."""

    path: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[tuple[str, str], ...]


def pages() -> Iterator[Page]:
    """Yield every command, groups before their own."""
    yield from _pages(cli, click.Context(cli, info_name="pliant"))


def _pages(command: click.Command, context: click.Context) -> Iterator[Page]:
    text = inspect.cleandoc(command.help or "")
    yield Page(
        context.command_path,
        " ".join([context.command_path, *command.collect_usage_pieces(context)]),
        tuple(part for part in text.split("\n\n") if part),
        tuple(_options(command, context)),
    )
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            if child is not None and not child.hidden:
                yield from _pages(child, click.Context(child, info_name=name, parent=context))


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            yield record[0], re.sub(r"\s+", " ", record[1])


# Markdown


def markdown() -> str:
    """Return docs/commands.md."""
    everything = tuple(pages())
    return (
        render(
            "manual",
            "commands.md",
            contents=[(page.path, _anchor(page.path)) for page in everything[1:]],
            pages=[_markdown_page(page) for page in everything],
        ).rstrip("\n")
        + "\n"
    )


def _anchor(path: str) -> str:
    return path.replace(" ", "-")


def _markdown_page(page: Page) -> str:
    parts = [f"## {page.path}", f"```\n{page.usage}\n```"]
    for paragraph in page.paragraphs:
        plain = paragraph.removeprefix(PREFORMATTED).strip("\n")
        is_block = paragraph.startswith(PREFORMATTED)
        parts.append(f"```\n{plain}\n```" if is_block else _joined(plain))
    if page.options:
        rows = [f"| `{_cell(name)}` | {_cell(text)} |" for name, text in page.options]
        parts.append("\n".join(["| option | |", "|---|---|", *rows]))
    return "\n\n".join(parts)


def _joined(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# roff


def roff() -> str:
    """Return pliant(1)."""
    first, *others = pages()
    return render(
        "manual",
        "pliant.1",
        introduction=[_escaped(_joined(paragraph)) for paragraph in first.paragraphs],
        pages=[_roff_page(page) for page in others],
    )


def _roff_page(page: Page) -> str:
    lines = [f'.SS "{_escaped(page.path)}"', ".nf", _escaped(page.usage), ".fi"]
    for paragraph in page.paragraphs:
        lines.append(".PP")
        if paragraph.startswith(PREFORMATTED):
            plain = paragraph.removeprefix(PREFORMATTED).strip("\n")
            lines += [".nf", *map(_escaped, plain.splitlines()), ".fi"]
        else:
            lines.append(_escaped(_joined(paragraph)))
    for name, text in page.options:
        lines += [".TP", f"\\fB{_escaped(name)}\\fR", _escaped(text)]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Return text that roff prints as it is."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def main(directory: Path) -> None:
    """Write both below ``directory``."""
    (directory / "man").mkdir(parents=True, exist_ok=True)
    (directory / "commands.md").write_text(markdown())
    (directory / "man" / "pliant.1").write_text(roff())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
