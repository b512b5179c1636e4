"""What a wrapper reports, and for how long."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from unittest.mock import Mock

import pytest

from fake_door import wait_until
from pliant.errors import Unavailable
from pliant.node.aside import Aside
from pliant.node.door import Door, Heard
from pliant.node.words import Wish
from pliant.wire.runs import RunAnswer

WISH = Wish("0.1", "resize", "2", 60.0)


def test_that_there_is_no_checkpoint_is_not_said_any_more_once_there_is_one() -> None:
    """Pliantd, which was away, would end what the checkpoint has begun."""
    said, answers = list[str](), threading.Event()
    numbers: dict[str, set[int]] = {}

    def ask(verb: str, fields: Mapping[str, str], _timeout_s: float) -> RunAnswer:
        said.append(verb)
        numbers.setdefault(verb, set()).add(int(fields["number"]))
        if not answers.is_set():
            raise Unavailable("pliantd is away")
        return RunAnswer()

    heard = Mock(spec=Heard)
    door = Door(ask, {"job": "7", "run": "0"}, heard)
    door.failed(WISH, "not in time")
    wait_until(lambda: "run-failed" in said, "the first report")
    door.saved(WISH, 1.0)
    wait_until(lambda: "run-saved" in said, "the second one")
    before = said.count("run-failed")
    answers.set()
    wait_until(lambda: said.count("run-saved") > 2, "that it is heard, and said again")
    door.close()
    assert (said.count("run-failed"), heard.answered.called) == (before, True)
    assert numbers == {"run-failed": {1}, "run-saved": {2}}  # the later one is true


def test_where_no_thread_can_be_made_a_report_fails_as_on_a_full_disk_and_no_requeue_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As by `ulimit -u`."""
    monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start")))
    with pytest.raises(OSError, match="no thread can be made here"):
        Door(Mock(), {}, Mock(spec=Heard)).failed(WISH, "not in time")
    requeues = Mock()
    Aside().do(requeues)
    requeues.assert_called_once_with()
