"""What a wrapper decides: sentences about single steps, and what holds over all histories."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pliant.node import words as w
from pliant.node.core import (
    CHECK_S,
    FOLLOW_S,
    GATHER_S,
    ROUNDS,
    SEVERAL,
    SILENT_S,
    TRIES_S,
    TRY_S,
    step,
)
from pliant.node.words import Stage, State, Wish
from pliant.wire.runs import TAKE_OVER_S

WISH = Wish("w1", "resize", "2", 30.0)
USR1, TERM = 10, 15


def play(state: State, *events: w.Event) -> tuple[State, list[w.Effect]]:
    done: list[w.Effect] = []
    for event in events:
        state, effects = step(state, event)
        done += effects
    return state, done


def asked(state: State | None = None) -> State:
    return play(state or State(), w.Wished(0.0, WISH), w.Told(0.0, WISH.id))[0]


def test_a_wish_is_told_to_the_program_once() -> None:
    state, done = play(State(), w.Wished(5.0, WISH), w.Wished(6.0, WISH))
    assert done == [w.Ask(WISH)]
    assert (state.stage, state.until_s) == (Stage.ASKED, 35.0)


def test_of_several_tasks_the_first_asks_its_program_once_the_others_can_see_the_wish() -> None:
    spread, done = play(State(ranks=2, signal=USR1), w.Wished(5.0, WISH), w.Ticked(6.0))
    assert done == [w.Spread(WISH)]
    assert play(spread, w.Told(6.0, "w0"))[1] == []  # of one before
    state, done = play(spread, w.Told(8.0, "w1"), w.Told(9.0, "w1"))
    assert done == [w.Ask(replace(WISH, left_s=27.0)), w.Prompt()]
    assert (state.stage, state.until_s) == (Stage.ASKED, 35.0)
    other = State(ranks=2, leads=False)
    assert play(other, w.Wished(5.0, WISH), w.Told(6.0, "w1"))[1] == [w.Ask(WISH)]


@pytest.mark.parametrize("signal", [0, USR1])
@pytest.mark.parametrize(
    ("event", "why"),
    [
        (w.Told(2.0, "w1", "No space left on device"), "No space left on device"),
        (w.Ticked(30.0), "their directory does not answer"),
        (w.Wished(29.0, None), "their directory does not answer"),
    ],
)
def test_where_the_other_tasks_cannot_be_told_no_program_is(
    event: w.Event, why: str, signal: int
) -> None:
    spread, _ = play(State(ranks=2, signal=signal), w.Wished(0.0, WISH))
    state, done = play(spread, event)
    words = f"the program was not told, as the other tasks could not be ({why})"
    says = w.Say(f"no checkpoint was made: {words}; it runs on")
    assert done == [w.Withdraw(), says, w.ReportFailed(WISH, words, untold=True)]
    assert state.stage is Stage.RUNNING
    assert play(state, w.Told(40.0, "w1"))[1] == []  # it comes after all


def test_one_that_saves_before_the_others_can_see_the_wish_does_not_count_on_them() -> None:
    spread, _ = play(State(ranks=2), w.Wished(0.0, WISH))
    state, _ = play(spread, w.Ended(2.0, 85, True))
    assert (state.stage, state.late, state.until_s) == (Stage.GATHERING, True, 2.0 + GATHER_S)
    running, done = play(state, w.Ticked(2.0 + GATHER_S))
    assert running.stage is Stage.RUNNING
    assert w.Start() in done


NAMED = replace(WISH, checkpoint="ckpt")


def saved(state: State | None = None, wish: Wish = NAMED) -> State:
    wished = (w.Wished(0.0, wish), w.Told(0.0, wish.id))
    return play(state or State(), *wished, w.Ended(4.0, 85, True))[0]


def test_a_checkpoint_that_its_owner_named_is_looked_at_before_it_is_reported() -> None:
    checking, done = play(State(), w.Wished(0.0, NAMED), w.Ended(4.0, 85, True))
    assert (checking.stage, done[1:]) == (Stage.CHECKING, [w.Withdraw(), w.Check(NAMED)])
    handing, done = play(checking, w.Ticked(4.5), w.Checked(5.0))
    assert (handing.stage, done) == (Stage.HANDING, [w.ReportSaved(NAMED, 5.0)])
    words = "the checkpoint is not new and whole: ckpt is empty"
    running, done = play(checking, w.Checked(5.0, "ckpt is empty"))
    assert (running.stage, running.wish) == (Stage.RUNNING, None)
    assert done == [
        w.Say(words),
        w.Say("the program goes on here"),
        w.Tell(again=True),
        w.Start(),
        w.ReportFailed(NAMED, words),
    ]


def test_a_checkpoint_that_cannot_be_looked_at_keeps_nobody_waiting() -> None:
    running, done = play(saved(), w.Ticked(4.0 + CHECK_S))
    assert running.stage is Stage.RUNNING
    assert w.Start() in done
    words = "the checkpoint is not new and whole: ckpt could not be looked at within 15 s"
    assert done[0] == w.Say(words)
    assert play(running, w.Checked(4.5 + CHECK_S))[1] == []  # it comes after all


def test_all_tasks_have_saved_before_a_named_checkpoint_is_looked_at() -> None:
    gathering = saved(State(ranks=2))
    assert gathering.stage is Stage.GATHERING
    checking, done = play(gathering, w.Gathered(6.0))
    assert (checking.stage, done) == (Stage.CHECKING, [w.Check(NAMED)])


def test_one_that_is_not_alone_by_then_goes_on_whatever_was_saved() -> None:
    running, done = play(saved(), w.Beside(4.5, True), w.Checked(5.0))
    assert running.stage is Stage.RUNNING
    assert w.Start() in done and not any(isinstance(e, w.ReportSaved) for e in done)


def test_a_wish_whose_time_is_over_leaves_the_program_a_moment() -> None:
    state, _ = play(State(), w.Wished(5.0, Wish("w1", left_s=-30.0)))
    assert state.until_s == 6.0


def test_a_signal_is_tried_until_the_program_can_take_it() -> None:
    state, done = play(State(signal=USR1), w.Wished(0, WISH), w.Ticked(1), w.Ticked(2))
    assert done == [w.Ask(WISH), w.Prompt(), w.Prompt(), w.Prompt()]
    assert play(state, w.Prompted(2.5), w.Ticked(3))[1] == []


def test_a_wish_that_takes_anothers_place_is_a_signal_of_its_own() -> None:
    """A task that looks once a second may miss that the first one was withdrawn."""
    state, _ = play(State(signal=USR1), w.Wished(0, WISH), w.Prompted(0))
    other = Wish("w2", "resize", "1", 30.0)
    assert play(state, w.Wished(1, other))[1] == [w.Ask(other), w.Prompt()]


def test_a_wish_that_is_withdrawn_is_taken_from_the_program() -> None:
    state, done = play(asked(), w.Wished(3.0, None))
    assert (state.stage, done) == (Stage.RUNNING, [w.Withdraw()])


def test_where_nothing_is_asked_nothing_is_withdrawn_and_no_signal_sent() -> None:
    assert play(State(signal=USR1), w.Wished(1.0, None), w.Ticked(2.0))[1] == []
    assert play(asked(), w.Ticked(2.0))[1] == []  # it is told by the file alone


@pytest.mark.parametrize("over", [w.Ticked(30.0), w.Wished(30.0, None), w.Wished(29.8, None)])
@pytest.mark.parametrize(
    ("beat_s", "says"),
    [(29.0, "the program runs on"), (0.8, "the program's last heartbeat was 29 s ago")],
)
def test_it_is_not_said_that_a_program_runs_on_that_does_not(
    beat_s: float, says: str, over: w.Ticked | w.Wished
) -> None:
    """Nor nothing, where pliantd is the first to see that the time is over."""
    beaten = play(State(), w.Wished(0.0, WISH), w.Beaten(beat_s))[0]
    said = play(beaten, over)[1]
    words = "no checkpoint was made: no checkpoint within the grace period"
    assert w.Say(f"{words}; {says}") in said


def test_a_program_that_saves_too_late_runs_on_and_pliantd_is_told() -> None:
    words = "no checkpoint within the grace period"
    state, done = play(asked(), w.Ticked(30.0))
    assert state.stage is Stage.RUNNING
    assert done == [
        w.Withdraw(),
        w.Say(f"no checkpoint was made: {words}; the program runs on"),
        w.ReportFailed(WISH, words),
    ]


@pytest.mark.parametrize(
    ("event", "done"),
    [
        (w.Told(2.0, "w1"), []),
        (w.Told(2.0, "w1", "No space left on device"), []),
        (w.Untold(2.0, "No space left on device"), []),
        (w.Ticked(99.0), [w.Withdraw()]),
    ],
)
def test_of_a_wish_of_before_its_guardian_was_killed_nothing_is_told_any_more(
    event: w.Event, done: list[w.Effect]
) -> None:
    """In a step of several tasks, of which the others may not have been told of it yet."""
    orphan, _ = play(State(ranks=2), w.Wished(0.0, WISH), w.Orphaned(1.0))
    assert (orphan.stage, orphan.wish) == (Stage.ASKED, None)
    assert play(orphan, event)[1] == done


def test_nothing_is_awaited_of_a_program_that_could_not_be_told() -> None:
    state, done = play(asked(), w.Untold(1.0, "No space left on device"))
    words = "the program could not be told (No space left on device)"
    assert state.stage is Stage.RUNNING
    assert done == [
        w.Withdraw(),
        w.Say(f"no checkpoint was made: {words}; it runs on"),
        w.ReportFailed(WISH, words, untold=True),
    ]
    assert play(state, w.Untold(2.0, "again"), w.Ticked(30.0))[1] == []
    handing, done = play(state, w.Ended(3.0, 85, True))  # told by another task's, say
    assert (handing.stage, done[-1]) == (Stage.HANDING, w.ReportSaved(WISH, 3.0))


@pytest.mark.parametrize("state", [State(signal=USR1), State(ranks=2, leads=False)])
def test_one_that_may_be_told_otherwise_has_its_time(state: State) -> None:
    """By its signal, or by the first task's program."""
    waits = asked(state)
    assert play(waits, w.Untold(1.0, "No space left on device")) == (waits, [])


