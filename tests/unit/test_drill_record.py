"""How runs of the drill are counted over sittings (benchmarks/drill)."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from benchmarks.drill.__main__ import IN_VAIN, enough, main, named, rarest
from benchmarks.drill.document import at_most, document
from benchmarks.drill.fault import Fault
from benchmarks.drill.record import ROOT, Origin, append, counted, hash_of, read
from benchmarks.drill.run import PASSED_BY, Ran, Seen, drawn
from benchmarks.drill.sitting import Task
from benchmarks.drill.slurm_faults import FAULTS
from benchmarks.drill.work import Work

SLURM, PBS = "Slurm 22.05.8", "OpenPBS 23.06.06 in a container"
HERE = Origin("abc1234", "f00d", SLURM)
KIND = FAULTS[2]
TASK = Task(KIND, 7)
Ended = Iterator[tuple[Task, Ran]]
GOOD, BAD = Seen("asked"), Seen("asked", stuck=1, words=["so"])


def test_runs_count_for_as_long_as_the_files_under_test_are_the_same(tmp_path: Path) -> None:
    path, here = tmp_path / "runs.jsonl", replace(HERE, files=hash_of(tmp_path, SLURM))
    assert read(path, tmp_path) == ()
    good = here.noted(TASK, Ran(KIND.name, [GOOD, Seen("after:pin", redone=3)], 12.0, said="much"))
    bad = here.noted(Task(KIND, 8), Ran(KIND.name, [GOOD, BAD], 13.5, said="this"))
    other = HERE.noted(Task(KIND, 9), Ran(KIND.name, [GOOD]))
    passed = [GOOD, Seen(PASSED_BY)]
    there = replace(here, on="Slurm 26.05.5").noted(Task(KIND, 10), Ran(KIND.name, passed))
    for run in (good, bad, other, there):
        append(path, run)
    kept = read(path, tmp_path)
    assert kept == (replace(good, ran=replace(good.ran, said="")), bad, there)
    assert counted(kept, here.on) == {KIND.name: 4}
    assert counted(kept, there.origin.on) == {KIND.name: 1}


def test_a_change_of_what_is_under_test_begins_the_counting_anew(tmp_path: Path) -> None:
    file = tmp_path / "src" / "pliant" / "handover.py"
    file.parent.mkdir(parents=True)
    file.write_text("A = 1\n")
    first = hash_of(tmp_path, SLURM)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "more.py").write_text("B = 1\n")
    assert hash_of(tmp_path, SLURM) == first
    file.rename(file.with_name("handing.py"))
    renamed = hash_of(tmp_path, SLURM)
    file.with_name("handing.py").write_text("A = 2\n")
    assert len({first, renamed, hash_of(tmp_path, SLURM)}) == 3


@pytest.mark.parametrize(
    "name",
    [
        *("wrappers/requeue/scontrol", "wrappers/pliant-run", "spank/Makefile", "spank/pliant.map"),
        *("plugins/slurm/pliant.lua", "templates/slurm.conf.j2", "docs/examples/count.py"),
    ],
)
def test_so_does_one_of_a_script_and_of_what_a_run_is_set_up_with(
    name: str, tmp_path: Path
) -> None:
    assert (ROOT / name).is_file()
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    hashes = {hash_of(tmp_path, SLURM)}
    for text in ("one\n", "two\n"):
        file.write_text(text)
        hashes.add(hash_of(tmp_path, SLURM))
    assert len(hashes) == 3


@pytest.mark.parametrize(
    ("name", "on", "other"),
    [
        ("plugins/pbs/prelude.py", PBS, SLURM),
        ("src/pliant/hooks/tools.py", PBS, SLURM),
        ("benchmarks/drill/pbs_field.py", PBS, SLURM),
        ("plugins/slurm/pliant.lua", SLURM, PBS),
        ("src/pliant/batch/slurm/handing.py", SLURM, PBS),
        ("benchmarks/drill/slurm_field.py", SLURM, PBS),
    ],
)
def test_what_one_batch_system_alone_runs_changes_nothing_for_another(
    name: str, on: str, other: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    before = hash_of(tmp_path, on), hash_of(tmp_path, other)
    file.write_text("A = 1\n")
    assert hash_of(tmp_path, on) != before[0]
    assert hash_of(tmp_path, other) == before[1]


def test_a_line_that_was_torn_is_left_out_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever wrote it was killed, or its disk was full: the runs before and after it count."""
    path, here = tmp_path / "runs.jsonl", Origin.now(SLURM)
    run = here.noted(TASK, Ran(KIND.name, [GOOD]))
    path.touch()
    append(path, run)
    with path.open("a") as file:
        file.write('{"at":"2026')
    append(path, run)
    assert [one.seed for one in read(path)] == [TASK.seed] * 2
    assert capsys.readouterr().err == f'{path}, line 2 is no run, and left out: \'{{"at":"2026\'\n'


