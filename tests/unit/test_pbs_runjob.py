"""The runjob hook for PBS: who starts behind a fence, and who does not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from pbs_site import Site

from pbs_double import Job
from pliant.filter.pbs.fences import LONGEST_S, Fence, fences_text
from pliant.filter.pbs.state import MAX_AGE_S


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def starts(site: Site, fences: str, queue: str = "workq", **event: Any) -> tuple[str, str]:
    """What comes of a start on gn1 and on its first GPU."""
    path = site.state.with_name("pbs_fences.json")
    path.unlink(missing_ok=True)
    path.write_text(fences)
    path.chmod(0o644)
    site.options["fences"] = str(path)
    exec_vnode = "(gn1:ncpus=2+gn1-gpu0:ngpus=1)"
    job = Job("runjob", exec_vnode=exec_vnode, queue=queue, id=event.pop("job_id", "7.head"))
    return site.seen("runjob", job, **{"requestor": "Scheduler", **event}).verdict


def fence(vnode: str = "gn1", lets: str = "12", for_s: float = 60.0) -> str:
    return fences_text([Fence("12", time.time() + for_s, (vnode,), (lets,), ("workq",))])


@pytest.mark.parametrize("vnode", ["gn1", "gn1-gpu0"])
def test_the_scheduler_starts_nobody_else_behind_a_fence(site: Site, vnode: str) -> None:
    words = f"pliant: {vnode} is kept for job 12 for a moment"
    assert starts(site, fence(vnode)) == ("reject", words)


def test_where_two_fences_stand_around_a_node_each_lets_its_own_job_in(site: Site) -> None:
    until_s = time.time() + 60
    both = [Fence(lets, until_s, ("gn1", "gn2"), (lets,), ("workq",)) for lets in ("12", "13")]
    for fences in (both, both[::-1]):
        text = fences_text(fences)
        assert starts(site, text, job_id="12.head")[0] == "accept"
        assert starts(site, text, job_id="13.head")[0] == "accept"
        assert starts(site, text, job_id="14.head")[0] == "reject"


def test_who_is_let_in_on_one_node_is_kept_out_of_another(site: Site) -> None:
    until_s = time.time() + 60
    own = Fence("12", until_s, ("gn1",), ("12",), ("workq",))
    other = Fence("13", until_s, ("gn1-gpu0",), ("13",), ("workq",))
    words = "pliant: gn1-gpu0 is kept for job 13 for a moment"
    assert starts(site, fences_text([own, other]), job_id="12.head") == ("reject", words)


@pytest.mark.parametrize("job_id", ["12.head", "12[3].head"])
def test_whom_a_fence_is_for_starts(site: Site, job_id: str) -> None:
    assert starts(site, fence(), job_id=job_id)[0] == "accept"


def test_elsewhere_and_for_others_it_is_none(site: Site) -> None:
    assert starts(site, fence("gn2"))[0] == "accept"
    assert starts(site, fence(), queue="express")[0] == "accept"
    assert starts(site, fence(), requestor="root")[0] == "accept"


def test_a_fence_ends_by_itself_and_with_pliantd(site: Site) -> None:
    assert starts(site, fence(for_s=-1))[0] == "accept"
    assert starts(site, fence(for_s=LONGEST_S + 60))[0] == "accept"
    site.says(age_s=MAX_AGE_S + 1)
    assert starts(site, fence())[0] == "accept"
    site.state.unlink()
    assert starts(site, fence())[0] == "accept"


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"pliant_fences": 2, "fences": []}', '{"pliant_fences": 1}'),
        '{"pliant_fences": 1, "fences": [["12"]]}',
        '{"pliant_fences": 1, "fences": [["12", 9e9, "gn1", ["12"], ["workq"]]]}',
        '{"pliant_fences": 1, "fences": [["12", "soon", ["gn1"], ["12"], ["workq"]]]}',
        "[" * 9999,
    ],
)
def test_what_is_no_file_of_fences_keeps_nobody_out(site: Site, text: str) -> None:
    assert starts(site, text)[0] == "accept"


def test_nor_does_one_that_others_may_write(site: Site) -> None:
    path = site.state.with_name("pbs_fences.json")
    assert starts(site, fence())[0] == "reject"
    path.chmod(0o666)
    site.options["fences"] = str(path)
    job = Job("runjob", exec_vnode="(gn1:ncpus=2)", queue="workq")
    assert site.seen("runjob", job, requestor="Scheduler").verdict == ("accept", "")


def test_the_alarm_lets_a_start_pass(site: Site) -> None:
    for line in (2, 30, 100, 200):
        path = site.state.with_name("pbs_fences.json")
        path.write_text(fence())
        site.options["fences"] = str(path)
        job = Job("runjob", exec_vnode="(gn1:ncpus=2)", queue="workq")
        seen = site.seen("runjob", job, requestor="Scheduler", alarm_at=line)
        assert seen.verdict == ("accept", "")


@pytest.mark.parametrize("requestor", ["Scheduler", "root"])
def test_who_is_submitted_after_a_start_is_not_made_larger_by_what_that_one_took(
    site: Site, requestor: str
) -> None:
    asked = {"select": "1:ngpus=1", "moldable": "gpus=1-2"}
    site.says(age_s=1)
    assert starts(site, "", requestor=requestor)[0] == "accept"
    assert site.queuejob(asked).resources["select"] == "1:ngpus=1"
    site.says()  # pliantd has looked since
    assert site.queuejob(asked).resources["select"] == "1:ngpus=2"


def test_a_start_that_is_refused_takes_nothing(site: Site) -> None:
    site.says(age_s=1)
    assert starts(site, fence())[0] == "reject"
    seen = site.queuejob({"select": "1:ngpus=1", "moldable": "gpus=1-2"})
    assert seen.resources["select"] == "1:ngpus=2"


def test_what_was_noted_is_known_whatever_the_note_says(site: Site) -> None:
    asked = {"select": "1:ngpus=1", "moldable": "gpus=1-2"}
    for note in ("soon", "\0" * 100, "9" * 31):
        site.taken.write_text(note)
        site.says()
        assert site.queuejob(asked).resources["select"] == "1:ngpus=" + (
            "2" if "9" in note else "1"
        )
        site.says()
        assert site.queuejob(asked).resources["select"] == "1:ngpus=2"


def test_where_no_start_can_be_noted_nobody_is_made_larger(site: Site) -> None:
    site.taken.symlink_to("elsewhere")
    seen = site.queuejob({"select": "1:ngpus=1", "moldable": "gpus=1-2"})
    assert seen.resources["select"] == "1:ngpus=1"
    assert not site.state.with_name("elsewhere").exists()


@pytest.mark.parametrize(
    ("back", "run_count", "exit_status", "said"),
    [
        ("0:1:1795000000", 0, -18, "0:1:1795000000"),  # the next start is the one already
        ("0:1:1795000000", 1, -18, "1:2:1795000000"),  # that one never came to the launch hook
        ("0:1", 3, -18, "3:4"),
        ("0:1", 1, -16, "0:1"),  # it was refused
        ("0:1", 1, 0, "0:1"),
    ],
)
def test_a_start_is_to_be_refused_until_pbs_forgets_that_it_has_sent_the_job_back(
    site: Site, back: str, run_count: int, exit_status: int, said: str
) -> None:
    """pbs_server may be started anew meanwhile, and a node not be reached."""
    told: dict[str, Any] = {"run_count": run_count, "Exit_status": exit_status}
    job = Job("runjob", variables={"PLIANT_BACK": back}, exec_vnode="(gn1:ncpus=2)", **told)
    seen = site.seen("runjob", job, requestor="Scheduler")
    assert (seen.verdict[0], seen.variables["PLIANT_BACK"]) == ("accept", said)


def test_a_job_that_was_never_sent_back_starts_as_it_is(site: Site) -> None:
    job = Job("runjob", exec_vnode="(gn1:ncpus=2)", Exit_status=-18, run_count=1)
    assert site.seen("runjob", job, requestor="root").variables == {}
