"""What a wrapper does, decided purely: from where a run stands and what happens to what is done.

::

    RUNNING ──wish──▶ ASKED ──too late, withdrawn, untold──▶ RUNNING
       │                │
       │ saved (late)   │ saved (exit 85, or said so)            another exit, from either: OVER
       └───────┬────────┘
               ▼
           GATHERING ──all tasks have ended──▶ HANDING ──────silence──────▶ REQUEUING
         (several tasks)                          │                         │      │
               │                     ended by Slurm, OVER           done: LEAVING  refused:
           FOLLOWING (tasks that do not lead) ──what the first says         │      RUNNING, started
                                                                           OVER    again in place

Before HANDING stands CHECKING where the job's owner named the checkpoint: one that is not new and
whole leads to no requeue, and the program is started again in place.

Of several tasks the first one tells the others of a wish, by a file that all nodes share, before it
asks its own program: where that file system hangs none of them is asked.

What cannot happen in a stage changes nothing: answers come late and twice. A program that saved on
request and ended is never lost: pliantd requeues the job; where it is silent, we do; where that is
refused (no scontrol here, a job that may not be requeued), the program is started again right here
at its old shape. So it is where another wrapper of the job runs a program that a requeue would end,
and where pliantd says that the job stays: it could not start again now. Where that start fails it
is tried for a minute (STARTING); then the job is requeued after all, for its checkpoint is there;
and both in turn for ten minutes, where that fails. That does not go round: a next run whose program
cannot be started fails. On PBS our own end
requeues the job (``returns``): there is nobody to wait for, unless PBS would not learn of that end:
then it is as on Slurm. Where a task fails when it is asked, the step has failed: all end with its
exit code.
After a TERM nothing of it is done: somebody else ends the job, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pliant.node.words import (
    CHECKPOINTED,
    Answered,
    Ask,
    AskWhy,
    Beaten,
    Beside,
    Check,
    Checked,
    Decided,
    Effect,
    Ended,
    Event,
    Exit,
    Gather,
    Gathered,
    Learnt,
    Lost,
    NotStarted,
    Orphaned,
    Parted,
    Pass,
    Prompt,
    Prompted,
    ReportEnd,
    ReportFailed,
    ReportSaved,
    Requeue,
    Requeued,
    Say,
    Signalled,
    Spread,
    Stage,
    Start,
    Started,
    State,
    Stays,
    Tell,
    Ticked,
    Told,
    Untold,
    Wish,
    Wished,
    Withdraw,
)
from pliant.wire.runs import TAKE_OVER_S

SILENT_S = 20.0
"""How long pliantd may be silent to a saved checkpoint: longer than its restart."""
GATHER_S = 10.0
"""How long the other tasks may take beyond the first one's end, at least."""
CHECK_S = 15.0
"""How long a look at the checkpoint may take: a file system may not answer."""
FOLLOW_S = SILENT_S + 3 * TAKE_OVER_S
"""How long a task waits for the first one's decision, at most."""
TRY_S = 5.0
"""How soon it is tried again to start a program in place."""
TRIES_S = 60.0
"""For how long: a file system that was away, or a node without a process to give, may be well again
by then, and a requeue costs the job its place."""
ROUNDS = 9
"""How often both are tried again where the job cannot be requeued either: for ten minutes."""
SEVERAL = (
    "another `pliant run` of this job speaks to pliantd: neither is asked for checkpoints; "
    "one for each job, or one srun of it"
)
LEAST_S = 1.0
"""What a program is given at least, whatever the clocks say."""
NEAR_S = 2.0
"""A wish that is withdrawn so near to its end is over: pliantd's clock and ours look in turns."""
TERM = 15
ENDING = frozenset({1, 2, 3, TERM})  # HUP, INT, QUIT: none of our waiting outlasts them

Next = tuple[State, tuple[Effect, ...]]


def step(state: State, event: Event) -> Next:
    """Return where the run stands after ``event``, and what is to be done, in order."""
    handle = _ON.get((state.stage, type(event)))
    return handle(state, event) if handle else (state, ())


# While the program runs


def _wished(state: State, event: Wished) -> Next:
    wish = event.wish
    if wish is None:
        return _withdrawn(state, event.at_s)
    if state.termed or state.deaf or wish.id == state.seen:
        return state, ()
    asked = replace(
        state,
        stage=Stage.ASKED,
        prompted=False,  # for this one
        wish=wish,
        seen=wish.id,
        asked_s=event.at_s,
        until_s=event.at_s + max(LEAST_S, wish.left_s),
        told=not (state.leads and state.ranks > 1),
    )
    return asked, _ask(asked, wish) if asked.told else (Spread(wish),)


