"""From 0.1.0 to what is here and back: what one writes the other reads, or leaves alone in one line.

On a real Slurm: tests/slurm/test_upgrading.py.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from grammar_cases import GOOD, pairs

from limits import HANG_S
from older_release import Release, install
from pliant.daemon.config import load
from pliant.daemon.history import history_of
from pliant.daemon.rights import Asker
from pliant.errors import BadInput
from pliant.filter.pbs.state import Ground, Room, State, read_state, state_text
from pliant.grammar import find_token, parse
from pliant.grammar.token import pack, parse_spec, spec_text, token_text
from pliant.model import Footprint, Mode, Shape, Spec
from pliant.store import MIGRATIONS, RunRow, Store
from wrapped_job import HEAD, Job, ended, taken_over, wrapped_job

JOBS = ("3", "4", "5", "6", "7", "8", "4711")


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Pliant 0.1.0."""
    return install("0.1.0", tmp_path_factory.mktemp("old"))


@pytest.fixture
def history(old: Release, tmp_path: Path) -> Path:
    """A state directory as 0.1.0 left it."""
    shutil.copy(old.assets / "pliant.db", tmp_path)
    return tmp_path


def test_what_is_installed_is_that_release(old: Release) -> None:
    assert old.says("import json, pliant; print(json.dumps(pliant.__version__))") == old.version


# --- the history ---------------------------------------------------------------------------

ROWS = f"""
import json, sys
from dataclasses import astuple, replace
from pathlib import Path
from pliant.model import shape_text
from pliant.store import Store
store = Store(Path(json.load(sys.stdin)))
names = lambda job: {{shape_text(shape): rate for shape, rate in job.items()}}
print(json.dumps({{
    "handovers": [astuple(r) for job in {JOBS} for r in store.handovers(job)],
    "going on": [astuple(r) for r in store.handovers()],
    "runs": [astuple(r) for job in {JOBS} for r in store.runs(job)],
    "decisions": [astuple(r) for job in {JOBS} for r in store.decisions(job)],
    "rates": names(store.rates("root", "sbatch")),
    "refused": sorted(map(shape_text, store.refused(2e9).get("4711", ()))),
    "speeds": store.speeds(10),
    "unfinished": store.unfinished(),
    "trouble": store.trouble,
}}))
"""


