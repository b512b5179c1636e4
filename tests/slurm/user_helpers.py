"""Pliant for an ordinary user, who may not read where it lies for us."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import pliant
from limits import HANG_S
from pliant.resources import FOLDERS
from pliant.sandbox.accounts import Person

COMMAND = """#!{python}
import sys
from {module} import main
sys.argv[0] = "{name}"
sys.exit(main())
"""


def commands_for(user: Person, workdir: Path) -> Path:
    """Make a folder with `pliant` and `pliantd` that the user may run, and return it."""
    venv = workdir / "venv"
    make = [python_for(user), "-m", "venv", "--without-pip", str(venv)]
    subprocess.run(make, timeout=HANG_S, check=True)
    checkout, site = readable(user, workdir)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "pliant.pth").write_text(f"{checkout / 'src'}\n{site}\n")
    for name, module in (("pliant", "pliant.cli"), ("pliantd", "pliant.daemon.main")):
        text = COMMAND.format(python=venv / "bin" / "python", name=name, module=module)
        (venv / "bin" / name).write_text(text)
        (venv / "bin" / name).chmod(0o755)
    return venv / "bin"


def readable(user: Person, workdir: Path) -> tuple[Path, Path]:
    """Return our checkout and our packages, copied where the user may not read ours."""
    checkout, site = Path(pliant.__file__).parents[2], Path(sysconfig.get_path("purelib"))
    tried = subprocess.run(
        ["runuser", "-u", user.name, "--", "test", "-r", str(site)], timeout=HANG_S, check=False
    )
    if tried.returncode == 0:
        return checkout, site
    for folder in ("src", *FOLDERS):
        shutil.copytree(checkout / folder, workdir / folder)
    shutil.copytree(site, workdir / "site", ignore=shutil.ignore_patterns("mypy*", "pip", "*.pth"))
    return workdir, workdir / "site"


def python_for(user: Person) -> str:
    """Return a Python of our version that the user may run; ours may lie in root's home."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for place in (sys.executable, f"/usr/bin/{version}"):
        tried = subprocess.run(
            ["runuser", "-u", user.name, "--", place, "-c", ""],
            capture_output=True,
            timeout=HANG_S,
            check=False,
        )
        if tried.returncode == 0:
            return place
    pytest.skip(f"{user.name} may run no {version} here")
