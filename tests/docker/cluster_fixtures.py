"""The clusters of a test run, brought up once."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_helpers import SHOWN, SUITE, Cluster

from docs_helpers import TOP, Terminal, alike, on_page


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Three nodes with four fake GPUs each, two controllers, Pliant enforcing.

    One that runs already is taken. What an engine that was ended left, volumes and containers that
    come back with it, is removed first: its jobs, and what was done to its nodes, are another's.
    """
    made = Cluster(f"pliant-{SUITE}", "pliant")
    running = bool(made.compose("ps", "-q").stdout.strip())
    if not running:
        subprocess.run((TOP / "docker" / "cluster", "engine"), check=True)
        left = made.compose("down", "-v", "-t", "2")
        assert left.returncode == 0, left.stderr
    here = Terminal(env={**os.environ, "SUITE": SUITE}, limit_s=900)
    printed = here.types("docker/README.md", "BACKUP=1 make cluster")
    (shown,) = on_page("docker/README.md", "make cluster")
    assert running or SUITE != SHOWN or alike(shown.shown, printed), printed
    made.no_jobs()
    yield made
    if not running:
        here.types("docker/README.md", "make cluster-down")
    here.close()


@pytest.fixture(scope="session")
def package(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Debian package that the cluster's hosts were installed from."""
    where = tmp_path_factory.mktemp("dist")
    (make,) = on_page("docs/admin.md", "make deb")
    assert f"RUN {make.command} " in (TOP / "docker" / "Dockerfile").read_text()
    built = cluster.compose("build", "package")
    assert built.returncode == 0, built.stderr
    with cluster.typing(OUT=str(where)) as here:
        here.types("docker/README.md", "docker compose run --rm package")
    (found,) = where.glob("*.deb")
    return found


@pytest.fixture(scope="session")
def plain(cluster: Cluster) -> Iterator[Cluster]:
    """Another cluster, of the same hosts without any file of Pliant: a test takes its own away."""
    made = Cluster(f"pliant-plain-{SUITE}", "slurm")
    made.compose("down", "-v", "-t", "2")
    done = made.compose("up", "-d", "--wait", "--wait-timeout", "300")
    assert done.returncode == 0, done.stderr
    yield made
    made.compose("down", "-v", "-t", "2")
