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
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from pliant.cli.directives import Found, read_command_line, read_script
from pliant.cli.passing import REPLACED, PassedOn, Reader, become, read_script_file
from pliant.errors import BadInput
from pliant.grammar import MOLDABLE_KEYS, from_comment, parse_option, request_text
from pliant.grammar.token import COMMENT
from pliant.model import Request


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
    become("sbatch", argv, script, "Slurm")


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
    words = from_comment(own)
    if words is None:
        return {}, own
    text = own.removeprefix(COMMENT).lstrip().removeprefix(words)[1:]
    pairs: dict[str, str] = {}
    for position, word in enumerate(words.split(";") if words else ()):
        option, _, value = word.partition("=")
        if position == 0 and option in MOLDABLE_KEYS:
            option, value = "moldable", word
        pairs[option] = value
    return pairs, text


def _read(name: str) -> bytes | None:
    """Read a script as sbatch finds it: here, else on the PATH."""
    path = name if not name or Path(name).exists() else shutil.which(name, mode=os.R_OK)
    return None if path is None else read_script_file(path)