@pytest.mark.parametrize(
    ("prompted", "words"),
    [
        ([], "the program does not handle signal 10, which would have killed it"),
        ([w.Prompted(0.1)], "no checkpoint within the grace period"),
    ],
)
def test_of_a_program_that_could_not_be_sent_its_signal_that_is_said(
    prompted: list[w.Event], words: str
) -> None:
    done = play(asked(State(signal=USR1)), *prompted, w.Ticked(30.0))[1]
    assert w.ReportFailed(WISH, words) in done


@pytest.mark.parametrize(
    ("state", "orphaned"),
    [(State(ranks=3, leads=False), []), (State(ranks=3), [w.Orphaned(1.0)])],
    ids=["not the first task", "the first without its guardian"],
)
def test_who_does_not_speak_for_the_step_says_nothing_of_its_being_late(
    state: State, orphaned: list[w.Event]
) -> None:
    assert play(play(asked(state), *orphaned)[0], w.Ticked(30.0))[1] == [w.Withdraw()]


def test_a_checkpoint_that_comes_late_is_handed_over_all_the_same() -> None:
    state, done = play(asked(), w.Ticked(30.0), w.Ended(40.0, 85, True))
    assert state.stage is Stage.HANDING
    assert done[-1] == w.ReportSaved(WISH, 40.0)


