"""The documentation says all that there is, and nothing that there is not."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pliant import policies
from pliant.cli import cli
from pliant.cli.manual import markdown, pages, roff
from pliant.daemon.config import DaemonConfig, SlurmConfig, parse
from pliant.daemon.main import main as daemon
from pliant.errors import BadSpec
from pliant.grammar import OPTIONS, parse_option
from pliant.model import Mode, Request

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("*.md"), DOCS.parent / "README.md"])
WRITE_AGAIN = "run: python -m pliant.cli.manual docs"
FLAGS = {**{option: option for option in OPTIONS}, "class": "job-class"}


def blocks(page: Path, kind: str) -> Iterator[str]:
    """The fenced blocks of one kind of a page."""
    yield from re.findall(rf"^```{kind}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def console_commands() -> Iterator[tuple[str, str]]:
    """Every command that a page shows being typed, and what it printed first."""
    for page in PAGES:
        for block in blocks(page, "console"):
            lines = [*block.splitlines(), ""]
            for line, after in itertools.pairwise(lines):
                if line.startswith("$ "):
                    yield line.removeprefix("$ "), after


def test_the_command_reference_is_as_the_commands_are() -> None:
    assert (DOCS / "commands.md").read_text() == markdown(), WRITE_AGAIN
    assert (DOCS / "man" / "pliant.1").read_text() == roff(), WRITE_AGAIN


def test_every_command_and_option_says_what_it_does() -> None:
    silent = [page.path for page in pages() if not page.paragraphs]
    silent += [f"{page.path} {name}" for page in pages() for name, text in page.options if not text]
    assert silent == []


def test_every_option_of_the_daemon_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        daemon(["--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert {"--config", "--check", "--version", "--help"} <= options
    page = (DOCS / "man" / "pliantd.8").read_text().replace("\\-", "-")
    assert [name for name in sorted(options) if f".TP\n.B {name}" not in page] == []


def of_the_plugin(source: str, pattern: str) -> set[str]:
    """What a source of the SPANK plugin knows, by a pattern."""
    return set(re.findall(pattern, (DOCS.parent / "spank" / source).read_text()))


@pytest.mark.parametrize("page", ["docs/users.md", "spank/README.md"])
def test_every_flag_of_the_plugin_is_documented(page: str) -> None:
    names = of_the_plugin("pliant.c", r'\{"(\w+)", "\w+", ".*", \w+, \d, on_option\}')
    assert names == FLAGS.keys() - {"job-class"}
    text = (DOCS.parent / page).read_text()
    assert [name for name in sorted(names) if not re.search(rf"`--{name}[`=\[]", text)] == []


def test_the_text_of_pliant_sbatch_names_every_flag() -> None:
    text = next(page.paragraphs for page in pages() if page.path == "pliant sbatch")
    assert [name for name in FLAGS.keys() - {"job-class"} if f"--{name}" not in str(text)] == []


@pytest.mark.parametrize("page", ["docs/configuration.md", "spank/README.md"])
def test_every_argument_in_plugstack_conf_is_documented(page: str) -> None:
    names = of_the_plugin("settings.c", r'argv\[i\], "(\w+=?)"')
    assert names == {"shards=", "cores=", "off"}
    text = (DOCS.parent / page).read_text()
    assert [name for name in names if f"`{name}" not in text] == []


def known(words: list[str]) -> str:
    """Return "" where a `pliant` command line could be typed, else what is unknown in it."""
    command: click.Command = cli
    context = click.Context(cli, info_name="pliant")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        child = command.get_command(context, words[0])
        if child is None:
            return words[0]
        context = click.Context(child, info_name=words[0], parent=context)
        command, words = child, words[1:]
    if command.name == "sbatch":
        return ""
    options = {name for parameter in command.params for name in parameter.opts} | {"--help"}
    typed = (word.partition("=")[0] for word in words[: _end_of_options(words)])
    return next((word for word in typed if word.startswith("-") and word not in options), "")


def _end_of_options(words: list[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def test_every_command_that_the_pages_show_exists() -> None:
    typed = [shlex.split(command) for command, _ in console_commands()]
    ours = [words[words.index("pliant") + 1 :] for words in typed if "pliant" in words]
    assert len(ours) > 10
    assert [words for words in ours if known(words)] == []


def test_commands_named_in_the_text_exist() -> None:
    named = {
        match
        for page in PAGES
        for match in re.findall(r"`pliant ([a-z][^`]*)`", page.read_text())
        if "…" not in match
    }
    assert len(named) > 10
    assert [words for words in named if known(shlex.split(words))] == []


def flags(text: str) -> Iterator[tuple[str, str]]:
    for name, value in re.findall(rf"--({'|'.join(FLAGS)})=([^\s`'|]+)", text):
        if value[0].isalnum():
            yield FLAGS[name], value.rstrip(").,;")


def test_every_flag_that_the_pages_show_is_right_or_is_shown_refused() -> None:
    refused = " ".join(c for c, after in console_commands() if after.startswith("sbatch: error"))
    wrong = []
    for page in PAGES:
        for option, value in flags(page.read_text()):
            try:
                parse_option(Request(), option, value)
            except BadSpec as error:
                if value not in refused and "SPEC" not in value:
                    wrong.append(f"{page.name}: {error}")
    assert wrong == []


@pytest.mark.parametrize("page", ["configuration.md", "man/pliant.toml.5"])
def test_every_key_of_the_configuration_is_documented(page: str) -> None:
    text = (DOCS / page).read_text()
    keys = [*DaemonConfig.__struct_fields__, *SlurmConfig.__struct_fields__]
    words = [*keys, *Mode, *policies.names(), "default"]
    plain = text.replace("\\-", "-")
    assert [word for word in words if not re.search(rf"(`|\.BR? |\b){word}\b", plain)] == []


@pytest.mark.parametrize("section", [DaemonConfig(), SlurmConfig()])
def test_the_documented_defaults_are_the_defaults(section: DaemonConfig | SlurmConfig) -> None:
    text = (DOCS / "configuration.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", text, re.MULTILINE))
    documented = {key: rows[key].strip("`").strip('"') for key in section.__struct_fields__}
    actual = {key: getattr(section, key) for key in section.__struct_fields__}
    assert documented == {
        key: str(list(value)) if isinstance(value, tuple) else str(value)
        for key, value in actual.items()
    }


def test_every_configuration_that_the_pages_show_is_right() -> None:
    shown = [block for page in PAGES for block in blocks(page, "toml")]
    assert len(shown) > 1
    for block in shown:
        raw = tomllib.loads(block)
        if raw.keys() <= {"daemon", "slurm", "partitions"}:
            parse(raw)


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.parametrize("page", sorted((DOCS / "man").iterdir()), ids=lambda page: page.name)
def test_man_pages_have_no_mistake(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stderr == ""
