"""docker/cluster and the Docker engine that it starts, with stand-ins for Docker's programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from limits import HANG_S

CLUSTER = Path(__file__).parents[2] / "docker" / "cluster"
UP = 'up=$(dirname "$0")/../up\n'
PROGRAMS = {
    # An engine that answers once it is up, and builds nothing: `up` ends behind the engine.
    "docker": """
case "$1 $2" in
    "info "*) [ -e "$up" ];;
    "compose build") exit 1;;
    "ps --format") echo pliant-forky; echo other;;
esac
""",
    # As the true one: it refuses where its pidfile names a process that lives.
    "dockerd": """
if kill -0 "$(cat "$2" 2>/dev/null)" 2>/dev/null; then echo "it runs"; exit 1; fi
echo $$ >"$2"
sleep 0.5
trap 'rm -f "$up"; exit 0' TERM
touch "$up"
while [ -d "$(dirname "$up")" ]; do sleep 0.05; done
""",
    "systemctl": 'if [ "$1" = start ]; then touch "$up"; else rm -f "$up"; fi\n',
    "id": "echo 0\n",
}

RUNS_ON = "cluster: the cluster of forky runs on: SUITE=forky make cluster-down ends it\n"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    (tmp_path / "bin").mkdir()
    for name, body in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/bash\n{UP}{body}")
        program.chmod(0o755)
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    yield {**os.environ, "PATH": path, "PLIANT_CLUSTER_STATE": str(tmp_path / "state")}
    shutil.rmtree(tmp_path)  # an engine that is left ends with it


def start(word: str, env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen([CLUSTER, word], env=env, stderr=subprocess.PIPE, text=True)


def test_two_at_once_share_one_engine_and_one_ends_it(tmp_path: Path, env: dict[str, str]) -> None:
    both = [start("up", env), start("up", env)]
    said = [process.communicate(timeout=HANG_S)[1] for process in both]
    assert [words.splitlines()[-1] for words in said] == ["cluster: the images are not built"] * 2
    assert sum("no Docker engine runs: starting one" in words for words in said) == 1
    assert (tmp_path / "up").exists()
    down = start("down", env)
    assert (down.communicate(timeout=HANG_S)[1], down.returncode) == (RUNS_ON, 0)
    assert not (tmp_path / "up").exists()
    assert not (tmp_path / "state").exists()


def test_a_process_that_has_an_old_engines_number_is_left_alone(
    tmp_path: Path, env: dict[str, str]
) -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        (tmp_path / "state").mkdir()
        (tmp_path / "state" / "dockerd.pid").write_text(f"{other.pid}\n")
        down = start("down", env)
        assert (down.communicate(timeout=HANG_S)[1], down.returncode) == ("", 0)
        assert other.poll() is None
        assert not (tmp_path / "state").exists()
    finally:
        other.kill()
        other.wait()


def test_a_suite_that_there_is_not_is_said_before_anything_is_done(
    tmp_path: Path, env: dict[str, str]
) -> None:
    for word in ("up", "down"):
        done = start(word, env | {"SUITE": "bookwrom"})
        assert done.communicate(timeout=HANG_S)[1] == (
            "cluster: SUITE='bookwrom': one of bookworm, trixie, forky is expected\n"
        )
        assert done.returncode == 2
    assert not (tmp_path / "up").exists()