def test_a_program_that_saved_waits_for_pliantd_to_requeue_the_job() -> None:
    state, done = play(
        asked(), w.Ended(4.0, 85, True), w.Answered(5.0), w.Signalled(7.0, TERM, False)
    )
    assert state.stage is Stage.OVER
    assert done == [w.Withdraw(), w.ReportSaved(WISH, 4.0), w.Exit(85)]


@pytest.mark.parametrize(
    ("number", "done"), [(1, [w.Exit(85)]), (2, [w.Exit(85)]), (3, [w.Exit(85)]), (USR1, [])]
)
@pytest.mark.parametrize(
    "ticks",
    [(), (w.Ticked(4.0 + SILENT_S),), (w.Ticked(4.0 + SILENT_S), w.Requeued(5.0 + SILENT_S))],
)
def test_whatever_ends_a_shell_ends_the_waiting_of_its_wrapper(
    number: int, done: list[w.Effect], ticks: tuple[w.Event, ...]
) -> None:
    """For pliantd, for what comes of its own requeue, or for its end after that."""
    waits, _ = play(asked(), w.Ended(4.0, 85, True), *ticks)
    assert play(waits, w.Signalled(99.0, number, False))[1] == done


def test_what_pliantd_says_meanwhile_is_known_to_a_wrapper_that_waits() -> None:
    handing, _ = play(asked(), w.Ended(4.0, 85, True))
    assert play(handing, w.Learnt(5.0, USR1))[0].signal == USR1
    running, done = play(handing, w.Stays(5.0))
    assert running.stage is Stage.RUNNING
    assert w.Start() in done


def test_where_pliantd_is_silent_the_wrapper_requeues_once() -> None:
    state, done = play(asked(), w.Ended(4.0, 85, True), w.Ticked(4.0 + SILENT_S))
    assert done[-1] == w.Requeue()
    state, done = play(state, w.Ticked(100.0), w.Requeued(101.0), w.Ticked(101.0 + TAKE_OVER_S))
    assert (state.stage, done) == (Stage.OVER, [w.Exit(85)])


def test_one_that_has_requeued_its_job_leaves_slurm_time_to_end_it() -> None:
    events = (w.Ended(4.0, 85, True), w.Ticked(99.0), w.Requeued(100.0))
    leaving, _ = play(asked(), *events)
    assert play(leaving, w.Ticked(99.0 + TAKE_OVER_S)) == (leaving, [])


@pytest.mark.parametrize("event", [w.Answered(5.0), w.Ticked(4.0 + SILENT_S)])
def test_where_its_own_end_requeues_the_job_it_waits_for_nobody(event: w.Event) -> None:
    handing, _ = play(asked(State(returns=True)), w.Ended(4.0, 85, True))
    assert play(handing, event)[1] == [w.Exit(85)]


@pytest.mark.parametrize("wish", [WISH, NAMED])
def test_where_its_own_end_would_be_seen_by_nobody_it_waits_as_on_slurm(wish: Wish) -> None:
    """PBS would take the job for one that has ended well, and never start it again."""
    parted, done = play(saved(State(returns=True), wish), w.Parted(4.1), w.Parted(4.2))
    assert (parted.returns, [type(effect) for effect in done]) == (False, [w.Say])
    handing, _ = play(parted, w.Checked(4.5), w.Answered(5.0))
    assert (handing.stage, play(handing, w.Ticked(24.0))[1]) == (Stage.HANDING, [])
    state, done = play(handing, w.Ticked(25.0), w.Requeued(25.1, "PBS lets no job do so"))
    assert (state.stage, done[0], w.Start() in done) == (Stage.RUNNING, w.Requeue(), True)
    assert play(state, w.Wished(30.0, replace(wish, id="w2")))[0].stage is Stage.ASKED


def test_whoever_ends_such_a_job_meanwhile_ends_it() -> None:
    parted, _ = play(saved(State(returns=True), WISH), w.Parted(4.1), w.Answered(5.0))
    assert play(parted, w.Signalled(19.0, TERM, reached=False))[1] == [w.Exit(85)]


