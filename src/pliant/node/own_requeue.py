"""A stand-in for scontrol, for programs that requeue their own job once they have saved.

submitit and Lightning know a signal, save, and run ``scontrol requeue JOB`` themselves. Done so in
a hand-over, another job could take the GPUs, and the job would wait two minutes for its old shape.
So a program that is told by a signal finds first on its PATH a scontrol that takes just this
command, for its own job and only while a checkpoint is wanted, as the word that the checkpoint is
written. Everything else goes to Slurm's scontrol, also once this directory is gone.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping

from pliant.node.files import Private

TEXT = """\
#!/bin/sh
# Made by `pliant run`: see pliant.node.own_requeue.
if [ $# -eq 2 ] && [ "$1" = requeue ] && [ -e {request} ]; then
    case $2 in
    {jobs}) : >{saved} && : >{requeued} && exit 0 ;;
    esac
fi
exec {scontrol} "$@"
"""


def stand_in(files: Private, environ: Mapping[str, str]) -> str:
    """Make it in the private directory; return the PATH on which it is found first.

    Raises OSError.
    """
    path = environ.get("PATH", os.defpath)
    words = {
        "request": files.request,
        "saved": files.saved,
        "requeued": files.requeued,
        "scontrol": shutil.which("scontrol", path=path) or "/usr/bin/scontrol",
    }
    jobs = " | ".join(shlex.quote(name) for name in names(environ))
    quoted = {name: shlex.quote(str(word)) for name, word in words.items()}
    directory = files.path / "bin"
    directory.mkdir()
    program = directory / "scontrol"
    program.write_text(TEXT.format(jobs=jobs, **quoted))
    program.chmod(0o700)
    return f"{directory}:{path}"


def names(environ: Mapping[str, str]) -> list[str]:
    """Return how a job may be called by its own program: 11, or 11 and 7_4 in an array."""
    array, task = (environ.get(f"SLURM_ARRAY_{word}", "") for word in ("JOB_ID", "TASK_ID"))
    called = (environ.get("SLURM_JOB_ID", ""), f"{array}_{task}" if array and task else "")
    return [name for name in called if name]
