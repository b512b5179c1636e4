"""`pliant whatif`, and the reports of the other commands: what they print, write and refuse."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from docs_helpers import Terminal
from pliant.batch.slurm import Commands
from pliant.batch.slurm.accounting import history, instant
from pliant.cli import main
from pliant.cli.month import as_live
from pliant.errors import BadInput, Unavailable
from pliant.simulator.report import plots
from pliant.simulator.runs import Choice

TOP = Path(__file__).parents[2]
MONTH = str(TOP / "docs" / "examples" / "month.txt")
CLUSTER = ("--nodes", "2", "--gpus-per-node", "8", "--cpus-per-node", "64", "--processes", "1")
ASSETS = TOP / "tests" / "assets" / "slurm-22.05"

FAKE = """#!/bin/sh
echo "$(basename "$0") $* TZ=$TZ $SLURM_TIME_FORMAT" >>{log}
case "$(basename "$0") $*" in
    sacct*now-9days*) echo "sacct: error: Slurm accounting storage is disabled" >&2; exit 1 ;;
    sacct*now-8days*) head -n 1 {assets}/sacct.txt ;;
    sacct*) cat {assets}/sacct.txt ;;
    *node) cat {assets}/nodes.txt ;;
    *partition) cat {assets}/partitions.txt ;;
    *config) cat {assets}/config.txt ;;
    *) exit 1 ;;
esac
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sacct and a scontrol that print what was recorded, and note how they were called."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    for name in ("sacct", "scontrol"):
        (folder / name).write_text(FAKE.format(log=log, assets=ASSETS))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return log


def pliant(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = pliant(*words)
    said, error = capsys.readouterr()
    assert (code, error) == (0, "")
    return said


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_sites_own_sacct_is_replayed_on_its_own_cluster(
    slurm: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved.txt"
    words = ("whatif", "--since", "7days", "--processes", "1")
    found = printed(capsys, *words, "--save", str(saved))
    assert "Cluster: 4 nodes with 4 GPUs and 16 CPUs each, as it is today" in found
    assert "Cluster: slc, 4 nodes with 4 GPUs and 16 CPUs each\n" in found
    assert "Agreement: jobs waited" in found
    assert (saved.read_bytes(), mode(saved)) == ((ASSETS / "sacct.txt").read_bytes(), 0o600)
    asked = [line for line in slurm.read_text().splitlines() if line.startswith("sacct")]
    assert asked == [
        "sacct --allusers --parsable2 --duplicates --starttime=now-7days --endtime=now"
        " --format=JobID,User,Submit,Start,End,State,TimelimitRaw,AllocTRES,Account,Partition"
        " TZ=UTC %s"
    ]
    again = printed(capsys, "whatif", "--trace", str(saved), "--processes", "1")
    assert again == found
    assert len(slurm.read_text().splitlines()) == len(asked) + 6  # scontrol alone, twice


def test_a_month_is_a_table_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "whatif", "--trace", MONTH, *CLUSTER, "--json"))
    assert found["seen"]["jobs"] == 120
    assert found["figures"][0]["figure"] == "flow time, mean (s)"
    assert found["figures"][0]["replays"][1]["policy"] == "moldable-equipartition"
    assert len(found["users"][0]["changes"]) == 6
    jobs = found["jobs"][0]
    assert jobs["better"] + jobs["worse"] + jobs["same"] == 120
    assert jobs["best"][0].keys() == {"job", "user", "before_s", "after_s"}
    assert found["fit"]["wait_s"] > 0
    assert any(words.startswith("Moldable: ") for words in found["assumptions"])


