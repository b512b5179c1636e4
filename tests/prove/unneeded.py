"""Decisions that make no difference where they are taken out, each with the reason for it."""

from __future__ import annotations

from collections.abc import Mapping

_ONCE = (
    "it is quicker: what was told of an earlier job of a number is forgotten once, not each look"
)

_BOUND = "it is bound where a function that has it as default is defined, before it is taken out"

UNNEEDED: Mapping[str, str] = {
    "pliant.batch.slurm.lent.giving_back: if not any((key in then for key in _LENT)): never": (
        "it is quicker: of nearly all jobs, at each look, there is nothing to give back"
    ),
    "pliant.daemon.elastic.Elastic._meet: job.id not in self._met": _ONCE,
    "pliant.daemon.elastic.Elastic._meet: self._met = frozenset((job.id for job in jobs))": _ONCE,
    "pliant.daemon.elastic.Elastic.looked: if not self._resumed: always": (
        "it is quicker: what the store has under way is all known from the first look on"
    ),
    "pliant.daemon.elastic.Elastic._waiting: if measured: always": (
        "it is quicker: what has no speeds is not copied to have none"
    ),
    "pliant.daemon.elastic.Elastic._waiting: if job.is_trial: always": (
        "it is quicker: of none but trial jobs it is kept that they did not start"
    ),
    "pliant.daemon.foreseen.foreseen: for ... if to.guest": (
        "of who has no guest nobody's request is known, so nobody is put in its place"
    ),
    "pliant.daemon.places.Places.is_open: if wanted.guest: always": (
        "no job that waits is without a number"
    ),
    "pliant.daemon.places.Places._kept_by: if self._caps is None: always": (
        "it is quicker: of what was seen limits are added up once"
    ),
    "pliant.daemon.handing.HandOvers.forgotten: not over.saved_s": (
        "what was never saved was saved at no time, which is too long ago"
    ),
    "pliant.daemon.handing.HandOvers._as_it_runs: scene.job.state is JobState.RUNNING": (
        "of a job that waits, or is over, in the run that is handed over nobody asks when that ended"
    ),
    "pliant.batch.slurm.handing._waits_next: row.state == 'COMPLETING'": (
        "who runs waits for no time, no job and no room, and one that is suspended is seen as held"
        " either way"
    ),
    "pliant.batch.pbs.fences.Fences.let_in: known.fence.lets != whom": (
        "it is quicker: what the hooks are told is not written again as it is"
    ),
    "pliant.batch.pbs.handing.Handing._still: lets": (
        "it is quicker: of a fence that lets nobody in PBS is not asked"
    ),
    "pliant.batch.pbs.handing._lets_guest: over.guest": ("no fence lets in who has no name"),
    "pliant.node.core._unstartable: state.leads": "who is the only task leads",
    "pliant.daemon.handing.UNNUMBERED: '' in UNNUMBERED": _BOUND,
    "pliant.daemon.handing.UNNUMBERED: 0 in UNNUMBERED": _BOUND,
}
