"""Who submits what: plain jobs and those that say something to Pliant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from random import Random

from pliant.grammar import UNANSWERED, note, put_token
from pliant.grammar import parse as parse_request
from pliant.model import Spec
from pliant.wire import Message, encode
from prove.fake_slurm import Record
from prove.seeds.programs import Work
from prove.seeds.site import USERS

JOBS = 200
EVERY_S, THEN_S = 2.6, 6.0
"""How often one is submitted, on average: of so many, and then; there is to be room again."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A job as its owner writes it: ``says`` to Pliant, "" for nothing.

    Of an array there are so many ``tasks``, of which ``at_once`` may run at once, or any number.
    """

    at_s: float
    record: Record
    work: Work
    says: str = ""
    tasks: int = 1
    at_once: int = 0


USUAL = {"plain": 48, "malleable": 26, "moldable": 8, "best-effort": 8, "trial": 10}
TRIALS = {"plain": 30, "malleable": 14, "moldable": 6, "best-effort": 30, "trial": 20}
"""How often jobs are of which kind; TRIALS: where room is made for some."""


def submissions(random: Random, kinds: Mapping[str, int], *, flags: bool) -> Iterator[Submission]:
    """Yield jobs in order, without end; without ``flags`` the same ones say nothing."""
    at_s = 0.0
    for number in count():
        at_s += random.expovariate(1 / (EVERY_S if number < JOBS else THEN_S))
        kind = random.choices([*kinds], [*kinds.values()])[0]
        yield _submission(random, at_s, number, kind, flags=flags)


def _submission(random: Random, at_s: float, number: int, kind: str, *, flags: bool) -> Submission:
    nodes = 2 if random.random() < 0.06 else 1
    gpus = (
        random.choice((1, 1, 1, 2, 2, 3, 4)) if kind != "malleable" else random.choice((1, 1, 2, 4))
    )
    long = kind in ("malleable", "best-effort")
    takes_s = random.uniform(40, 130) if long else random.uniform(3, 25)
    work = Work(
        takes_s * (nodes * gpus) ** 0.9,
        managed=long and random.random() < 0.92,
        save_s=random.uniform(0.3, 4),
        launch_s=random.uniform(0.5, 3),
    )
    user = random.choice(USERS)
    priority = 1000 + (500 if kind == "trial" else 0) + random.randrange(100)
    record = Record(
        0,
        gpus=gpus,
        nodes=nodes,
        cpus=2 * nodes,
        min_cpus=2,
        priority=priority,
        own_priority=priority,
        limit_min=int(takes_s / 60 * 6) + 5,
        user=user,
        name=f"{kind}-{number % 7}",
    )
    says = _says(random, kind, gpus, nodes)
    tasks = random.choice((1, 1, 2, 3, 4)) if kind == "trial" else 1
    at_once = random.choice((0, 1, 2)) if tasks > 1 else 0
    return Submission(at_s, record, work, says if flags else "", tasks, at_once)


def _says(random: Random, kind: str, gpus: int, nodes: int) -> str:
    most = 4 * nodes
    least = random.choice((1, 1, gpus))
    shapes = f"gpus={nodes * least}-{random.choice((most, max(gpus * nodes, most // 2)))}"
    if nodes > 1:
        shapes += ",nodes=1-2"
    grace = f"malleable=grace={random.choice((10, 20, 30))}s"
    match kind:
        case "malleable":
            return f"{shapes};{grace}"
        case "moldable":
            return shapes
        case "best-effort":
            return f"job-class=best-effort;{grace}"
        case "trial":
            return "job-class=trial"
    return ""


def asked(submission: Submission) -> bytes:
    """Return what pliant.lua asks pliantd of a submission."""
    record = submission.record
    fields = {
        "comment": f"pliant:{submission.says}",
        "tres_per_node": f"gres:gpu:{record.gpus}",
        "partition": "gpu",
        "min_nodes": str(record.nodes),
        "max_nodes": str(record.nodes),
        "num_tasks": str(record.nodes),
        "cpus_per_task": str(record.min_cpus),
        "time_limit": str(record.limit_min),
        "requeue": "1",
        "batch": "1",
        "user_name": record.user,
    }
    return encode(Message("submit", fields))


def answered(submission: Submission, answer: Message | None) -> Record:
    """Return a job as it is submitted after an answer of pliantd's; None: there was none."""
    record = submission.record
    if answer is None or not answer.is_ok or "away" in answer.fields:
        spec = Spec(parse_request(submission.says))
        return replace(record, comment=note(put_token("", spec), UNANSWERED, 1))
    said = answer.fields
    gpus = int(said.get("set.gres", f"gpu:{record.gpus}").rpartition(":")[2])
    nodes = int(said.get("set.min_nodes", record.nodes))
    per_node = int(said.get("set.pn_min_cpus", said.get("set.cpus_per_task", record.min_cpus)))
    return replace(
        record,
        gpus=gpus,
        nodes=nodes,
        cpus=per_node * nodes,
        min_cpus=per_node,
        comment=said.get("token", ""),
    )
