"""Rules of a hand-over, each with what is put in its place where it is to be missing."""

from __future__ import annotations

from pliant import handover
from pliant.batch.slurm import handing
from pliant.daemon.elastic import Elastic
from pliant.daemon.handing import HandOvers
from pliant.daemon.remembering import Remembering
from pliant.errors import Infeasible
from pliant.handover import Do, Step
from pliant.node import slurm
from pliant.store import Store

Mutants = dict[str, tuple[object, str, object]]


def _refuses(*_: object) -> None:
    raise Infeasible("no")


ON_SLURM: Mutants = {
    "no fence": (handover, "_fenced", lambda *_: None),
    "no pin": (
        handover,
        "_before_requeue",
        lambda _over, scene: handover._fenced(scene, scene.fence_least_s) or Step(Do.REQUEUE),
    ),
    "the fence falls before it may begin": (handover, "SOON_S", 0.0),
    "an owner's update is not seen": (handing, "stands", lambda *_: True),
    "a begin time of others is not seen": (handing, "begins_by_others", lambda *_: False),
    "nothing is released": (handing.Handing, "_release", lambda *_: None),
    "a killed start is not seen": (handing.Handing, "_was_killed", lambda *_: False),
    "no shape is asked": (handing.Handing, "_reshape", _refuses),
    "it is never given up": (handover, "_given_up", lambda _over, _scene: None),
    "what Slurm has forgotten stays so": (HandOvers, "forgotten", lambda *_: False),
}

OF_PLIANTD: Mutants = {
    "a hand-over is not stored": (Store, "hand_over", lambda _store, _row: 0),
    "a checkpoint is not stored": (Store, "saved", lambda *_: None),
    "its end is not stored": (Store, "handed_over", lambda *_: None),
    "nothing is gone on with at the start": (HandOvers, "resume", lambda *_: None),
    "a checkpoint is not heard of": (HandOvers, "saved", lambda *_: True),
    "one that comes late is refused": (HandOvers, "saved_late", lambda *_: False),
    "a run that nobody has ended may send a later one back": (slurm, "is_over", lambda *_: False),
    "one that failed is not heard of": (HandOvers, "failed", lambda *_, **__: None),
    "nothing is withdrawn": (HandOvers, "withdraw", lambda *_: None),
    "what hand-overs left is not taken away": (Elastic, "_do", lambda *_: None),
    "nor are their fences": (Elastic, "_unfence", lambda *_: None),
    "nothing is given back": (Elastic, "give_back", lambda *_: None),
    "how jobs ended is not asked": (Remembering, "_ended_now", lambda _self: None),
}
"""What :mod:`prove.explore` does not run: pliantd's own part, and what a wrapper asks of Slurm."""