def test_what_is_built_or_noted_beside_them_changes_nothing(tmp_path: Path) -> None:
    for place in ("spank", "benchmarks/drill"):
        (tmp_path / place).mkdir(parents=True)
    before = hash_of(tmp_path, SLURM)
    (tmp_path / "spank" / "grammar-check").write_bytes(b"\x7fELF\0")
    (tmp_path / "spank" / "pliant.so").write_bytes(b"\x7fELF\0")
    (tmp_path / "benchmarks" / "drill" / "runs.jsonl").write_text("{}\n")
    assert hash_of(tmp_path, SLURM) == before


def test_a_run_does_not_count_in_which_a_file_under_test_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pliantd is started from these files again in each run, whatever they were when it began."""
    now = ["f00d"]

    def drilled(tasks: Iterable[Task], _many: int, stopping: threading.Event, *_: object) -> Ended:
        for task in tasks:
            if stopping.is_set():
                return
            yield task, Ran(task.fault.name, [GOOD])
            now[0] = "0ther"

    monkeypatch.setattr("benchmarks.drill.record.hash_of", lambda _root, _on: now[0])
    monkeypatch.setattr("benchmarks.drill.__main__.drilled", drilled)
    path = tmp_path / "runs.jsonl"
    monkeypatch.setattr("sys.argv", ["drill", "--runs", "5", "--seed", "7", "--record", str(path)])
    assert main() == 1
    now[0] = "f00d"
    (kept,) = read(path)
    assert (kept.seed, len(path.read_text().splitlines())) == (7, 1)
    first, empty, *_, changed, last = capsys.readouterr().out.splitlines()
    assert first.startswith("seed 7; Slurm ")
    assert first.endswith(f", commit {kept.origin.commit}, hash of files f00d")
    counts = "recorded of these files: {} hand-overs, of {} of {} kinds, at least 0 of each"
    assert empty == counts.format(0, 0, len(FAULTS))
    assert changed == "a file under test was changed: this run does not count, ending"
    assert last == empty


@pytest.mark.parametrize(("seen", "status"), [(GOOD, 0), (BAD, 1)])
def test_a_sitting_in_which_one_was_not_good_ends_with_an_error(
    seen: Seen, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drilled(tasks: Iterable[Task], *_: object) -> Ended:
        for number, task in enumerate(tasks):
            yield task, Ran(task.fault.name, [GOOD if number else seen])

    monkeypatch.setattr("benchmarks.drill.__main__.drilled", drilled)
    record = str(tmp_path / "runs.jsonl")
    monkeypatch.setattr("sys.argv", ["drill", "--runs", "2", "--seed", "7", "--record", record])
    assert main() == status


@pytest.mark.parametrize(("seen", "status"), [(GOOD, 0), (Seen(PASSED_BY), 1)])
def test_a_sitting_that_does_not_come_to_what_was_asked_for_ends_with_an_error(
    seen: Seen, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drilled(tasks: Iterable[Task], *_: object) -> Ended:
        for task in tasks:
            yield task, Ran(task.fault.name, [seen])

    monkeypatch.setattr("benchmarks.drill.__main__.drilled", drilled)
    record, kind = str(tmp_path / "runs.jsonl"), FAULTS[0].name
    monkeypatch.setattr("sys.argv", ["drill", "--each", "1", "--record", record, "--only", kind])
    assert main() == status


def test_the_kinds_of_which_there_are_fewest_hand_overs_come_first() -> None:
    thrice, once = FAULTS[:2], [fault for fault in FAULTS if fault.ends == "FAILED"][:2]
    kinds = [*thrice, *once]
    had = Counter({thrice[0].name: 2, thrice[1].name: 1, once[0].name: 2, once[1].name: 1})
    tasks = [*islice(rarest(kinds, Counter(had), 100), 5)]
    names = [task.fault.name for task in tasks]
    assert set(names[:2]) == {thrice[1].name, once[1].name}
    assert set(names[2:5]) == {thrice[0].name, once[0].name, once[1].name}
    assert [task.seed for task in tasks] == [*range(100, 105)]
    assert tasks == [*islice(rarest(kinds, Counter(had), 100), 5)]


def test_a_kind_is_named_whole_or_by_words() -> None:
    preempted = "nothing, preempted"
    assert [fault.name for fault in named(FAULTS, preempted)] == [preempted]
    assert [fault.name for fault in named(FAULTS, "nothing")] == ["nothing"]
    some = [fault.name for fault in named(FAULTS, "quota,epilog")]
    assert some == [
        name for name in (one.name for one in FAULTS) if "quota" in name or "epilog" in name
    ]
    assert [*named(FAULTS, "")] == [*FAULTS]


def test_a_sitting_ends_after_so_many_runs_or_with_so_many_hand_overs_of_each_kind() -> None:
    kinds = FAULTS[:3]
    for runs, each, made in ((0, 0, 3), (5, 0, 5), (0, 4, 6), (0, 3, 3)):
        counts = Counter[str]()
        tasks = enough(rarest(kinds, counts, 1), runs, each, kinds, counts)
        assert len([*tasks]) == made


def test_a_kind_whose_fault_never_comes_ends_a_sitting(capsys: pytest.CaptureFixture[str]) -> None:
    kinds, counts, many = FAULTS[:1], Counter[str](), 0
    for task in enough(rarest(kinds, counts, 1), 0, 4, kinds, counts):
        counts[task.fault.name] = 0  # it was passed by
        many += 1
    assert many == 4 + IN_VAIN
    assert (
        capsys.readouterr().out
        == f"{kinds[0].name}: its fault came in too few of 14 runs: ending\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--only", "nonsense"), "--only 'nonsense': no kind has one of these words in its name"),
        (("--runs", "-1"), "argument --runs: '-1': a number from 0 on is expected"),
        (("--at-once", "0"), "argument --at-once: '0': a number from 1 on is expected"),
        (
            ("--record", "/nowhere/runs"),
            "argument --record: '/nowhere/runs': a file in a directory that is there is expected",
        ),
        (("--batch", "pbs"), "--batch pbs: PLIANT_PBS_BIN is not set, see its field's module"),
    ],
)
def test_what_is_no_drill_is_said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["drill", *options])
    monkeypatch.delenv("PLIANT_PBS_BIN", raising=False)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: {said}\n")


def test_a_run_has_the_fault_at_other_moments_as_long_as_there_are_some() -> None:
    draw = random.Random(1)  # noqa: S311  # a draw, no secret
    many = Fault("x", ("a", "b", "c", "d"))
    assert {len(set(drawn(many, draw))) for _ in range(20)} == {3}
    assert drawn(Fault("x", ("a",)), draw) == ["a", "a", "a"]
    assert drawn(Fault("x", ("a",), ends="FAILED"), draw) == ["a"]


@pytest.mark.parametrize(
    ("bad", "runs", "rate"), [(0, 6, 0.393), (1, 300, 0.0157), (0, 1, 0.95), (5, 5, 1.0)]
)
def test_how_often_harm_may_be_done_yet(bad: int, runs: int, rate: float) -> None:
    """As Clopper and Pearson's interval has it; for none of n that is 1 - .05^(1/n)."""
    assert at_most(bad, runs) == pytest.approx(rate, abs=5e-4)


