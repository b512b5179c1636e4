"""What the checks of PBS look at beside that of :mod:`.patient`."""

from __future__ import annotations

import json
import pwd
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pliant.batch.clients import Answer, Runs
from pliant.batch.pbs import Commands
from pliant.batch.pbs.node_rows import NodeRow, parse_nodes
from pliant.batch.pbs.server_rows import QueueRow, ServerRow, parse_queues, parse_server
from pliant.batch.pbs.values import table, texts
from pliant.batch.slurm.standby import is_controller
from pliant.cli.commands import is_there, run
from pliant.cli.doctor.patient import Host, Patient
from pliant.cli.install.pbs import printed
from pliant.cli.install.pbs_parts import PREFIX, Found, found_in
from pliant.daemon.config import Config
from pliant.errors import PliantError, Unavailable
from pliant.filter.pbs.schedulers import LIST, listed

PROGRAMS = ("qstat", "pbsnodes", "pbs_rstat", "qalter", "qmgr", "qrerun", "qrls", "qrun")
"""What pliantd runs of PBS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PbsPatient(Patient):
    """One host of one PBS.

    ``missing``: of PROGRAMS. ``attributes``: all that the server says of itself. ``schedulers``:
    what qmgr lists of each. ``resources``, ``hooks``: None where qmgr does not say.
    """

    commands: Runs
    missing: tuple[str, ...] = ()
    server: ServerRow | None = None
    server_trouble: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    queues: tuple[QueueRow, ...] = ()
    nodes: tuple[NodeRow, ...] = ()
    schedulers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    resources: Found | None = None
    hooks: Found | None = None
    qmgr_trouble: str = ""
    now_s: float = 0.0
    system = "PBS"
    log = "pliantd's log"
    place = "the server's host"
    start = f"start pliantd on {place}; {log} says why it ended"
    again = "let pliantd read it again (SIGHUP)"
    door = "first door"

    @property
    def settings(self) -> Config:
        """pliant.toml, or as it is where it says nothing."""
        return self.config or Config()

    @property
    def server_host(self) -> str:
        """The host of the server."""
        return self.attributes.get("server_host", "")

    @property
    def is_controller(self) -> bool:
        """Whether the server runs on this host."""
        return is_controller([self.server_host], self.hostname) if self.server_host else False

    @property
    def writes_config(self) -> str:
        """What is to be written."""
        return 'write one with batch = "pbs" under [daemon]'

    @property
    def hooks_owner(self) -> int | None:
        """The uid whose file the hooks believe beside root's; None where that is not known."""
        if self.hooks is None:
            return None
        text = self.hooks.files.get((f"{PREFIX}queuejob", "config"), b"")
        owner = (read_settings(text) or {}).get("owner")
        return owner if isinstance(owner, int) else 0

    @property
    def pliantd_uid(self) -> int:
        """The uid of pliantd, as pliant.toml says, else as the hooks do; else root's.

        -1 where this host does not know that user.
        """
        name = self.settings.daemon.user
        try:
            return pwd.getpwnam(name).pw_uid if name else self.hooks_owner or 0
        except KeyError:
            return -1


def read_settings(text: bytes) -> dict[str, object] | None:
    """Return a hook's configuration; None where it is no JSON object."""
    try:
        said = json.loads(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def gather_pbs(host: Host, clock: Callable[[], float] = time.time) -> PbsPatient:
    """Look at the PBS that a host belongs to."""
    pbs = (host.config or Config()).pbs
    commands = Commands(pbs.bin_dir, pbs.timeout_s, server=pbs.server)
    return looked_at(PbsPatient(
        **host.known(),
        run=_beside,
        commands=commands,
        missing=tuple(name for name in PROGRAMS if not _is_there(pbs.bin_dir, name)),
        now_s=clock(),
    ))  # fmt: skip


def looked_at(patient: PbsPatient) -> PbsPatient:
    """Ask the server by the patient's commands."""

    def asked(*argv: str) -> str:
        answer = patient.commands.run(argv)
        if answer.status:
            raise Unavailable(f"{' '.join(argv[:2])}: {answer.words}")
        return answer.out

    try:
        said = asked("qstat", "-B", "-f", "-F", "json")
        found = next(iter(table(said, "Server").values()), None)
        if found is None:
            raise Unavailable("qstat -B: it names no server")
        patient = replace(
            patient,
            server=parse_server(said),
            attributes=texts(found),
            queues=tuple(parse_queues(asked("qstat", "-Q", "-f", "-F", "json"))),
            nodes=tuple(parse_nodes(asked("pbsnodes", "-a", "-v", "-F", "json"))),
        )
    except PliantError as wrong:
        return replace(patient, server_trouble=str(wrong))
    try:
        patient = replace(
            patient,
            resources=found_in(printed(patient.commands, "resource")),
            schedulers=listed(asked("qmgr", *LIST)),
        )
        return replace(patient, hooks=found_in(printed(patient.commands, "hook")))
    except PliantError as wrong:
        return replace(patient, qmgr_trouble=str(wrong))


def _beside(argv: list[str], *, text: str = "") -> Answer:
    """Run what is none of PBS's programs."""
    return run(argv, text=text)


def _is_there(bin_dir: str, program: str) -> bool:
    return is_there(Path(bin_dir) / program) if bin_dir else shutil.which(program) is not None
