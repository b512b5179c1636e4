"""`pliant install slurm` on a real Slurm that knows nothing of Pliant yet."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from slurm_helpers import wait_until

from pliant import resources
from pliant.sandbox import Options, Sandbox

pytestmark = pytest.mark.slurm

PLIANT = str(Path(sys.executable).with_name("pliant"))
SITE_RULE = (Path(__file__).parents[1] / "assets" / "site_job_submit.lua").read_text()

Install = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bare() -> Iterator[Sandbox]:
    """A Slurm of one node without any part of Pliant, and without a job_submit.lua."""
    made = Sandbox(f"pytest-install-{os.getpid()}", Options(nodes=1, gpus=2, mode="none"))
    made.up()
    yield made
    made.down()


@pytest.fixture
def conf(bare: Sandbox) -> Path:
    """The directory of slurm.conf."""
    return Path(bare.env["SLURM_CONF"]).parent


@pytest.fixture
def install(bare: Sandbox, tmp_path: Path) -> Install:
    """Run `pliant install slurm` for the parts that concern Slurm itself."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        kept = ["--record", str(tmp_path / "record"), "--libdir", str(tmp_path / "lib")]
        parts = [] if "--part" in words else ["--part", "lua", "--part", "spank"]
        return bare.run([PLIANT, "install", "slurm", *parts, *kept, *words])

    return run


def tree(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(directory)): (path.stat().st_mode, path.read_bytes())
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def sbatch(bare: Sandbox, *words: str) -> subprocess.CompletedProcess[str]:
    return bare.run(["sbatch", "--parsable", "-o", "/dev/null", *words, "--wrap", "true"])


def plugins(bare: Sandbox) -> str:
    lines = bare.run(["scontrol", "show", "config"]).stdout.splitlines()
    return next(line.split()[-1] for line in lines if line.startswith("JobSubmitPlugins"))


@pytest.mark.parametrize("site_rule", ["", SITE_RULE], ids=["without", "with"])
def test_installed_beside_a_sites_own_rules_and_removed_without_a_trace(
    bare: Sandbox, conf: Path, install: Install, tmp_path: Path, site_rule: str
) -> None:
    script = conf / "job_submit.lua"
    script.unlink(missing_ok=True)
    if site_rule:
        script.write_text(site_rule)
    before = tree(conf)

    said = ("--dormant-lua", "run") if site_rule else ()
    if site_rule:
        unsaid = install("--apply", "--part", "lua")
        assert (unsaid.returncode, tree(conf)) == (1, before)
        assert "job_submit.lua is there and not in force" in unsaid.stdout
    shown = install("--print", *said)
    assert (shown.returncode, tree(conf)) == (0, before)
    assert "+JobSubmitPlugins=lua\n" in shown.stdout

    assert install("--apply", *said).returncode == 0
    applied = tree(conf)
    assert "nothing is to be changed" in install("--apply").stdout
    assert tree(conf) == applied
    bare.reconfigure()
    wait_until(lambda: plugins(bare) == "lua", "slurmctld to load the filter")

    job = sbatch(bare, "--hold", "--moldable=gpus=1-2", "--gres=gpu:1").stdout.strip()
    assert "AdminComment=pliant=v1:" in bare.run(["scontrol", "show", "job", job]).stdout
    refused = sbatch(bare, "--moldable=gpus=2-1")
    assert "the range runs backwards; write 1-2" in refused.stderr
    assert sbatch(bare, "--gres=gpu:1").returncode == 0
    forbidden = sbatch(bare, "-J", "forbidden", "--moldable=gpus=1-2", "--gres=gpu:1")
    assert ("the site says no" in forbidden.stderr) is bool(site_rule)

    bare.restart("slurmctld")
    assert sbatch(bare, "--moldable=gpus=1-2", "--gres=gpu:1").returncode == 0

    asked = install("--remove")
    assert (asked.returncode, tree(conf)) == (1, applied)
    assert f"{job} " in asked.stdout
    assert install("--remove", "--yes").returncode == 0
    assert tree(conf) == before
    assert not (tmp_path / "lib").exists()
    assert not (tmp_path / "record").exists()
    bare.reconfigure()
    wait_until(lambda: plugins(bare) == "(null)", "slurmctld to forget the filter")
    assert "unrecognized option" in sbatch(bare, "--moldable=gpus=1-2").stderr
    assert sbatch(bare, "--gres=gpu:1").returncode == 0
    bare.run(["scancel", job])