def test_a_report_is_one_file_for_its_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html, drawn, out = tmp_path / "report.html", tmp_path / "plots", tmp_path / "out.txt"
    words = ("whatif", "--trace", MONTH, *CLUSTER, "--html", str(html), "--plots", str(drawn))
    assert printed(capsys, *words, "--out", str(out)) == ""
    assert [mode(path) for path in (html, out)] == [0o600, 0o600]
    names = sorted(path.name for path in drawn.iterdir())
    assert names == ["flow-time.png", "gpus-held.png", "slowdown.png", "users-1.png"]
    assert {mode(path) for path in drawn.iterdir()} == {0o600}
    text = html.read_text()
    assert text.count("<figure>") == 4
    assert "Agreement: jobs waited" in text
    assert f"Made by <code>pliant whatif --trace {MONTH} --nodes 2" in text
    assert "Cluster: 2 nodes with 8 GPUs and 64 CPUs each" in text
    assert re.search(r'class="number better">\d+ h \d+ min<span class="more">-\d+.\d % <span', text)
    assert "jobs fare worse under moldable-equipartition, " in text
    assert "Agreement: jobs waited" in out.read_text()


def test_a_page_needs_no_matplotlib_and_plots_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    html = tmp_path / "report.html"
    printed(capsys, "whatif", "--trace", MONTH, *CLUSTER, "--html", str(html))
    assert html.read_text().count("<figure>") == 4
    assert pliant("whatif", "--trace", MONTH, *CLUSTER, "--plots", str(tmp_path / "x")) == 2
    assert capsys.readouterr().err == (
        "pliant: plots need matplotlib: pip install 'pliant[plots]' (Debian: python3-matplotlib)\n"
    )


def test_policies_that_are_compared_make_a_report_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html, drawn = tmp_path / "report.html", tmp_path / "plots"
    words = ("compare", "torque", "rsa", "--workload", "ravi", "--jobs", "6", "--seeds", "2")
    printed(capsys, *words, "--processes", "1", "--html", str(html), "--plots", str(drawn))
    text = html.read_text()
    assert "and 1 more draws of it</p>" in text
    assert " ± " in text
    assert re.findall(r"<h2 [^>]*>(.*?)</h2>", text)[:3] == [
        "In pictures, of the first draw",
        "Figures",
        "For whom, of the first draw",
    ]
    assert len([*drawn.iterdir()]) == text.count("<figure>") == 4


def test_policies_are_as_pliantd_has_them() -> None:
    found = as_live(Choice("malleable-equipartition"))
    assert found == Choice("malleable-equipartition", (("pays", True),))
    own = Choice("malleable-equipartition", (("pays", False),))
    assert as_live(own) == Choice("malleable-equipartition")
    assert as_live(Choice("rigid-fcfs")) == Choice("rigid-fcfs")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30days", "now-30days"),
        ("12hours", "now-12hours"),
        ("7", "now-7days"),
        ("now", "now"),
        ("2026-10-01", "2026-10-01"),
        ("2026-10-01T08:30", "2026-10-01T08:30"),
    ],
)
def test_a_time_is_as_sacct_takes_it(text: str, expected: str) -> None:
    assert instant("--since", text) == expected


@pytest.mark.parametrize("text", ["", "0days", "-1days", "30 days", "yesterday", "now-1$(id)"])
def test_another_time_is_refused(text: str) -> None:
    with pytest.raises(
        BadInput, match=r"^--since: '.*': 30days, 12hours or 2026-10-01 is expected"
    ):
        instant("--since", text)


