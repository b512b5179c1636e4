"""``python -m prove.traced LOG...``: holds the fake of Slurm to what slurmctld's logs have shown.

Each line of a log that says what slurmctld did is told to the fake at the same time, which must
take it: what the log shows and the fake does not do is printed, with 1 as exit status. So is what
was seen how often. Of what else the fake does a log of slurmctld's says nothing: that a pass of
backfill writes a priority back, how long a run takes to end, which GPUs are whose.

A slurmctld that starts has forgotten something: of each job what is seen of it next is taken.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pliant.handover import OURS
from prove.changed import changed
from prove.edges import changed_jobs, edges
from prove.fake_slurm import BY_OWNER, REQUEUE_S, FakeSlurm, Jobs, Record
from prove.world import Rejected

ROUNDED_S = 1.0
"""Slurm's instants are whole seconds."""
SOON_S = 1.5
"""Within how long of the end of a reservation the pass that it starts comes."""
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT[\d:.]+)\] (?:error: )?(.*)")
KNOWN = (
    *(
        "a job is sent back, for its node fails or refuses it",
        "a job is held, for its start failed",
    ),
    "a job starts after its requeue, as it is",
    "a job's priority is set: it is held",
)
"""What the fake does that may be in no log."""
Groups = tuple[str, ...]


class Unlike(Exception):
    """A log shows what the fake does not do."""