def test_where_pliantd_said_yes_and_does_nothing_the_wrapper_requeues() -> None:
    handing, _ = play(asked(), w.Ended(4.0, 85, True))
    answers = [w.Answered(5.0 + at_s) for at_s in range(0, round(TAKE_OVER_S), 4)]
    handing, _ = play(handing, *answers)
    assert play(handing, w.Ticked(4.0 + TAKE_OVER_S))[1] == []
    assert play(handing, w.Ticked(5.0 + TAKE_OVER_S))[1] == [w.Requeue()]


def test_where_pliantd_said_yes_and_is_silent_from_then_on_the_wrapper_requeues() -> None:
    handing, _ = play(asked(), w.Ended(4.0, 85, True), w.Answered(5.0), w.Answered(9.0))
    assert play(handing, w.Ticked(8.0 + SILENT_S))[1] == []
    assert play(handing, w.Ticked(9.0 + SILENT_S))[1] == [w.Requeue()]


def test_where_the_requeue_is_refused_the_program_goes_on_here() -> None:
    state, _ = play(asked(), w.Ended(4.0, 85, True), w.Ticked(99.0))
    state, done = play(state, w.Requeued(100.0, "no scontrol"))
    assert state.stage is Stage.RUNNING
    assert [type(effect) for effect in done] == [w.Say, w.Tell, w.Start, w.ReportFailed]
    assert play(state, w.Ended(101.0, 85, True))[1] == [w.ReportEnd(85, False), w.Exit(85)]


def stays(state: State | None = None) -> State:
    """Return one whose program is to go on in place after its checkpoint, at 10."""
    return play(saved(state, WISH), w.Gathered(10.0), w.Stays(10.0))[0]


GONE = "No such file or directory"


def tried(state: State, *, until_s: float = 10.0 + TRIES_S) -> tuple[State, list[w.Effect]]:
    """Play all tries to start it, each in vain; return the effects of the last one."""
    state, done = play(state, w.NotStarted(10.0, GONE, 127))
    at_s = 10.0
    while at_s < until_s:
        at_s += TRY_S
        state, starts = play(state, w.Ticked(at_s - 0.1), w.Ticked(at_s), w.Ticked(at_s))
        assert starts == [w.Start()]
        state, done = play(state, w.NotStarted(at_s, GONE, 127))
    return state, done


def test_a_program_that_could_not_be_started_again_is_tried_for_a_while() -> None:
    starting, done = play(stays(), w.NotStarted(10.0, GONE, 127))
    words = f"the program could not be started again ({GONE}): it is tried for 60 s"
    assert (starting.stage, done) == (Stage.STARTING, [w.Say(words)])
    trying, done = tried(stays(), until_s=30.0)
    assert (trying.stage, done) == (Stage.STARTING, [])
    running, done = play(trying, w.Ticked(35.0), w.Started(35.0))
    assert running.stage is Stage.RUNNING
    assert done == [w.Start(), w.Say("the program was started again")]
    again = replace(WISH, id="w2")
    assert play(running, w.Ticked(99.0), w.Wished(99.0, again))[1] == [w.Ask(again)]


def test_it_is_tried_for_as_long_whatever_it_has_waited_for_before() -> None:
    starting, _ = play(replace(stays(), most_s=9.0), w.NotStarted(10.0, GONE, 127))
    assert (starting.stage, starting.most_s) == (Stage.STARTING, 10.0 + TRIES_S)


def test_a_job_whose_program_cannot_be_started_again_goes_back_to_the_queue() -> None:
    words = f"the program cannot be started again ({GONE}): the job goes back to the queue"
    requeuing, done = tried(stays())
    assert (requeuing.stage, done) == (Stage.REQUEUING, [w.Say(words), w.Requeue()])
    leaving, _ = play(requeuing, w.Requeued(71.0))
    assert play(leaving, w.Ticked(71.0 + TAKE_OVER_S))[1] == [w.Exit(85)]
    on_pbs, done = tried(stays(State(returns=True)))
    assert (on_pbs.stage, done) == (Stage.OVER, [w.Say(words), w.Exit(85)])


def test_what_is_said_of_its_place_meanwhile_changes_nothing_about_its_own_requeue() -> None:
    """Pliantd answers each watch of one that stayed so."""
    requeuing, _ = tried(stays())
    assert play(requeuing, w.Stays(71.0)) == (requeuing, [])


def test_both_are_tried_again_where_it_cannot_be_requeued_either() -> None:
    """Slurmctld may be away, or nothing be to have here for scontrol either."""
    starting, done = play(tried(stays())[0], w.Requeued(71.0, "no answer"))
    assert (starting.stage, starting.rounds, done) == (Stage.STARTING, 1, [])
    running, done = play(starting, w.Ticked(71.0 + TRY_S), w.Started(76.0))
    assert (running.stage, running.unstarted, running.rounds) == (Stage.RUNNING, 0, 0)
    late = w.NotStarted(71.0 + TRIES_S, GONE, 127)
    requeuing, done = play(starting, w.Ticked(76.0), w.NotStarted(76.0, GONE, 127), late)
    assert (requeuing.stage, done) == (Stage.REQUEUING, [w.Start(), w.Requeue()])


