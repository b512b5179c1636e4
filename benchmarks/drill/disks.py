"""What is done to the disks on which pliantd's state and a job's checkpoints lie."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.drill.field import KEPT, Field


@contextlib.contextmanager
def _mounted(at: Path, options: str) -> Iterator[None]:
    """Have a small file system there."""
    mount = ["mount", "-t", "tmpfs", "-o", options, "none", str(at)]
    subprocess.run(mount, check=True, timeout=10)
    try:
        yield
    finally:
        subprocess.run(["umount", str(at)], check=True, timeout=10)


def _fill(file: Path) -> None:
    with contextlib.suppress(OSError), file.open("ab", buffering=0) as to:
        while to.write(b"0" * 1024):
            pass


@contextlib.contextmanager
def small_disk(field: Field, size: str = "2m") -> Iterator[None]:
    """Keep pliantd's state on a small disk."""
    with _mounted(field.state, f"size={size},mode=700"):
        yield
        field.stop_pliantd()


@contextlib.contextmanager
def full_disk(field: Field) -> Iterator[None]:
    """Keep it on a disk without a free byte."""
    with small_disk(field, "256k"):
        fill_disk(field)
        yield


def fill_disk(field: Field) -> None:
    """Take what is left of the disk that pliantd's state lies on."""
    _fill(field.state / "full")


def fill_and_kill(field: Field) -> None:
    fill_disk(field)
    field.kill("pliantd")


@contextlib.contextmanager
def quota(field: Field) -> Iterator[None]:
    """Let the job's user write no more than a little where its checkpoints lie."""
    with _mounted(field.place / KEPT, "size=64k,mode=777"):
        yield


def fill_quota(field: Field) -> None:
    """Use it up."""
    _fill(field.place / KEPT / "full")


def free_quota(field: Field) -> None:
    """Let it be enough again."""
    (field.place / KEPT / "full").unlink()
