"""What of pliant.toml a running pliantd does not take up."""

from __future__ import annotations

from collections.abc import Iterator

from pliant.daemon.config import Config

DAEMON = ("batch", "socket", "state_dir", "listen", "munge_socket")
PBS = ("server", "bin_dir", "timeout_s", "type_resource", "share_resource", "gpu_mem_resource")


def only_at_start(old: Config, new: Config) -> Iterator[str]:
    """Say what has changed that counts once pliantd is restarted."""
    for key in DAEMON:
        if getattr(old.daemon, key) != getattr(new.daemon, key):
            yield f"[daemon] {key}"
    if old.slurm != new.slurm:
        yield "[slurm]"
    for key in (*PBS, "state"):
        if getattr(old.pbs, key) != getattr(new.pbs, key):
            yield f"[pbs] {key}"
