"""A release of Pliant as it was, frozen in tests/assets: installed, asked, and let run.

Each is the wheel of its tag, installed beside nothing: what it needs is the tests' own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limits import HANG_S

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Release:
    """One release: its frozen files, and where its package is installed."""

    version: str
    folder: Path

    @property
    def assets(self) -> Path:
        """Where its wheel lies, and what it wrote."""
        return ASSETS / f"pliant-{self.version}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that let this Python import it instead of what is under test."""
        return {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def argv(self, module: str, *words: str) -> list[str]:
        """Return the command of a module of it with a ``main``."""
        return [sys.executable, "-c", f"from {module} import main; main()", *words]

    def run(self, argv: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command that imports it."""
        return subprocess.run(
            argv,
            input=stdin,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    def says(self, program: str, said: object = None) -> Any:
        """Run a program that reads ``said`` and prints one JSON value."""
        done = self.run([sys.executable, "-c", program], json.dumps(said))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def commands(self, python: str, folder: Path) -> Path:
        """Put `pliant` and `python`, which import it, into a folder; return the folder."""
        path = f"{self.folder}:{sysconfig.get_path('purelib')}"
        for name, words in (
            ("python", ""),
            ("pliant", " -c 'from pliant.cli import main; main()'"),
        ):
            script = folder / name
            script.write_text(f'#!/bin/sh\nPYTHONPATH={path} exec {python}{words} "$@"\n')
            script.chmod(0o755)
        return folder


def install(version: str, folder: Path) -> Release:
    """Install a frozen release into an empty folder, without a registry."""
    (wheel,) = (ASSETS / f"pliant-{version}").glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    where = ["--no-deps", "--no-index", "--no-compile", "--target", str(folder)]
    subprocess.run([*pip, *where, str(wheel)], timeout=HANG_S, check=True)
    return Release(version, folder)
