"""A recorded OpenPBS 23.06 behind fake commands: they answer from it, and qalter changes it.

Three nodes with four GPUs each (the third of another type); running: a moldable and malleable job,
one on two nodes, two of an array; waiting: jobs of every kind. Their names are what PBS's JSON
takes for a number or a truth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pliant.batch.clients import Answer
from pliant.batch.pbs import Names, Pbs

ASSETS = Path(__file__).parents[1] / "assets" / "pbs-23.06"
NOW_S = 1795414952.0
NAMES = Names("gpu_model", "gpu_share", "gpu_mem")
LISTED = """\
Sched default
    sched_host = head
    throughput_mode = True
    partition = pbs-default
    sched_priv = /nowhere
    scheduling = True
    state = idle

"""
_FILES = {"-t": "jobs", "-Q": "queues", "-B": "server", "-a": "nodes"}


def recorded(name: str) -> dict[str, Any]:
    """Return one recorded answer."""
    said: dict[str, Any] = json.loads((ASSETS / f"{name}.json").read_text())
    return said


class Recorded:
    """Commands over a copy of the recording; ``said`` is what was asked beside looks."""

    def __init__(self) -> None:
        self.answers = {name: recorded(name) for name in _FILES.values()}
        self.said: list[tuple[str, ...]] = []
        self.reserved = ""
        self.fences: Path | None = None
        self.refuses = ""
        self.ignores = False
        self.schedulers = Answer(LISTED, "", 0)
        self.hook = Answer("Hook pliant_execjob_epilogue\n    enabled = true\n", "", 0)
        self.keeps_out = Answer("Hook pliant_runjob\n    enabled = true\n", "", 0)

    def reserve(self, *more: str) -> None:
        """Let there be the recorded reservation of node gn1, its queue R0, and ``more``."""
        self.reserved = "".join(((ASSETS / "reservations.txt").read_text(), *more))
        self.answers["nodes"]["nodes"]["gn1"]["resv"] = "R0.head"
        queue = {"queue_type": "Execution", "enabled": "True", "started": "True"}
        self.answers["queues"]["Queue"]["R0"] = queue

    def job(self, job_id: str) -> dict[str, Any]:
        """Return one job's attributes, to be changed."""
        found: dict[str, Any] = self.answers["jobs"]["Jobs"][f"{job_id}.head"]
        return found

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        assert (env, stdin) == (None, "")
        if argv[0] in ("qstat", "pbsnodes"):
            assert argv[-2:] == ("-F", "json")
            return Answer(json.dumps(self.answers[_FILES[argv[1]]]), "", 0)
        if argv[0] == "pbs_rstat":
            return Answer(
                self.reserved, "" if self.reserved else "pbs_rstat: no", not self.reserved
            )
        asked = {
            "list hook pliant_execjob_epilogue": self.hook,
            "list hook pliant_runjob": self.keeps_out,
            "list sched": self.schedulers,
        }
        if argv[:2] == ("qmgr", "-c") and argv[2] in asked:
            return asked[argv[2]]
        self.said.append(tuple(argv))
        if self.refuses and argv[0] in ("qalter", "qrerun"):
            return Answer("", self.refuses, 1)
        if argv[0] != "qalter":
            return Answer("", "", 0)
        if not self.ignores:
            self._alter(self.job(argv[-1]), argv[1:-1])
        return Answer("", "", 0)

    def _alter(self, job: dict[str, Any], words: Sequence[str]) -> None:
        for option, value in zip(words[::2], words[1::2], strict=True):
            name, _, text = value.partition("=")
            if option == "-l":
                job["Resource_List"][name] = text
                if name == "select":
                    job["schedselect"] = self._as_started(job, text)
            elif name == "run_count":
                job["run_count"] = int(text)

    def _as_started(self, job: Mapping[str, Any], select: str) -> str:
        """Return a select with what a chunk has by default."""
        (server,) = self.answers["server"]["Server"].values()
        queue = self.answers["queues"]["Queue"][job["queue"]]
        chunk = {**server.get("default_chunk", {}), **queue.get("default_chunk", {})}
        said = {item.partition("=")[0] for item in select.split(":")}
        added = (f":{name}={value}" for name, value in chunk.items() if name not in said)
        return select + "".join(added)

    def pbs(self, now_s: float = NOW_S) -> Pbs:
        """Return the backend over it."""
        return Pbs(self, lambda: now_s, NAMES, fences=self.fences)
