"""Door 1, the Unix socket: slurmctld's submit filter asks, and waits for us under its locks.

So an answer comes from memory, whatever else goes on: nobody is asked, no lock is waited for. What
goes wrong here, and a snapshot that is too old to speak of, leave the job as its owner wrote it.

Many submissions in a row are mostly alike, and between two cycles they are answered alike: only
one that starts at once takes something away from the next, and a trial job counts. Where nothing
could start, that is whatever their time limits, and up to a bound whatever their memory.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from pliant.daemon.config import Config
from pliant.daemon.cycling import Cycling
from pliant.daemon.lines import Limits, peer_uid
from pliant.daemon.seen import Seen
from pliant.daemon.trials import trials_seen
from pliant.errors import BadInput
from pliant.filter import Answer, View, alike_to_mib, filter_submission
from pliant.grammar import tokens
from pliant.wire import MAX_REQUEST, Message, decode, encode, escape, no, ok

log = logging.getLogger("pliant.doors")

STALE_S = 30.0
"""The least age at which a snapshot is too old; see :meth:`FilterDoor._stale_s`."""

UNTOLD_S = 10
"""For how long the plugin says when a job came that we were not told of."""

ALIKE = 256
"""How many answers are remembered until the next cycle."""
ALIKE_BYTES = 4096
"""The longest line whose answer is."""

MAX_TEXT = 3 * 4096
"""The longest field that is read, in bytes of a line: pliant.lua tells of 4,096, each as %XX."""
MAX_LINE = 3 * 16384 + 8192
"""The longest line that is read; pliant.lua tells 16 kB of texts, and some numbers."""

_TIME_LIMIT = b"time_limit"
_NUMBERS = re.compile(rb"&(time_limit|min_mem_per_node|min_mem_per_cpu)=([1-9][0-9]{0,8})(?=&|\Z)")
"""What submissions differ in most, as far as it is said."""

_AWAY = ok(**Answer(away=True).as_fields)
"""The plugin notes on the job what its owner said, as it does where nobody answers."""


class FilterDoor:
    """Answers ``submit`` lines."""

    limits = Limits(connections=64, line_s=2.0, lines=16, line_bytes=MAX_REQUEST)

    def __init__(
        self,
        cycling: Cycling,
        wake: Callable[[], None],
        may_ask: Callable[[], frozenset[int]],
        monotonic: Callable[[], float],
    ) -> None:
        """``may_ask``: the uids that are answered; ``wake`` lets a cycle run soon."""
        self._cycling, self._wake, self._may_ask = cycling, wake, may_ask
        self._monotonic = monotonic
        self._viewed: Seen | None = None
        self._paused = False
        self._config: Config | None = None
        self._view: View | None = None
        self._to_wake = False
        self._to_keep: tuple[bytes, Mapping[str, str], View, _Known] | None = None
        self._told_s = self._untaken_s = float("-inf")
        # by the line, or by what _apart leaves of it
        self._alike: dict[object, _Known] = {}
        self.answered = 0
        """Submissions answered since the start."""

    def answer(self, line: bytes, peer: socket.socket) -> bytes:
        """Answer one line; who may not ask is not answered."""
        if peer_uid(peer) not in self._may_ask():
            log.warning("uid %s may not ask at the filter's door", peer_uid(peer))
            return b""
        view = self._current()
        kind, mib = _apart(line)
        known = self._known(line, kind, mib) if view is not None else None
        if known is None:
            return self._look_into(line, view)
        self.answered += 1
        self._note(taken=False)
        self._note_refusal(known.refused_in)
        self._to_wake |= known.wakes
        return known.line(mib)

    def _known(self, line: bytes, kind: object, mib: int) -> _Known | None:
        """Return what such a submission was answered before; None where it is to be looked into."""
        known = self._alike.get(kind)
        return known if known is not None and mib <= known.to_mib else self._alike.get(line)

    def afterwards(self) -> None:
        """Let a cycle run soon if the last answer was for a job that may be changed; remember it.

        Apart from :meth:`answer`, so that slurmctld does not wait for it.
        """
        to_keep, self._to_keep = self._to_keep, None
        if to_keep is not None:
            self._keep(*to_keep)
        if self._to_wake:
            self._to_wake = False
            self._wake()

    def _look_into(self, line: bytes, view: View | None) -> bytes:
        if _is_too_long(line):  # of an older pliant.lua; no answer would make it ask nobody
            self._note(taken=False)
            return encode(_AWAY)
        try:
            request = decode(line)
        except BadInput as error:
            return encode(no(str(error)))
        if request.word == "ping":
            return encode(ok())
        if request.word != "submit":
            return encode(no("submit or ping is expected"))
        self.answered += 1
        return encode(_AWAY) if view is None else self._submit(line, request, view)

    def _submit(self, line: bytes, request: Message, view: View) -> bytes:
        try:
            answer = filter_submission(request.fields, view, fresh=self._is_fresh(request.fields))
        except Exception:
            log.exception("a submission was left as it is: this is Pliant's own mistake")
            return encode(_AWAY)
        refused_in = _partition(request.fields, view) if answer.refusal else None
        known = _Known(answer, _mem_limit(request.fields, view), refused_in)
        if not (answer.started or answer.once):
            self._to_keep = (line, request.fields, view, known)
        self._note(taken=answer.started)
        self._note_refusal(refused_in)
        self._to_wake |= known.wakes
        return known.first

    def _keep(self, line: bytes, fields: Mapping[str, str], view: View, known: _Known) -> None:
        """Remember an answer until the view is another one."""
        if len(line) > ALIKE_BYTES or len(self._alike) >= ALIKE:
            return
        (kind, mib), to_mib = _apart(line), alike_to_mib(fields, view)
        if to_mib is None or mib > to_mib:
            self._alike[line] = known
        else:
            known.to_mib = to_mib
            self._alike[kind] = known

    def _note_refusal(self, partition: str | None) -> None:
        if partition is not None:
            self._cycling.remembering.refused.append(partition)

    def _note(self, *, taken: bool) -> None:
        """Note when the last job came, and the last of those that this view does not know of.

        Many that are not given anything start all the same: tasks of arrays, jobs whose shape
        stays, and what waits for more than GPUs.
        """
        self._told_s = self._monotonic()
        if not taken:
            self._untaken_s = self._told_s

    def _is_fresh(self, fields: Mapping[str, str]) -> bool:
        """Whether the last look began after any other submission, which may have what seems free.

        ``since``: whole seconds from the last one that we were not told of, by a clock of whole
        seconds; not said where that is longer ago than the plugin counts.
        """
        seen, since = self._viewed, fields.get("since", "")
        if seen is None:
            return True
        look_s = seen.at_s - seen.decide_s - seen.observe_s
        untold_s = int(since) - 1 if since.isdecimal() else UNTOLD_S - 1
        return look_s > self._untaken_s and look_s >= self._monotonic() - untold_s

    def _current(self) -> View | None:
        """Return the view of the last cycle; None where it is too old."""
        seen, paused = self._cycling.seen, self._cycling.store.paused
        config = self._cycling.config
        if seen is None or self._monotonic() - seen.at_s > self._stale_s(seen):
            return None
        if not self._is_viewed(seen, paused=paused, config=config):
            trials = trials_seen(seen.snapshot, seen.policy, config.trial)
            view = seen.view(paused=paused)
            inventory = view.inventory.at_most(config.mode)  # a switch to off waits for no look
            self._view = replace(view, inventory=inventory, trials=trials)
            self._alike = {}
            self._viewed, self._paused, self._config = seen, paused, config
            self._untaken_s = self._told_s
        return self._view

    def _is_viewed(self, seen: Seen, *, paused: bool, config: Config) -> bool:
        return seen is self._viewed and paused == self._paused and config is self._config

    def _stale_s(self, seen: Seen) -> float:
        """A few cycles at the pace that they have here."""
        pace_s = self._cycling.config.daemon.cycle_s + 12 * seen.observe_s + seen.decide_s
        return max(STALE_S, 4 * pace_s)


class _Known:
    """An answer, and what goes with it each time that it is given."""

    def __init__(self, answer: Answer, more: Mapping[str, str], refused_in: str | None) -> None:
        """``more``: fields that are not the filter's; ``refused_in``: a partition."""
        self.wakes = answer.away or answer.spec is not None
        self.refused_in = refused_in
        self.to_mib = 0
        """Up to how much memory it is the answer; 0: where none is said, or the same."""
        self.first = encode(ok(**answer.as_fields, **more))
        self._spec = answer.spec

    def line(self, mib: int) -> bytes:
        """Return the line to a submission that asks for so much memory, 0 for none."""
        return self._of_memory(mib) if mib and self.to_mib else self.first

    @cached_property
    def _of_memory(self) -> Callable[[int], bytes]:
        spec = self._spec
        assert spec is not None and spec.footprint is not None  # noqa: S101  # to_mib is 0 there
        footprint, token_of = spec.footprint, tokens(spec)
        way = "mem_per_cpu_mib" if footprint.mem_per_cpu_mib else "mem_per_node_mib"
        before, _, after = self.first.partition(escape(token_of(footprint)))
        return lambda mib: before + escape(token_of(replace(footprint, **{way: mib}))) + after


