"""`pliant simulate` and `pliant compare`: what they print, and what they refuse."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs_helpers import Terminal
from pliant import policies
from pliant.cli import main
from pliant.cli.simulating import named, print_outcome
from pliant.errors import BadInput
from pliant.simulator.runs import Outcome, run_case
from pliant.simulator.sources import SOURCES
from pliant.simulator.tally import Tally

LINES = [
    f"{number} {submit} -1 {run} {width} -1 -1 {width} -1 -1 1 {user} 1 1 1 -1 -1 -1"
    for number, submit, run, width, user in (
        (1, 0, 100, 3, 1),
        (2, 10, 50, 2, 2),
        (3, 20, 30, 1, 1),
    )
]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.swf"
    path.write_text("\n".join(["; MaxProcs: 4", *LINES, ""]))
    return str(path)


def pliant(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert pliant(*words) == 0
    return capsys.readouterr().out


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    return json.loads(printed(capsys, *words, "--json"))


def test_a_replay_is_one_table(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("simulate", "--trace", trace, "--policy", "rigid-fcfs", "--with", "shape=own")
    assert printed(capsys, *words) == (
        f"{trace} on 4 processors, policy rigid-fcfs:shape=own\n"
        "jobs ended      3\n"
        "users, bags     2, 2\n"
        "makespan        150 s\n"
        "utilisation     71.7 % of 4 GPUs\n"
        "idle GPU time   170 GPU s (28.3 %)\n"
        "avoidably idle  80 GPU s (13.3 %)\n"
        "lost GPU time   0 GPU s (0.0 %)\n"
        "preemptions     0, of 0 jobs\n"
        "restarts        0\n"
        "worst-off user  2: mean slowdown 2.8 (jobs: 1)\n"
        "\n"
        "FIGURE                MEAN  MEDIAN    P95    P99    MAX\n"
        "flow time (s)        116.7     110    140    140    140\n"
        "stretch                1.8     1.4  3.667  3.667  3.667\n"
        "slowdown             2.489     2.8  3.667  3.667  3.667\n"
        "wait (s)             56.67      80     90     90     90\n"
        "bag's flow time (s)    135     130    140    140    140\n"
        "bag's stretch        0.897  0.3939    1.4    1.4    1.4\n"
    )
    assert printed(capsys, *words) == printed(capsys, *words)


def test_options_of_a_policy_stand_after_its_name_or_with_it(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("simulate", "--trace", trace, "--policy", "rigid-fcfs:shape=own,overtaking=true")
    other = (*one[:-1], "rigid-fcfs", "--with", "shape=own", "--with", "overtaking=true")
    found = answered(capsys, *one)
    assert found == answered(capsys, *other)
    assert found["policy"] == "rigid-fcfs:shape=own,overtaking=true"
    assert found["figures"]["avoidable_gpu_s"] == 0
    assert found["choices"]


def test_a_result_may_go_into_a_file(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result.json"
    words = ("simulate", "--trace", trace, "--json", "--jobs", "2")
    assert printed(capsys, *words, "--out", str(out)) == ""
    assert out.read_text() == printed(capsys, *words)
    assert json.loads(out.read_text())["figures"]["tasks"]["tasks"] == 2


def test_idle_time_is_left_out_where_that_is_asked(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = printed(capsys, "simulate", "--trace", trace, "--no-idle")
    assert "avoidably" not in found


def test_what_never_starts_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    figures = Tally().figures(gpus=4, never=2, example="7")
    print_outcome("fifo", Outcome("a workload", (), figures))
    assert capsys.readouterr().out == (
        "a workload, policy fifo\njobs ended     0\nnever started  2, job 7 for one\n"
    )


def test_policies_are_compared_with_the_first(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    strict, listing = "rigid-fcfs:shape=own", "rigid-fcfs:shape=own,overtaking=true"
    found = printed(capsys, "compare", strict, listing, "--trace", trace, "--processes", "1")
    lines = [line.split() for line in found.splitlines()]
    assert ["FIGURE", "POLICY", "MEAN", "CHANGE"] in lines
    assert ["flow", "time,", "mean", "(s)", strict, "116.7"] in lines
    assert ["flow", "time,", "mean", "(s)", listing, "90", "-22.9", "%"] in lines
    assert found.endswith(f"worst hit by {listing}: user 2, flow time x 1.00\n")


def test_seeds_give_confidence(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("compare", "torque", "rsa", "--workload", "ravi", "--jobs", "6", "--seeds", "3")
    found = answered(capsys, *words, "--processes", "1")
    assert answered(capsys, *words, "--processes", "2") == found
    flow = [row for row in found["figures"] if row["figure"] == "flow time, mean (s)"]
    assert [len(row["values"]) for row in flow] == [3, 3]
    assert flow[0]["change"] is None
    assert flow[1]["change"]["within"] > 0
    assert printed(capsys, *words).count("±") >= 2


def test_what_there_is_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("simulate", "compare"):
        found = printed(capsys, command, "--list-policies")
        assert [line.split()[0] for line in found.splitlines()[1:]] == [*policies.names()]
        found = printed(capsys, command, "--list-workloads")
        assert [line.split()[0] for line in found.splitlines()[1:]] == [*SOURCES]
        found = json.loads(printed(capsys, command, "--list-policies", "--json"))
        assert [row["name"] for row in found] == [*policies.names()]
        assert found[0]["options"] == policies.options(found[0]["name"])


LOAD = "pliant: workload ravi-multi: load"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate",), "pliant: --trace FILE or --workload NAME is missing; --list-workloads "),
        (("simulate", "--policy", "x"), "pliant: policy: 'x': one of moldable-equipartition, "),
        (("simulate", "--policy", "fifo:s=1"), "pliant: policy fifo: option 's': one of shape "),
        (("simulate", "--policy", "fifo:s"), "pliant: 'fifo:s': NAME:OPTION=VALUE,..., each o"),
        (("simulate", "--policy", "fifo:shape=own,shape=best"), "pliant: 'fifo:shape=own,shape=be"),
        (
            ("simulate", "--policy", "fifo:shape=own", "--with", "shape=best"),
            "pliant: --with: shape: --policy says it too: one of them is expected\n",
        ),
        (
            ("simulate", "--with", "votes=equal", "--with", "votes=largest"),
            "pliant: --with: 'votes=largest': votes is given twice: one is expected\n",
        ),
        (("simulate", "--with", "votes=x"), "pliant: policy moldable-equipartition: votes: 'x': "),
        (("simulate", "--workload", "x"), "pliant: workload: 'x': one of trace, hpc2n, "),
        (("simulate", "--workload", "hpc2n"), "pliant: workload hpc2n reads a trace: --trace "),
        (("simulate", "--workload", "seo", "--seed", "2"), "pliant: --seed: workload seo draws "),
        (("simulate", "--workload", "seo", "--jobs", "0"), "pliant: Invalid value for '--jobs'"),
        *(
            (("simulate", "--workload", f"ravi-multi:load={load}"), f"{LOAD}: {load}: a number fro")
            for load in ("0", "1e-320", "1e+300")
        ),
        (("simulate", "--workload", "seo:launch_s=1e+308"), "pliant: workload seo: launch_s: 1e+"),
        (("simulate", "--workload", "seo:save_s=NaN"), "pliant: workload seo: save_s: nan: 0, or "),
        (
            ("simulate", "--workload", "seo", "--out", "/nonexistent/x"),
            "pliant: --out: '/nonexistent/x': its directory is not there\n",
        ),
        (
            ("simulate", "--trace", "x", "--workload", "trace:least=9"),
            "pliant: workload trace: least=9: most=N is missing beside it\n",
        ),
        (
            ("simulate", "--trace", "x", "--workload", "trace:least=9,most=4"),
            "pliant: workload trace: least=9: 1 to 4 is expected\n",
        ),
        (("compare", "--workload", "seo"), "pliant: a policy at least is expected; --list-pol"),
        (("compare", "fifo", "nope", "--workload", "seo"), "pliant: policy: 'nope': one of "),
        (("compare", "fifo", "fifo", "--workload", "seo"), "pliant: fifo stands twice\n"),
        (("compare", "fifo", "--workload", "seo", "--seeds", "2"), "pliant: --seeds: workload se"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant(*words) == 2
    said, error = capsys.readouterr()
    assert said == ""
    assert error.startswith(message)
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", [("simulate",), ("compare", "fifo", "--processes", "2")])
def test_a_line_that_cannot_be_right_is_named(
    command: tuple[str, ...], trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path(trace).open("a") as file:
        file.write("4 5 cut off\n")
    assert pliant(*command, "--trace", trace) == 2
    assert capsys.readouterr().err == f"pliant: {trace}, line 5: 4 fields: 18 are expected\n"


def test_a_name_with_options_is_read() -> None:
    assert named("a") == ("a", {})
    assert named("a:b=1,c-d=true,e=x y") == ("a", {"b": 1, "c_d": True, "e": "x y"})
    with pytest.raises(BadInput):
        named("a:")


def test_the_simulator_is_imported_where_it_is_used_alone() -> None:
    said = (
        "import sys; from pliant.cli import cli; cli.get_help(__import__('click').Context(cli))\n"
    )
    said += "print([name for name in sys.modules if name in ('pliant.simulator.replay', 'scipy')])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_the_page_shows_is_what_is_printed() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = Terminal(env={**os.environ, "PATH": path})
    try:
        terminal.types(
            "docs/simulator.md", "pliant simulate --workload fujiwara --jobs 1000 --processors 8"
        )
        terminal.types(
            "docs/simulator.md", "pliant compare torque mct rsa --workload ravi --seeds 10"
        )
        terminal.types(
            "docs/simulator.md",
            "pliant compare rigid-fcfs:shape=own moldable-equipartition"
            " --workload fujiwara --jobs 300 --processors 12",
        )
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("other", "option"),
    [("--trace", "--out"), ("--trace", "--html"), ("--out", "--html")],
)
def test_a_file_is_not_written_over_another_of_the_same_command(
    other: str, option: str, trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(trace).read_bytes()
    link = tmp_path / "link"
    link.symlink_to(trace if other == "--trace" else tmp_path / "new")
    words = {"--trace": trace, other: trace if other == "--trace" else str(tmp_path / "new")}
    words[option] = str(link)
    command = ("compare", "fifo", *(word for pair in words.items() for word in pair))
    assert pliant(*command) == 2
    said = capsys.readouterr().err
    assert said.startswith("pliant: --") and "it is the file of --" in said
    assert said.count("\n") == 1
    assert Path(trace).read_bytes() == before
    assert not (tmp_path / "new").exists()


def test_a_full_stdout_is_said_in_one_line(
    trace: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert pliant("simulate", "--trace", trace) == 2
    assert capsys.readouterr().err == (
        "pliant: stdout: No space left on device: not all could be printed\n"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulate", "--workload", "seo"), "pliant: stdout is closed: --out FILE is expected\n"),
        (("simulate", "--list-policies"), "pliant: stdout is closed: nothing can be printed\n"),
    ],
)
def test_a_closed_stdout_is_said_in_one_line(
    words: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert pliant(*words) == 2
    assert capsys.readouterr().err == said


def test_what_a_solver_prints_is_kept_from_the_answer(
    trace: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def noisy(*of: Any) -> Outcome:
        libc = ctypes.CDLL(None)
        libc.puts(b"WARNING: from C")  # into a pipe C holds it back, until the process ends
        return run_case(*of)

    monkeypatch.setattr("pliant.cli.simulating.run_case", noisy)
    monkeypatch.setattr("pliant.cli.comparing.run_case", noisy)
    for command in (("simulate",), ("compare", "fifo", "--processes", "1")):
        assert pliant(*command, "--trace", trace, "--json") == 0
        told = capfd.readouterr()
        assert json.loads(told.out)
        assert told.err == "WARNING: from C\n"
