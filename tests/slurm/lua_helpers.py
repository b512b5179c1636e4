"""What the tests of the submission path share: other job_submit.lua files, and doors of our own."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from asking_helpers import wait_for_fresh_look, wait_for_look
from slurm_helpers import wait_until

from pliant.sandbox import Sandbox

Serve = Callable[[socket.socket, bytes], None]

PLAIN = """
function slurm_job_submit() return slurm.SUCCESS end
function slurm_job_modify() return slurm.SUCCESS end
return slurm.SUCCESS
"""
"""A job_submit.lua without Pliant."""


def with_pliant(
    sandbox: Sandbox, before: str = "", setup: str = "", submit: str = "", modify: str = ""
) -> str:
    """Write a site's job_submit.lua that requires Pliant beside its own rules.

    ``before`` stands first, ``setup`` goes into pliant.setup{}, ``submit`` and ``modify`` hold the
    own rules.
    """
    return f"""
package.path = "{sandbox.layout.etc}/?.lua;" .. package.path
{before}
local found, pliant = pcall(require, "pliant")
if found then
   pliant.setup({{ socket = "{sandbox.layout.pliant_socket}", {setup} }})
end
function slurm_job_submit(job_desc, part_list, submit_uid)
   {submit}
   return found and pliant.job_submit(job_desc, part_list, submit_uid) or slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   {modify}
   return slurm.SUCCESS
end
return slurm.SUCCESS
"""


def _now_newer(path: Path) -> None:
    """Let slurmctld load the script once more: it compares whole seconds with its last load."""
    stamp = int(time.time()) + 1
    os.utime(path, (stamp, stamp))
    time.sleep(max(0.0, stamp + 0.02 - time.time()))


def close_breaker(sandbox: Sandbox) -> None:
    """Let slurmctld ask pliantd again at the next submission: a loaded script knows no failure."""
    _now_newer(sandbox.layout.job_submit)


def run_asked(sandbox: Sandbox, argv: Sequence[str], user: str) -> subprocess.CompletedProcess[str]:
    """Run ``sbatch --parsable``, once more where a busy machine let pliantd answer too late.

    The breaker must be closed.
    """
    for _ in range(3):
        before = _failures(sandbox)
        done = sandbox.run(argv, user=user)
        if _failures(sandbox) == before:
            return done
        if done.returncode == 0:
            _forget(sandbox, done.stdout.strip())
        close_breaker(sandbox)
    raise AssertionError(f"pliantd did not answer in time: {argv}")


def answered(sandbox: Sandbox, submit: Callable[[], int]) -> int:
    """Submit as :func:`run_asked` does; return the job. The breaker may be open."""
    for _ in range(3):
        close_breaker(sandbox)
        wait_for_fresh_look(sandbox)
        before = _failures(sandbox)
        job = submit()
        if _failures(sandbox) == before:
            return job
        _forget(sandbox, str(job))
    raise AssertionError("pliantd did not answer in time")


def _forget(sandbox: Sandbox, job: str) -> None:
    """End a job, and let pliantd see what was free before it came: it may have been molded."""
    sandbox.run(["scancel", job], check=True)
    asked = ["squeue", "-h", "-j", job]
    wait_until(lambda: not sandbox.run(asked).stdout, f"job {job} to leave the queue")
    wait_for_look(sandbox)


def _failures(sandbox: Sandbox) -> int:
    return sandbox.layout.log("slurmctld").read_bytes().count(b"jobs are accepted as they are")


@contextmanager
def job_submit_lua(sandbox: Sandbox, text: str, module: str | None = None) -> Iterator[None]:
    """Let slurmctld use another job_submit.lua, and another pliant.lua, for a while."""
    script, pliant = sandbox.layout.job_submit, sandbox.layout.etc / "pliant.lua"
    before = script.read_text(), pliant.read_text()
    if module is not None:
        pliant.write_text(module)
    script.write_text(text)
    _now_newer(script)
    try:
        yield
    finally:
        script.write_text(before[0])
        pliant.write_text(before[1])
        _now_newer(script)


class Door:
    """A socket that slurmctld may ask, with a thread behind it; ``asked`` counts."""

    def __init__(self, path: Path, serve: Serve) -> None:
        self.path, self.asked = path, 0
        self._serve = serve
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o666)
        self._listener.listen(16)
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.asked += 1
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(30)
            line = connection.makefile("rb").readline()
            self._serve(connection, line)

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def door(path: Path, serve: Serve) -> Iterator[Door]:
    """Serve at ``path`` for a while."""
    made = Door(path, serve)
    try:
        yield made
    finally:
        made.close()


def silent(connection: socket.socket, _: bytes) -> None:
    """Answer after ten seconds."""
    time.sleep(10)
    connection.sendall(b"ok set.gres=gpu%3A4\n")


def garbage(connection: socket.socket, _: bytes) -> None:
    """Answer bytes that mean nothing."""
    connection.sendall(b"\xff\0\xfe ok set.gres=gpu%3A4\n" * 100)


def trickle(connection: socket.socket, _: bytes) -> None:
    """Answer a byte now and then, never a whole line."""
    for _step in range(1000):
        connection.sendall(b"o")
        time.sleep(0.01)


def hang_up(connection: socket.socket, _: bytes) -> None:
    """Close without an answer."""
    connection.close()
