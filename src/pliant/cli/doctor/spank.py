"""The SPANK plugin: in plugstack.conf, of this Slurm's release, and seen by sbatch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pliant.cli.commands import is_there
from pliant.cli.doctor.cures import SPANK, written_anew
from pliant.cli.doctor.findings import Finding, advice, fault, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.cli.install.record import read
from pliant.errors import Unavailable

WHERE = "on every login and compute node"
PLUGIN = "pliant.so"
FETCHED = Path("/run/slurm/conf/plugstack.conf")
"""Where it lies on a host that has its configuration from slurmctld."""


def check_spank(patient: SlurmPatient) -> Iterator[Finding]:
    """Look for the plugin's line, its file, and its options in sbatch's help."""
    if patient.site is None:
        return
    stack = stack_of(patient)
    if not is_there(stack) and "enable_configless" in patient.option("SlurmctldParameters"):
        yield skipped("plugstack.conf", "slurmctld has it: what it says is to be seen there")
        yield from _seen(patient)
        return
    try:
        line = plugin_line(stack)
    except Unavailable as wrong:
        yield skipped("plugstack.conf", str(wrong))
        return
    if line:
        yield _judged(line)
        yield from _seen(patient, Path(line.split()[1]))
    else:
        says = f"{stack} and what it includes do not name it"
        yield fault("plugstack.conf", says, WHERE, [SPANK])


def stack_of(patient: SlurmPatient) -> Path:
    """Return plugstack.conf, or the copy that slurmd or sackd fetched from slurmctld."""
    own = Path(patient.option("PlugStackConfig") or patient.conf_dir / "plugstack.conf")
    return FETCHED if is_there(FETCHED) and not is_there(own) else own


def _judged(line: str) -> Finding:
    words = line.split()
    if words[0] != "optional":
        return advice(
            "plugstack.conf",
            f"it says `{words[0]}`: where the plugin is missing, jobs are refused",
            "write `optional` there",
        )
    if "off" in words[2:]:
        return advice("plugstack.conf", "it says `off`: options are taken and do nothing",
                      "take `off` away to switch Pliant on")  # fmt: skip
    return ok("plugstack.conf", f"names {words[1]}")


def plugin_line(stack: Path) -> str:
    """Return the line of plugstack.conf, or of a file that it includes, that names our plugin.

    Raises Unavailable.
    """
    return _named(stack)[1]


def stack_paths(stack: Path) -> tuple[Path, ...]:
    """Return plugstack.conf, the files by which it comes to our plugin's line, and the plugin.

    Raises Unavailable.
    """
    files, line = _named(stack)
    plugin = [Path(line.split()[1])] if line else []
    return (*(files or (stack,)), *(path for path in plugin if path.is_absolute()))


def _named(stack: Path) -> tuple[tuple[Path, ...], str]:
    """Return the files from plugstack.conf to our plugin's line, and that; () and "" without it."""
    for line in (read(stack) or "").splitlines():
        words = line.split("#")[0].split()
        if words[:1] == ["include"] and words[1:]:
            pattern = words[1] if words[1].startswith("/") else f"{stack.parent}/{words[1]}"
            for path in sorted(Path("/").glob(pattern.lstrip("/"))):
                files, found = _named(path) if path != stack else ((), "")
                if found:
                    return (stack, *files), found
        elif len(words) > 1 and Path(words[1]).name == PLUGIN:
            return (stack,), " ".join(words)
    return (), ""


def _seen(patient: SlurmPatient, plugin: Path | None = None) -> Iterator[Finding]:
    """Ask sbatch: it loads the plugin, and says why where it cannot."""
    try:
        answer = patient.run(["sbatch", "--help"])
    except Unavailable as wrong:
        yield skipped("sbatch", str(wrong))
        return
    if "--moldable" in answer.out:
        yield ok("sbatch", "knows --moldable")
        return
    complaints = [line for line in answer.err.splitlines() if PLUGIN in line or "pliant" in line]
    release = patient.site.release if patient.site else ""
    yield fault(
        "sbatch",
        "it does not know --moldable" + (f": {complaints[0].strip()}" if complaints else ""),
        f"install the plugin for Slurm {release}, {WHERE}",
        written_anew(plugin, "spank") if plugin else [SPANK],
    )