def test_every_row_that_it_wrote_is_read_as_it_read_it_itself(
    old: Release, history: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    theirs = tmp_path_factory.mktemp("theirs")
    shutil.copy(history / "pliant.db", theirs)
    read = old.says(ROWS, str(theirs))
    ours = subprocess.run(
        [sys.executable, "-c", ROWS],
        input=json.dumps(str(history)),
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_S,
    )
    assert _beginning(json.loads(ours.stdout), read) == read
    assert {key for key, value in read.items() if not value} == {"trouble"}


def _beginning(ours: dict[str, list[list[object]]], read: dict[str, object]) -> dict[str, object]:
    """Leave out columns that a row has got since: they come last."""
    found: dict[str, object] = dict(ours)
    for name in ("handovers", "going on", "runs", "decisions"):
        theirs = read[name]
        assert isinstance(theirs, list)
        found[name] = [row[: len(old)] for row, old in zip(ours[name], theirs, strict=True)]
    return found


def test_the_hand_over_that_was_cut_off_goes_on(history: Path) -> None:
    (row,) = Store(history).handovers()
    assert (row.job, row.before, row.after, row.run, row.outcome) == ("8", "4", "2", 0, "")
    assert 0 < row.at_s <= row.saved_s


def test_a_history_that_was_written_here_does_not_stop_0_1_0(old: Release, history: Path) -> None:
    """Where its form is the same it is read, else it is moved aside: one line, no traceback."""
    Store(history).close()
    done = old.run([sys.executable, "-c", ROWS], json.dumps(str(history)))
    assert done.returncode == 0, done.stderr
    read, aside = json.loads(done.stdout)["handovers"], done.stderr.splitlines()
    assert bool(read) is not bool(aside)
    assert [line.endswith("kept as pliant.db.broken; a new one is begun") for line in aside] in (
        [],
        [True],
    )


def test_what_0_1_0_wrote_is_told_and_added_to(history: Path) -> None:
    store, root = Store(history), Asker(0, "root", admin=True, sees_all=True)
    told = {job: history_of(store, root, job, None) for job in JOBS}
    known = {job: one for job, one in told.items() if one is not None}
    assert known
    assert {one.state for one in known.values()} == {""}  # it kept no record of them
    assert any(run.launched_s for one in known.values() for run in one.runs)
    (job, one), *_ = ((job, one) for job, one in known.items() if one.runs)
    first = one.runs[0]
    begins = RunRow(job, first.run, "x", "", first.shape, "n1", 0.0, first.start_s, 0.0, gpus=4.0)
    store.jobs.keep(begun=[begins], ended=[(first.start_s + 60, job, first.run)])
    again = history_of(store, root, job, None)
    assert again is not None
    assert again.runs[0] == replace(first, gpus=4.0, end_s=first.start_s + 60)
    found = store.report(0.0, 2e9)
    assert found.total.sums.jobs == 0
    assert sum(row.count for row in found.resizes) > 0


def newer(history: Path) -> int:
    """Let a history be one of a later release; return its version."""
    db = sqlite3.connect(history / "pliant.db")
    db.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    db.close()
    return len(MIGRATIONS) + 1


def test_0_1_0_moves_a_later_history_aside_and_goes_on(old: Release, history: Path) -> None:
    version = newer(history)
    program = (
        "import json, sys; from pathlib import Path; from pliant.store import Store\n"
        "print(json.dumps(Store(Path(json.load(sys.stdin))).trouble))"
    )
    done = old.run([sys.executable, "-c", program], json.dumps(str(history)))
    assert (done.returncode, json.loads(done.stdout)) == (0, "")
    assert done.stderr == (
        f"{history}/pliant.db: version {version} was written by a newer Pliant: kept as"
        " pliant.db.broken; a new one is begun\n"
    )


def test_pliantd_says_of_a_later_history_one_line_and_ends(history: Path) -> None:
    newer(history)
    before = (history / "pliant.db").read_bytes()
    (history / "pliant.toml").write_text(
        f'[daemon]\nsocket = "{history}/s"\nstate_dir = "{history}"\n'
    )
    argv = [sys.executable, "-m", "pliant.daemon.main", "--config", str(history / "pliant.toml")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert done.stderr.startswith(f"pliantd: {history}/pliant.db: a later release of Pliant wrote")
    assert (history / "pliant.db").read_bytes() == before


# --- tokens --------------------------------------------------------------------------------

FOUND = """
import json, sys
from pliant.grammar import find_token
from pliant.grammar.token import spec_text
specs = [find_token(token) for token in json.load(sys.stdin)]
print(json.dumps([spec_text(spec) if spec else None for spec in specs]))
"""
NOTED = (
    Spec(parse("moldable=gpus=1-4"), own=Shape(1, 4), set=Shape(1, 2)),
    Spec(parse("malleable"), own=Shape(2, 4), footprint=Footprint(1, 2, 3, 4, 5, 6, 7)),
    Spec(parse("colocate"), pinned=True, renewed=True, mark="n1"),
)


def test_every_token_that_it_wrote_says_the_same_here(old: Release) -> None:
    lines = (old.assets / "tokens.txt").read_text().splitlines()
    said = {token: text for token, _, text in (line.partition(" ") for line in lines)}
    found = {token: find_token(f"theirs {token} others") for token in said}
    assert {token: spec_text(spec) if spec else None for token, spec in found.items()} == said
    assert {token: token_text(parse_spec(text)) for token, text in said.items()} == {
        token: token for token in said
    }


def test_every_token_that_is_written_here_says_the_same_to_it(old: Release) -> None:
    """As far as its options go: what is added since stands in no token of who does not use it."""
    requests = [Spec(parse(f"{option}={value}")) for option, value in pairs(GOOD) if value]
    specs = [spec for spec in (*requests, *NOTED) if len(spec_text(spec)) < 1000]
    read = old.says(FOUND, [token_text(spec) for spec in specs])
    wrote = [spec_text(spec) for spec in specs]
    unknown = {text for text, said in zip(wrote, read, strict=True) if said is None}
    assert [said for said in read if said is not None] == [t for t in wrote if t not in unknown]
    assert {text for text in unknown if not _is_new(text)} == set()


def _is_new(text: str) -> bool:
    """Whether a request uses a key that 0.1.0 has not."""
    return any(key in text for key in ("stalled=", "max-resizes=", "min-run=", "checkpoint="))


@pytest.mark.parametrize(
    "text",
    [
        "moldable=gpus=1-4;later=7",
        "moldable=gpus=1-4,later=7",
        "malleable=grace=2m,later=leave",
        "later",
        "moldable=gpus=1-4;own=4;fp=1,2,3,4,5,6,7,8",
    ],
)
def test_a_token_with_a_key_of_a_later_release_leaves_the_job_alone(
    old: Release, text: str
) -> None:
    assert old.says(FOUND, [pack(text)]) == [None]
    assert find_token(pack(text)) is None


# --- pliant.toml, and what the hooks of PBS are told ------------------------------------------


def test_its_pliant_toml_is_right(old: Release) -> None:
    config = load(old.assets / "pliant.toml")
    assert (config.daemon.policy, config.mode("gpu")) == ("malleable-equipartition", Mode.ENFORCE)
    assert config.policy == {"pays": True}
    assert config.gpu_memory == {"a100": 40_960, "default": 16_384}


STATE = """
import json, sys
from dataclasses import asdict
from pliant.errors import BadInput
from pliant.filter.pbs.state import read_state
try:
    print(json.dumps(asdict(read_state(json.load(sys.stdin)))))
except BadInput as wrong:
    print(json.dumps(str(wrong)))
"""


def test_a_hook_of_here_reads_its_state_file_or_changes_nothing(old: Release) -> None:
    text = (old.assets / "pbs_state.json").read_text()
    theirs = old.says(STATE, text)
    try:
        state = read_state(text)
    except BadInput:
        return  # of another version: the hook notes the request and changes nothing
    assert (state.mode, state.mode_of("debug")) == (Mode.ENFORCE, Mode.OFF)
    read = [astuple(room)[:6] for room in state.ground("workq").rooms]
    wrote = [tuple(room.values()) for room in dict(theirs["queues"])["workq"]["rooms"]]
    assert read == wrote


def test_its_hook_reads_a_state_file_of_here_or_changes_nothing(old: Release) -> None:
    ground = Ground((Room(2, 4, 64, 256_000),), (Room(1, 1, 8, 1024),))
    state = State(1.0, Mode.ENFORCE, default_queue="workq", queues=(("workq", ground),))
    read = old.says(STATE, state_text(state))
    if isinstance(read, str):
        assert "is expected" in read
    else:
        assert (read["mode"], len(read["queues"])) == ("enforce", 1)


# --- pliant run and import pliant -----------------------------------------------------------

COUNTS = (
    "for step in range(1, 10**6):\n"
    "    pliant.heartbeat(step)\n"
    "    time.sleep(0.01)\n"
    "    if pliant.checkpoint_wanted():\n"
    "        pathlib.Path('saved').write_text(f'{step} {pliant.shape()}')\n"
    "        pliant.checkpointed()\n"
)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        yield one


def test_its_wrapper_and_its_program_save_for_a_pliantd_of_here(job: Job, old: Release) -> None:
    """A job that beats, is asked, saves, and ends with 85 once it is requeued."""
    argv = old.argv("pliant.cli", "run", "--", sys.executable, "-c", HEAD + COUNTS)
    process = job._start(argv, {**old.environment, "SLURM_GPUS_ON_NODE": "4"})
    job.door.wait_for("run-launched")
    job.door.want("w1")
    saved = job.door.wait_for("run-saved")
    assert (saved["job"], saved["wish"], int(saved["step"]) > 0) == ("4711", "w1", True)
    code, _, err = taken_over(job, process)
    assert (code, "Traceback" in err) == (85, False), err
    step, _, shape = job.wait_for_file("saved").partition(" ")
    assert (int(step) > 0, "Shape(" in shape) == (True, True)


def test_a_program_with_its_import_under_a_wrapper_of_here(job: Job, old: Release) -> None:
    (job.folder / "old.pth").touch()
    environment = {"SLURM_GPUS_ON_NODE": "4"}
    program = f"import sys; sys.path.insert(0, {str(old.folder)!r})\n" + HEAD + COUNTS
    process = job._start([*job.pliant, "run", "--", sys.executable, "-c", program], environment)
    job.door.wait_for("run-launched")
    job.door.want("w1")
    job.door.wait_for("run-saved")
    assert taken_over(job, process)[0] == 85


def test_its_wrapper_asks_no_more_of_a_pliantd_that_is_away(job: Job, old: Release) -> None:
    job.door.close()
    program = HEAD + "pliant.heartbeat(1); sys.exit(7)"
    argv = old.argv("pliant.cli", "run", "--", sys.executable, "-c", program)
    assert ended(job._start(argv, dict(old.environment)))[0] == 7