def _ask(state: State, wish: Wish) -> tuple[Effect, ...]:
    return (Ask(wish), Prompt()) if state.signal else (Ask(wish),)


def _told(state: State, event: Told) -> Next:
    """Ask the program too, once the other tasks can see the wish; else none of them is."""
    if state.told or state.wish is None or event.wish != state.seen:
        return state, ()
    if event.trouble:
        return _untold_with_others(state, event.trouble)
    wish = replace(state.wish, left_s=state.until_s - event.at_s)
    return replace(state, told=True), _ask(state, wish)


def _withdrawn(state: State, at_s: float) -> Next:
    if state.stage is not Stage.ASKED:
        return _calm(state), ()
    if at_s >= state.until_s - NEAR_S:
        return _too_late(state, at_s)
    return _calm(state), (Withdraw(),)


def _learnt(state: State, event: Learnt) -> Next:
    return replace(state, signal=event.signal), ()


def _lost(state: State, event: Lost) -> Next:
    if not state.leads:  # the first task alone looks, and speaks with pliantd
        return state, ()
    if event.task is None:
        return replace(state, deaf=False), ()
    deaf = replace(state, deaf=True, late=True)
    words = f"task {event.task} has lost its wrapper"
    says = Say(f"{words}: no checkpoint is asked for any more")
    if state.stage is not Stage.ASKED or state.wish is None:
        return deaf, (says,)
    return _calm(deaf), (says, Withdraw(), ReportFailed(state.wish, words))


def _calm(state: State) -> State:
    """The program is not asked any more; its wish stays known, for it may still meet it."""
    return replace(state, stage=Stage.RUNNING, until_s=float("inf"), prompted=False)


def _prompted(state: State, _event: Prompted) -> Next:
    return replace(state, prompted=True), ()


def _untold(state: State, event: Untold) -> Next:
    """Nothing is awaited of a program that does not know of it.

    One that is told by a signal does. One of another task may learn it from the first one's.
    """
    if state.signal or not state.leads or state.wish is None:
        return state, ()
    return _unasked(state, f"the program could not be told ({event.trouble})")


def _untold_with_others(state: State, trouble: str) -> Next:
    return _unasked(state, f"the program was not told, as the other tasks could not be ({trouble})")


def _unasked(state: State, words: str) -> Next:
    if state.wish is None:  # its guardian was killed meanwhile, which is said
        return _calm(state), (Withdraw(),)
    says = Say(f"no checkpoint was made: {words}; it runs on")
    return _calm(state), (Withdraw(), says, ReportFailed(state.wish, words, untold=True))


def _ticked_asked(state: State, event: Ticked) -> Next:
    if event.at_s < state.until_s:
        prompts = state.signal and state.told and not state.prompted
        return state, (Prompt(),) if prompts else ()
    return _too_late(state, event.at_s)


def _too_late(state: State, at_s: float) -> Next:
    if not state.told:
        return _untold_with_others(state, "their directory does not answer")
    words = "no checkpoint within the grace period"
    if state.signal and not state.prompted:
        words = f"the program does not handle signal {state.signal}, which would have killed it"
    return _calm(state), (Withdraw(), *_failed(state, words, at_s))


def _failed(state: State, words: str, at_s: float) -> tuple[Effect, ...]:
    if not state.leads or state.wish is None:
        return ()
    says = f"no checkpoint was made: {words}; {_goes_on(state, at_s)}"
    return (Say(says), ReportFailed(state.wish, words))


def _goes_on(state: State, at_s: float) -> str:
    """Say whether the program runs on, as far as its heartbeats tell."""
    silent_s = at_s - state.beat_s
    if not state.beat_s or silent_s < (at_s - state.asked_s) / 2:
        return "the program runs on"
    return f"the program's last heartbeat was {silent_s:.0f} s ago"


def _beaten(state: State, event: Beaten) -> Next:
    return replace(state, beat_s=event.at_s), ()


def _signalled_running(state: State, event: Signalled) -> Next:
    on = () if event.reached else (Pass(event.number),)
    if event.number != TERM or state.termed:
        return state, on
    return replace(state, termed=True), (*on, AskWhy())


