"""How runs of the drill are counted over sittings (benchmarks/drill)."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.drill.__main__ import rarest
from benchmarks.drill.document import at_most, document
from benchmarks.drill.faults import FAULTS
from benchmarks.drill.record import Origin, append, hash_of, read
from benchmarks.drill.run import Seen
from benchmarks.drill.sitting import Task

HERE = Origin("abc1234", "f00d", "22.05.8")
KIND = FAULTS[2]


def test_runs_count_for_as_long_as_the_files_under_test_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    assert read(path, HERE.files) == ()
    good = HERE.noted(Task(KIND, 7), Seen(KIND.name, "asked", said="much"))
    bad = HERE.noted(Task(KIND, 8), Seen(KIND.name, "asked", stuck=1, words=["so"], said="this"))
    other = Origin("def", "0ther", "22.05.8").noted(Task(KIND, 9), Seen(KIND.name, "asked"))
    for run in (good, bad, other):
        append(path, run)
    kept = read(path, HERE.files)
    assert [run.seed for run in kept] == [7, 8]
    assert kept[1] == bad
    assert (kept[0].seen.is_good, kept[0].seen.said) == (True, "")


def test_a_change_of_what_is_under_test_begins_the_counting_anew(tmp_path: Path) -> None:
    file = tmp_path / "src" / "pliant" / "handover.py"
    file.parent.mkdir(parents=True)
    file.write_text("A = 1\n")
    first = hash_of(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "more.py").write_text("B = 1\n")
    assert hash_of(tmp_path) == first
    file.rename(file.with_name("handing.py"))
    renamed = hash_of(tmp_path)
    file.with_name("handing.py").write_text("A = 2\n")
    assert len({first, renamed, hash_of(tmp_path)}) == 3


def test_the_kinds_of_which_there_are_fewest_runs_come_first() -> None:
    kinds = FAULTS[:4]
    had = Counter({kinds[0].name: 2, kinds[1].name: 1, kinds[2].name: 2, kinds[3].name: 1})
    tasks = [*islice(rarest(kinds, had, 100), 6)]
    names = [task.fault.name for task in tasks]
    assert set(names[:2]) == {kinds[1].name, kinds[3].name}
    assert set(names[2:]) == {kind.name for kind in kinds}
    assert [task.seed for task in tasks] == [*range(100, 106)]
    assert tasks == [*islice(rarest(kinds, had, 100), 6)]


@pytest.mark.parametrize(
    ("bad", "runs", "rate"), [(0, 6, 0.393), (1, 300, 0.0157), (0, 1, 0.95), (5, 5, 1.0)]
)
def test_how_often_harm_may_be_done_yet(bad: int, runs: int, rate: float) -> None:
    """As Clopper and Pearson's interval has it; for none of n that is 1 - .05^(1/n)."""
    assert at_most(bad, runs) == pytest.approx(rate, abs=5e-4)


def test_the_page_has_a_table_for_each_release_and_names_what_was_not_good() -> None:
    runs = [
        HERE.noted(Task(KIND, 7), Seen(KIND.name, "asked", seconds=12.0)),
        HERE.noted(Task(KIND, 8), Seen(KIND.name, "asked", stuck=1, words=["so"], seconds=14.0)),
        Origin("abc1234", "f00d", "26.05").noted(Task(KIND, 9), Seen(KIND.name, "asked")),
    ]
    page = document(runs)
    assert "## Slurm 22.05.8\n" in page
    assert "## Slurm 26.05\n" in page
    row = f"| {KIND.name} | completed | 2 | 0 | 0 | 1 | 0 | 0 | 0 | 97.5% | 0 | 0 | 0 | 14 |"
    assert row in page
    assert f"- Slurm 22.05.8, {KIND.name} (asked), seed 8: ['so']" in page
    assert page.count("**not reached**") == 1