def marked(bare: Sandbox) -> bool:
    """Whether the filter marks a job that says its range by a comment."""
    job = sbatch(bare, "--hold", "--comment=pliant:gpus=1-2", "--gres=gpu:1").stdout.strip()
    shown = bare.run(["scontrol", "show", "job", job]).stdout
    bare.run(["scancel", job])
    return "AdminComment=pliant=v1:" in shown


def test_an_upgrade_is_in_force_at_once_and_a_removal_leaves_a_slurmctld_that_starts(
    bare: Sandbox, conf: Path, install: Install
) -> None:
    (conf / "job_submit.lua").unlink(missing_ok=True)
    before = tree(conf)
    assert install("--apply", "--part", "lua").returncode == 0
    (conf / "pliant.lua").unlink()
    bare.restart("slurmctld")
    assert not marked(bare)
    assert "touched: " in install("--apply", "--part", "lua").stdout
    assert marked(bare)

    slurm_conf = conf / "slurm.conf"
    slurm_conf.write_text(slurm_conf.read_text().replace("# pliant: added\n", ""))  # a template's
    done = install("--remove", "--yes", "--part", "lua")
    assert done.returncode == 1
    assert done.stdout.startswith("left to do: JobSubmitPlugins still names lua in ")
    bare.restart("slurmctld")
    assert plugins(bare) == "lua"
    assert not marked(bare)
    assert sbatch(bare, "--gres=gpu:1").returncode == 0

    slurm_conf.write_bytes(before["slurm.conf"][1])
    done = install("--remove", "--yes", "--part", "lua")
    assert done.returncode == 1  # slurmctld was not told yet
    assert "lua is still in force, and " in done.stdout
    bare.reconfigure()
    wait_until(lambda: plugins(bare) == "(null)", "slurmctld to forget the filter")
    assert install("--remove", "--yes", "--part", "lua").returncode == 0
    assert tree(conf) == before
    bare.restart("slurmctld")
    assert sbatch(bare, "--gres=gpu:1").returncode == 0


RAISES = SITE_RULE.replace(
    "function slurm_job_submit(job_desc, part_list, submit_uid)\n",
    "function slurm_job_submit(job_desc, part_list, submit_uid)\n"
    '   if job_desc.name == "raises" then\n'
    "      job_desc.time_limit = 7\n"
    "      return job_desc.name.no.field\n"
    "   end\n",
)
CALLS_PLIANT = RAISES.replace(
    "   return slurm.SUCCESS\n",
    '   local pliant = dofile("CONF/pliant.lua").setup({})\n'
    "   return pliant.job_submit(job_desc, part_list, submit_uid)\n",
    1,
)
"""By itself, behind its own rules, as the head of pliant.lua has it."""
CHANGES = frozenset(("JobId", "SubmitTime", "EligibleTime", "AccrueTime", "LastSchedEval"))


def raised(bare: Sandbox, *words: str) -> tuple[str, dict[str, str], int]:
    """Let the site's function raise at a submission.

    Return what sbatch says, what is recorded of the job, nothing where it is refused, and how many
    lines more slurmctld's log has that tell of it.
    """

    def told() -> int:
        lines = bare.layout.log("slurmctld").read_text(errors="replace").splitlines()
        return sum(" error: " in line and "attempt to index field 'no'" in line for line in lines)

    before = told()
    done = sbatch(bare, "--hold", "--gres=gpu:1", "-J", "raises", *words)
    job, shown = done.stdout.strip(), list[str]()
    assert bool(job) is (done.returncode == 0)
    if job:
        shown = bare.run(["scontrol", "show", "job", job], check=True).stdout.split()
        bare.run(["scancel", job], check=True)
    fields = (word.partition("=") for word in shown)
    return done.stderr, {k: v for k, _, v in fields if k not in CHANGES}, told() - before


