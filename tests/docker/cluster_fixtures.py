"""The clusters of a test run, brought up once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_helpers import SUITE, TOP, Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three nodes with four fake GPUs each, two controllers, Pliant enforcing.

    One that runs already is taken.
    """
    made = Cluster(f"pliant-{SUITE}", "pliant")
    running = bool(made.compose("ps", "-q").stdout.strip())
    done = subprocess.run(
        [str(TOP / "docker" / "cluster"), "up"],
        env={**os.environ, "SUITE": SUITE, "BACKUP": "1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"no cluster for these tests: {done.stderr}", pytrace=False)
    made.no_jobs()
    yield made
    if not running:
        subprocess.run([str(TOP / "docker" / "cluster"), "down"], timeout=300, check=True)


@pytest.fixture(scope="session")
def package(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package that the cluster's hosts were installed from."""
    where = tmp_path_factory.mktemp("dist")
    built = cluster.compose("build", "package")
    assert built.returncode == 0, built.stderr
    copied = cluster.compose("run", "--rm", "package", OUT=str(where))
    assert copied.returncode == 0, copied.stderr
    (found,) = where.glob("*.deb")
    return found


@pytest.fixture
def plain(cluster: Cluster) -> Iterator[Cluster]:
    """Another cluster, of the same hosts without any file of Pliant."""
    made = Cluster(f"pliant-plain-{SUITE}", "slurm")
    made.compose("down", "-v", "-t", "2")
    done = made.compose("up", "-d", "--wait", "--wait-timeout", "300")
    assert done.returncode == 0, done.stderr
    yield made
    made.compose("down", "-v", "-t", "2")
