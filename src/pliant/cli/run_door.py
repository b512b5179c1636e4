"""How `pliant run` reaches pliantd: found once, and again only after it was not reached.

Its threads ask at once; pliant.toml is read by the first of them, and the others wait for that.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from pliant.cli.door import (
    CONNECT_S,
    HOST_VARIABLE,
    SaidNo,
    client_config,
    controllers,
    hosts,
    reader,
)
from pliant.daemon.config import address, config_path
from pliant.decoding import Decoder
from pliant.errors import Unavailable
from pliant.wire import STANDS_BY, Message, ask_over_tcp
from pliant.wire.runs import RunAnswer

_ANSWER = Decoder(RunAnswer)


@dataclass(frozen=True, slots=True)
class Way:
    """Where pliantd may be."""

    names: Sequence[str]
    port: int
    munge_socket: str
    reader: int | None


class RunDoor:
    """Asks the pliantd that acts; one that stands by counts as not there."""

    def __init__(self) -> None:
        """Look for it when it is first asked."""
        self._way: Way | None = None
        self._finds = threading.Lock()

    def ask(self, verb: str, fields: Mapping[str, str], timeout_s: float) -> RunAnswer:
        """Return its answer.

        Raises Unavailable, SaidNo, BadConfig, in one line.
        """
        way = self._found()
        trouble = Unavailable("pliantd is not found")
        for name in way.names:
            try:
                answer = ask_over_tcp(
                    name,
                    way.port,
                    Message(verb, fields),
                    munge_socket=way.munge_socket,
                    reader=way.reader,
                    timeout_s=timeout_s,
                    connect_s=min(CONNECT_S, timeout_s),
                )
            except Unavailable as error:
                trouble = error
                continue
            if STANDS_BY in answer.fields:
                trouble = Unavailable(answer.fields[STANDS_BY])
                continue
            self._way = Way([name, *(other for other in way.names if other != name)], *_rest(way))
            return understood(answer)
        self._way = None
        raise trouble

    def _found(self) -> Way:
        with self._finds:
            self._way = way = self._way or _find()
            return way


def _rest(way: Way) -> tuple[int, str, int | None]:
    return way.port, way.munge_socket, way.reader


DOOR = RunDoor()
"""This process's one: whoever imports it has waited for all that it takes to be learnt."""


def _find() -> Way:
    config = client_config(config_path())
    names = hosts(config, os.environ.get(HOST_VARIABLE, ""), lambda: controllers(config))
    _, port = address(config.daemon.listen)
    return Way(names, port, config.daemon.munge_socket, reader(config))


def understood(answer: Message) -> RunAnswer:
    """Return what an answer says.

    Raises SaidNo, Unavailable.
    """
    if not answer.is_ok:
        raise SaidNo(answer.message or "pliantd refused without a reason")
    try:
        return _ANSWER.json(answer.fields.get("json", ""))
    except msgspec.DecodeError as wrong:
        raise Unavailable(f"pliantd's answer is not understood: {wrong}") from wrong
