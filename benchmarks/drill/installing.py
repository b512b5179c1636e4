"""What an ordinary user's job needs, put where that user may read it."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

from benchmarks.drill.field import ROOT, STEP_S, STEPS

PYTHON = "/usr/bin/python3"
_LEFT_OUT = (
    "pliant",
    "mypy*",
    "pip*",
    "ruff*",
    "hypothesis*",
    "pytest*",
    "*.pth",
    "__pycache__",
    "grimp*",
)


def install(place: Path) -> Path:
    """Copy it; return the folder."""
    left_out = shutil.ignore_patterns(*_LEFT_OUT)
    shutil.copytree(sysconfig.get_path("purelib"), place / "lib", ignore=left_out)
    shutil.copytree(ROOT / "src" / "pliant", place / "lib" / "pliant")
    for file in (
        ROOT / "docs" / "examples" / "count.py",
        Path(__file__).parent / "faulty_count.py",
    ):
        shutil.copy(file, place / "lib")
    program = place / "lib" / "pliant-run"
    program.write_text(
        f"#!{PYTHON}\nimport sys\nfrom pliant.entry import main\n"
        "sys.argv[1:1] = ['run']\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    return place / "lib"


def script(lib: Path, place: Path) -> str:
    """Return the lines of a job that counts."""
    return (
        f"export PYTHONPATH={lib} PLIANT_CHECKPOINT_DIR={place}/saves\n"
        f"exec {lib}/pliant-run -- {PYTHON} {lib}/faulty_count.py {STEPS} {place} {STEP_S}"
    )
