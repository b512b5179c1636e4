"""What a reload does not change is named, and is what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from pliant.daemon.config import Config, DaemonConfig, PbsConfig
from pliant.daemon.reloading import only_at_start

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


def documented(section: str) -> dict[str, bool]:
    """Which keys of a section take effect at a restart, by the page."""
    text = PAGE.partition(f"\n## [{section}]\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", text, re.MULTILINE)
    return {key: "Restart" in says for key, says in rows}


@pytest.mark.parametrize(("section", "of"), [("daemon", DaemonConfig), ("pbs", PbsConfig)])
def test_what_needs_a_restart_is_said_at_a_reload(section: str, of: type[msgspec.Struct]) -> None:
    rows = documented(section)
    assert sorted(rows) == sorted(of.__struct_fields__)
    for key, restarts in rows.items():
        changed = msgspec.structs.replace(of(), **{key: "another"})
        new = msgspec.structs.replace(Config(), **{section: changed})
        assert list(only_at_start(Config(), new)) == [f"[{section}] {key}"] * restarts


def test_so_is_all_of_slurm() -> None:
    assert set(documented("slurm").values()) == {True}
    old = Config()
    new = msgspec.structs.replace(old, slurm=msgspec.structs.replace(old.slurm, conf="/x"))
    assert list(only_at_start(old, new)) == ["[slurm]"]
    assert list(only_at_start(old, old)) == []