def test_where_that_is_refused_it_ends_as_one_whose_first_start_fails() -> None:
    requeuing = replace(tried(stays())[0], rounds=ROUNDS)
    over, done = play(requeuing, w.Requeued(71.0, "disabled"))
    words = "the job could not be requeued (disabled); its checkpoint stays"
    assert over.stage is Stage.OVER
    assert done == [w.Say(words), w.ReportEnd(127, False), w.Exit(127)]


@pytest.mark.parametrize("beside", [False, True])
def test_nobody_else_of_the_job_is_ended_for_a_program_that_cannot_be_started_again(
    beside: bool,
) -> None:
    state = stays(State(ranks=1 if beside else 2))
    over, done = tried(play(state, w.Beside(10.0, beside))[0])
    assert over.stage is Stage.OVER
    gathers = [] if beside else [w.Gather(127)]
    says = w.Say(f"the program cannot be started again ({GONE})")
    assert done == [says, *gathers, w.ReportEnd(127, False), w.Exit(127)]


def test_who_ends_a_job_whose_program_is_to_be_started_again_ends_it() -> None:
    starting, _ = play(stays(), w.NotStarted(10.0, GONE, 127))
    assert play(starting, w.Signalled(11.0, TERM, False))[1] == [w.Exit(85)]
    orphaned = play(starting, w.Orphaned(11.0))[1]
    assert orphaned[-1] == w.Exit(85)


@pytest.mark.parametrize(("code", "shell"), [(0, 0), (1, 1), (-9, 137), (85, 85)])
def test_an_end_without_a_wish_is_passed_on(code: int, shell: int) -> None:
    assert play(State(), w.Ended(1.0, code, code == 85))[1] == [
        w.ReportEnd(shell, False),
        w.Exit(shell),
    ]


@pytest.mark.parametrize(("code", "shell"), [(0, 0), (1, 1), (-11, 139)])
def test_another_exit_on_request_is_the_programs_own_end(code: int, shell: int) -> None:
    assert play(asked(), w.Ended(2.0, code, False))[1] == [w.ReportEnd(shell, False), w.Exit(shell)]


def test_a_program_that_our_signal_killed_is_a_mistake_in_how_it_was_started() -> None:
    state = play(asked(State(signal=USR1)), w.Prompted(0.1))[0]
    done = play(state, w.Ended(0.2, -USR1, False))[1]
    assert [type(effect) for effect in done] == [w.Say, w.ReportFailed, w.ReportEnd, w.Exit]
    assert done[-1] == w.Exit(138)


@pytest.mark.parametrize(
    ("ranks", "events"),
    [
        (1, [w.Prompted(0.1), w.Ended(0.2, -11, False)]),  # by another signal
        (1, [w.Ended(0.2, -USR1, False)]),  # by somebody else's
        (3, [w.Prompted(0.1), w.Orphaned(0.2), w.Ended(0.3, -USR1, False)]),  # asked no more
    ],
)
def test_another_end_is_not_laid_to_our_signal(ranks: int, events: list[w.Event]) -> None:
    done = play(asked(State(signal=USR1, ranks=ranks)), *events)[1]
    assert not any(isinstance(effect, w.ReportFailed) for effect in done)


def test_one_that_ends_after_its_wish_was_withdrawn_decides_for_no_other_task() -> None:
    done = play(asked(State(ranks=2)), w.Wished(3.0, None), w.Ended(40.0, 7, False))[1]
    assert done == [w.Withdraw(), w.Gather(7), w.ReportEnd(7, False), w.Exit(7)]


def test_of_a_step_the_first_task_alone_reports_its_end() -> None:
    other = State(ranks=3, leads=False, signal=USR1)
    assert play(other, w.Ended(5.0, 7, False))[1] == [w.Gather(7), w.Exit(7)]
    done = play(asked(other), w.Prompted(0.1), w.Ended(0.2, -USR1, False))[1]
    assert [type(effect) for effect in done] == [w.Gather, w.Say, w.Exit]  # by our signal too


def test_a_signal_is_passed_on_unless_the_program_had_it_too() -> None:
    assert play(State(), w.Signalled(1.0, USR1, False))[1] == [w.Pass(USR1)]
    assert play(State(), w.Signalled(1.0, USR1, True))[1] == []
    termed, done = play(State(), w.Signalled(1.0, TERM, False))
    assert done == [w.Pass(TERM), w.AskWhy()]
    assert play(termed, w.Signalled(2.0, TERM, False))[1] == [w.Pass(TERM)]  # why is said once


def test_after_a_term_nothing_is_asked_and_nothing_requeued() -> None:
    state, _ = play(State(), w.Signalled(1.0, TERM, False))
    assert play(state, w.Wished(2.0, WISH))[1] == []
    state, _ = play(asked(), w.Signalled(1.0, TERM, True))
    assert play(state, w.Ended(2.0, 85, True))[1] == [
        w.Withdraw(),
        w.ReportSaved(WISH, 2.0, last=True),
        w.Exit(85),
    ]


