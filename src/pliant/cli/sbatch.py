"""``pliant sbatch``: Pliant's flags where the administrator has installed nothing.

The flags, on the command line or in the script's ``#SBATCH`` lines, are checked and become the
job's comment, ``pliant:...``, which every door of Pliant understands; text that the owner wrote
there follows after a blank. Then the real sbatch takes this process's place: its output, its exit
code. A script that holds our flags is handed over as a copy in memory in which they stand behind
a ``#``, because an sbatch without the plugin would refuse them.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from pliant.cli.directives import Found, read_command_line, read_script
from pliant.errors import BadInput, Unavailable
from pliant.grammar import MOLDABLE_KEYS, parse_option, request_text
from pliant.grammar.token import COMMENT
from pliant.model import Request

Reader = Callable[[str], bytes | None]
"""Returns a script's text by its name ("": stdin), or None where sbatch shall say what is wrong."""

REPLACED = "{script}"


class PassedOn(click.Command):
    """A command whose words are another program's: nothing is interpreted but a lone --help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep every word as it is."""
        if args in (["--help"], ["-h"]):
            click.echo(ctx.get_help())
            ctx.exit()
        ctx.args = args
        return []


@click.command(
    cls=PassedOn,
    options_metavar="[SBATCH OPTIONS] [SCRIPT [ARGUMENTS]]",
    short_help="Submit with Pliant's flags where sbatch lacks them.",
)
@click.pass_context
def sbatch(context: click.Context) -> None:
    """Submit a job with Pliant's flags, where sbatch does not know them.

    All of sbatch's own options may stand here, and Pliant's: --moldable=, --malleable[=],
    --class=, --throughput=, --steps=, --colocate[=]. Pliant's may also stand in the script's
    #SBATCH lines. They are checked, put into the job's comment, and sbatch does the rest.

    \b
    pliant sbatch --moldable=gpus=1-4 --gres=gpu:2 train.sh
    """
    argv, script = prepare(context.args, _read, os.environ)
    run(argv, script)


def prepare(
    words: Sequence[str], read: Reader, environment: Mapping[str, str]
) -> tuple[list[str], bytes | None]:
    """Return sbatch's command line and, where it is to be replaced, the script.

    REPLACED stands for the script's name; without it the script goes to stdin. Raises BadInput.
    """
    line = read_command_line(words)
    script = read(line.script) if line.has_script else None
    inside, cleaned = (Found(), None) if script is None else read_script(script)
    from_stdin = None if line.script else script  # it has been read: hand it on
    if not line.options.ours and not inside.ours:
        return list(words), from_stdin
    if ":" in (line.script, *line.arguments):
        raise BadInput("a heterogeneous job (:) keeps its shapes as written: leave out our flags")
    options = [f"--comment={comment(line.options, inside)}", *line.options.rest]
    if not line.script:
        return options, cleaned
    if not inside.ours:
        return [*options, line.script, *line.arguments], None
    if not inside.named and "SBATCH_JOB_NAME" not in environment:
        options.insert(0, f"--job-name={Path(line.script).name}")
    return [*options, REPLACED, *line.arguments], cleaned


def comment(line: Found, script: Found) -> str:
    """Return the comment that says what the command line, the script and a comment of theirs say.

    The command line wins over the script, and flags over a comment. Raises BadSpec.
    """
    own = script.comment if line.comment is None else line.comment
    words, text = _from_own(own or "")
    request = Request()
    for option, value in (words | script.ours | line.ours).items():
        request = parse_option(request, option, value)
    return f"{COMMENT}{request_text(request)} {text}".rstrip(" ")


def _from_own(own: str) -> tuple[dict[str, str], str]:
    """Split the owner's comment into Pliant's words, by option, and other text."""
    if not own.startswith(COMMENT):
        return {}, own
    words, _, text = own.removeprefix(COMMENT).partition(" ")
    pairs: dict[str, str] = {}
    for position, word in enumerate(words.split(";") if words else ()):
        option, _, value = word.partition("=")
        if position == 0 and option in MOLDABLE_KEYS:
            option, value = "moldable", word
        pairs[option] = value
    return pairs, text


def _read(name: str) -> bytes | None:
    """Read a script as sbatch finds it: here, else on the PATH."""
    try:
        if name:
            path = name if Path(name).exists() else shutil.which(name, mode=os.R_OK)
            return Path(path).read_bytes() if path else None
        return None if sys.stdin.isatty() else sys.stdin.buffer.read()
    except OSError:
        return None


def run(argv: Sequence[str], script: bytes | None) -> NoReturn:
    """Let the real sbatch take this process's place.

    Raises Unavailable where there is none.
    """
    program = os.environ.get("PLIANT_SBATCH") or shutil.which("sbatch")
    if program is None:
        raise Unavailable("sbatch is not on the PATH: is Slurm installed on this host?")
    words = list(argv)
    if script is not None:
        memory = os.memfd_create("script", 0)  # nothing is left behind, whatever happens
        with open(memory, "wb", closefd=False) as file:
            file.write(script)
        os.lseek(memory, 0, os.SEEK_SET)
        os.dup2(memory, 0 if REPLACED not in words else memory)
        words = [f"/proc/self/fd/{memory}" if word == REPLACED else word for word in words]
    try:
        os.execv(program, ["sbatch", *words])  # noqa: S606  # no shell is meant
    except OSError as wrong:
        raise Unavailable(f"{program}: {wrong.strerror}") from wrong
