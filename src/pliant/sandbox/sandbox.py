"""A real private Slurm on one machine: up, down, and what lies between."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypedDict

from pliant.errors import BadInput, PliantError, Unavailable
from pliant.sandbox import accounting, accounts, build, environment, parts, processes
from pliant.sandbox.layout import Layout, base_directory
from pliant.sandbox.locks import is_same
from pliant.sandbox.notified import Notified
from pliant.sandbox.options import Options
from pliant.sandbox.plain import plain_errors
from pliant.sandbox.programs import require
from pliant.sandbox.reasons import why
from pliant.sandbox.record import Record, claim, read_record, remove
from pliant.sandbox.waiting import until

_NEEDED = ("slurmctld", "slurmd", "scontrol", "sinfo", "munged")
_NEEDED_ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
_START_S = 60.0
_LEAVES = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
HANGS_S = 300.0
"""A command that takes so long hangs; on a machine at work an installation takes half a minute."""


class Status(TypedDict):
    """What `pliant sandbox status --json` prints."""

    name: str
    directory: str
    state: str  # up, damaged (some parts run) or down
    mode: str
    env: dict[str, str]
    parts: dict[str, int | None]  # the pid of each part


class Sandbox:
    """One private Slurm with its own munge, controller, nodes, accounting and pliantd.

    Another process may make a Sandbox of the same name and sees the same: all state is in the
    sandbox's directory and in /proc.
    """

    def __init__(
        self, name: str = "default", options: Options | None = None, base: Path | None = None
    ) -> None:
        self.layout = Layout(base or base_directory(), name)
        self._wanted = options or Options()
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    # -- what it is ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Return the sandbox's name."""
        return self.layout.name

    @property
    def record(self) -> Record:
        """Return what the sandbox was brought up as; raise Unavailable where there is none."""
        return read_record(self.layout)

    @property
    def env(self) -> dict[str, str]:
        """Return the environment of a command in the sandbox: ours, with this Slurm's files."""
        return environment.for_commands(self.layout)

    def processes(self) -> list[processes.Found]:
        """Return all living processes of the sandbox."""
        return processes.find(self.layout)

    def pid(self, part: str) -> int | None:
        """Return the pid of a part (slurmctld, slurmd-n1, pliantd, ...), None if not running."""
        found = processes.leaders(self.processes()).get(part)
        return found.pid if found else None

    def status(self) -> Status:
        """Return what runs; raise Unavailable where there is no such sandbox."""
        record = self.record
        running = processes.leaders(self.processes())
        wanted = parts.names(record.options)
        pids = {part: running[part].pid if part in running else None for part in wanted}
        alive = sum(pid is not None for pid in pids.values())
        state = "up" if alive == len(pids) else "down" if alive == 0 else "damaged"
        return Status(
            name=self.name,
            directory=str(self.layout.top),
            state=state,
            mode=record.options.mode,
            env=environment.own(self.layout),
            parts=pids,
        )

    # -- up and down ---------------------------------------------------------------------------

    def up(self) -> None:
        """Bring the sandbox up; what fails leaves nothing behind.

        Raises Unavailable in one line: a missing package, a sandbox of that name that runs, or
        what the part that failed says in its log.
        """
        require(*_NEEDED, *(_NEEDED_ACCOUNTING if self._wanted.accounting else ()))
        for user in self._wanted.users:
            accounts.person(user)
        umask = os.umask(0o022)  # slurmctld and the jobs' users look into what is made
        try:
            self._up()
        finally:
            os.umask(umask)

    def _up(self) -> None:
        heeded = signal.pthread_sigmask(signal.SIG_BLOCK, _LEAVES)  # none between claim and try
        try:
            with plain_errors():
                held = claim(self.layout, self._wanted)
            self._make(held, heeded)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heeded)

    def _make(self, held: int, heeded: set[int | signal.Signals]) -> None:
        """Bring up what is claimed; from here on who interrupts is heeded."""
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, heeded)
            with plain_errors():
                self._bring_up()
        except BaseException as error:
            if is_same(held, self.layout.top):  # and not a later one of the same name
                self._remove()
            elif isinstance(error, PliantError):
                raise Unavailable(f"sandbox {self.name} was taken down as it came up") from error
            raise
        finally:
            os.close(held)

    def _bring_up(self) -> None:
        build.prepare(self.layout, self.record)
        for part in parts.names(self._wanted):
            self._start(part, wait=True)
            if part == "slurmdbd":
                accounting.register(self.run, self.name, self._users())
        self._wait_for_nodes()

    def _users(self) -> list[str]:
        me = pwd.getpwuid(os.geteuid()).pw_name
        return list(dict.fromkeys([me, *self._wanted.users]))

    def down(self) -> bool:
        """End all processes of the sandbox and remove its files; return whether there were any."""
        existed = self.layout.top.exists()
        found = bool(self.processes())
        if existed or found:
            self._remove()
        return existed or found

    def _remove(self) -> None:
        with plain_errors():
            remove(self.layout)
        for child in self._started.values():
            child.poll()

    # -- parts ---------------------------------------------------------------------------------

    def start(self, part: str, wait: bool = True) -> None:
        """Start a part that does not run, and wait until it answers.

        Raises BadInput for an unknown part or one that runs, Unavailable if it does not come up.
        """
        if pid := self.pid(part):
            raise BadInput(f"{part} runs already: {pid}")
        self._start(part, wait)

    def _start(self, part: str, wait: bool) -> None:
        record = self.record
        command = parts.command(part, self.layout, record.options, accounts.current())
        env = {**environment.for_daemons(self.layout), **command.env}
        notified = Notified(self.layout.notify_socket) if part == "pliantd" else None
        try:
            child = processes.start(self.layout, part, command.argv, env, command.user)
            self._started[part] = child
            if wait:
                self._wait_for(part, notified)
        finally:
            if notified:
                notified.close()

    def stop(self, part: str, timeout_s: float = 20.0) -> None:
        """End a part by SIGTERM, and by SIGKILL if it does not go within the time."""
        self.signal(part, signal.SIGTERM)
        self.signal(part, signal.SIGCONT)  # a stopped process does not end
        try:
            until(lambda: self.pid(part) is None, f"{part} to end", timeout_s)
        except Unavailable:
            self.signal(part, signal.SIGKILL)
            until(lambda: self.pid(part) is None, f"{part} to end", timeout_s)

    def restart(self, part: str) -> None:
        """Stop and start a part."""
        self.stop(part)
        self.start(part)

    def signal(self, part: str, number: signal.Signals) -> None:
        """Send a signal to a part that runs."""
        found = processes.leaders(self.processes()).get(part)
        if found:
            processes.send(found, number)

    def reconfigure(self) -> None:
        """Let slurmctld and the nodes read their configuration again."""
        self.run(["scontrol", "reconfigure"], check=True)

    # -- commands ------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        user: str | None = None,
        timeout: float = HANGS_S,
        check: bool = False,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the sandbox and return what it said; `timeout` is in seconds.

        Raises subprocess.TimeoutExpired, CalledProcessError with `check`, BadInput for a `user`
        whom this machine does not know.
        """
        env, account = self.env, {}
        if user is not None:
            person = accounts.person(user)
            env = person.environment(env)
            account = {
                "user": person.uid,
                "group": person.gid,
                "extra_groups": person.groups,
                "cwd": person.directory(),
            }
        # typeshed does not know keywords that come as one mapping.
        return subprocess.run(  # type: ignore[call-overload,no-any-return]  # **account
            list(argv),
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            check=check,
            **account,
        )

    # -- waiting -------------------------------------------------------------------------------

    def _wait_for(self, part: str, notified: Notified | None) -> None:
        ready = notified.ready if notified else build.ready_check(part, self.layout, self.run)
        self._until_ready(ready, f"{part} to answer", part)

    def _wait_for_nodes(self) -> None:
        want = self.record.options.nodes
        self._until_ready(lambda: self._idle_nodes() == want, f"{want} idle nodes", "slurmd-n1")

    def _idle_nodes(self) -> int:
        try:
            answer = self.run(["sinfo", "-h", "-N", "-p", "gpu", "-o", "%t"], timeout=10)
        except subprocess.TimeoutExpired:
            return 0
        return answer.stdout.split().count("idle")

    def _until_ready(self, is_ready: Callable[[], bool], what: str, part: str) -> None:
        def has_ended() -> str | None:
            code = self._started[part].poll()
            return None if code is None else why(self.layout, part, f"ended ({code})")

        try:
            until(is_ready, what, _START_S, has_ended)
        except Unavailable:
            if has_ended():
                raise
            late = f"did not come up; waited {_START_S:.0f} s for {what}"
            raise Unavailable(why(self.layout, part, late)) from None
