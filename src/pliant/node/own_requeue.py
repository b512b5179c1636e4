"""A stand-in for scontrol, for programs that requeue their own job once they have saved.

submitit and Lightning know a signal, save, and run ``scontrol requeue JOB`` themselves. Done so in
a hand-over, another job could take the GPUs, and the job would wait two minutes for its old shape.
So a program that is told by a signal finds wrappers/requeue first on its PATH, whose scontrol takes
just this command, for its own job and only while a checkpoint is wanted, as the word that the
checkpoint is written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from pliant import resources
from pliant.errors import Unavailable


def with_stand_in(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what is to be set so that the program finds it first."""
    try:
        ours = str(resources.find("wrappers", "requeue"))
    except Unavailable:  # an incomplete installation: Slurm's own scontrol does without
        return {}
    path = environ.get("PATH", os.defpath)
    return {} if path.split(os.pathsep)[0] == ours else {"PATH": f"{ours}{os.pathsep}{path}"}