def _apart(line: bytes) -> tuple[object, int]:
    """Return a line without its time limit and its memory, and that in MiB; 0: nothing is said."""
    if len(line) > ALIKE_BYTES:
        return line, 0
    parts = _NUMBERS.split(line)
    names, values = parts[1::3], parts[2::3]
    memory = [int(value) for name, value in zip(names, values, strict=True) if name != _TIME_LIMIT]
    return (*parts[::3], *names), memory[0] if memory else 0


def _mem_limit(fields: Mapping[str, str], view: View) -> Mapping[str, str]:
    """Whether a submission's partitions limit memory: pliant.lua sees no limit of slurm.conf's."""
    named = view.inventory.partitions(fields.get("partition", ""))
    limited = any(p.max_mem_per_node_mib or p.max_mem_per_cpu_mib for p in named)
    return {"mem_limit": "1"} if limited else {}


def _partition(fields: Mapping[str, str], view: View) -> str:
    """Return the first partition of a submission that there is; "" for none."""
    known = view.inventory.partitions(fields.get("partition", ""))
    return known[0].name if known else ""


def _is_too_long(line: bytes) -> bool:
    """Whether a line would keep slurmctld waiting: reading 90 kB takes longer than it waits."""
    if len(line) <= MAX_TEXT:
        return False
    return len(line) > MAX_LINE or any(len(pair) > MAX_TEXT + 64 for pair in line.split(b"&"))