def found_by_doctor(bare: Sandbox) -> str:
    """What the doctor says of an error at a submission."""
    lines = bare.run([PLIANT, "doctor"]).stdout.splitlines()
    return next((line for line in lines if "failed at a submission: " in line), "")


@pytest.fixture
def lua_alone(bare: Sandbox, conf: Path, install: Install) -> Iterator[None]:
    """The site's own job_submit.lua in force, without Pliant; in the end there is none."""
    script, slurm_conf = conf / "job_submit.lua", conf / "slurm.conf"
    before = slurm_conf.read_text()
    script.write_text(RAISES)
    slurm_conf.write_text(f"{before}JobSubmitPlugins=lua\n")
    bare.restart("slurmctld")
    yield
    slurm_conf.write_text(before)
    install("--remove", "--yes", "--part", "lua")
    bare.restart("slurmctld")
    install("--remove", "--yes", "--part", "lua")
    script.unlink(missing_ok=True)
    (conf / "pliant.lua").unlink(missing_ok=True)


@pytest.mark.parametrize("how", ["installed", "by hand"])
def test_a_submission_at_which_a_sites_function_raises_ends_as_with_slurm_alone(
    bare: Sandbox, conf: Path, install: Install, lua_alone: None, how: str
) -> None:
    alone = raised(bare)
    accepts = bool(alone[1])  # from 25.11 on Slurm refuses it
    assert alone[2] == (1 if accepts else 2)
    assert (alone[0], alone[1].get("TimeLimit")) == ("", "00:07:00") if accepts else alone[0]
    second = int(time.time())  # slurmctld's log has whole ones
    wait_until(lambda: time.time() > second + 1, "the next second")
    if how == "installed":
        assert install("--apply", "--part", "lua").returncode == 0
    else:
        shutil.copy(resources.find("plugins", "slurm", "pliant.lua"), conf)
        (conf / "job_submit.lua").write_text(CALLS_PLIANT.replace("CONF", str(conf)))
    bare.restart("slurmctld")
    assert found_by_doctor(bare) == ""
    assert raised(bare) == alone
    assert "/job_submit.lua:" in found_by_doctor(bare)  # Lua cuts a long path
    assert "attempt to index field 'no'" in found_by_doctor(bare)
    marked_too = raised(bare, "--comment=pliant:gpus=1-2")[1].get("AdminComment", "")
    assert marked_too.startswith("pliant=v1:") is (how == "installed" and accepts)


def test_a_broken_job_submit_lua_is_not_made_worse(
    bare: Sandbox, conf: Path, install: Install
) -> None:
    (conf / "job_submit.lua").write_text("if true then\n")
    before = tree(conf)
    done = install("--apply", "--part", "lua", "--dormant-lua", "run")
    assert done.returncode == 1
    after = tree(conf)
    assert after.pop("pliant.lua")  # for the lines that are to be added by hand
    assert after == before
    assert "job_submit.lua is left as it is (" in done.stdout
    assert "'end' expected" in done.stdout
    assert install("--remove", "--yes", "--part", "lua").returncode == 0
    assert tree(conf) == before
    (conf / "job_submit.lua").unlink()


def test_the_doctor_names_the_cure_of_what_is_not_installed(bare: Sandbox) -> None:
    done = bare.run([PLIANT, "doctor"])
    told: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        if line.startswith("fault "):
            told[line.split()[1]] = []
        elif line.startswith(" ") and told:
            told[next(reversed(told))].append(line.strip())
    assert done.returncode == 1
    assert set(told) >= {"JobSubmitPlugins", "job_submit.lua", "plugstack.conf", "pliant.toml"}
    assert "cure: write it; PLIANT_CONFIG names another" in told.pop("pliant.toml")
    commands = [[line for line in lines if line.startswith("run:  ")] for lines in told.values()]
    assert [lines for lines in commands if "run:  pliant install slurm" not in lines[0]] == []
