"""The command line: ``pliant COMMAND``; one module per group of commands, loaded when it is used.

Every command ends with 0 (fine), 1 (the answer is no: not found, faults found, refused) or
2 (bad input, or something needed is not there), and says errors in one line on stderr.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

import click

from pliant import __version__
from pliant.cli.lazy import LazyGroup
from pliant.errors import PliantError
from pliant.grammar import quoted

SECTIONS = {
    "For users": {
        "status": "pliant.cli.look:status",
        "jobs": "pliant.cli.jobs:jobs",
        "top": "pliant.cli.top:top",
        "why": "pliant.cli.why:why",
        "history": "pliant.cli.history:history",
        "set": "pliant.cli.owner:set_request",
        "pin": "pliant.cli.owner:pin",
        "resize": "pliant.cli.owner:resize",
        "sbatch": "pliant.cli.sbatch:sbatch",
        "qsub": "pliant.cli.qsub:qsub",
        "run": "pliant.cli.run:run_command",
    },
    "For administrators": {
        "doctor": "pliant.cli.doctor:doctor",
        "install": "pliant.cli.install:install",
        "plan": "pliant.cli.planning:plan_command",
        "report": "pliant.cli.report:report",
        "monitor": "pliant.cli.monitor:monitor",
        "metrics": "pliant.cli.metrics:metrics",
        "forget": "pliant.cli.admin:forget",
        "pause": "pliant.cli.admin:pause",
        "resume": "pliant.cli.admin:resume",
    },
    "To simulate": {
        "simulate": "pliant.cli.simulate:simulate",
        "compare": "pliant.cli.simulate:compare",
        "whatif": "pliant.cli.whatif:whatif",
        "reproduce": "pliant.cli.reproduce:reproduce",
    },
    "To try it out": {
        "demo": "pliant.cli.demo:demo",
        "sandbox": "pliant.cli.sandbox:sandbox",
        "completion": "pliant.cli.completion:completion",
    },
}
"""Each command and where it lives, in the order in which help lists them."""

EXIT_BAD = 2
EXIT_OWN = 70  # EX_SOFTWARE of sysexits.h; the guardian of `pliant run` knows it
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What a write to stdout may meet; other files' errors are told where they are written."""


@click.group(
    cls=LazyGroup,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.version_option(__version__, "--version", message="pliant %(version)s")
def cli() -> None:
    """Make Slurm and PBS jobs bend to the GPUs that are free.

    A user adds a flag to sbatch or qsub (--moldable=gpus=1-4, -l moldable=gpus=1-4) and asks
    why a job waits. An administrator checks, installs, watches and switches off.

    Every command ends with 0 (fine), 1 (the answer is no) or 2 (bad input, or something is
    missing), and says what is wrong in one line.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, 1 or 2, and never a traceback."""
    try:
        code = cli.main(
            list(arguments) if arguments is not None else None,
            prog_name="pliant",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        code = EXIT_BAD
    except click.ClickException as wrong:
        where = wrong.ctx.command_path if isinstance(wrong, click.UsageError) and wrong.ctx else ""
        hint = f"; see {where} --help" if where else ""
        code = _say(wrong.format_message().rstrip(".") + hint)
    except PliantError as wrong:
        code = _say(str(wrong), getattr(wrong, "exit_code", EXIT_BAD))
    except (click.Abort, KeyboardInterrupt):
        code = _say("interrupted")
    except BrokenPipeError:  # `pliant jobs | head`
        _drop_stdout()
        code = 0
    except OSError as wrong:
        if wrong.errno in _FULL:
            _drop_stdout()
            code = _say(f"stdout: {wrong.strerror}: not all could be printed")
        else:
            code = _own_mistake(wrong)
    except Exception as fault:
        code = _own_mistake(fault)
    sys.exit(code if isinstance(code, int) else 0)


def _drop_stdout() -> None:
    """Let what is not printed yet go nowhere: Python would try it again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(message: str, code: int = EXIT_BAD) -> int:
    """Print one line on stderr, whatever the message holds; return the exit code."""
    line = " ".join(message.split())
    shown = "".join(char if char.isprintable() else "?" for char in line)
    click.echo(f"pliant: {shown}", err=True)
    return code


def _own_mistake(fault: Exception) -> int:
    if os.environ.get("PLIANT_DEBUG"):
        raise fault
    return _say(
        f"a mistake of Pliant's own: {type(fault).__name__} {quoted(str(fault))}; "
        "PLIANT_DEBUG=1 shows where, please report it",
        EXIT_OWN,
    )