def test_without_its_guardian_a_wrapper_reports_what_is_saved_and_leaves() -> None:
    state, done = play(asked(), w.Orphaned(2.0), w.Ended(2.0, -9, True))
    assert state.stage is Stage.OVER
    assert done[1:] == [w.Withdraw(), w.ReportSaved(WISH, 2.0, last=True), w.Exit(85)]
    state, done = play(asked(), w.Orphaned(2.0), w.Ended(2.0, -9, False))
    assert done[1:] == [w.ReportEnd(137, True), w.Exit(137)]
    handing, _ = play(asked(), w.Ended(4.0, 85, True))
    for waits, wish in ((handing, WISH), (saved(), NAMED)):
        told = play(waits, w.Orphaned(5.0))[1][-2:]
        assert told == [w.ReportSaved(wish, 5.0, last=True), w.Exit(85)]


def test_after_a_term_another_task_than_the_first_reports_nothing() -> None:
    state, _ = play(asked(State(ranks=3, leads=False)), w.Signalled(1.0, TERM, True))
    assert play(state, w.Ended(2.0, 85, True))[1] == [w.Withdraw(), w.Gather(), w.Exit(85)]


def test_a_task_without_its_guardian_says_nothing_of_what_others_have_saved() -> None:
    state = asked(State(ranks=3))
    _, done = play(state, w.Orphaned(2.0), w.Ended(2.0, -9, True))
    assert done[1:] == [w.Gather(137), w.ReportEnd(137, True), w.Exit(137)]
    _, done = play(state, w.Ended(2.0, 85, True), w.Orphaned(3.0))
    assert [type(effect) for effect in done[2:]] == [w.Say, w.Exit]


def test_the_first_task_waits_for_the_others_and_says_what_all_do() -> None:
    state, done = play(asked(State(ranks=3)), w.Ended(2.0, 85, True))
    assert (state.stage, done) == (Stage.GATHERING, [w.Withdraw(), w.Gather()])
    assert play(state, w.Gathered(3.0))[1] == [w.ReportSaved(WISH, 3.0)]


@pytest.mark.parametrize(("ended_s", "until_s"), [(2.0, 30.0), (25.0, 25.0 + GATHER_S)])
def test_it_waits_for_all_until_the_grace_period_is_over_and_a_moment_at_least(
    ended_s: float, until_s: float
) -> None:
    state, _ = play(asked(State(ranks=3)), w.Ended(ended_s, 85, True))
    assert play(state, w.Ticked(until_s - 0.1)) == (state, [])
    done = play(state, w.Ticked(until_s))[1]
    assert [type(effect) for effect in done] == [w.Say, w.ReportSaved]


def test_a_task_that_fails_when_it_is_asked_ends_all_with_its_code() -> None:
    state, _ = play(asked(State(ranks=3)), w.Ended(2.0, 85, True))
    state, done = play(state, w.Gathered(3.0, failed=(1, 7)))
    assert state.stage is Stage.OVER
    words = "task 1 has not saved, it ended with exit code 7: the job is not requeued"
    assert done == [
        w.Say(words),
        w.ReportEnd(7, False),
        w.Tell(again=False, code=7),
        w.Exit(7),
    ]
    other, _ = play(asked(State(ranks=3, leads=False)), w.Ended(2.0, 85, True))
    assert play(other, w.Decided(3.0, again=False, code=7))[1] == [w.Exit(7)]


def test_a_first_task_that_fails_when_it_is_asked_lets_the_others_end() -> None:
    done = play(asked(State(ranks=2)), w.Ended(2.0, 7, False))[1]
    tell = w.Tell(again=False, code=7)
    assert done == [w.Gather(7), w.ReportEnd(7, False), tell, w.Exit(7)]


def test_a_first_task_that_has_finished_when_it_is_asked_lets_those_go_on_that_saved() -> None:
    done = play(asked(State(ranks=2)), w.Ended(2.0, 0, False))[1]
    assert done == [w.Gather(0), w.ReportEnd(0, False), w.Tell(again=True), w.Exit(0)]


def test_a_signal_that_pliantd_knows_of_is_sent() -> None:
    state, done = play(State(), w.Learnt(0, USR1), w.Wished(1, WISH))
    assert (state.signal, done) == (USR1, [w.Ask(WISH), w.Prompt()])
    assert play(State(signal=12), w.Learnt(0, 0), w.Wished(1, WISH))[1] == [w.Ask(WISH)]
    assert play(asked(), w.Learnt(1, USR1), w.Ticked(2))[1] == [w.Prompt()]


def test_another_task_reports_nothing_and_does_what_the_first_says() -> None:
    state, done = play(asked(State(ranks=3, leads=False)), w.Ended(2.0, 85, True))
    assert (state.stage, done) == (Stage.FOLLOWING, [w.Withdraw(), w.Gather()])
    assert play(state, w.Decided(3.0, again=True))[1] == [w.Start()]
    assert play(state, w.Decided(3.0, again=False))[1] == [w.Exit(85)]
    says = w.Say("task 0 is silent: the program goes on here")
    assert play(state, w.Ticked(2.0 + FOLLOW_S))[1] == [says, w.Start()]
    assert play(state, w.Signalled(3.0, TERM, False))[1] == [w.Exit(85)]  # and tells nobody


