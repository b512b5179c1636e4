"""pliant.toml: what it says, and what is said about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pliant.daemon.config import (
    Config,
    DaemonConfig,
    SlurmConfig,
    address,
    config_path,
    load,
    parse,
)
from pliant.daemon.main import main
from pliant.errors import BadConfig
from pliant.model import Mode


def test_an_empty_file_observes_everywhere() -> None:
    config = parse({})
    assert config == Config(DaemonConfig(), SlurmConfig(), {})
    assert config.mode("gpu") is Mode.OBSERVE


def test_a_full_file_says_all(tmp_path: Path) -> None:
    file = tmp_path / "pliant.toml"
    file.write_text(
        """
        [daemon]
        socket = "/run/p.sock"
        state_dir = "/var/lib/p"
        listen = "[::1]:6830"
        munge_socket = "/run/munge/s"
        user = "slurm"
        policy = "fms"
        cycle_s = 2
        updates_per_cycle = 7
        log_level = "debug"
        retention_days = 3
        admins = ["alice"]
        [slurm]
        conf = "/etc/slurm/slurm.conf"
        bin_dir = "/opt/slurm/bin"
        timeout_s = 2.5
        access = "native"
        [partitions]
        default = "off"
        gpu = "enforce"
        [gpu_memory]
        a100 = "40G"
        default = "512M"
        """
    )
    config = load(file)
    assert config == Config(
        DaemonConfig(
            socket="/run/p.sock",
            state_dir="/var/lib/p",
            listen="[::1]:6830",
            munge_socket="/run/munge/s",
            user="slurm",
            policy="fms",
            cycle_s=2.0,
            updates_per_cycle=7,
            log_level="debug",
            retention_days=3,
            admins=("alice",),
        ),
        SlurmConfig("/etc/slurm/slurm.conf", "/opt/slurm/bin", 2.5, "native"),
        {"default": Mode.OFF, "gpu": Mode.ENFORCE},
        gpu_memory={"a100": 40_960, "default": 512},
    )
    assert [config.mode(name) for name in ("gpu", "cpu")] == [Mode.ENFORCE, Mode.OFF]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ({}, 30),
        ({"daemon": {"retention_days": 3}}, 3),
        ({"store": {"keep_days": 7}}, 7),
        ({"daemon": {"retention_days": 3}, "store": {"keep_days": 7}}, 7),
    ],
)
def test_how_long_the_history_is_kept(text: dict[str, dict[str, int]], days: int) -> None:
    assert parse(text).keep_s == days * 86_400


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            {"deamon": {}},
            "pliant.toml: deamon: '{}': [daemon], [policy], [slurm], [pbs], [partitions], "
            "[store], [trial] or [gpu_memory] is expected",
        ),
        ({"slurm": 3}, "pliant.toml: slurm: '3': a section [slurm] is expected"),
        (
            {"slurm": {"config": "x"}},
            "pliant.toml: [slurm] config: 'x': one of conf, bin_dir, timeout_s, access is expected",
        ),
        (
            {"slurm": {"access": "pyslurm"}},
            "pliant.toml: [slurm] access: 'pyslurm': one of commands, mixed, native is expected",
        ),
        (
            {"daemon": {"cycle_s": "5"}},
            "pliant.toml: [daemon] cycle_s: '5': a number of seconds from 0.2 to 3600 is expected",
        ),
        (
            {"daemon": {"cycle_s": 0.01}},
            "pliant.toml: [daemon] cycle_s: '0.01': "
            "a number of seconds from 0.2 to 3600 is expected",
        ),
        (
            {"daemon": {"updates_per_cycle": True}},
            "pliant.toml: [daemon] updates_per_cycle: 'True': "
            "a whole number from 1 to 10000 is expected",
        ),
        (
            {"daemon": {"log_level": "loud"}},
            "pliant.toml: [daemon] log_level: 'loud': "
            "one of error, warning, info, debug is expected",
        ),
        (
            {"pbs": {"back": "hold"}},
            "pliant.toml: [pbs] back: 'hold': \"hold\" is no longer there, and the line is to be "
            'taken out: "time" is expected',
        ),
        (
            {"daemon": {"socket": "run/p.sock"}},
            "pliant.toml: [daemon] socket: 'run/p.sock': "
            "an absolute path of at most 100 bytes is expected",
        ),
        (
            {"daemon": {"socket": "/" + "x" * 100}},
            "pliant.toml: [daemon] socket: '/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...': "
            "an absolute path of at most 100 bytes is expected",
        ),
        (
            {"daemon": {"listen": "6830"}},
            "pliant.toml: [daemon] listen: '6830': "
            '"host:port", or "" for no second door is expected',
        ),
        (
            {"daemon": {"admins": "alice"}},
            "pliant.toml: [daemon] admins: 'alice': "
            'a list of user names, like ["alice"], is expected',
        ),
        (
            {"daemon": {"policy": "magic\n"}},
            "pliant.toml: [daemon] policy: 'magic?': one of ",
        ),
        (
            {"daemon": {"policy": "manual-optimal"}},
            "pliant.toml: [daemon] policy: 'manual-optimal': one of ",
        ),
        (
            {"daemon": {"policy": "fms"}, "policy": {"times": "expected"}},
            "pliant.toml: [policy]: policy fms: times: 'expected': on a real cluster 'limits' is",
        ),
        (
            {"daemon": {"policy": "cosched-optimal"}},
            "pliant.toml: [daemon] policy: 'cosched-optimal': one of ",
        ),
        (
            {"daemon": {"policy": "fitgpp"}, "policy": {"magic": 1}},
            "pliant.toml: [policy]: policy fitgpp: option 'magic': one of s (4.0), p (1), ",
        ),
        (
            {"policy": {"sizes": "all"}},
            "pliant.toml: [policy]: policy moldable-equipartition: option 'sizes': one of ",
        ),
        (
            {"daemon": {"policy": "f-scheduling"}, "policy": {"pays": "yes"}},
            "pliant.toml: [policy]: policy f-scheduling: pays: 'yes': true or false is expected",
        ),
        (
            {"gpu_memory": {"a100": 40}},
            "pliant.toml: [gpu_memory] a100: '40': a size like \"40G\" is expected",
        ),
        (
            {"gpu_memory": {"a100": "0G"}},
            "pliant.toml: [gpu_memory] a100: '0G': a size like \"40G\" is expected",
        ),
        ({"policy": 3}, "pliant.toml: policy: '3': a section [policy] is expected"),
        (
            {"partitions": {"gpu": "on"}},
            "pliant.toml: [partitions] gpu: 'on': one of off, observe, enforce is expected",
        ),
        (
            {"partitions": {"gpu": ["enforce"]}},
            "pliant.toml: [partitions] gpu: '['enforce']': "
            "one of off, observe, enforce is expected",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(raw: dict[str, object], message: str) -> None:
    with pytest.raises(BadConfig) as error:
        parse(raw)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_one_that_is_no_toml_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "pliant.toml"
    with pytest.raises(BadConfig) as missing:
        load(file)
    file.write_text("[daemon\n")
    with pytest.raises(BadConfig) as broken:
        load(file)
    assert str(missing.value) == (
        f"{file}: No such file or directory: a readable TOML file is expected"
    )
    assert str(broken.value).startswith(f"{file}: Expected ']'")
    file.write_text("a = " + "[" * 50_000)
    with pytest.raises(BadConfig, match="a readable TOML file is expected"):
        load(file)


def test_the_environment_names_the_file() -> None:
    assert config_path({}) == Path("/etc/pliant/pliant.toml")
    assert config_path({"PLIANT_CONFIG": "/x.toml"}) == Path("/x.toml")


def test_an_address_is_split_at_its_port() -> None:
    assert address("host.cluster:6830") == ("host.cluster", 6830)
    assert address("[::1]:6830") == ("::1", 6830)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nope"], "unrecognized arguments: --nope; see pliantd --help"),
        (["--config"], "argument --config: expected one argument; see pliantd --help"),
        (["--conf=x"], "unrecognized arguments: --conf=x; see pliantd --help"),
        (
            ["--config=/none", "--check"],
            "/none: No such file or directory: a readable TOML file is expected",
        ),
    ],
)
def test_pliantd_complains_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code, capsys.readouterr().err) == (2, f"pliantd: {said}\n")
