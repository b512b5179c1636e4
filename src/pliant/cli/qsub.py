"""``pliant qsub``: Pliant's flags in qsub's words, checked before anything is submitted.

The flags, on the command line or in the script's ``#PBS`` lines, become resources of the job,
``-l moldable=...``; where the site has not made these, variables, ``-v PLIANT_MOLDABLE=...``. Then
the real qsub takes this process's place: its output, its exit code. A script that holds our words
is handed over as a copy in memory without them. With ``--native`` the shapes are requests of their
own (see :mod:`pliant.cli.qsub_native`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from pliant.batch.clients import Runs
from pliant.batch.pbs.commands import OwnCommands
from pliant.cli.passing import REPLACED, PassedOn, Reader, become, read_script_file
from pliant.cli.qsub_native import submit_one_of, variants
from pliant.cli.qsub_words import PREFIX, CommandLine, Found, Option, read_command_line, read_script
from pliant.errors import BadInput, BatchError, Unavailable
from pliant.filter.pbs.names import ASKED, RESOURCES
from pliant.filter.pbs.said import read_request
from pliant.grammar import request_text
from pliant.model import Request


@dataclass(frozen=True, slots=True)
class Submission:
    """A command line, what its script's directives say, and the script without our words.

    ``script`` None: there is none, or qsub shall say what is wrong with it.
    """

    request: Request
    line: CommandLine
    inside: Found
    script: bytes | None

    @property
    def is_ours(self) -> bool:
        """Whether anything is said to Pliant."""
        return self.line.options.is_ours or self.inside.is_ours

    @property
    def native(self) -> bool:
        """Whether its shapes are to be requests of their own."""
        return self.line.options.native or self.inside.native

    @property
    def name(self) -> tuple[Option, ...]:
        """The option that names a script's copy as the script would be."""
        named = self.line.options.has("N") or self.inside.has("N")
        script = self.line.script
        return () if named or not script else (Option("N", Path(script).name),)


@click.command(
    cls=PassedOn,
    options_metavar="[QSUB OPTIONS] [SCRIPT | -- PROGRAM [ARGUMENTS]]",
    short_help="Submit to PBS with Pliant's flags, which are checked first.",
)
@click.pass_context
def qsub(context: click.Context) -> None:
    """Submit a job to PBS with Pliant's flags.

    All of qsub's own options may stand here, and Pliant's: --moldable=, --malleable[=],
    --class=, --throughput=, --steps=; or as resources, -l moldable= and so on. Pliant's may
    also stand in the script's #PBS lines. They are checked, and qsub does the rest. --colocate is
    refused: on PBS nothing is done for it yet.

    \b
    pliant qsub --moldable=gpus=1-4 -l select=1:ncpus=8:ngpus=4 train.sh

    With --native neither pliantd nor an administrator is needed: each shape of --moldable becomes
    a request of its own, the fastest or largest first, and all of their ids are printed. The first
    that can run does; PBS holds the others meanwhile, and removes them when it has ended.
    """
    submission = prepare(context.args, read_script_file, os.environ)
    commands = OwnCommands(timeout_s=60.0)
    if submission.native:
        for job_id in native(submission, commands):
            click.echo(job_id)
        return
    become("qsub", *handed_on(context.args, submission, commands), "PBS")


def prepare(args: Sequence[str], read: Reader, environment: Mapping[str, str]) -> Submission:
    """Read a command line and its script.

    Raises BadInput.
    """
    line = read_command_line(args)
    script = read(line.script) if line.has_script else None
    prefix = line.options.value("C")
    if prefix is None:
        prefix = environment.get("PBS_DPREFIX", PREFIX)
    inside, cleaned = (Found(), None) if script is None else read_script(script, prefix)
    request = read_request({**inside.ours, **line.options.ours})
    return Submission(request, line, inside, cleaned)


def handed_on(
    args: Sequence[str], submission: Submission, commands: Runs
) -> tuple[list[str], bytes | None]:
    """Return qsub's command line and, where it is to be replaced or came from stdin, the script.

    REPLACED stands for the script's name; without it the script goes to stdin.
    """
    line, inside = submission.line, submission.inside
    from_stdin = None if line.script else submission.script  # it has been read: hand it on
    if not submission.is_ours:
        return list(args), from_stdin
    options = (*line.options.options, *our_options(submission, commands))
    if not (line.script and inside.is_ours):
        return [*_words(options), *line.rest], from_stdin
    return [*_words((*submission.name, *options)), REPLACED], submission.script


def _words(options: Sequence[Option]) -> list[str]:
    return [word for option in options for word in option.words]


def our_options(submission: Submission, commands: Runs) -> tuple[Option, ...]:
    """Return what says the request to PBS: resources, or variables where a site has not made them.

    On the command line -v replaces that of the script: what stood there is said again.
    """
    said = pbs_values(submission.request)
    if _are_made(commands, [RESOURCES[option] for option in said]):
        return tuple(Option("l", f"{RESOURCES[option]}={said[option]}") for option in said)
    ours = [f"{ASKED[option]}={value}" for option, value in said.items()]
    own = submission.line.options.value("v") or submission.inside.value("v")
    return (Option("v", ",".join([own, *ours] if own else ours)),)


def pbs_values(request: Request) -> dict[str, str]:
    """Return each option that was said, in values that PBS takes without quotes."""
    pairs = (word.partition("=") for word in request_text(request).split(";") if word)
    return {option: value.replace(",", "+") or "yes" for option, _, value in pairs}


def _are_made(commands: Runs, resources: Sequence[str]) -> bool:
    """Whether the site has these resources; where it cannot be told, qsub will say it."""
    try:
        answer = commands.run(("qmgr", "-c", f"list resource {','.join(resources)}"))
    except (Unavailable, BatchError):
        return True
    return not answer.status or "unknown resource" not in answer.err.lower()


def native(submission: Submission, commands: Runs) -> list[str]:
    """Submit each shape as a request of its own, of which one runs; return their ids.

    Raises BadInput, Refused, Unavailable.
    """
    line, script = submission.line, submission.script
    if script is None and not (line.script or line.rest[:1] == ("--",)):
        raise BadInput("--native: which script? name it, or give it on stdin, or -- PROGRAM")
    requests = variants(submission.request, line.options, submission.inside)
    name = submission.name if script is not None else ()
    rest = line.rest if script is None else ()
    argvs = [[*_words((*name, *options)), *rest] for options in requests]
    held = line.options.has("h") or submission.inside.has("h")
    stdin = (script or b"").decode("utf-8", "surrogateescape")
    return submit_one_of(commands, argvs, stdin, stays_held=held)