@pytest.mark.parametrize("now", [None, Wish("w2")])
def test_a_task_that_has_saved_for_a_wish_that_is_withdrawn_goes_on_in_place(
    now: Wish | None,
) -> None:
    """Unless the first one's program saves as well, late."""
    state = play(asked(State(ranks=3, leads=False)), w.Ended(2.0, 85, True))[0]
    state = play(state, w.Wished(3.0, WISH), w.Wished(30.0, now), w.Wished(31.0, now))[0]
    says = w.Say("the checkpoint is not wanted any more: the program goes on here")
    assert play(state, w.Ticked(30.0 + GATHER_S - 1))[1] == []
    assert play(state, w.Ticked(30.0 + GATHER_S))[1] == [says, w.Start()]
    late = play(state, w.Wished(32.0, WISH))[0]
    assert play(late, w.Ticked(30.0 + GATHER_S), w.Ticked(31.0 + FOLLOW_S))[1] == []


def test_a_lost_wrapper_of_a_task_takes_a_wish_back_and_the_next_are_not_taken() -> None:
    words = "task 1 has lost its wrapper"
    says = w.Say(f"{words}: no checkpoint is asked for any more")
    state, done = play(asked(State(ranks=3)), w.Lost(2.0, 1), w.Wished(3.0, Wish("w2")))
    assert (state.stage, done) == (
        Stage.RUNNING,
        [says, w.Withdraw(), w.ReportFailed(WISH, words)],
    )
    assert play(state, w.Lost(4.0, None), w.Wished(5.0, Wish("w2")))[1] == [w.Spread(Wish("w2"))]


def test_of_a_lost_wrapper_only_the_first_task_speaks_and_of_no_wish_that_it_gave_up() -> None:
    other = asked(State(ranks=3, leads=False))
    assert play(other, w.Lost(2.0, 1)) == (other, [])
    orphaned = play(asked(State(ranks=3)), w.Orphaned(1.0))[0]
    says = w.Say("task 1 has lost its wrapper: no checkpoint is asked for any more")
    assert play(orphaned, w.Lost(2.0, 1))[1] == [says]


@pytest.mark.parametrize("why", ["lost", "late"])
def test_where_not_every_task_may_save_those_that_have_go_on_in_place(why: str) -> None:
    ends = w.Ended(40.0, 85, True)
    events = (
        (ends, w.Lost(41.0, 1), w.Lost(42.0, None)) if why == "lost" else (w.Ticked(39.0), ends)
    )
    state = play(asked(State(ranks=3)), *events)[0]
    assert state.stage is Stage.GATHERING
    running, done = play(state, w.Ticked(40.0 + GATHER_S))
    kinds = [w.Say, w.Say, w.Tell, w.Start, w.ReportFailed]
    assert (running.stage, [type(effect) for effect in done]) == (Stage.RUNNING, kinds)
    assert play(state, w.Gathered(43.0))[1] == [w.ReportSaved(WISH, 43.0)]


@pytest.mark.parametrize("early", [True, False])
def test_beside_another_wrapper_nothing_is_requeued_and_the_program_goes_on(early: bool) -> None:
    events = [w.Ended(2.0, 85, True), w.Beside(1.0, True)]
    state, done = play(asked(), *(reversed(events) if early else events), w.Beside(3.0, True))
    assert (state.stage, state.wish) == (Stage.RUNNING, None)
    assert done.count(w.Say(SEVERAL)) == 1
    assert done[-2:] == [w.Tell(again=True), w.Start()]
    assert w.Requeue() not in done
    again, done = play(state, w.Beside(4.0, False), w.Wished(5.0, Wish("w2")))
    assert (again.stage, done) == (Stage.ASKED, [w.Ask(Wish("w2"))])


def test_a_checkpoint_that_is_made_beside_another_wrapper_is_not_reported() -> None:
    """Else pliantd would requeue the job, and end the program of the other one."""
    state = play(asked(), w.Beside(1.0, True))[0]
    assert play(state, w.Ended(2.0, 85, True))[1] == [
        *(w.Withdraw(), w.Say("the program goes on here")),
        *(w.Tell(again=True), w.Start()),
    ]


def test_one_that_hears_that_it_is_alone_goes_on_with_what_it_does() -> None:
    handing, _ = play(asked(), w.Ended(2.0, 85, True))
    assert play(handing, w.Beside(3.0, False)) == (handing, [])


# Over all histories

TIMES = st.floats(0.1, 40.0)
NAMES = {"a": "", "b": "ckpt", "c": ""}
EVENTS = st.one_of(
    st.sampled_from([None, "a", "b", "c"]).map(
        lambda i: w.Wished(0.0, Wish(i, left_s=20.0, checkpoint=NAMES[i]) if i else None)
    ),
    st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["", "full"])).map(
        lambda said: w.Told(0.0, *said)
    ),
    st.just(w.Prompted(0.0)),
    st.tuples(st.sampled_from([0, 1, 85, -10, -15, -9]), st.booleans()).map(
        lambda e: w.Ended(0.0, e[0], e[1] or e[0] == 85)
    ),
    st.tuples(st.sampled_from([1, 2, 10, 15]), st.booleans()).map(lambda e: w.Signalled(0.0, *e)),
    st.just(w.Ticked(0.0)),
    st.just(w.Untold(0.0, "gone")),
    st.just(w.Orphaned(0.0)),
    st.sampled_from([None, (1, 7)]).map(lambda failed: w.Gathered(0.0, failed)),
    st.sampled_from(["", "it is empty"]).map(lambda trouble: w.Checked(0.0, trouble)),
    st.sampled_from([0, USR1]).map(lambda number: w.Learnt(0.0, number)),
    st.just(w.Answered(0.0)),
    st.sampled_from([None, 1]).map(lambda task: w.Lost(0.0, task)),
    st.booleans().map(lambda others: w.Beside(0.0, others)),
    st.sampled_from(["", "refused"]).map(lambda t: w.Requeued(0.0, t)),
    st.just(w.Stays(0.0)),
    st.booleans().map(lambda again: w.Decided(0.0, again)),
    st.just(w.Started(0.0)),
    st.just(w.NotStarted(0.0, "it is gone", 127)),
)
STATES = st.builds(
    State, leads=st.booleans(), ranks=st.integers(1, 3), signal=st.sampled_from([0, USR1])
)
HISTORIES = st.lists(st.tuples(TIMES, EVENTS), max_size=30)


