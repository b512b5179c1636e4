"""What tests ask pliantd at its second door, and how they wait until it has looked."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TypeVar

from slurm_helpers import wait_until

from pliant.daemon import answers as a
from pliant.errors import Unavailable
from pliant.sandbox import Sandbox
from pliant.wire import Message, ask_over_tcp

T = TypeVar("T")


def answer_of(sandbox: Sandbox, verb: str, **fields: str) -> Message:
    """Ask pliantd at its second door, as root."""
    port = sandbox.record.ports.pliant
    munge_socket = str(sandbox.layout.munge_socket)
    return ask_over_tcp("127.0.0.1", port, Message(verb, fields), munge_socket=munge_socket)


def ask(sandbox: Sandbox, kind: type[T], verb: str, **fields: str) -> T:
    """Ask pliantd and read its answer; fail on a no."""
    answer = answer_of(sandbox, verb, **fields)
    assert answer.is_ok, answer.message
    return a.from_json(kind, answer.fields["json"])


def wait_for_look(sandbox: Sandbox) -> None:
    """Wait until pliantd has seen what is so now, and done about it what it will do."""
    now_s = time.time()

    def looked() -> bool:
        try:
            answer_of(sandbox, "why", job="0")  # an unknown job lets it look again, soon
            return ask(sandbox, a.StatusAnswer, "status").observed_s > now_s
        except Unavailable:
            return False

    wait_until(looked, "pliantd to look")
    answer_of(sandbox, "why", job="0")  # the next look begins when all is done


def wait_for_fresh_look(sandbox: Sandbox) -> None:
    """Wait for a look that no submission may have outdated.

    These are known by whole seconds, on both sides; a third is for the way to a busy pliantd.
    """
    told = sandbox.run(["squeue", "-h", "-t", "all", "-o", "%V"], check=True).stdout.split()
    newest_s = max((datetime.fromisoformat(at).timestamp() for at in told), default=0.0)

    def is_fresh() -> bool:
        wait_for_look(sandbox)
        told = ask(sandbox, a.StatusAnswer, "status")
        return told.observed_s - told.observe_took_s >= newest_s + 3

    wait_until(is_fresh, "a look after the last submission")