def test_the_page_has_a_table_for_each_batch_system_and_names_what_was_not_good() -> None:
    runs = [
        HERE.noted(TASK, Ran(KIND.name, [GOOD, GOOD], 12.0)),
        HERE.noted(Task(KIND, 8), Ran(KIND.name, [GOOD, BAD], 14.0)),
        replace(HERE, on="Slurm 26.05.5 in a container").noted(TASK, Ran(KIND.name, [GOOD])),
    ]
    page = document(runs)
    of = len(FAULTS)
    assert (
        f"| Slurm 22.05.8 | 2 | 4 | 1 of {of} | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 1 | 75.14% |\n" in page
    )
    there = (
        f"Slurm 26.05.5 in a container | 1 | 1 | 1 of {of} | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 95.00%"
    )
    assert f"| {there} |\n" in page
    assert "\n3 runs from " in page
    assert (
        ", of commit abc1234: in all of those on one batch system the files under test are the same, "
        "whose hash is f00d on Slurm 22.05.8, f00d on Slurm 26.05.5 in a container." in page
    )
    assert "## Slurm 22.05.8\n" in page
    assert "## Slurm 26.05.5 in a container\n" in page
    header = next(line for line in page.splitlines() if line.startswith("| fault | the job ends |"))
    assert header.split(" | ")[3:8] == [
        *("hand-overs", "not good, at most", "jobs lost", "steps lost", "stuck")
    ]
    row = (
        f"| {KIND.name} | completed | 2 | 4 | 75.1% | 0 | 0 | 1 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 13 |"
    )
    assert row in page
    rest = "; ".join(f'"{fault.name}"' for fault in FAULTS if fault != KIND)
    assert f"Of {of - 1} of {of} kinds there is no hand-over in this record: {rest}.\n" in page
    assert f"- Slurm 22.05.8, {KIND.name}, hand-over 2 (asked), seed 8: ['so']" in page
    assert page.count("**not reached**") == 2


