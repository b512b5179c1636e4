"""Of several pliantd, the one beside the slurmctld that acts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from slurm_recorded import Recorded

from pliant.batch.slurm import Slurm
from pliant.batch.slurm.commands import Answer
from pliant.batch.slurm.standby import acting, is_down, stands_by
from pliant.errors import StandsBy

BOTH = "Slurmctld(primary) at ctl1 is {}\nSlurmctld(backup) at ctl2.site is {}\n"


@pytest.mark.parametrize(
    ("states", "host"),
    [(("UP", "UP"), "ctl1"), (("DOWN", "UP"), "ctl2.site"), (("DOWN", "DOWN"), "")],
)
def test_the_first_that_is_up_acts(states: tuple[str, str], host: str) -> None:
    assert acting(BOTH.format(*states)) == host
    assert is_down(BOTH.format(*states)) is (host == "")
    assert not is_down("scontrol: error: no such thing")


@pytest.mark.parametrize(
    ("states", "here", "other"),
    [
        (("UP", "UP"), "ctl1", ""),
        (("UP", "UP"), "CTL1.site", ""),
        (("UP", "UP"), "ctl2", "ctl1"),
        (("DOWN", "UP"), "ctl2", ""),
        (("DOWN", "UP"), "ctl1", "ctl2.site"),
        (("DOWN", "DOWN"), "ctl2", ""),
        (("UP", "UP"), "login", ""),  # no controller: an administrator has put it there
    ],
)
def test_a_host_stands_by_while_another_acts(
    states: tuple[str, str], here: str, other: str
) -> None:
    assert stands_by(("ctl1", "ctl2"), BOTH.format(*states), here) == other


class TwoControllers(Recorded):
    """The recorded cluster with a backup controller."""

    def __init__(self, *states: str) -> None:
        super().__init__("22.05")
        self.ping, self.asked = BOTH.format(*states), 0

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> Answer:
        if argv[-1] == "ping":
            self.asked += 1
            return Answer(self.ping, "", 1)
        answer = super().run(argv, env=env, stdin=stdin)
        config = answer.out.replace("SlurmctldHost[0]        = vm(127.0.0.1)", HOSTS)
        return Answer(config, "", 0)


HOSTS = "SlurmctldHost[0]        = ctl1(10.0.0.1)\nSlurmctldHost[1]        = ctl2"


def test_on_a_host_that_stands_by_nothing_is_seen() -> None:
    slurm = Slurm(TwoControllers("UP", "UP"), clock=lambda: 0.0, here="ctl2")
    with pytest.raises(StandsBy, match=r"^ctl2 stands by: slurmctld runs on ctl1$"):
        slurm.observe()


def test_where_the_primary_is_down_its_backup_looks_and_asks_seldom_who_acts() -> None:
    now_s = [0.0]
    commands = TwoControllers("DOWN", "UP")
    slurm = Slurm(commands, clock=lambda: now_s[0], here="ctl2")
    for now_s[0] in (0.0, 9.0, 11.0):
        assert slurm.observe().nodes
    assert commands.asked == 2
    commands.ping = BOTH.format("UP", "UP")
    now_s[0] = 30.0
    with pytest.raises(StandsBy):
        slurm.observe()


def test_with_one_controller_nobody_is_asked_who_acts() -> None:
    slurm = Slurm(Recorded("22.05"), clock=lambda: 0.0, here="elsewhere")
    assert slurm.observe().nodes