class Traced:
    """The fake, told what a log says; ``seen`` counts what that was, ``edges``: see prove.edges."""

    def __init__(self) -> None:
        """Begin with a cluster of which nothing is known."""
        self.fake = FakeSlurm(Jobs({}, {}), 0.0, ("n1", "n2"))
        self.fake.cleaning_s = 0.0  # the log says when it is over
        self.seen: Counter[str] = Counter()
        self.edges: set[str] = set()
        self._forgotten: set[int] = set()  # jobs of which slurmctld may know less than we do
        self._vague: set[int] = set()  # jobs of which it may have done so: no edge of theirs counts
        self._before = self.fake.state  # as it was before the line that it is told
        self._opened_s = 0.0  # when the last reservation ended
        self._begins_s: dict[int, float] = {}  # what somebody has said of that
        self._had: dict[int, int] = {}  # GPUs, as it ran last; 0: what it was submitted with
        self._failed: dict[int, bool] = {}  # whether its script has, which has just ended
        self._early: dict[int, str] = {}  # what was refused of one that ends, as the log says later

    def told(self, at_s: float, text: str) -> None:
        """Tell the fake one line. Raises Unlike."""
        self.fake.pass_to(at_s)
        for pattern, does in _EVENTS:
            found = pattern.match(text)
            if found:
                self._before = self.fake.state
                does(self, found.groups())
                self._note()

    def _note(self) -> None:
        """Note the edges that the log has shown just now."""
        self._vague |= self._forgotten
        before, after = self._before, self.fake.state
        for number in changed_jobs(before, after) - self._vague:
            self.edges.update(edges(before, after, number))

    # --- what slurmctld does ---------------------------------------------------------------

    def begins(self, _found: Groups) -> None:
        self._forgotten |= self.fake.state.jobs.keys()
        self.fake.state = self.fake.state.with_fences({}, {})
        self.seen["slurmctld starts, and may have forgotten its last seconds"] += 1

    def goes_down(self, found: Groups) -> None:
        """Let a node go down: of a run that ends just then slurmctld does not say that it has."""
        jobs = self.fake.state.jobs.values()
        self._forgotten |= {job.number for job in jobs if job.has_gpus and found[0] in job.on}
        self.seen["a node goes down"] += 1

    def recovers(self, found: Groups) -> None:
        self._fence(found[0], ("n1",), self.fake.now_s + REQUEUE_S)

    def submits(self, found: Groups) -> None:
        number = int(found[0])
        self._keep(Record(number, gpus=0, submit_s=self.fake.now_s, begin_s=self.fake.now_s))
        self.seen["a job is submitted"] += 1

    def starts(self, found: Groups) -> None:
        """Start a job: it must be one that the fake could start there, and then."""
        job, node = self._job(found[0]), found[1]
        after_requeue = "after its requeue" if job.run else "for the first time"
        if job.number not in self._forgotten:
            self._may_start(job, node)
            begins = "as it was told to" if job.number in self._begins_s else "as it is"
            self.seen[f"a job starts {after_requeue}, {begins}"] += 1
        if self.fake.now_s - self._opened_s <= SOON_S and job.priority in OURS:
            self.seen["a pinned job starts in the pass that the end of a reservation starts"] += 1
        runs = changed(job, state="RUNNING", on=(node,), priority=job.priority or 1)
        self._keep(changed(runs, start_s=float(int(self.fake.now_s))))
        self._forgotten.discard(job.number)
        self._begins_s.pop(job.number, None)
        self._had[job.number] = job.gpus

    def _may_start(self, job: Record, node: str) -> None:
        wrong = (
            (not job.waits, f"it is {job.state}"),
            (job.priority == 0, "it is held"),
            (job.begin_s > self.fake.now_s + ROUNDED_S, f"it begins {_ahead(self.fake, job)}"),
            (node not in self.fake.open(), f"{node} is reserved: {self.fake.state.fences}"),
            *(
                (True, f"job {one.number} waits there, with a pin")
                for one in self._first(job, node)
            ),
        )
        for is_so, words in wrong:
            if is_so:
                raise Unlike(f"job {job.number} starts: {words}")

    def _first(self, job: Record, node: str) -> Iterator[Record]:
        """Who waits to be first on a node that it has left, and asks for no more than it had.

        How much a job was submitted with no log says.
        """
        for one in self.fake.state.jobs.values() if job.priority not in OURS else ():
            waits = one.waits and one.priority in OURS and one.number not in self._forgotten
            fits = node in one.on and one.gpus <= self._had.get(one.number, 0)
            if waits and fits and one.begin_s <= self.fake.now_s - SOON_S:
                yield one

    def requeues(self, found: Groups) -> None:
        """Requeue a job: slurmctld says so once its run has ended."""
        job = self._job(found[0])
        if job.number in self._forgotten:
            job = changed(job, state="RUNNING")
            self._keep(job)
        early = self._early.pop(job.number, "")
        if early:
            self.seen[f"a requeue is refused, of one that ends by another: {early}"] += 1
        self._told(f"a job that is {job.state} is requeued", "requeue", found[0])
        self.fake.pass_to(self.fake.now_s)  # so that it waits
        self._forgotten.discard(job.number)
        self._begins_s.pop(job.number, None)

    def refuses_requeue(self, found: Groups) -> None:
        job = self._job(found[0])
        if job.number in self._forgotten:
            return
        if job.runs:
            self._early[job.number] = found[1]
            return
        try:
            self.fake.told(("requeue", found[0]))
        except Rejected as error:
            if str(error) != found[1]:
                raise Unlike(f"job {found[0]}: {found[1]}: the fake says {error}") from None
            self.seen[f"a requeue is refused: {error}"] += 1
        else:
            raise Unlike(f"job {found[0]}: {found[1]}: the fake requeues it")

    def goes_back(self, _found: Groups) -> None:
        """Count why a job is sent back, which follows."""
        self.seen["a job is sent back, for its node fails or refuses it"] += 1

    def exits(self, found: Groups) -> None:
        self._failed[int(found[0])] = found[2] != "0"

    def ends(self, found: Groups) -> None:
        number = self._job(found[0]).number
        state = "FAILED" if self._failed.pop(number, False) else "COMPLETED"
        self.fake.end(number, state)
        self._forgotten.discard(number)
        self.seen[f"a job ends: {state}"] += 1

    def cancels(self, found: Groups) -> None:
        """Cancel a job that waits; one that runs may have been sent any signal: its end tells."""
        job = self._job(found[0])
        if job.waits:
            self.fake.cancel(job.number)
        self.seen[f"a job that is {job.state} is cancelled, or sent a signal"] += 1

    def begins_at(self, found: Groups) -> None:
        self._begins_s[int(found[1])] = _instant(found[0])
        self._updated("a job is told when to begin", found[1], f"StartTime={found[0]}")

    def asks(self, found: Groups) -> None:
        self._updated("a job's GPUs are changed", found[1], f"Gres=gpu:{found[0]}")

    def prior(self, found: Groups) -> None:
        job, priority = self._job(found[1]), int(found[0])
        reason = BY_OWNER if not priority else job.reason
        self._keep(changed(job, priority=priority, reason=reason))
        what = "is held" if not priority else "is pinned" if priority > 10**9 else "has its own"
        self.seen[f"a job's priority is set: it {what}"] += 1

    def is_released(self, found: Groups) -> None:
        """Release a job: it was held, though of one that was so in its requeue no line says it."""
        job = self._job(found[0])
        self._keep(changed(job, priority=0))
        self._before = self.fake.state
        self._keep(changed(job, priority=1, reason="None"))
        self.seen["a job is released"] += 1

    def reserves(self, found: Groups) -> None:
        self._fence(found[0], (found[1],), _instant(found[2]))
        self.seen["a reservation is made"] += 1

    def frees(self, found: Groups) -> None:
        self._fence(found[0], None, 0.0)
        self._opened_s = self.fake.now_s
        self.seen["a reservation is ended"] += 1

    def early(self) -> Iterable[tuple[int, str]]:
        """Return what was refused of jobs that run, and did not end then."""
        return self._early.items()

    # --- what of that is kept --------------------------------------------------------------

    def _job(self, number: str) -> Record:
        jobs = self.fake.state.jobs
        if int(number) not in jobs:
            self._keep(Record(int(number), gpus=0))
            self._forgotten.add(int(number))
        return self.fake.state.jobs[int(number)]

    def _keep(self, job: Record) -> None:
        self.fake.state = self.fake.state.with_job(job)

    def _fence(self, name: str, nodes: Groups | None, end_s: float) -> None:
        fences, fenced = {**self.fake.state.fences}, {**self.fake.state.fenced}
        if nodes is None:
            fences.pop(name, None)
            fenced.pop(name, None)
        else:
            fences[name], fenced[name] = end_s, nodes
        self.fake.state = self.fake.state.with_fences(fences, fenced)

    def _updated(self, what: str, number: str, word: str) -> None:
        job = self._job(number)
        if job.number in self._forgotten:
            self._keep(changed(job, state="PENDING"))
        self._told(what, "update", f"jobid={number}", word)

    def _told(self, what: str, *words: str) -> None:
        try:
            self.fake.told(words)
        except Rejected as error:
            raise Unlike(f"{' '.join(words)}: the fake refuses it: {error}") from None
        self.seen[what] += 1


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _ahead(fake: FakeSlurm, job: Record) -> str:
    return f"{job.begin_s - fake.now_s:.1f} s later"