def _orphaned_running(state: State, _event: Orphaned) -> Next:
    """Nothing keeps the job's place: as after a TERM, what is saved is reported and no more.

    Not for a whole step: what its other tasks do reaches us no more.
    """
    says = Say("its guardian was killed: the program is told to end")
    wish = state.wish if state.ranks == 1 else None
    return replace(state, termed=True, wish=wish), (says,)


# The program has ended


def _ended(state: State, event: Ended) -> Next:
    if state.wish is not None and event.saved:
        return _saved(state, state.wish, event.at_s)
    code = event.code if event.code >= 0 else 128 - event.code
    effects: list[Effect] = [Gather(code)] if state.ranks > 1 else []
    if state.wish is not None and state.prompted and event.code == -state.signal:
        words = f"the program was killed by the signal that it asked for, {state.signal}"
        effects.append(Say(f"{words}: it has no handler for it, and nothing was saved"))
        effects += [ReportFailed(state.wish, words)] if state.leads else []
    if state.leads:
        effects.append(ReportEnd(code, state.termed))
    if state.stage is Stage.ASKED:
        effects += _end(state, code)
    return _over(state, code, *effects)


def _saved(state: State, wish: Wish, at_s: float) -> Next:
    several = (Gather(),) if state.ranks > 1 else ()
    if state.termed:
        report = (ReportSaved(wish, at_s - state.asked_s, last=True),) if state.leads else ()
        return _over(state, CHECKPOINTED, Withdraw(), *several, *report)
    if not state.leads:
        waits = replace(state, stage=Stage.FOLLOWING, until_s=at_s + FOLLOW_S, late=False)
        return waits, (Withdraw(), *several)
    if several:
        late = state.stage is not Stage.ASKED or not state.told
        until_s = at_s + GATHER_S if late else max(at_s + GATHER_S, state.until_s)
        gathers = replace(state, stage=Stage.GATHERING, until_s=until_s, late=late)
        return gathers, (Withdraw(), *several)
    handing, effects = _hand(state, wish, at_s)
    return handing, (Withdraw(), *effects)


def _over(state: State, code: int, *effects: Effect) -> Next:
    return replace(state, stage=Stage.OVER), (*effects, Exit(code))


# Saved: who requeues?


def _gathered(state: State, event: Gathered) -> Next:
    if event.failed is None:
        return _hand(state, _wish(state), event.at_s)
    task, code = event.failed
    words = f"task {task} has not saved, it ended with exit code {code}: the job is not requeued"
    return _over(state, code, Say(words), ReportEnd(code, state.termed), *_end(state, code))


def _wish(state: State) -> Wish:
    """What the program has saved for: no stage after its end is without one."""
    assert state.wish is not None  # noqa: S101  # else it has not saved on request
    return state.wish


def _ticked_gathering(state: State, event: Ticked) -> Next:
    if event.at_s < state.until_s:
        return state, ()
    words = "not every task has ended after its checkpoint"
    if state.late:  # it may not have been asked, or not for long enough
        running, effects = _go_on(state)
        return running, (Say(words), *effects, ReportFailed(_wish(state), words))
    handing, effects = _hand(state, _wish(state), event.at_s)
    return handing, (Say(words), *effects)


def _hand(state: State, wish: Wish, at_s: float) -> Next:
    if not state.alone:
        return _go_on(state)
    if wish.checkpoint:
        return replace(state, stage=Stage.CHECKING, until_s=at_s + CHECK_S), (Check(wish),)
    return _hand_over(state, wish, at_s)


def _checked(state: State, event: Checked) -> Next:
    if event.trouble:
        words = f"the checkpoint is not new and whole: {event.trouble}"
        running, effects = _go_on(state)
        return running, (Say(words), *effects, ReportFailed(_wish(state), words))
    return _hand_over(state, _wish(state), event.at_s) if state.alone else _go_on(state)


def _ticked_checking(state: State, event: Ticked) -> Next:
    if event.at_s < state.until_s:
        return state, ()
    words = f"{_wish(state).checkpoint} could not be looked at within {CHECK_S:.0f} s"
    return _checked(state, Checked(event.at_s, words))


def _hand_over(state: State, wish: Wish, at_s: float) -> Next:
    until_s = at_s + SILENT_S
    handing = replace(state, stage=Stage.HANDING, until_s=until_s, most_s=float("inf"))
    return handing, (ReportSaved(wish, at_s - state.asked_s),)


