"""Whether pyslurm fits a site, in the words that pliantd's journal and `pliant doctor` use."""

from __future__ import annotations

from importlib import metadata

from pliant.batch.slurm.site import Site, version_of
from pliant.errors import BadAnswer

INSTEAD = "the commands are used instead"


def installed() -> str:
    """Return pyslurm's version, "" where it is not installed; nothing of it is loaded."""
    try:
        return metadata.version("pyslurm")
    except metadata.PackageNotFoundError:
        return ""


def misfit(version: str, site: Site) -> str:
    """Return why a pyslurm of this version is no use at a site, "" where it fits."""
    if not version:
        return "pyslurm is not installed"
    try:
        fits = version_of(version) == site.version
    except BadAnswer:
        fits = False
    return "" if fits else f"pyslurm {version} does not fit Slurm {site.release}"


def blind(site: Site) -> str:
    """Return why jobs cannot be read by it though it fits, "" where they can."""
    if "gres/gpu" in site.options.get("AccountingStorageTRES", "").split(","):
        return ""
    return "AccountingStorageTRES has no gres/gpu, by which pyslurm counts GPUs"