def test_the_page_says_how_many_there_are_of_each_kind_at_least() -> None:
    runs = [HERE.noted(Task(kind, 1), Ran(kind.name, [GOOD, GOOD], 12.0)) for kind in FAULTS]
    assert f"Of each of the {len(FAULTS)} kinds there are 2 hand-overs or more" in document(runs)
    passed = replace(runs[0], ran=Ran(FAULTS[0].name, [Seen(PASSED_BY)], 12.0))
    words = f'Of 1 of {len(FAULTS)} kinds there is no hand-over in this record: "{FAULTS[0].name}".'
    assert words in document([passed, *runs[1:]])


def test_the_page_counts_nothing_together_that_is_not_of_the_same_files() -> None:
    run = HERE.noted(TASK, Ran(KIND.name, [GOOD], 12.0))
    with pytest.raises(ValueError, match="too many values"):
        document([run, replace(run, origin=replace(HERE, files="0ther"))])


def test_what_a_run_lost_is_told_hand_over_by_hand_over(tmp_path: Path) -> None:
    work = Work(tmp_path / "log")
    work.log.write_text("began 0 0\nsaved 90\nbegan 90 90\n")
    assert work.lost() == (0, 0)
    work.log.write_text(f"{work.log.read_text()}saved 120\nbegan 90 120\nbegan 120 125\n")
    assert work.lost() == (30, 35)
    assert work.lost() == (0, 0)
