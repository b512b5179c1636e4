"""The project's frame: what the wheel holds, what may be imported, what is said of the version."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import pliant
from pliant import model, plan, policies

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DATA_FOLDERS = ("docker", "plugins", "spank", "templates", "wrappers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in a wheel that is built here."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return archive.namelist()


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_the_wheel_holds_every_file_of_the_data_folders(wheel: list[str], folder: str) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--", folder],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    names = {f"pliant/_data/{name}" for name in tracked.stdout.split("\0") if name}
    assert names
    assert names - set(wheel) == set()


def test_the_wheel_is_marked_as_typed(wheel: list[str]) -> None:
    assert "pliant/py.typed" in wheel


def test_the_commands_are_pliant_and_pliantd() -> None:
    assert PYPROJECT["project"]["scripts"] == {
        "pliant": "pliant.entry:main",
        "pliantd": "pliant.daemon.main:main",
    }


def test_the_version_is_the_same_everywhere() -> None:
    assert PYPROJECT["project"]["version"] == pliant.__version__


def test_the_changelog_begins_with_the_version() -> None:
    """Or with what is not released yet, where the version is one in development."""
    newest = re.search(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert newest[1] == ("Unreleased" if ".dev" in pliant.__version__ else pliant.__version__)


def test_every_release_has_its_date_and_stands_above_the_one_before() -> None:
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    released = [head for head in heads if head != "[Unreleased]"]
    found = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - \d{4}-\d\d-\d\d", head) for head in released]
    numbers = [tuple(map(int, match.groups())) for match in found if match]
    assert len(numbers) == len(released)
    assert numbers == sorted(set(numbers), reverse=True)


def test_contributing_stays_short() -> None:
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 60


def test_every_layer_of_contributing_is_a_layer_of_the_checker() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawn = re.findall(r"\b\w+\b", text.partition("holds it.")[2].partition("From `cycle`")[0])
    contract = PYPROJECT["tool"]["importlinter"]["contracts"][0]
    checked = re.findall(r"pliant\.(\w+)", " ".join(contract["layers"]))
    assert [*drawn, "errors"] == checked


def test_every_module_of_the_package_stands_in_a_layer() -> None:
    contract = PYPROJECT["tool"]["importlinter"]["contracts"][0]
    checked = set(re.findall(r"pliant\.(\w+)", " ".join(contract["layers"])))
    modules = {path.stem for path in (ROOT / "src" / "pliant").iterdir() if path.stem[0] != "_"}
    assert modules - {"py"} == checked


def test_every_exception_to_a_linter_has_its_reason_beside_it() -> None:
    bare = re.compile(r"# (noqa(: [A-Z0-9, ]+)?|type: ignore(\[[a-z, -]*\])?)\s*$")
    folders = ("src", "tests", "benchmarks", "wrappers", "docs")
    assert [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line)
    ] == []


def test_the_nouns_are_public() -> None:
    """What a policy written elsewhere stands on."""
    nouns = "Shape Kind Request Spec Demand Footprint Job Node Pool Partition Reservation Snapshot"
    assert all(hasattr(model, noun) for noun in nouns.split())
    assert all(
        hasattr(plan, verb) for verb in "Start Claim Mold Reshape Preempt Plan Policy".split()
    )


@pytest.mark.parametrize("name", ["moldable-equipartition", "fms", "rigid-fcfs", "easy-backfill"])
def test_a_policy_is_found_by_its_name(name: str) -> None:
    assert policies.by_name(name).name == name
