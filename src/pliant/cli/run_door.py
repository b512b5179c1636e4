"""How `pliant run` reaches pliantd: found once, and again only after it was not reached."""

from __future__ import annotations

import os
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
from pliant.errors import Unavailable
from pliant.wire import STANDS_BY, Message, ask_over_tcp
from pliant.wire.runs import RunAnswer


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

    def ask(self, verb: str, fields: Mapping[str, str], timeout_s: float) -> RunAnswer:
        """Return its answer.

        Raises Unavailable, SaidNo, BadConfig, in one line.
        """
        way = self._way or _find()
        trouble = Unavailable("pliantd is not found")
        self._way = None
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
            return _understood(answer)
        raise trouble


def _rest(way: Way) -> tuple[int, str, int | None]:
    return way.port, way.munge_socket, way.reader


def _find() -> Way:
    config = client_config(config_path())
    names = hosts(config, os.environ.get(HOST_VARIABLE, ""), lambda: controllers(config))
    _, port = address(config.daemon.listen)
    return Way(names, port, config.daemon.munge_socket, reader(config))


def _understood(answer: Message) -> RunAnswer:
    if not answer.is_ok:
        raise SaidNo(answer.message or "pliantd refused without a reason")
    try:
        return msgspec.json.decode(answer.fields.get("json", ""), type=RunAnswer)
    except msgspec.DecodeError as wrong:
        raise Unavailable(f"pliantd's answer is not understood: {wrong}") from wrong
