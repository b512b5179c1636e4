"""Releases of Slurm: which one the tests run on, and how each of them writes what is the same."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from typing import TypeVar

import pytest

from limits import HANG_S
from pliant.batch.slurm.site import version_of
from pliant.sandbox.programs import program

T = TypeVar("T")
Release = tuple[int, int]

_REQUEST = re.compile(r"\bgres/([a-z]+):")


def release_here() -> Release:
    """Return the release of the Slurm that sandboxes run: (22, 5)."""
    argv = [program("slurmctld"), "-V"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=True)
    return version_of(done.stdout)


def from_on(table: Mapping[str, T], release: Release) -> T:
    """Return what a table ``{"22.05": ..., "24.11": ...}`` says of a release.

    Each row holds from its release on: one that is not named does what the last one before it did,
    and where it does not, the test says so by failing.
    """
    since = [version for version in table if version_of(version) <= release]
    assert since, f"nothing is known of Slurm {release[0]}.{release[1]:02}, only of {[*table]}"
    return table[max(since, key=version_of)]


def only_on(wanted: Release, release: Release, why: str) -> None:
    """Skip what is about one release alone, and say why."""
    if release != wanted:
        pytest.skip(f"on Slurm {wanted[0]}.{wanted[1]:02} alone: {why}")


def requests(text: str) -> str:
    """Return a text with what jobs ask for as 22.05 writes it; from 23.02 on: gres/gpu:2."""
    return _REQUEST.sub(r"gres:\1:", text)
