"""Render the configuration of a sandbox from templates/."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

import jinja2

from pliant import resources
from pliant.sandbox.accounts import Accounts
from pliant.sandbox.layout import Layout
from pliant.sandbox.options import Options

MEM_PER_CPU_MIB = 2000


@dataclass(frozen=True)
class Ports:
    """The TCP ports of a sandbox."""

    ctld: int
    dbd: int
    pliant: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """One node as slurm.conf and gres.conf describe it."""

    name: str
    port: int
    cpus: int
    mem_mib: int
    gpus: int
    gpu_type: str
    shards: int

    @property
    def features(self) -> str:
        """Return the node's features: its type of GPU."""
        return self.gpu_type if self.gpus else "nogpus"

    @property
    def gres(self) -> str:
        """Return the value of Gres=, with the dummy that a job without GPUs can be given."""
        dummy = "nogpu:no_consume:1"
        if not self.gpus:
            return dummy
        return f"gpu:{self.gpu_type}:{self.gpus},shard:{self.shards},{dummy}"


def nodes(options: Options, ports: Ports) -> list[Node]:
    """Return the nodes n1, n2, ...; several types of GPU take turns."""
    return [
        Node(
            name=f"n{index + 1}",
            port=port,
            cpus=options.cpus_per_node,
            mem_mib=options.cpus_per_node * MEM_PER_CPU_MIB,
            gpus=options.gpus,
            gpu_type=options.gpu_types[index % len(options.gpu_types)],
            shards=options.gpus * options.shards,
        )
        for index, port in enumerate(ports.nodes)
    ]


def render(template: str, **values: object) -> str:
    """Return a rendered template; an unknown name in it is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - these are configuration files, not HTML
    )
    return environment.get_template(template).render(**values)


def write_slurm(
    layout: Layout,
    options: Options,
    ports: Ports,
    accounts: Accounts,
    *,
    lua: bool,
    cgroups: bool,
) -> None:
    """Write slurm.conf, gres.conf and cgroup.conf. ``cgroups``: this machine has them mounted."""
    values = {
        "layout": layout,
        "options": options,
        "cluster": layout.name,
        "hostname": socket.gethostname().partition(".")[0],
        "ctld_port": ports.ctld,
        "dbd_port": ports.dbd,
        "slurm_user": accounts.slurm,
        "slurmd_user": accounts.slurmd,
        "nodes": nodes(options, ports),
        "def_mem_per_cpu_mib": MEM_PER_CPU_MIB // 2,
        "lua": lua,
        "cgroups": cgroups,
    }
    for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
        write(layout.etc / name, render(f"{name}.j2", **values))


def cgroups_mounted(mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether a cgroup tree is mounted; where none is, Slurm cannot find its plugin by itself."""
    rows = (line.split(" ") for line in mounts.read_text().splitlines())
    return any(row[1].startswith("/sys/fs/cgroup") for row in rows if len(row) > 1)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file under a temporary name and rename it."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.touch(mode=mode)
    temporary.write_text(text)
    temporary.chmod(mode)
    temporary.replace(path)
