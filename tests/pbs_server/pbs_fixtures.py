"""A running PBS, pointed at by the environment; without one all of this is skipped.

================================  ==================================================================
``PLIANT_PBS_BIN``                where its commands lie, on the server's own host; run as root there
``PLIANT_PBS_USER``               a user whose jobs may run
``PLIANT_PBS_HOME``               a directory of that user's that all nodes share
``PLIANT_PBS_PLIANT``             the command ``pliant`` as the nodes have it
================================  ==================================================================

It is to have no jobs, at least two nodes with four GPUs (``ngpus``) and four cores each that are
alike and have less than 20 GB of memory, which a test fills (``resources_available.mem = 16gb``),
and ``ngpus`` in the scheduler's resources; munge on all hosts, and on the nodes an
/etc/pliant/pliant.toml with ``batch = "pbs"`` and ``listen = "0.0.0.0:6830"`` under ``[daemon]``.
Pliant is installed into it, and taken out again.
Where it has the resources ``gpu_share`` (type float, flag nh) and ``gpu_model`` (type string, flag
h), and they stand in the scheduler's resources too, shares and types of GPUs are tried: for that
vnodes are made on one of the nodes by a hook, and deleted again. (Its pbs_mom tells of them once more
at a HUP and where the server is started anew, until it is itself: do that afterwards.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pbs_helpers import NAMES, Server


@pytest.fixture(scope="session")
def bare() -> Server:
    """The server as it is."""
    server = Server(*(os.environ[name] for name in NAMES))
    assert not server.jobs(), "it has jobs"
    return server


@pytest.fixture(scope="session")
def server(bare: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server with Pliant installed, and pliantd acting everywhere."""
    directory: Path = tmp_path_factory.mktemp("pliant")
    bare.configure(directory)
    bare.pliant("install", "pbs", "--apply")
    try:
        bare.start_pliantd()
        yield bare
    finally:
        bare.stop_pliantd()
        bare.empty()
        bare.pliant("install", "pbs", "--remove", check=False)


@pytest.fixture(autouse=True)
def no_jobs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave no job behind."""
    yield
    if "server" in request.fixturenames:
        request.getfixturevalue("server").empty()
