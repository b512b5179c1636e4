"""The table of what was tested on which release of Slurm."""

from __future__ import annotations

from benchmarks.releases import document, read

REPORT = """<testsuites><testsuite>
<testcase name="test_a_job_runs" time="1.0"/>
<testcase name="test_a_job_waits[x|y]"><failure message="no"/></testcase>
</testsuite></testsuites>"""


def test_the_report_of_a_run_is_read() -> None:
    assert read(REPORT) == {"test_a_job_runs": "passed", "test_a_job_waits[x|y]": "failure"}


def test_each_test_is_a_row_and_each_release_a_column() -> None:
    text = document({"bookworm": read(REPORT), "forky": {"test_a_job_runs": "passed"}})
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table == [
        "|  | Slurm 22.05 (bookworm) | Slurm 26.05 (forky) |",
        "| --- | --- | --- |",
        "| all | 1 of 2 passed | 1 of 1 passed |",
        "| a job runs | passed | passed |",
        "| a job waits[x\\|y] | failure | – |",
    ]