def stamped(history: list[tuple[float, w.Event]]) -> list[w.Event]:
    now, events = 0.0, []
    for pause, event in history:
        now += pause
        events.append(replace(event, at_s=now))
    return events


def rehearsed(
    state: State, history: list[tuple[float, w.Event]]
) -> list[tuple[State, w.Event, tuple[w.Effect, ...]]]:
    """Play a history in which a program ends only while it runs; return each step.

    Whether it was started again is said at once.
    """
    running, steps, starts = True, [], False
    for event in stamped(history):
        if isinstance(event, w.Ended) and not running:
            continue
        if isinstance(event, w.Started | w.NotStarted) and not starts:
            continue
        running = running and not isinstance(event, w.Ended | w.NotStarted)
        before = state
        state, effects = step(state, event)
        starts = w.Start() in effects
        running = running or starts
        steps.append((before, event, effects))
    return steps


@given(STATES, HISTORIES)
def test_nothing_happens_after_the_end(state: State, history: list[tuple[float, w.Event]]) -> None:
    steps = rehearsed(state, history)
    assert all(effects == () for before, _, effects in steps if before.stage is Stage.OVER)
    assert sum(isinstance(e, w.Exit) for _, _, effects in steps for e in effects) <= 1


@given(STATES, HISTORIES)
def test_nobody_is_requeued_who_has_not_saved_on_request_or_whom_others_end(
    state: State, history: list[tuple[float, w.Event]]
) -> None:
    saved = termed = whole = False
    for before, event, effects in rehearsed(state, history):
        termed = termed or (isinstance(event, w.Signalled) and event.number == TERM)
        termed = termed or isinstance(event, w.Orphaned)
        if isinstance(event, w.Ended):
            saved = event.saved and before.wish is not None
            whole = False
        if before.stage is Stage.CHECKING and isinstance(event, w.Checked):
            whole = event.trouble == ""
        if any(isinstance(e, w.Requeue | w.Start | w.ReportSaved) for e in effects):
            assert saved
        if w.Requeue() in effects and before.wish is not None and before.wish.checkpoint:
            assert whole
        if w.Requeue() in effects or w.Start() in effects:
            assert not termed


@given(STATES, HISTORIES)
def test_a_task_that_does_not_lead_never_speaks_with_pliantd(
    state: State, history: list[tuple[float, w.Event]]
) -> None:
    reports = (w.ReportSaved, w.ReportFailed, w.ReportEnd, w.Requeue, w.Tell)
    for before, _, effects in rehearsed(state, history):
        assert before.leads or not any(isinstance(e, reports) for e in effects)


@given(STATES, HISTORIES)
def test_the_program_is_asked_for_each_wish_once_and_gets_each_signal_once(
    state: State, history: list[tuple[float, w.Event]]
) -> None:
    for before, event, effects in rehearsed(state, history):
        for effect in effects:
            if isinstance(effect, w.Ask | w.Spread) and not isinstance(event, w.Told):
                assert effect.wish.id != before.seen
                assert isinstance(effect, w.Spread) == (before.leads and before.ranks > 1)
            elif isinstance(effect, w.Ask):
                assert (before.told, effect.wish.id) == (False, before.seen)
            if isinstance(effect, w.Pass):
                assert isinstance(event, w.Signalled)
                assert not event.reached
                assert before.stage in (Stage.RUNNING, Stage.ASKED)


@given(STATES, HISTORIES)
def test_once_its_program_has_ended_a_wrapper_ends_whoever_is_silent(
    state: State, history: list[tuple[float, w.Event]]
) -> None:
    steps = rehearsed(state, history)
    running = [True]
    for before, event, effects in steps:
        state, _ = step(before, event)
        ended = isinstance(event, w.Ended | w.NotStarted)
        running.append((running[-1] and not ended) or w.Start() in effects)
    if running[-1]:
        return
    for now in range(2000, 4000, 100):
        unchecked = state.stage is Stage.CHECKING
        state, effects = step(state, w.Ticked(float(now)))
        if w.Requeue() in effects:
            state, effects = step(state, w.Requeued(float(now)))
        if state.stage is Stage.REQUEUING:
            state, effects = step(state, w.Requeued(float(now)))
        if w.Start() in effects:
            # a requeue would end another's program, or all wait for the first: ours runs again;
            # and so it does where nobody knows whether what it saved is whole
            assert unchecked or not (state.alone and state.leads)
            return
    assert state.stage is Stage.OVER
