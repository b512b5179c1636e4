"""Wrappers that are killed, and programs that hang by a request, on a running PBS (pbs_fixtures.py)."""

from __future__ import annotations

import json
import signal

import pytest
from pbs_helpers import Server, needs_server, number, until

needs_server()

pytest_plugins = ["pbs_fixtures"]
pytestmark = pytest.mark.timeout(600)

ASKED = ("-l", "select=1:ncpus=1:ngpus=4", "-l", "moldable=gpus=1-4", "-l", "walltime=20:00")
LOSES = """\
import json, os, pathlib, sys, time
import pliant
how, number, code = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
directory = pathlib.Path(os.environ["PLIANT_CHECKPOINT_DIR"])
directory.mkdir(exist_ok=True)
kept, log = directory / "step.json", open(directory / "log", "a")
step = json.loads(kept.read_text()) if kept.exists() else 0
first, guardian = not step, os.getppid()
print(json.dumps({"start": step, "SHAPE": os.environ["PLIANT_SHAPE"]}), file=log, flush=True)

def lose():
    # The wrapper is what the guardian, our parent, has for a child with a command line as its own.
    def words(pid): return pathlib.Path("/proc", str(pid), "cmdline").read_bytes()
    def parent(pid):
        return int(pathlib.Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()[1])
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            if parent(pid) == guardian and words(pid) == words(guardian): os.kill(int(pid), number)
        except OSError:
            pass

while not (directory / "enough").exists():
    time.sleep(0.2)
    step += 1
    pliant.heartbeat(step)
    print(json.dumps({"step": step}), file=log, flush=True)
    if first and how == "runs" and (directory / "lose").exists():
        lose()
        first = False
    if pliant.checkpoint_wanted():
        if first and how == "wanted": lose()
        kept.write_text(json.dumps(step))
        if first and how == "ended" and os.fork() == 0:
            program = os.getppid()
            while os.getppid() == program: time.sleep(0.001)
            lose()
            os._exit(0)
        if first and how == "saved": lose()
        sys.exit(85)
sys.exit(code)
"""
"""Loses its wrapper: while it runs, once it is asked, once it has saved, or once it has ended."""
HANGS = """\
import json, os, pathlib, time
import pliant
directory = pathlib.Path(os.environ["PLIANT_CHECKPOINT_DIR"])
directory.mkdir(exist_ok=True)
hung, log = directory / "hung", open(directory / "log", "a")
first, step = not hung.exists(), 0
print(json.dumps({"start": step, "SHAPE": os.environ["PLIANT_SHAPE"]}), file=log, flush=True)
while not (directory / "enough").exists():
    time.sleep(0.05)
    step += 1
    pliant.heartbeat(step)
    print(json.dumps({"step": step}), file=log, flush=True)
    if first and pliant.checkpoint_wanted():
        hung.touch()
        time.sleep(10**6)
"""


def starts(server: Server, job_id: str) -> list[object]:
    """The shapes in which a job has started so far."""
    return [one["SHAPE"] for one in server.log(job_id) if "start" in one]


def steps(server: Server, job_id: str) -> list[object]:
    return [one["step"] for one in server.log(job_id) if "step" in one]


def ends(server: Server, job_id: str) -> int:
    """Wait for a job's end, and return its exit status."""
    until(lambda: server.job(job_id).get("job_state") == "F")
    return int(server.job(job_id)["Exit_status"])


def loses(server: Server, how: str, by: int, code: int = 0) -> str:
    argv = (how, str(by), str(code))
    job_id = server.train(*ASKED, "-l", "malleable=grace=30s", program=LOSES, argv=argv)
    until(lambda: len(steps(server, job_id)) > 10)
    return job_id


def watched(server: Server, job_id: str) -> bool:
    """Whether the wrapper's questions follow each other: by one under way pliantd sees its end."""
    said = server.pliant("history", "--json", number(job_id), check=False)
    return said.startswith("{") and any(run["step"] > 1 for run in json.loads(said)["runs"])


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSEGV])
def test_a_program_whose_wrapper_is_killed_runs_on_and_its_job_ends_with_its_code(
    server: Server, by: int
) -> None:
    job_id = loses(server, "runs", by, 3)
    until(lambda: watched(server, job_id))
    server.enough(job_id, "lose")
    until(lambda: "it is unmanaged" in server.pliant("why", number(job_id)))
    assert "it is unmanaged" in server.pliant("resize", number(job_id), "2", check=False)
    server.enough(job_id)
    assert ends(server, job_id) == 3
    assert starts(server, job_id) == ["4"]


@pytest.mark.parametrize("how", ["wanted", "saved", "ended"])
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGSEGV])
def test_a_job_that_has_saved_is_requeued_whose_wrapper_is_killed(
    server: Server, how: str, by: int
) -> None:
    job_id = loses(server, how, by)
    server.resize(job_id, "2")
    until(lambda: len(starts(server, job_id)) == 2)
    server.enough(job_id)
    assert ends(server, job_id) == 0
    assert steps(server, job_id) == list(range(1, len(steps(server, job_id)) + 1))


@pytest.mark.parametrize(("stalled", "runs"), [("requeue", 2), ("leave", 1)])
def test_a_program_that_hangs_by_the_request_is_requeued_or_left_as_its_owner_says(
    server: Server, stalled: str, runs: int
) -> None:
    malleable = f"malleable=grace=5s+stalled={stalled}"
    job_id = server.train(*ASKED, "-l", malleable, program=HANGS)
    until(lambda: len(steps(server, job_id)) > 10)
    server.resize(job_id, "2")
    until(lambda: "the program hangs" in server.pliant("history", number(job_id)))
    until(lambda: len(starts(server, job_id)) == runs)
    if stalled == "leave":
        assert "it is left as it is" in server.pliant("history", number(job_id))
        return
    assert starts(server, job_id) == ["4", "4"]
    server.enough(job_id)
    assert ends(server, job_id) == 0
