"""The double of PBS's module does what was seen of PBS: the traps first."""

from __future__ import annotations

import pytest

from pbs_double import (
    BadAttributeValueError,
    Environment,
    Event,
    EventIncompatibleError,
    Job,
    LookedAtJobs,
    Pbs,
    Text,
    UnsetAttributeNameError,
    UnsetResourceNameError,
    run,
)


def test_accept_and_reject_raise_system_exit_which_except_exception_lets_pass() -> None:
    for source, verdict in (
        ("accept()", ("accept", "")),
        ("reject('a\\nb')", ("reject", "a\nb")),
    ):
        text = f"import pbs\ntry:\n    pbs.event().{source}\nexcept Exception:\n    1 / 0"
        assert run(compile(text, "hook", "exec"), Pbs(Event("queuejob"))) == verdict


def test_the_alarm_is_a_keyboard_interrupt_and_refuses_the_job_where_nobody_catches_it() -> None:
    code = compile("import pbs\nx = 1\npbs.event().accept()", "hook", "exec")
    with pytest.raises(KeyboardInterrupt):
        run(code, Pbs(Event("queuejob")), alarm_at=2)
    assert run(code, Pbs(Event("queuejob")), alarm_at=9) == ("accept", "")


def test_an_event_has_its_own_parameters_alone() -> None:
    with pytest.raises(EventIncompatibleError):
        _ = Event("queuejob").job_o
    with pytest.raises(EventIncompatibleError):
        _ = Event("periodic").env


def test_keys_are_complete_in_queuejob_and_empty_in_runjob() -> None:
    found = {
        event: Job(event, {"ncpus": 2}).Resource_List.keys() for event in ("queuejob", "runjob")
    }
    assert found == {"queuejob": ["ncpus"], "runjob": []}


def test_what_an_event_must_not_set_raises() -> None:
    job = Job("queuejob", custom=("moldable",))
    with pytest.raises(BadAttributeValueError):
        job.exec_vnode = "(n1:ncpus=1)"
    with pytest.raises(BadAttributeValueError):
        Job("modifyjob").Variable_List = job.Variable_List
    with pytest.raises(UnsetAttributeNameError):
        job.shape = "4"
    with pytest.raises(BadAttributeValueError):
        job.Variable_List["PBS_O_WORKDIR"] = "/"
    with pytest.raises(UnsetResourceNameError):
        job.Resource_List["pliant"] = "token"
    with pytest.raises(BadAttributeValueError):
        Job("execjob_launch").Resource_List["ncpus"] = 1


def test_what_is_not_known_yet_or_there_is_empty() -> None:
    job = Job("queuejob")
    assert (vars(job)["id"], vars(job)["Job_Owner"]) == ("", None)
    on_node = Job("execjob_launch", {"select": Text("1"), "moldable": "gpus=1"}).Resource_List
    assert (on_node["select"], on_node["moldable"]) == (None, None)


def test_a_resource_is_not_taken_away_in_queuejob_and_not_taken_beside_a_select() -> None:
    for source, verdict in (
        ("None", ("reject", "resource is: ngpus")),
        ("3", ("reject", "resource is: ngpus")),
    ):
        code = f"import pbs\nr = pbs.event().job.Resource_List\nr['ngpus'] = {source}\n"
        code += "r['select'] = '1:ngpus=1'\npbs.event().accept()"
        job = Job("queuejob", {"ngpus": 2})
        said = run(compile(code, "hook", "exec"), Pbs(Event("queuejob", job=job)))
        assert (said[0], said[1][-18:]) == verdict


def test_a_bare_comma_ends_a_value_of_the_launch_environment() -> None:
    env = Environment({"BARE": "0,1", "ESCAPED": "0\\,1"})
    assert env.arrives() == {"BARE": "0", "ESCAPED": "0,1"}


@pytest.mark.parametrize("catches", ["Exception", "BaseException"])
def test_a_hook_that_the_server_waits_for_must_not_go_over_all_jobs(catches: str) -> None:
    text = f"import pbs\ntry:\n    list(pbs.server().jobs())\nexcept {catches}:\n    pass\n"
    code = compile(f"{text}pbs.event().accept()", "hook", "exec")
    for event in ("queuejob", "modifyjob"):
        with pytest.raises(LookedAtJobs):
            run(code, Pbs(Event(event, job=Job(event))))
    assert run(code, Pbs(Event("periodic"))) == ("accept", "")
