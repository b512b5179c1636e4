"""Jobs on PBS that have ended, as its history tells of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from pbs_recorded import ASSETS, Recorded

from pliant.batch.clients import Answer
from pliant.batch.pbs import Pbs
from pliant.batch.pbs.ended import AGAIN_S, AT_ONCE, FIRST_S, MOST, select_words
from pliant.model import Shape

NOW_S = 1795647600.0
ENDED = (ASSETS / "ended.json").read_text()


@dataclass
class Server:
    """A server with a history, beside what was recorded; ``asked``: for which jobs."""

    ids: Sequence[str]
    status: int = 0
    asked: list[tuple[str, ...]] = field(default_factory=list)
    recorded: Recorded = field(default_factory=Recorded)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[0] == "qselect":
            self.asked.append(tuple(argv))
            return Answer("".join(f"{one}\n" for one in self.ids), "no", self.status)
        if argv[:2] == ("qstat", "-x"):
            self.asked.append(tuple(argv))
            return Answer(ENDED, "", 0)
        return self.recorded.run(argv, env=env, stdin=stdin)


def test_the_history_tells_how_jobs_ended() -> None:
    found = Pbs(Server(["1.head"]), lambda: NOW_S).ended()
    said = {one.job.name: (one.exit, one.job.start_s > 0, one.job.shape) for one in found}
    assert said == {
        "completes": ("COMPLETED", True, Shape(1, 2)),
        "fails": ("FAILED", True, Shape(1, 1)),
        "slow": ("TIMEOUT", True, Shape(1, 1)),
        "killed": ("CANCELLED", True, Shape(1, 1)),
        "waited": ("CANCELLED", False, Shape(1, 1)),
        "array": ("COMPLETED", True, Shape(1, 1)),
    }
    ran = {one.job.name: one.end_s - one.job.start_s for one in found if one.job.start_s}
    assert min(ran.values()) >= 1
    assert all(one.job.spec is not None and one.job.user == "ada" for one in found)
    assert [one.job.id for one in found if one.job.name == "array"] == ["5[1]", "5[2]"]


def test_only_what_ended_since_the_last_time_is_asked_for_and_never_very_many() -> None:
    server = Server([f"{number}.head" for number in range(2 * MOST)])
    now = [NOW_S]
    pbs = Pbs(server, lambda: now[0])
    pbs.ended()
    first, *looks = server.asked
    assert first == select_words(NOW_S - FIRST_S)
    assert [len(words) - 5 for words in looks] == [AT_ONCE] * (MOST // AT_ONCE)
    assert looks[-1][-1] == f"{2 * MOST - 1}.head"
    now[0] += 30
    server.ids = []
    server.asked.clear()
    assert (pbs.ended(), server.asked) == ([], [select_words(NOW_S - AGAIN_S)])


def test_without_a_history_nothing_is_known_and_it_is_asked_for_again() -> None:
    server = Server(["1.head"], status=1)
    pbs = Pbs(server, lambda: NOW_S)
    assert (pbs.ended(), server.asked) == ([], [select_words(NOW_S - FIRST_S)])
    server.status = 0
    assert len(pbs.ended()) > 0


def test_an_instant_is_written_as_qselect_reads_it() -> None:
    assert "-tm.ge.202611252300.00" in select_words(NOW_S)


@pytest.mark.parametrize("out", ["", "{}", "[]", "qstat: no"])
def test_who_is_gone_by_then_or_not_understood_is_left_out(
    out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("test_pbs_ended.ENDED", out)
    assert Pbs(Server(["1.head"]), lambda: NOW_S).ended() == []
