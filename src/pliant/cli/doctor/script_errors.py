"""Errors that a site's own job_submit.lua raised: slurmctld's log alone tells of them.

Slurm accepts a job whose script fails, from 25.11 on it refuses it, and writes one line. A script
that calls Pliant by itself, or has Pliant's lines of 0.1.0, passes it over then.

Users' words stand in that log too: Slurm writes down what a comment is changed to, as it is. A line
counts that begins with the error. One with a newline before it cannot be told from Slurm's own: so
it is said whose word it is.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from pliant.cli.doctor.findings import Finding, fault, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient

_TAIL = 1 << 20
"""Of slurmctld's log so many bytes are looked at."""
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
_FAILED = (
    r"(?:\[[^]]*\] )?error: (?:job_submit/lua: {script}: (?P<slurm>.+)"
    r"|(?:job_submit/)?lua: slurm_job_submit failed: (?P<ours>.*))"
)
_NOT_A_SUBMISSION = ("not reading", "using previous")
_LONGEST = 300


def check_script_errors(patient: SlurmPatient) -> Iterator[Finding]:
    """Look for an error that job_submit.lua, as it is now, raised at a submission."""
    script, log = patient.conf_dir / "job_submit.lua", patient.option("SlurmctldLogFile")
    if not log:  # it goes to syslog
        return
    try:
        changed_s = script.stat().st_mtime
        lines = _tail(Path(log))
    except OSError as wrong:
        yield skipped("job_submit.lua runs", f"{wrong.filename}: {wrong.strerror}")
        return
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(changed_s))
    found = last_error(lines, str(script), since)
    if found:
        yield fault(
            "job_submit.lua runs",
            f"slurmctld's log says that it failed at a submission: {found}",
            f"mend {script}: Slurm accepts such a job unchecked, and Pliant may not see it, or "
            "(from 25.11 on) refuses it; where it does not fail, the line is of a user's comment, "
            "which Slurm logs as it is",
        )


def _tail(log: Path) -> list[str]:
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return file.read(_TAIL).decode("utf-8", "replace").splitlines()


def last_error(lines: list[str], script: str, since: str) -> str:
    """Return the last error that a script raised ``since`` (ISO 8601, local), or ""."""
    failed = re.compile(_FAILED.format(script=re.escape(script)))
    for line in reversed(lines):
        match = failed.match(line)
        stamp = _STAMP.match(line)
        if match and not (stamp and stamp[1] < since):
            words = match["slurm"] or match["ours"] or "(it says nothing)"
            if not words.startswith(_NOT_A_SUBMISSION):
                return "".join(c if c.isprintable() else "?" for c in words[:_LONGEST])
    return ""
