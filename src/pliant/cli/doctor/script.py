"""job_submit.lua: there, compiled by slurmctld's own Lua, and calling Pliant where it counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant.cli.doctor.cures import LUA, given_back
from pliant.cli.doctor.findings import Finding, fault, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.install.lua_text import (
    calls_pliant,
    has_lua_block,
    is_overridden,
    is_unreached,
)
from pliant.cli.install.record import read
from pliant.cli.lua_host import compiles
from pliant.errors import Unavailable

NAME = "job_submit.lua"


def check_script(patient: SlurmPatient, library: str) -> Iterator[Finding]:
    """Look at job_submit.lua as a text: nothing of a site's own is run here."""
    path = patient.conf_dir / NAME
    try:
        text = read(path)
    except Unavailable as wrong:
        yield skipped(NAME, str(wrong))
        return
    if text is None:
        kept = given_back(path)
        cure = "the site's own comes back as it was before the installation" if kept else ""
        yield fault(NAME, f"{path} is not there", cure, [*kept, LUA])
        return
    wrong_lua = compiles(library, f"@{path}", text)
    if wrong_lua:
        yield fault(
            NAME,
            f"it does not compile: {wrong_lua}",
            "mend it before slurmctld restarts: it would not start",
        )
    else:
        yield _judged(path, text)


def _judged(path: Path, text: str) -> Finding:
    """Whether Pliant is called, and not in vain."""
    if not (has_lua_block(text) or calls_pliant(text)):
        return fault(NAME, f"{path} does not call Pliant", "", [LUA])
    if is_unreached(text):
        says = f"{path} returns before it comes to what calls Pliant"
        if has_lua_block(text):
            return fault(NAME, says, "", [LUA])
        return fault(NAME, says, "move what calls Pliant to before that `return`")
    if is_overridden(text):
        says = f"{path} sets slurm_job_submit anew behind Pliant's lines, which are lost by that"
        return fault(NAME, says, "", [LUA])
    return ok(NAME, f"{path} calls Pliant")
