"""The table of what was tested on which release of Slurm."""

from __future__ import annotations

from benchmarks.releases import Case, document, read

CLUSTER = """<testsuites><testsuite>
<testcase classname="tests.docker.test_hosts" name="test_a_job_runs" time="1.0"/>
<testcase classname="tests.docker.test_hosts" name="test_a_job_waits[x|y]"><failure message="no"/></testcase>
</testsuite></testsuites>"""
HERE = """<testsuites><testsuite>
<testcase classname="tests.slurm.test_releases_differ" name="test_an_update[gres=gpu:0]"/>
<testcase classname="tests.slurm.test_molding" name="test_molded"/>
<testcase classname="tests.slurm.test_molding" name="test_left"/>
</testsuite></testsuites>"""
RUNS = Case("docker", "test_hosts", "test_a_job_runs")


def test_the_report_of_a_run_is_read() -> None:
    waits = Case("docker", "test_hosts", "test_a_job_waits[x|y]")
    assert read(CLUSTER) == {RUNS: "passed", waits: "failure"}


def test_differences_failures_and_the_clusters_tests_are_rows_and_each_release_a_column() -> None:
    left = {Case("slurm", "test_molding", "test_left"): "skipped"}
    text = document(
        {"bookworm": read(HERE) | read(CLUSTER), "forky": read(HERE) | left | {RUNS: "passed"}}
    )
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert table == [
        "|  | Slurm 22.05 (bookworm) | Slurm 26.05 (forky) |",
        "| --- | --- | --- |",
        "| `tests/slurm` | 3 of 3 passed | 2 of 3 passed |",
        "| an update: gres=gpu:0 | passed | passed |",
        "| left | passed | skipped |",
        "| `tests/docker` | 1 of 2 passed | 1 of 1 passed |",
        "| a job runs | passed | passed |",
        "| a job waits: x\\|y | failure | – |",
    ]
