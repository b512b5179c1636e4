"""What an administrator does after files were changed: Pliant restarts nothing by itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from pliant.cli.install.site import Site

MADE = {
    "daemon": ("pliantd's socket and history", ("/run/pliant", "/var/lib/pliant")),
    "monitor": ("reports that pliantd has not taken", ("/var/lib/pliant-monitor",)),
}
"""What systemd makes for the units of some parts, and what is in it."""
LUA = ("job_submit.lua", "pliant.lua")
SPANK = ("plugstack.conf", "pliant.so", "plugstack.conf.d/pliant.conf")


def _ends(paths: Sequence[str], *names: str) -> bool:
    return any(path.endswith(names) for path in paths)


def _spread(site: Site) -> str:
    conf = site.at(site.slurm_conf)
    return f"copy {conf} to every host that has one, then: scontrol reconfigure"


def _others(site: Site) -> str:
    """The other controllers, whose slurmctld must find job_submit.lua before it is told of lua."""
    lua = [site.at(site.conf_dir / name) for name in LUA]
    return (
        f"on {', '.join(site.other_controllers)}, where slurmctld may run too: pliant install "
        f"slurm --part daemon --part lua --apply, or copy {lua[0]} and {lua[1]} there; "
        "without job_submit.lua slurmctld would not start there"
    )


def after_apply(site: Site, paths: Sequence[str]) -> list[str]:
    """Return the steps after --apply, by the files that it wrote."""
    steps = []
    if _ends(paths, "pliantd.service", "tmpfiles.d/pliant.conf", "pliant.toml"):
        steps.append("systemctl daemon-reload && systemctl enable --now pliantd")
    if _ends(paths, "pliant.toml"):
        toml = site.at(Path("/etc/pliant/pliant.toml"))
        steps.append(f"copy {toml} to every login node: `pliant` there finds pliantd by it")
    if site.other_controllers and _ends(paths, "slurm.conf", *LUA):
        steps.append(_others(site))
    if _ends(paths, "slurm.conf"):
        steps.append(_spread(site))
    if _ends(paths, *SPANK):
        steps.append("pliant install slurm --part spank --apply on every login and compute node")
    if _ends(paths, "pliant-monitor.service"):
        toml = site.at(Path("/etc/pliant/pliant.toml"))
        if not toml.exists():
            steps.append(f"copy {toml} of the controller to this node: it reports by it")
        steps.append("systemctl daemon-reload && systemctl enable --now pliant-monitor")
    return [*steps, "pliant doctor"]


def after_remove(site: Site, paths: Sequence[str]) -> list[str]:
    """Return the steps after --remove."""
    steps = []
    if _ends(paths, "pliantd.service", "pliant-monitor.service"):
        steps.append("systemctl daemon-reload")
    if _ends(paths, "slurm.conf"):
        steps.append(_spread(site))
    if site.other_controllers and _ends(paths, "slurm.conf", *LUA):
        others = ", ".join(site.other_controllers)
        steps.append(f"only then, on {others} too: pliant install slurm --remove")
    if _ends(paths, *SPANK):
        steps.append("pliant install slurm --remove on every login and compute node that has it")
    return steps


def remains(site: Site, parts: Collection[str]) -> list[str]:
    """Return what the units of these parts made and --remove leaves, a line for each part."""
    lines = []
    for part, (words, paths) in MADE.items():
        made = [site.at(Path(path)) for path in paths]
        there = " ".join(str(path) for path in made if path.exists())
        if there and part in parts:
            lines.append(f"left: {there} ({words}); to delete: rm -r {there}")
    return lines
