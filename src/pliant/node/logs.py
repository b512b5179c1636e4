"""Whether a requeue would empty the job's log.

slurmstepd opens the output of a batch script with O_APPEND in either mode, and truncates it first
unless ``--open-mode=append`` or JobFileAppend=1 says otherwise; so the file's own flags tell
nothing. sbatch tells the job what it was asked, as SLURM_OPEN_MODE; where it was asked nothing,
slurm.conf counts, if there is one on this node (slurm.conf(5), default 0). PBS lets the output of a
job that it requeues go on.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from pliant.node import pbs

CONFS = ("/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf")
_APPENDS = re.compile(r"^\s*JobFileAppend\s*=\s*1\b", re.IGNORECASE | re.MULTILINE)


def cut_on_requeue(environ: Mapping[str, str]) -> str:
    """Return one line of warning where stdout or stderr is a file that a requeue empties, or ""."""
    if pbs.is_here(environ):
        return ""
    mode = environ.get("SLURM_OPEN_MODE", "")[:1]
    if mode == "a" or not (_is_file(1) or _is_file(2)):
        return ""
    if not mode and _site_appends(environ):
        return ""
    return "a requeue empties this job's log; sbatch --open-mode=append keeps it"


def _is_file(handle: int) -> bool:
    try:
        return stat.S_ISREG(os.fstat(handle).st_mode)
    except OSError:
        return False


def _site_appends(environ: Mapping[str, str]) -> bool:
    named = environ.get("SLURM_CONF")
    for conf in (named,) if named else CONFS:
        try:
            return bool(_APPENDS.search(Path(conf).read_text(errors="replace")))
        except OSError:
            continue
    return False
