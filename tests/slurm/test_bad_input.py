"""Malformed requests and hostile text: one clear line or taken literally, never anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from asking_helpers import ask, wait_for_look
from lua_helpers import close_breaker, run_asked
from slurm_helpers import Submit

from hostile import MALFORMED
from pliant.daemon import answers as a
from pliant.errors import BadSpec
from pliant.grammar import find_token, parse
from pliant.grammar.token import pack
from pliant.model import Shape
from pliant.sandbox import Sandbox

pytestmark = pytest.mark.slurm

ALICE = "pliant-alice"

Show = Callable[[int | str], dict[str, str]]


def test_a_malformed_comment_is_refused_in_one_line_in_the_parsers_words(
    clean: Sandbox, users: tuple[str, str]
) -> None:
    close_breaker(clean)
    wait_for_look(clean)
    told: dict[str, list[str]] = {}
    for words in MALFORMED:
        argv = ["sbatch", "--parsable", "--hold", f"--comment=pliant:{words}", "--wrap=true"]
        done = run_asked(clean, argv, users[0])
        assert done.returncode != 0 and done.stdout == "", words
        told[words] = done.stderr.splitlines()
    for words, lines in told.items():
        pliant, slurm = lines
        assert slurm.startswith("sbatch: error: Batch job submission failed: "), words
        assert pliant == f"sbatch: error: pliant: {_parsers_words(words)}"
        assert pliant.isascii() and pliant.isprintable() and len(pliant) < 250
    assert clean.run(["squeue", "-h"]).stdout == ""


def _parsers_words(words: str) -> str:
    with pytest.raises(BadSpec) as wrong:
        parse(words)
    return str(wrong.value)


def test_at_least_forty_malformed_requests_are_tried() -> None:
    assert len(set(MALFORMED)) >= 40


# Hostile text in every field that a user writes

FORGED = pack("moldable=gpus=1-16;own=16")
HOSTILE = {
    "quotes": "a'b\"c`d",
    "newlines": "a\nb\n4711|RUNNING|0\n",
    "pipes": "a|b||c:|",
    "a shell's": "$(touch {mark});touch {mark}&`touch {mark}`",
    "other fields": f"x AdminComment={FORGED} UserId=root(0) TresPerNode=gres:gpu:4 JobState=RUNNING",
    "a token": FORGED,
    "unicode": "\u202eevil \u00e9 \U0001f600 \u0000".replace("\0", ""),
    "bytes that are no text": "\udcff\udcfe\udc80",
    "64 KiB": "A" * 65536,
    "percent": "%s%n%d %41 %%",
    "a protocol's": "submit a=b&set.gres=gpu:4\nok set.gres=gpu%3A4",
}
FIELDS = (
    "--job-name={}", "--comment={}", "--comment=pliant:gpus=1-2 {}", "--constraint={}",
    "--account={}", "--gres={}", "--wckey={}", "--licenses={}", "--partition={}",
    "--reservation={}", "--qos={}", "--mail-user={}", "--output={}", "--nodelist={}",
    "--exclude={}", "--dependency={}", "--network={}", "--mcs-label={}", "--prefer={}",
    "--gpus={}", "--export=A={}", "--extra-node-info={}", "--chdir={}", "--error={}", "--input={}",
    "--signal={}", "--begin={}", "--container={}",
)  # fmt: skip
STORED = {
    "--job-name={}": ("name", "{}"), "--comment={}": ("comment", "{}"),
    "--output={}": ("stdout", "{workdir}/{}"), "--error={}": ("stderr", "{workdir}/{}"),
    "--input={}": ("stdin", "{workdir}/{}"), "--chdir={}": ("workdir", "{home}/{}"),
    "--network={}": ("network", "{}"), "--mcs-label={}": ("mcslabel", "{}"),
    "--container={}": ("container", "{}"), "--wckey={}": ("wckey", "{lower}"),
}  # fmt: skip
"""What Slurm takes as it is: how squeue calls it, and what stands there; Slurm lowers a wckey."""

SHOWN = (
    *("name", "comment", "account", "partition", "qos", "feature", "reservation", "wckey"),
    *("licenses", "dependency", "network", "mcslabel", "prefer", "reqnodes", "exc_nodes"),
    *("workdir", "stdout", "stderr", "stdin", "container", "command", "state", "reason"),
    *("timelimit", "starttime", "prioritylong", "nice", "username"),
)
"""What squeue shows of a job but for what Pliant gives a flagged one: GPUs, tasks, a token."""


@pytest.fixture
def victim(clean: Sandbox, submit: Submit) -> int:
    """Another user's flagged job that waits."""
    wait_for_look(clean)
    return submit("--hold", "--moldable=gpus=1-4", "--gres=gpu:2", user="pliant-bob")


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_is_refused_or_taken_as_without_pliant(
    clean: Sandbox, without_pliant: Sandbox, workdir: Path, victim: int, show: Show, *, kind: str
) -> None:
    mark = workdir / "mark"
    text = HOSTILE[kind].replace("{mark}", str(mark))
    before = show(victim)
    accepted: dict[str, int] = {}
    for field in FIELDS:
        job, words = submitted(clean, workdir, field.replace("{}", text), "--moldable=gpus=1-2")
        plain, plain_words = submitted(without_pliant, workdir, field.replace("{}", text))
        assert (job is None, words) == (plain is None, plain_words), field
        if job is not None and plain is not None:
            accepted[field] = job
            assert shown(clean, job, *SHOWN) == shown(without_pliant, plain, *SHOWN), field
    is_long = len(text) > 1024  # Slurm refuses most of those
    least = {"--container={}", "--export=A={}"}
    assert accepted.keys() >= (least if is_long else {*least, *STORED})
    for field in STORED.keys() & accepted.keys():
        name, form = STORED[field]
        home = Path(f"~{ALICE}").expanduser()
        as_it_is = form.format(text, workdir=workdir, home=home, lower=text.lower())
        assert shown(clean, accepted[field], name) == as_it_is, field
    wait_for_look(clean)
    assert show(victim) == before
    assert not mark.exists()
    ours: list[str] = []
    for field, job in accepted.items():
        spec = find_token(admin_comment(clean, job))
        if spec is not None:
            ours.append(str(job))
        if field == "--gpus={}":  # to Slurm it is a type of GPU
            assert spec is None or spec.own is None
        else:
            assert spec is not None and spec.request == parse("gpus=1-2"), field
            assert spec.own in (Shape(1, 1), None), field  # None: nobody answered in time
    jobs = ask(clean, a.JobsAnswer, "jobs").jobs
    # where the text of a type of GPU makes no sense to pliantd, it leaves the job alone
    maybe = {str(accepted.get("--gpus={}", 0))}
    assert {job.id for job in jobs} - maybe == {str(victim), *ours} - maybe
    assert {job.user for job in jobs if job.id != str(victim)} == {ALICE}
    without_pliant.run(["scancel", f"--user={ALICE}"], check=True)


