"""How long a text each release of Slurm takes in a submission: docs/troubleshooting.md has the table.

pliant.lua reads no more of a text than that. The jobs say nothing to Pliant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from changing_helpers import Cluster
from release_helpers import Release, from_on

pytestmark = pytest.mark.slurm

TOO_LONG = "Pathname of a file, directory or other parameter too long"
NO_FEATURE = "Invalid feature specification"
NO_LICENSE = "Invalid license specification"
UNKNOWN = "unrecognized option"


@dataclass(frozen=True)
class Says:
    """What Slurm says of a text of so many bytes, and of the next longer one; "": it takes it."""

    length: int
    short: str = ""
    long: str = TOO_LONG


@dataclass(frozen=True)
class Field:
    """An option, what its text is made of, and what Slurm says of two lengths from a release on."""

    option: str
    says: Mapping[str, Says]
    item: str = "x"
    between: str = ""

    def text(self, length: int) -> str:
        """Return a text of at most that length."""
        items = (length + len(self.between)) // len(self.item + self.between)
        return self.between.join([self.item] * items)

    def longer(self, length: int) -> str:
        """Return the next longer one."""
        return self.text(length + len(self.item + self.between))


NAME = {"22.05": Says(1024)}
LIST = {"22.05": Says(120_000, long="")}


def unknown(words: str) -> Mapping[str, Says]:
    """Return a row of names that nothing has."""
    return {"22.05": Says(1024, words)}


def ignored(words: str) -> Mapping[str, Says]:
    """Return a row of names that nothing has, of which 24.11 says so before it looks how long."""
    return {"22.05": Says(1024, words), "24.11": Says(120_000, words, words)}


FIELDS = {
    "a comment": Field("--comment", NAME),
    "a wckey": Field("--wckey", NAME),
    "a job name": Field("--job-name", NAME),
    "who is told by mail": Field("--mail-user", NAME),
    "a network": Field("--network", NAME),
    "an unknown account": Field("--account", unknown("Invalid account or account/partition")),
    "an unknown QOS": Field("--qos", unknown("Invalid qos specification")),
    "an unknown partition": Field("--partition", unknown("Invalid partition name specified")),
    "a list of partitions": Field("--partition", {"22.05": Says(1023)}, "gpu", ","),
    "an unknown reservation": Field("--reservation", unknown("Requested reservation is invalid")),
    "an unknown feature": Field("--constraint", ignored(NO_FEATURE)),
    "features": Field("--constraint", NAME, "a100", "&"),
    "an unknown license": Field("--licenses", ignored(NO_LICENSE)),
    "GRES, as sbatch writes them: gres:gpu:a100:1": Field(
        "--gres", {"22.05": Says(703)}, "gpu:a100:1", ","
    ),
    "GPUs in all, as sbatch writes them: gres:gpu:a100:1": Field(
        "--gpus", {"22.05": Says(447)}, "a100:1", ","
    ),
    "GPUs of a task": Field(
        "--gpus-per-task", {"22.05": Says(447), "24.11": Says(120_000, long="")}, "a100:1", ","
    ),
    "TRES of a task": Field(
        "--tres-per-task",
        {"22.05": Says(1023, UNKNOWN, UNKNOWN), "24.11": Says(1023)},
        "gres/gpu:a100:1",
        ",",
    ),
    "array indices": Field("--array", {"22.05": Says(4096)}, "0"),
    "dependencies": Field("--dependency", LIST, "afterany:{job}", ","),
    "nodes": Field("--nodelist", LIST, "n1", ","),
    "nodes to leave out": Field("--exclude", LIST, "n4", ","),
}


@pytest.mark.parametrize("name", FIELDS)
def test_how_long_a_text_slurm_takes(name: str, cluster: Cluster, release: Release) -> None:
    cluster.empty()
    field = FIELDS[name]
    job = cluster.submit("--hold")
    says = from_on(field.says, release)
    texts = (field.text(says.length), field.longer(says.length))
    for text, words in zip(texts, (says.short, says.long), strict=True):
        script = f"#!/bin/sh\n#SBATCH --ntasks=1 {field.option}={text.replace('{job}', job)}\n"
        done = cluster.sandbox.run(("sbatch", "--parsable", "--hold"), stdin=script)
        assert (done.returncode == 0, words in done.stderr) == (not words, True), done.stderr[-300:]
    cluster.empty()
