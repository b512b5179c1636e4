"""Jobs that may be resized or preempted are jobs that Slurm requeues, whatever the site's default."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking_helpers import wait_for_look
from daemon_helpers import configured, slurm_says
from lua_helpers import close_breaker, job_submit_lua, run_asked, with_pliant
from slurm_helpers import Submit, adapter

from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

ALICE = "pliant-alice"
Show = Callable[[int | str], dict[str, str]]

FLAGS = {
    "": "0",
    "--requeue": "1",
    "--moldable=gpus=1-2": "0",
    "--class=trial --time=5": "0",
    "--malleable": "1",
    "--class=best-effort": "1",
    "--comment=pliant:malleable": "1",
    "--moldable=gpus=1-2 --gres=gpu:1 --malleable": "1",
    "--malleable --requeue": "1",
    "--malleable --no-requeue": "0",
}


def sbatch(sandbox: Sandbox, *options: str) -> tuple[int, str]:
    """Submit a held job that pliantd was asked about; return its number and what was said."""
    argv = ["sbatch", "--parsable", "--hold", "--output=/dev/null", *options, "--wrap=true"]
    done = run_asked(sandbox, argv, ALICE)
    assert done.returncode == 0, done.stderr
    return int(done.stdout), done.stderr


def test_with_the_flag_a_job_may_be_requeued_where_the_site_says_no_and_others_are_as_before(
    clean: Sandbox, show: Show
) -> None:
    with slurm_says(clean, "JobRequeue=0"):
        wait_for_look(clean)
        close_breaker(clean)
        jobs = {flags: sbatch(clean, *flags.split())[0] for flags in FLAGS}
        assert {flags: show(job)["Requeue"] for flags, job in jobs.items()} == FLAGS
        seen = {job.id: job for job in adapter(clean).observe().waiting}
        assert {flags: seen[str(job)].requeues for flags, job in jobs.items()} == {
            flags: requeue == "1" for flags, requeue in FLAGS.items()
        }


def test_who_wrote_no_requeue_is_told_and_left_alone(clean: Sandbox, show: Show) -> None:
    wait_for_look(clean)
    close_breaker(clean)
    job, says = sbatch(clean, "--malleable", "--class=best-effort", "--no-requeue")
    assert "pliant: --no-requeue: the job is neither resized nor preempted" in says
    assert show(job)["Requeue"] == "0"


def test_where_pliant_only_observes_the_sites_default_holds(clean: Sandbox, show: Show) -> None:
    with slurm_says(clean, "JobRequeue=0"), configured(clean, default='"observe"'):
        close_breaker(clean)
        job, says = sbatch(clean, "--malleable")
        assert (show(job)["Requeue"], says) == ("0", "")


def test_jobs_that_slurm_never_requeues_are_seen_to_be(clean: Sandbox, submit: Submit) -> None:
    plain = submit("--malleable", "--hold")
    argv = ["salloc", "--no-shell", "--malleable", "--gres=gpu:1", "--time=5"]
    done = run_asked(clean, argv, ALICE)
    assert "only jobs of sbatch can be requeued: this one is not resized" in done.stderr
    seen = adapter(clean).observe()
    assert {job.id: job.requeues for job in seen.waiting} == {str(plain): True}
    assert [job.requeues for job in seen.running] == [False]


def test_what_job_submit_lua_says_of_requeue_and_of_whose_the_job_is(clean: Sandbox) -> None:
    tell = 'slurm.log_user("%s %s", tostring(job_desc.requeue), tostring(job_desc.user_name))'
    with job_submit_lua(clean, with_pliant(clean, submit=tell)):
        said = []
        for option in ("--time=1", "--requeue", "--no-requeue"):
            argv = ["sbatch", "--parsable", "--hold", option, "--output=/dev/null", "--wrap=true"]
            said.append(clean.run(argv, user=ALICE, check=True).stderr.split()[-2:])
    assert said == [["65534", ALICE], ["1", ALICE], ["0", ALICE]]