def submitted(sandbox: Sandbox, workdir: Path, *options: str) -> tuple[int | None, str]:
    """Submit a held job; return its number, none where it is refused, and what Slurm says."""
    argv = ["sbatch", "--parsable", "--hold", "--gpus=1", f"--chdir={workdir}",
            "--output=/dev/null", *options, "--wrap=true"]  # fmt: skip
    done = sandbox.run(argv, user=ALICE)
    said = done.stderr.splitlines(keepends=True)
    words = "".join(line for line in said if not re.match("sbatch: (error: )?pliant: ", line))
    return (int(done.stdout) if done.returncode == 0 else None), words


def admin_comment(sandbox: Sandbox, job: int) -> str:
    return shown(sandbox, job, "admin_comment").strip()


def shown(sandbox: Sandbox, job: int, *fields: str) -> str:
    """Return fields of a job as squeue writes them, a bar after each but the last."""
    argv = ["squeue", "-h", "-j", str(job), "-O", ",".join(f"{field}:|" for field in fields)]
    return sandbox.run(argv, check=True).stdout.removesuffix("\n").removesuffix("|")


def test_an_environment_that_plays_the_plugin_hurts_nobody(
    clean: Sandbox, submit: Submit, users: tuple[str, str], show: Show
) -> None:
    wait_for_look(clean)
    for value in ("gpus=1-4", "x\ny", "$(id)", "A" * 5000, "own=4;set=16"):
        name = "_SLURM_SPANK_OPTION_pliant_moldable"
        argv = ["env", f"{name}={value}", f"SPANK_{name}={value}", "sbatch", "--parsable", "--hold",
                "--gres=gpu:1", "--wrap=true"]  # fmt: skip
        done = clean.run(argv, user=users[0])
        assert done.returncode == 0, done.stderr
        assert show(int(done.stdout))["TresPerNode"] == "gres:gpu:1"
        assert re.fullmatch(r"[A-Za-z0-9_:= ()-]*", admin_comment(clean, int(done.stdout)))
