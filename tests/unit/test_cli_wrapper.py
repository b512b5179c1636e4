"""wrappers/sbatch: Pliant is called only by who speaks to it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from limits import HANG_S
from pliant import resources

WRAPPER = resources.find("wrappers", "sbatch")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a `pliant` and an `sbatch` that say who they are, and two scripts."""
    for name, says in (("pliant", 'pliant by $PLIANT_SBATCH "$@"'), ("sbatch", 'the real "$@"')):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {says}\nexit 7\n")
        program.chmod(0o755)
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n#SBATCH -t 5\n# --moldable=gpus=1\n")
    (tmp_path / "flagged.sh").write_text("#!/bin/sh\n#SBATCH -t 5 --malleable\n")
    return tmp_path


def said(folder: Path, *words: str, path: str = "") -> tuple[int, str]:
    done = subprocess.run(
        [str(WRAPPER), *words],
        cwd=folder,
        env={"PATH": path or f"{WRAPPER.parent}:{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "words", [("plain.sh",), ("-J", "--moldablex", "plain.sh"), ("--comment=pliant:gpus=1",), ()]
)
def test_who_says_nothing_gets_the_real_sbatch(folder: Path, words: tuple[str, ...]) -> None:
    assert said(folder, *words) == (7, " ".join(["the real", *words]) + "\n")


@pytest.mark.parametrize(
    "words",
    [("--moldable=gpus=1-4", "plain.sh"), ("--class", "trial", "plain.sh"), ("-n1", "flagged.sh")],
)
def test_who_speaks_to_pliant_gets_it_with_the_real_sbatch_named(
    folder: Path, words: tuple[str, ...]
) -> None:
    code, text = said(folder, *words)
    assert (code, text) == (7, f"pliant by {folder}/sbatch sbatch {' '.join(words)}\n")


def test_without_pliant_the_real_sbatch_says_what_it_thinks(folder: Path) -> None:
    (folder / "pliant").unlink()
    assert said(folder, "--moldable=gpus=1-4") == (7, "the real --moldable=gpus=1-4\n")


def test_without_slurm_it_is_one_line(folder: Path) -> None:
    (folder / "sbatch").unlink()
    path = f"{WRAPPER.parent}:{folder}"
    tools = {tool: f"/usr/bin/{tool}" for tool in ("dirname", "grep")}
    for tool, target in tools.items():
        (folder / tool).symlink_to(target)
    assert said(folder, "plain.sh", path=path) == (
        127,
        "sbatch: Slurm's own is not on the PATH\n",
    )