def _go_on(state: State) -> Next:
    running, start = _again(state)
    return running, (Say("the program goes on here"), Tell(again=True), *start)


def _beside(state: State, event: Beside) -> Next:
    known = replace(state, alone=not event.others)
    says = (Say(SEVERAL),) if event.others and state.alone else ()
    if not event.others or state.stage is not Stage.HANDING:
        return known, says
    running, effects = _go_on(known)
    return running, (*says, *effects)


def _answered(state: State, event: Answered) -> Next:
    if state.returns:
        return _leave(state)
    most_s = min(state.most_s, event.at_s + TAKE_OVER_S)
    return replace(state, most_s=most_s, until_s=min(most_s, event.at_s + SILENT_S)), ()


def _parted(state: State, _event: Parted) -> Next:
    if not state.returns:
        return state, ()
    words = "no pbs_mom would see this run end: it waits here for pliantd to send the job back"
    return replace(state, returns=False), (Say(words),)


def _ticked_handing(state: State, event: Ticked) -> Next:
    return (state, ()) if event.at_s < state.until_s else _requeue(state)


def _requeue(state: State) -> Next:
    if state.returns:
        return _leave(state)
    return replace(state, stage=Stage.REQUEUING, until_s=float("inf")), (Requeue(),)


def _requeued(state: State, event: Requeued) -> Next:
    if not event.trouble:
        return replace(state, stage=Stage.LEAVING, until_s=event.at_s + TAKE_OVER_S), ()
    if state.unstarted:
        return _not_requeued(state, event)
    return _goes_on_here(state, event.trouble)


def _stays(state: State, _event: Stays) -> Next:
    return _goes_on_here(state, "it could not start again now, or is to stay, pliantd says")


def _goes_on_here(state: State, trouble: str) -> Next:
    running, start = _again(state)
    words = f"the job could not be requeued ({trouble}): the program goes on here"
    report = ReportFailed(_wish(state), words)
    return running, (Say(words), Tell(again=True), *start, report)


def _again(state: State) -> Next:
    return replace(_calm(state), wish=None), (Start(),)


# To go on in place, and it cannot be started


def _not_started(state: State, event: NotStarted) -> Next:
    first = state.stage is not Stage.STARTING
    if not first and event.at_s >= state.most_s:
        return _unstartable(state, event)
    tries = replace(state, stage=Stage.STARTING, until_s=event.at_s + TRY_S)
    if not first:
        return tries, ()
    words = f"the program could not be started again ({event.trouble})"
    says = Say(f"{words}: it is tried for {TRIES_S:.0f} s")
    return replace(tries, most_s=event.at_s + TRIES_S), (says,)


def _ticked_starting(state: State, event: Ticked) -> Next:
    if event.at_s < state.until_s:
        return state, ()
    return replace(state, until_s=float("inf")), (Start(),)


def _started(state: State, _event: Started) -> Next:
    running = replace(_calm(state), most_s=float("inf"), unstarted=0, rounds=0)
    return running, (Say("the program was started again"),)


def _unstartable(state: State, event: NotStarted) -> Next:
    """Send the job back, unless that would end what another task or wrapper of it runs."""
    words = f"the program cannot be started again ({event.trouble})"
    if state.ranks > 1 or not (state.leads and state.alone):
        return _ends_unstarted(state, event.at_s, event.code, words)
    requeuing, effects = _requeue(replace(state, unstarted=event.code))
    says = () if state.rounds else (Say(f"{words}: the job goes back to the queue"),)
    return requeuing, (*says, *effects)


def _not_requeued(state: State, event: Requeued) -> Next:
    """Try all of it again: slurmctld may be away, or this node have no process to give."""
    if state.rounds >= ROUNDS:
        words = f"the job could not be requeued ({event.trouble}); its checkpoint stays"
        return _ends_unstarted(state, event.at_s, state.unstarted, words)
    until_s, most_s = event.at_s + TRY_S, event.at_s + TRIES_S
    tries = replace(state, stage=Stage.STARTING, rounds=state.rounds + 1)
    return replace(tries, until_s=until_s, most_s=most_s), ()


def _ends_unstarted(state: State, at_s: float, code: int, words: str) -> Next:
    """End as where the first start fails."""
    over, effects = _ended(state, Ended(at_s, code, saved=False))
    return over, (Say(words), *effects)


# Whoever ends what waits


