"""A job that runs while 0.1.0's Debian package is replaced by that of here, and while that is removed.

The host is this machine with a layer over /usr, /var and /etc, which only the test's own processes
see (mount_namespaces(7)); pliantd is a fake, so no Slurm is asked.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from release_helpers import Release as SlurmRelease
from release_helpers import only_on

from limits import HANG_S
from older_release import ASSETS
from wrapped_job import HEAD, ROOT, Job, taken_over, wrapped_job

pytestmark = pytest.mark.slurm

LAYERED = """set -e
mount -t tmpfs tmpfs "$1"
for top in usr var etc; do
    mkdir "$1/$top" "$1/$top.work"
    mount -t overlay overlay -o "lowerdir=/$top,upperdir=$1/$top,workdir=$1/$top.work" "/$top"
done
echo ready
exec sleep infinity
"""
PYTHON = "/usr/lib/pliant/venv/bin/python3"
SAVES = """
for step in range(1, 10**6):
    pliant.heartbeat(step)
    time.sleep(0.01)
    if pliant.checkpoint_wanted():
        pathlib.Path('saved').write_text(f'{step} {pliant.shape()}')
        pliant.checkpointed()
"""


class Host:
    """Commands as on a host of its own; ``within``: the words that precede them."""

    def __init__(self, pid: int) -> None:
        self.within = ("nsenter", "-t", str(pid), "-m")

    def out(self, *words: str) -> str:
        """Run a command that must succeed; return what it prints."""
        done = subprocess.run(
            [*self.within, *words], capture_output=True, text=True, timeout=HANG_S, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module", autouse=True)
def _for_this_slurm(release: SlurmRelease) -> None:
    only_on((22, 5), release, "0.1.0's package was frozen for it")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    layers = tmp_path / "layers"
    layers.mkdir()
    argv = ["unshare", "-m", "sh", "-c", LAYERED, "sh", str(layers)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "ready\n"
        yield Host(holder.pid)
        holder.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the Debian package of here."""
    where = tmp_path_factory.mktemp("dist")
    argv = [str(ROOT / "packaging" / "deb" / "build"), str(where)]
    subprocess.run(argv, timeout=2 * HANG_S, check=True, capture_output=True)
    (found,) = where.glob("*.deb")
    return found


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with wrapped_job(tmp_path) as one:
        yield one


def test_a_job_lives_through_the_package_s_upgrade_and_removal(
    host: Host, package: Path, job: Job
) -> None:
    (frozen,) = (ASSETS / "pliant-0.1.0").glob("*.deb")
    host.out("dpkg", "-i", str(frozen))
    assert host.out("pliant", "--version") == "pliant 0.1.0\n"
    old = starts(job, host)

    host.out("dpkg", "-i", str(package))
    assert host.out("pliant", "--version") != "pliant 0.1.0\n"
    saves_and_is_requeued(job, old, 1)
    young = starts(job, host)

    host.out("env", "PYTHONHOME=/nowhere", "pliant", "--version")
    host.out("dpkg", "-r", "pliant")
    assert not Path(f"/proc/{young.pid}/root{PYTHON}").exists()
    saves_and_is_requeued(job, young, 2)


def starts(job: Job, host: Host) -> subprocess.Popen[str]:
    """Start a program under the `pliant run` that is installed, which pliantd hears of."""
    job.door.want("")
    number = len(job.door.of("run-launched")) + 1
    words = ("--wd=" + str(job.folder), "/usr/bin/pliant", "run", "--", PYTHON, "-c", HEAD + SAVES)
    process = job._start([*host.within, *words], {"SLURM_GPUS_ON_NODE": "4", "PYTHONPATH": ""})
    job.door.wait_for("run-launched", number)
    return process


def saves_and_is_requeued(job: Job, process: subprocess.Popen[str], number: int) -> None:
    """Ask it for a checkpoint; it ends with 85 once it is requeued."""
    job.door.want(f"w{number}")
    job.door.wait_for("run-saved", number)
    code, _, err = taken_over(job, process)
    assert (code, "Traceback" in err) == (85, False), err
    assert "Shape(" in job.wait_for_file("saved")
    (job.folder / "saved").unlink()
