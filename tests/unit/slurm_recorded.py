"""Slurm's recorded answers, given back as if the commands had just printed them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pliant.batch.slurm.commands import Answer

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
