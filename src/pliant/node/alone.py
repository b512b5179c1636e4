"""What follows where a program has saved whose wrapper is lost: the guardian becomes this.

The job is to be requeued, as the wrapper would have seen to. pliantd may be about to do so, whom
the wrapper told before it died: it is waited for as a wrapper waits for a silent one. Where Slurm
refuses the requeue, ``pliant run`` begins anew in this place, and the program with it. On PBS our
own end requeues the job, where a pbs_mom sees it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pliant.node import pbs, slurm
from pliant.node.core import ENDING, FOLLOW_S, GATHER_S, SILENT_S
from pliant.node.ranks import PREFIX, Ranks
from pliant.node.run import Run, from_environment
from pliant.node.saying import say
from pliant.node.words import CHECKPOINTED, Wish
from pliant.wire.runs import TAKE_OVER_S

LOOK_S = 0.2
_NO_WISH = Wish("")


def main() -> None:
    """See to the requeue; end with CHECKPOINTED, or become ``pliant run`` once more."""
    for number in ENDING:
        signal.signal(number, lambda _number, _frame: os._exit(CHECKPOINTED))
    termed, saved, lost, *argv = sys.argv[1:]
    if saved:
        shutil.rmtree(Path(saved).parent, ignore_errors=True)
    this = from_environment(os.environ)
    if termed or (this.returns and pbs.Mom().waits()):
        os._exit(CHECKPOINTED)
    trouble = _of_tasks(this, Path(lost).parent) if lost else _requeue(this)
    if not trouble:
        time.sleep(TAKE_OVER_S)
        os._exit(CHECKPOINTED)
    say(f"{trouble}: the program goes on here")
    os.execv(sys.executable, [sys.executable, *argv])  # noqa: S606  # no shell is meant


def _requeue(this: Run) -> str:
    """Requeue the job; return "" or why that failed."""
    time.sleep(SILENT_S)
    trouble = (pbs if pbs.is_here(os.environ) else slurm).requeue(this.called, this.restarts)
    return trouble and f"the job could not be requeued ({trouble})"


def _of_tasks(this: Run, shared: Path) -> str:
    """Say that this task has saved; the first one requeues when all have, the others wait."""
    ranks = Ranks(shared.parent, shared.name.removeprefix(PREFIX), this.rank, this.ranks)
    wish = (ranks.told() or (_NO_WISH,))[0] or _NO_WISH
    ranks.ended(CHECKPOINTED, wish.id)
    if not this.leads:
        _wait(lambda: _decided(ranks) != "", FOLLOW_S)
        return "the job stays" if _decided(ranks) == "again" else ""
    _wait(lambda: ranks.all_ended(wish.id), GATHER_S)
    trouble = _requeue(this)
    if trouble:
        ranks.tell(wish, "again")
    return trouble


def _decided(ranks: Ranks) -> str:
    told = ranks.told()
    return told[1] if told else ""


def _wait(until: Callable[[], bool], at_most_s: float) -> None:
    end_s = time.monotonic() + at_most_s
    while not until() and time.monotonic() < end_s:
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