def _signalled_waiting(state: State, event: Signalled) -> Next:
    return _leave(state) if event.number in ENDING else (state, ())


def _orphaned_waiting(state: State, event: Orphaned) -> Next:
    """Say once more what pliantd may not have heard; the other tasks wait on."""
    says = Say("its guardian was killed; the program has saved and ended")
    told = state.wish if state.stage in (Stage.CHECKING, Stage.HANDING) else None
    took_s = event.at_s - state.asked_s
    return _over(
        state, CHECKPOINTED, says, *((ReportSaved(told, took_s, last=True),) if told else ())
    )


def _ticked_leaving(state: State, event: Ticked) -> Next:
    return (state, ()) if event.at_s < state.until_s else _leave(state)


def _leave(state: State) -> Next:
    return _over(state, CHECKPOINTED, *_end(state, CHECKPOINTED))


def _end(state: State, code: int) -> tuple[Effect, ...]:
    """Let those end that have saved and wait for us; go on, where ours has finished its work."""
    waits = state.leads and state.ranks > 1 and state.wish is not None
    tell = Tell(again=False, code=code) if code else Tell(again=True)
    return (tell,) if waits else ()


def _wished_following(state: State, event: Wished) -> Next:
    """Wait no longer than a late first task may take where its wish is withdrawn."""
    withdrawn = event.wish is None or event.wish.id != state.seen
    if withdrawn == state.late:
        return state, ()
    until_s = event.at_s + (GATHER_S if withdrawn else FOLLOW_S)
    return replace(state, late=withdrawn, until_s=until_s), ()


def _ticked_following(state: State, event: Ticked) -> Next:
    if event.at_s < state.until_s:
        return state, ()
    running, start = _again(state)
    words = "the checkpoint is not wanted any more" if state.late else "task 0 is silent"
    return running, (Say(f"{words}: the program goes on here"), *start)


def _decided(state: State, event: Decided) -> Next:
    return _again(state) if event.again else _over(state, event.code)


_RUNS = (Stage.RUNNING, Stage.ASKED)
_WAITS = (
    *(Stage.GATHERING, Stage.CHECKING, Stage.HANDING),
    *(Stage.REQUEUING, Stage.LEAVING, Stage.FOLLOWING, Stage.STARTING),
)
_Handler = Callable[[State, Any], Next]

_ON: Mapping[tuple[Stage, type], _Handler] = {
    **{(stage, Wished): _wished for stage in _RUNS},
    **{(stage, Prompted): _prompted for stage in _RUNS},
    **{(stage, Beaten): _beaten for stage in _RUNS},
    **{(stage, Learnt): _learnt for stage in (*_RUNS, *_WAITS)},
    **{(stage, Ended): _ended for stage in _RUNS},
    **{(stage, Signalled): _signalled_running for stage in _RUNS},
    **{(stage, Orphaned): _orphaned_running for stage in _RUNS},
    **{(stage, Orphaned): _orphaned_waiting for stage in _WAITS},
    **{(stage, Lost): _lost for stage in (*_RUNS, *_WAITS)},
    **{(stage, Beside): _beside for stage in (*_RUNS, *_WAITS)},
    **{(stage, Signalled): _signalled_waiting for stage in _WAITS},
    **{(stage, Parted): _parted for stage in _WAITS},
    (Stage.ASKED, Told): _told,
    (Stage.ASKED, Untold): _untold,
    (Stage.ASKED, Ticked): _ticked_asked,
    (Stage.GATHERING, Gathered): _gathered,
    (Stage.GATHERING, Ticked): _ticked_gathering,
    (Stage.CHECKING, Checked): _checked,
    (Stage.CHECKING, Ticked): _ticked_checking,
    (Stage.HANDING, Answered): _answered,
    (Stage.HANDING, Ticked): _ticked_handing,
    (Stage.HANDING, Stays): _stays,
    (Stage.REQUEUING, Requeued): _requeued,
    (Stage.LEAVING, Ticked): _ticked_leaving,
    (Stage.FOLLOWING, Wished): _wished_following,
    (Stage.FOLLOWING, Ticked): _ticked_following,
    (Stage.FOLLOWING, Decided): _decided,
    **{(stage, NotStarted): _not_started for stage in (Stage.RUNNING, Stage.STARTING)},
    (Stage.STARTING, Started): _started,
    (Stage.STARTING, Ticked): _ticked_starting,
}
"""What each event does in the stages in which it can happen."""
