"""Compile the SPANK plugin for the Slurm that is installed here, once for each source."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pliant import resources
from pliant.errors import Unavailable
from pliant.sandbox.programs import program, require

_HEADER = Path("/usr/include/slurm/spank.h")


def cache_directory() -> Path:
    """Return where compiled plugins are kept; not /run, which is often mounted noexec."""
    if os.geteuid() == 0:
        return Path("/var/cache/pliant")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pliant"


def exists() -> bool:
    """Return whether this installation has the plugin's source."""
    return resources.find("spank", "Makefile").exists()


def build_spank(cache: Path | None = None) -> Path:
    """Return the compiled plugin; raise Unavailable with the compiler's first error.

    Keyed by the source and by Slurm's release: Slurm refuses a plugin made for another one.
    """
    require("slurmctld", "make", "cc")
    if not _HEADER.exists():
        raise Unavailable(f"{_HEADER}: not found; apt-get install libslurm-dev")
    source = resources.folder("spank")
    directory = cache or cache_directory()
    directory.mkdir(parents=True, exist_ok=True)
    plugin = directory / f"pliant-{_key(source)}.so"
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not plugin.exists():
            _compile(source, plugin)
    return plugin


def _key(source: Path) -> str:
    answer = subprocess.run(
        [program("slurmctld"), "-V"], capture_output=True, timeout=10, check=False
    )
    digest = hashlib.sha256(answer.stdout)
    for path in _sources(source):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources(source: Path) -> list[Path]:
    names = ("*.c", "*.h", "*.map", "*.sym", "Makefile")
    return sorted(path for name in names for path in source.glob(name))


def _compile(source: Path, plugin: Path) -> None:
    """Compile in a directory of its own: the source may be read-only, or another's tree."""
    with tempfile.TemporaryDirectory(dir=plugin.parent) as place:
        for path in _sources(source):
            shutil.copy(path, place)
        done = subprocess.run(
            [program("make"), "-C", place, "pliant.so"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
        made = Path(place, "pliant.so")
        if done.returncode or not made.exists():
            said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            errors = [line for line in said if "error" in line.lower()] or said or ["no plugin"]
            raise Unavailable(f"the SPANK plugin does not compile: {errors[0][:400]}")
        for older in plugin.parent.glob("pliant-*.so"):
            older.unlink()
        made.replace(plugin)