def test_what_sacct_says_is_passed_on(slurm: Path) -> None:
    with pytest.raises(
        Unavailable, match=r"^sacct: Slurm accounting storage is disabled; --trace FILE"
    ):
        history(Commands(), "JobID", "now-9days")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope",), "pliant: policy: 'nope': one of moldable-equipartition, "),
        (("easy-backfill",), "pliant: easy-backfill: it is what the others are compared with"),
        (("fifo", "fifo"), "pliant: fifo stands twice\n"),
        (("--since", "soon"), "pliant: --since: 'soon': 30days, 12hours or 2026-10-01 is exp"),
        (("--since", "9days"), "pliant: sacct: Slurm accounting storage is disabled; --trace FI"),
        (("--since", "8days"), "pliant: sacct: no job that has ended since 8days\n"),
        (("--speedup", "x"), "pliant: --speedup: 'x': power:0.8, amdahl:0.95 or linear, say"),
        (("--malleable", "grace=2m"), "pliant: --malleable: 'grace=2m': max-resizes=N, min-run"),
        (("--users", ","), "pliant: --users: ',': names such as alice,bob are expected\n"),
        (("--shrink", "0"), "pliant: Invalid value for '--shrink'"),
        (("--restart", "nan"), "pliant: Invalid value for '--restart': nan is not in the range "),
        (("--gpus-per-node", "8"), "pliant: --gpus-per-node and --cpus-per-node go with --nodes"),
        (("--nodes", "8"), "pliant: --nodes goes with --gpus-per-node or --cpus-per-node, or b"),
        (("--trace", "/nonexistent"), "pliant: /nonexistent: No such file or directory\n"),
        (
            ("--trace", "x", "--since", "30days"),
            "pliant: --since is for sacct: it does not go with",
        ),
        (("--trace", "x", "--until", "now"), "pliant: --until is for sacct: it does not go with"),
        (("--users", "alice,nobody"), "pliant: --users: 'alice': no job of this user's has run\n"),
        (("--trace", "x", "--save", "y"), "pliant: --save keeps what sacct prints now: it does"),
        (("--save", "/nonexistent/y"), "pliant: --save: '/nonexistent/y': its directory is not"),
        (("--trace", "x", "--format", "swf"), "pliant: --format: 'swf': sacct or sacct-json is"),
        (("--html", "/nonexistent/y"), "pliant: --html: '/nonexistent/y': its directory is not"),
        (("--html", "/tmp"), "pliant: --html: '/tmp': a file is expected, not a directory\n"),
        (("--plots", "/nonexistent/y/z"), "pliant: --plots: '/nonexistent/y/z': a directory, or"),
        (("--out", "/nonexistent/y"), "pliant: --out: '/nonexistent/y': its directory is not"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: tuple[str, ...], message: str, slurm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("whatif", *words) == 2
    said, error = capsys.readouterr()
    assert said == ""
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_trace_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.swf"
    path.write_text("; MaxProcs: 4\n")
    assert pliant("whatif", "--trace", str(path), *CLUSTER) == 2
    assert capsys.readouterr().err == (
        f"pliant: {path}: it is no output of sacct's: pliant compare replays other traces\n"
    )


def test_a_line_that_cannot_be_right_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.txt"
    path.write_text(Path(MONTH).read_text()[:-90])
    assert pliant("whatif", "--trace", str(path), *CLUSTER) == 2
    assert f"pliant: {path}, line 121: " in capsys.readouterr().err


def test_without_a_slurm_the_cluster_must_be_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pliant("whatif", "--trace", MONTH) == 2
    error = capsys.readouterr().err
    assert error.startswith("pliant: scontrol: No such file or directory; are Slurm's client comm")
    assert error.endswith("; --nodes N --gpus-per-node G says which cluster\n")


def test_what_the_page_shows_of_a_month_is_what_is_printed() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = Terminal(env={**os.environ, "PATH": path})
    try:
        terminal.types(
            "docs/simulator.md",
            "pliant whatif malleable-equipartition --trace docs/examples/month.txt --nodes 2"
            " --gpus-per-node 8 --cpus-per-node 64",
        )
    finally:
        terminal.close()


def test_nothing_of_it_is_in_the_daemon() -> None:
    said = "import sys; from pliant.daemon import main\n"
    said += "print([n for n in sys.modules if n.startswith(('pliant.simulator', 'matplotlib'))])"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_time_that_no_calendar_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|User|Submit|Start|End|State|TimelimitRaw|AllocTRES\n"
        "7|ann|100|200|253402300900|COMPLETED|60|cpu=4,gres/gpu=1\n"
    )
    assert pliant("whatif", "--trace", str(path), *CLUSTER) == 2
    assert capsys.readouterr().err == (
        "pliant: job '7': it ended after the year 9999: its times are wrong\n"
    )
