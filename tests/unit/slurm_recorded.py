"""Slurm's recorded answers, given back as if the commands had just printed them; or changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path

from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.job_rows import NUMBERS, TEXTS, JobRow, parse_jobs
from pliant.batch.slurm.update import job_words

ASSETS = Path(__file__).parents[1] / "assets"
NONCE = "N0123456789abcdef"
"""The nonce of the recordings."""

_FILES = {
    ("scontrol", "node"): "nodes.txt",
    ("scontrol", "partition"): "partitions.txt",
    ("scontrol", "reservation"): "reservations.txt",
    ("scontrol", "config"): "config.txt",
}


def recorded(release: str, name: str) -> str:
    """Return one recorded answer."""
    path = ASSETS / f"slurm-{release}" / name
    return path.read_bytes().decode("utf-8", "surrogateescape")


class Recorded:
    """Commands that answer from a recording; only their nonce is made the one of the call."""

    def __init__(self, release: str) -> None:
        self.release = release

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        if argv[0] == "squeue":
            form = dict(env or {})
            name = "jobs.txt" if "SQUEUE_FORMAT2" in form else "excluded.txt"
            found = re.search(r"N[0-9a-f]{16}", " ".join(form.values()))
            assert found, "a call without a nonce"
            return Answer(recorded(self.release, name).replace(NONCE, found[0]), "", 0)
        if stdin:
            return Answer(self._details(stdin), "", 0)
        return Answer(recorded(self.release, _FILES[argv[0], argv[-1]]), "", 0)

    def _details(self, stdin: str) -> str:
        """Answer for the jobs that are asked, in the order of the questions."""
        mark = re.search(r"N[0-9a-f]{16}", stdin)
        assert mark, "a call without a mark"
        told = re.split(rf"(?m)^{NONCE}\d+\n", recorded(self.release, "details.txt"))
        by_job = {record.split("JobId=", 1)[1].split()[0]: record for record in told[:-1]}
        asked = re.findall(r"show job (\d+)\n", stdin)
        return "".join(f"{by_job[job]}{mark[0]}{n}\n" for n, job in enumerate(asked))


def printed(row: JobRow, nonce: str, version: tuple[int, int]) -> str:
    """Print a row as squeue does for our format."""
    values = astuple(row)
    numbers, texts = list(values[: len(NUMBERS)]), list(values[len(NUMBERS) :])
    if version >= (26, 5):
        place = NUMBERS.index("OverSubscribe")
        words = {"OK": ("NO", "NO"), "YES": ("YES", "NO"), "NO": ("NO", "NODE")}
        numbers[place], exclusive = words.get(numbers[place], ("NO", numbers[place]))
        numbers.append(exclusive)
    if version < (23, 11):
        del texts[TEXTS.index("ExcNodes")]
    return "".join(f"{n}|" for n in numbers) + "".join(f"{t}{nonce}" for t in texts) + nonce + "\n"


_SET = {
    "NumTasks": "num_tasks",
    "NumCPUs": "num_cpus",
    "CPUsPerTask": "cpus_per_task",
    "MinCPUsNode": "min_cpus",
    "AdminComment": "admin_comment",
}
"""What one word of ``scontrol update`` sets, where it sets one field to its value."""


class Changing(Recorded):
    """The recording of 22.05, whose jobs scontrol changes; ``said`` is what it was told."""

    def __init__(self) -> None:
        super().__init__("22.05")
        self.rows = parse_jobs(recorded("22.05", "jobs.txt"), NONCE, (22, 5))
        self.said: list[tuple[str, ...]] = []
        self.refuses = ""

    def job(self, job_id: str, **fields: str) -> None:
        """Let a job be another one from now on."""
        self.rows = [replace(row, **fields) if row.key == job_id else row for row in self.rows]

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        """Answer one command."""
        if argv[0] == "squeue" and "SQUEUE_FORMAT2" in (env or {}):
            return self._squeue(argv, dict(env or {})["SQUEUE_FORMAT2"])
        if argv[0] != "scontrol" or argv[1] not in ("update", "release"):
            return super().run(argv, env=env, stdin=stdin)
        self.said.append(tuple(argv))
        if self.refuses:
            return Answer("", f"slurm_update error: {self.refuses}", 1)
        name = argv[2].removeprefix("jobid=")
        (row,) = (row for row in self.rows if job_words(row) == name)
        for word in argv[3:]:
            row = _changed(row, *word.split("=", 1))
        if argv[1] == "release":
            row = replace(row, priority="4294901400", reason="Priority")
        self.rows = [row if job_words(one) == name else one for one in self.rows]
        return Answer("", "", 0)

    def _squeue(self, argv: Sequence[str], form: str) -> Answer:
        nonce = re.search(r"N[0-9a-f]{16}", form)
        assert nonce, "a call without a nonce"
        asked = argv[argv.index("-j") + 1].split(",") if "-j" in argv else []
        found = [row for row in self.rows if not asked or {row.job_id, row.array_id} & {*asked}]
        if asked and not found:
            return Answer("", "slurm_load_jobs error: Invalid job id specified", 1)
        return Answer("".join(printed(row, nonce[0], (22, 5)) for row in found), "", 0)


def _changed(row: JobRow, name: str, value: str) -> JobRow:
    """Return a row after one word of ``scontrol update``."""
    if name in _SET:
        row = replace(row, **{_SET[name]: value})
        return _with_tres(row, "cpu", value) if name == "NumCPUs" else row
    if name == "Gres":
        return replace(row, tres_per_node=f"gres:{value}")
    if name == "TresPerJob":
        return replace(row, tres_per_job="N/A")
    if name == "NumNodes":
        least, _, most = value.partition("-")
        return _with_tres(replace(row, num_nodes=least, max_nodes=most), "node", least)
    assert name == "MinMemoryNode", f"what is {name}?"
    return replace(row, min_memory=f"{value}M")


def _with_tres(row: JobRow, name: str, value: str) -> JobRow:
    return replace(row, tres=re.sub(rf"\b{name}=\d+", f"{name}={value}", row.tres))