_Does = Callable[[Traced, Groups], None]
_PATTERNS: Mapping[str, _Does] = {
    r"slurmctld version \S+ started": Traced.begins,
    r"Recovered state of reservation (\S+)": Traced.recovers,
    r"update_node: node (\S+) state set to DOWN": Traced.goes_down,
    r"_slurm_rpc_submit_batch_job: JobId=(\d+) ": Traced.submits,
    r"sched: Allocate JobId=(\d+) NodeList=(\S+) ": Traced.starts,
    r"sched/backfill: _start_job: Started JobId=(\d+) in \S+ on (\S+)": Traced.starts,
    r"Requeuing JobId=(\d+)": Traced.requeues,
    r"_slurm_rpc_requeue: Requeue of JobId=(\d+) returned an error: (.*)": Traced.refuses_requeue,
    r"(?:requeue|Requeue)\S* (?:job )?JobId=(\d+) due to": Traced.goes_back,
    r"_job_complete: JobId=(\d+) (WEXITSTATUS|WTERMSIG) (\d+)": Traced.exits,
    r"_job_complete: JobId=(\d+) done": Traced.ends,
    r"sched: _release_job_rec: release hold on JobId=(\d+) ": Traced.is_released,
    r"_slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=(\d+) ": Traced.cancels,
    r"sched: _update_job: setting begin to (\S+) for JobId=(\d+)": Traced.begins_at,
    r"sched: _update_job: setting tres_per_node:gres:gpu:(\d+) for JobId=(\d+)": Traced.asks,
    r"sched: _update_job: set priority to (\d+) for JobId=(\d+)": Traced.prior,
    r"sched: (?:Created|Updated) reservation=(\S+) .*nodes=(\S+) .*end=(\S+)": Traced.reserves,
    r"_slurm_rpc_delete_reservation complete for (\S+)": Traced.frees,
}
_EVENTS = [(re.compile(pattern), does) for pattern, does in _PATTERNS.items()]


def traced(lines: Iterable[str]) -> tuple[Counter[str], list[str]]:
    """Return what a log has shown how often, and what of it the fake does not do."""
    trace, unlike = told(lines)
    return trace.seen, unlike


def told(lines: Iterable[str]) -> tuple[Traced, list[str]]:
    """Return the fake that was told a log, and what of it that does not do."""
    trace, unlike = Traced(), list[str]()
    for line in lines:
        found = _LINE.match(line)
        if found:
            try:
                trace.told(_instant(found[1]), found[2])
            except Unlike as error:
                unlike.append(f"{found[1]}: {error}")
    unlike += [f"job {number}: {words}: it was not requeued" for number, words in trace.early()]
    return trace, unlike


def main(files: Iterable[str]) -> int:
    """Read all logs, and say what was found."""
    seen, bad = Counter[str](), 0
    read = [*files]
    for file in read:
        if not Path(file).is_file():
            print(f"{file!r}: a log of slurmctld's is expected", file=sys.stderr)
            return 2
        shown, unlike = traced(Path(file).read_text(errors="replace").splitlines())
        seen += shown
        bad += len(unlike)
        for words in unlike:
            print(f"{file}: {words}")
    if not seen:
        print(
            f"no line that says what slurmctld did in {', '.join(read) or 'no log'}: its log is expected"
        )
        return 2
    for what in sorted({*KNOWN, *seen}):
        print(f"{seen[what]:6} {what}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
