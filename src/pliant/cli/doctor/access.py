"""`[slurm] access`: whether the pyslurm that it asks for is there, fits and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pliant.batch.slurm.commands import Commands
from pliant.batch.slurm.native import INSTEAD, Worker, blind, installed, misfit
from pliant.batch.slurm.site import Site
from pliant.cli.doctor.findings import Finding, advice, ok, skipped
from pliant.cli.doctor.slurm_patient import SlurmPatient
from pliant.daemon.config import Config
from pliant.errors import Unavailable

NAME = "access"
COMMANDS = 'or set [slurm] access = "commands" in pliant.toml, then restart pliantd'
READS = {"mixed": "changed", "native": "read and changed"}


def loads(config: Config) -> str:
    """Return why pyslurm cannot be loaded, "" where it can; in pliantd's own way."""
    slurm = config.slurm
    environment = Commands(slurm.bin_dir, slurm.timeout_s, conf=slurm.conf).environment({})
    worker = Worker(environment, slurm.timeout_s)
    try:
        told = worker.ask(("load",))
    except Unavailable as wrong:
        return str(wrong)
    finally:
        worker.close()
    return f"pyslurm: {told['unfit']}" if "unfit" in told else ""


def check_access(
    patient: SlurmPatient,
    version: Callable[[], str] = installed,
    load: Callable[[Config], str] = loads,
) -> Iterator[Finding]:
    """Look for pyslurm where pliant.toml asks for it; nothing depends on it.

    ``version`` of the pyslurm beside this program, as of the pliantd beside it; ``load`` says why
    it cannot be loaded.
    """
    config, site = patient.config, patient.site
    if config is None or site is None or config.slurm.access == "commands":
        return
    if not (patient.is_controller or patient.has_pliantd):
        yield skipped(NAME, "pyslurm is looked at on the controller")
        return
    access, found = config.slurm.access, version()
    reason, cure = _trouble(config, site, found, load)
    if reason:
        yield advice(NAME, f'access = "{access}", but {reason}: {INSTEAD}', f"{cure}, {COMMANDS}")
    else:
        yield ok(NAME, f"jobs are {READS[access]} by pyslurm {found}")


def _trouble(
    config: Config, site: Site, version: str, load: Callable[[Config], str]
) -> tuple[str, str]:
    """Return why pyslurm is not used, and the cure; "" where it is."""
    if reason := misfit(version, site):
        release = ".".join(site.release.split(".")[:2])
        return reason, f"install pyslurm {release} beside pliantd"
    if reason := load(config):
        return reason, f"build it anew here, for Slurm {site.release}"
    if config.slurm.access == "native" and (reason := blind(site)):
        return reason, "AccountingStorageTRES=gres/gpu in slurm.conf"
    return "", ""
