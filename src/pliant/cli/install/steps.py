"""What an administrator does after files were changed: Pliant restarts nothing by itself."""

from __future__ import annotations

from collections.abc import Sequence

from pliant.cli.install.site import Site


def _ends(paths: Sequence[str], *names: str) -> bool:
    return any(path.endswith(names) for path in paths)


def after_apply(site: Site, paths: Sequence[str]) -> list[str]:
    """Return the steps after --apply, by the files that it wrote."""
    steps = []
    if _ends(paths, "pliantd.service", "tmpfiles.d/pliant.conf", "pliant.toml"):
        steps.append("systemctl daemon-reload && systemctl enable --now pliantd")
    if _ends(paths, "slurm.conf"):
        steps.append(
            f"copy {site.slurm_conf} to every host that has one, then: scontrol reconfigure"
        )
    if _ends(paths, "plugstack.conf", "pliant.so", "plugstack.conf.d/pliant.conf"):
        steps.append("pliant install slurm --part spank --apply on every login and compute node")
    return [*steps, "pliant doctor"]


def after_remove(site: Site, paths: Sequence[str]) -> list[str]:
    """Return the steps after --remove."""
    steps = []
    if _ends(paths, "pliantd.service"):
        steps.append("systemctl daemon-reload")
    if _ends(paths, "slurm.conf"):
        steps.append(
            f"copy {site.slurm_conf} to every host that has one, then: scontrol reconfigure"
        )
    return steps
