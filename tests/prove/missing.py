"""Rules of a hand-over, each with what is put in its place where it is to be missing."""

from __future__ import annotations

from pliant import handover
from pliant.batch.slurm import handing
from pliant.handover import Do, Step

Mutants = dict[str, tuple[object, str, object]]

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
    "it is never given up": (handover, "_given_up", lambda _over, _scene: None),
}
