"""`pliant report`: what is asked, what is printed, and the page that it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from test_cli_daemon import FakeDaemon, daemon, pliant

from pliant.cli.report_page import page, pictures
from pliant.cli.report_words import sentences
from pliant.cli.seconds import span_s
from pliant.daemon.reporting import ReportAnswer
from pliant.errors import BadInput
from pliant.pages.drawn import Rect, drawn
from pliant.store import (
    JobSums,
    PartitionReport,
    Refusal,
    Report,
    Resizes,
    Tally,
    Waits,
)
from pliant.wire import Message

__all__ = ["daemon"]  # a fixture

NOW_S = 1_795_600_800.0
HOSTILE = "<script>alert(1)</script>\u202e&\x1b[31m"
SUMS = JobSums(
    jobs=512, waiting=12, running=31, ended=469, failed=9, started=500, smaller=120, larger=12,
    expected=80, sooner_s=200_000.0, later_s=4000.0, would=40, would_sooner_s=43_200.0,
    gpu_s=4.32e6, fewer_gpu_s=3.6e5, more_gpu_s=3600.0,
)  # fmt: skip
COUNTED = Tally(
    answered=269, unanswered=132, refused=3, starts=500, molded=132, updates=45, failures=1,
    flagged_gpu_s=3.6e6, other_gpu_s=3.6e6, idle_gpu_s=1.44e6, avoidable_gpu_s=3.6e5,
)  # fmt: skip
TOTAL = PartitionReport("", SUMS, Waits(368, 2400.0, 780.0), Waits(132, 300.0, 20.0), COUNTED)
FOUND = Report(
    NOW_S - 86_400.0,
    NOW_S,
    NOW_S - 7200.0,
    TOTAL,
    (replace(TOTAL, partition="gpu", mode="enforce"),),
    (Resizes("gpu", "policy", "done", 14, 36_000.0, 400.0), Resizes("gpu", "owner", "no", 2, 0, 0)),
    (Refusal(HOSTILE, 14),),
    3600.0,
    (replace(COUNTED, hour_s=NOW_S - 7200.0), Tally(NOW_S - 3600.0, idle_gpu_s=3600.0)),
)
ANSWER = ReportAnswer("alpha", "ctl", "0.2.0", "moldable-equipartition", False, FOUND)
SAID = [
    "512 jobs with Pliant's options: 12 waiting, 31 running, 469 ended (9 of them not COMPLETED)",
    "132 of 500 that started did so in another shape than their own: 120 smaller, 12 larger",
    "these waited 5 min on average (median 20 s), the others 40 min on average (median 13 min)",
    "of 80 that were changed while they waited it was known when they would start otherwise: "
    "they started 2 d 6 h sooner in all (2 d 7 h sooner, 67 min later)",
    "where Pliant only observes 40 jobs would have started in another shape, 18 min sooner on "
    "average",
    "their runs took 1200 GPU-h: 100 GPU-h fewer and 1 GPU-h more than their own shapes would have "
    "held meanwhile",
    "of 2500 GPU-h of all GPUs 500 GPU-h stood idle, 100 GPU-h of it although a waiting job could "
    "have had it",
    "14 of 16 changes of running jobs were done; they cost 10 GPU-h",
    "submissions: 269 answered, 132 unanswered (32.9 %), 3 refused; changes of waiting jobs: 45, "
    "1 refused",
]


class Seen(HTMLParser):
    """What a page holds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_last_day_is_told_in_sentences_and_tables(
    daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["report"] = ANSWER
    assert pliant("report") == 0
    assert daemon.asked == [Message("report", {"since": "86400"})]
    head, blank, *rest = capsys.readouterr().out.splitlines()
    assert head.startswith("cluster alpha, 2026-11-2")
    assert head.endswith("; pliantd 0.2.0 on ctl, policy moldable-equipartition")
    assert "(24 h, history since 2026-11-2" in head and blank == ""
    assert rest[: len(SAID)] == SAID
    assert [" ".join(line.split()) for line in rest[len(SAID) :]] == [
        "",
        "PARTITION MODE JOBS STARTED MOLDED WOULD WAIT MOLDED WAIT GPU-H AVOIDABLE UNANSWERED",
        "gpu enforce 512 500 132 40 40 min 5 min 1200 100 132",
        "",
        "changes of running jobs:",
        "PARTITION FOR CHANGES GPU-H LOST CAME OF IT",
        "gpu policy 14 10 done",
        "gpu owner 2 0 no",
        "",
        "changes of waiting jobs that were refused:",
        "TIMES IN THE WORDS OF THE BATCH SYSTEM",
        "14 <script>alert(1)</script>?&?[31m",
    ]


def test_json_is_the_answer_itself(daemon: FakeDaemon, capsys: pytest.CaptureFixture[str]) -> None:
    daemon.answers["report"] = ANSWER
    assert pliant("report", "--since", "2w", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"]["total"]["sums"]["jobs"] == 512
    assert daemon.asked[0].fields == {"since": "1209600"}


def test_the_page_shows_results_and_pictures_first(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.answers["report"] = ANSWER
    file = tmp_path / "report.html"
    assert pliant("report", "--html", str(file)) == 0
    assert file.stat().st_mode & 0o777 == 0o600
    seen = Seen(file.read_text())
    tags = [tag for tag, _ in seen.tags]
    assert tags.index("svg") < tags.index("table")
    assert sum(tag == "figure" for tag in tags) == 3 + 1
    made = f"Made by pliant report --html {file}"
    for words in ("Pliant on alpha", "pliantd 0.2.0 on ctl", "Cluster alpha, 2026", made, *SAID):
        assert words in seen.text
    assert ("li", {"class": "bad"}) in seen.tags  # submissions without an answer
    assert "132 ✗ badsubmissions without an answer" in seen.text
    assert "<script>alert(1)</script>?&?[31m" in seen.text


def test_bars_lie_within_their_picture_and_are_as_high_as_their_part() -> None:
    gpu, starts, submissions = map(drawn, pictures(FOUND))
    for picture in (gpu, starts, submissions):
        for bar in picture.panels[0].shapes:
            assert isinstance(bar, Rect)
            assert 0 <= bar.x < bar.x + bar.width <= 100
            assert -1e-9 <= bar.y < bar.y + bar.height <= 100 + 1e-9
    bars = [bar for bar in gpu.panels[0].shapes if isinstance(bar, Rect)]
    heights = {bar.kind: bar.height for bar in bars if bar.x == bars[0].x}
    assert heights == pytest.approx({"flagged": 40, "other": 40, "avoidable": 4, "idle": 16})
    assert [kind for kind, _ in submissions.legend] == ["flagged", "worse", "avoidable"]


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        ({}, {"sooner than expected, in all": "better", "submissions without an answer": "bad"}),
        ({"sooner_s": 0.0}, {"later than expected, in all": "worse"}),
    ],
)
def test_what_is_worse_is_marked(changed: dict[str, float], kinds: dict[str, str]) -> None:
    sums = replace(SUMS, **changed)  # type: ignore[arg-type]  # numbers of seconds
    found = replace(FOUND, total=replace(TOTAL, sums=sums))
    told = {one.short: one.kind for one in sentences(found)}
    assert {short: told[short] for short in kinds} == kinds


def test_nothing_is_a_report_and_a_page_too() -> None:
    found = Report(0.0, 86_400.0, 0.0, PartitionReport(""))
    assert next(one.text for one in sentences(found)).startswith("0 jobs")
    assert [part.title for part in page(replace(ANSWER, report=found)).parts] == ["In words"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90m", 5400), ("12h", 43_200), ("1d", 86_400), ("30days", 2_592_000), ("2w", 1_209_600)],
)
def test_how_far_back_is_read(text: str, seconds: int) -> None:
    assert span_s("--since", text) == seconds


@pytest.mark.parametrize("text", ["", "0d", "1", "d", "-1d", "1y", "99999d", "1d\n", "١d"])
def test_what_is_no_time_is_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"^--since: '.*': a time like 90m, 12h, 1d or 2w, "):
        span_s("--since", text)


def test_a_page_that_cannot_be_written_is_told_before_anybody_is_asked(
    daemon: FakeDaemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pliant("report", "--html", str(tmp_path / "none" / "x")) == 2
    assert "its directory is not there" in capsys.readouterr().err
    assert daemon.asked == []
