"""The documentation says all that there is, and nothing that there is not."""

from __future__ import annotations

import ast
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

from docs_helpers import PAGES, TOP, Typed, alike, blocks, fenced, in_text, on_page
from limits import HANG_S
from pliant import policies
from pliant.cli import cli
from pliant.cli.manual import markdown, pages, roff
from pliant.daemon.config import DaemonConfig, PbsConfig, SlurmConfig, StoreConfig, parse
from pliant.daemon.main import main as daemon
from pliant.errors import BadSpec
from pliant.filter.pbs.names import RESOURCES
from pliant.filter.pbs.said import read_request
from pliant.filter.pbs.said import words as words_of
from pliant.grammar import OPTIONS, parse_option
from pliant.model import Mode, Request

DOCS = Path(__file__).parents[2] / "docs"
WRITE_AGAIN = "run: python -m pliant.cli.manual docs"
FLAGS = {**{option: option for option in OPTIONS}, "class": "job-class"}


NOT_TYPED = {
    "pliant run --signal USR1 -- srun python train.py": "test_run_wrapper runs a step so",
    "make demo": "takes three minutes; tests/slurm/test_demo_round.py plays its round",
    "make test": "is what runs the tests; .ci/run types it",
    "make test-cluster": "is what runs tests/docker",
    "make test-releases": "runs all that there is, three times",
    "make test-container": "`make test-releases` does, on each release",
    "SUITE=forky make test-container": "as the last",
    "SUITE=forky docker/cluster tests tests/slurm/test_releases_differ.py -q": "as the last",
    "SUITE=bookworm make cluster": "`make test-releases` brings each release up",
    "SUITE=forky make cluster": "`make test-releases` brings each release up",
    "SLURM_INCLUDE=/opt/slurm/include make deb": "needs a Slurm that is no package of Debian's",
    "export SLURM_INCLUDE_DIR=/usr/include SLURM_LIB_DIR=/usr/lib64": "as the next",
    "/opt/pliant/bin/pip install '.[slurm-native]'": "needs Slurm 25.11, which no Debian has",
    "python -m benchmarks native": "measures for minutes, and beside Slurm 25.11 alone",
    "pliant reproduce all --data /srv/traces --out claims.md": "takes many minutes",
    "pliant reproduce cosched --quick": "tests/unit/test_reproduce.py runs it, smaller",
    "journalctl -u pliantd": "no journal where there is no systemd",
    "journalctl -u pliant-monitor": "as the last",
    "pliantd --unmark": "tests/slurm/test_sharing.py runs it with the sandbox's configuration",
    "pliantd --release": "tests/slurm/test_lent.py does so",
    "make bench-speed": "takes minutes on an idle machine",
    "make test-pbs": "needs a PBS",
    "pliant install pbs": "tests/pbs_server runs it, and tests/unit/test_pbs_install.py",
    "pliant install pbs --apply": "as the last",
    "pliant install pbs --remove": "as the last",
    "pliant qsub --moldable=gpus=1-4 -l select=1:ncpus=8:ngpus=4 train.sh": "tests/pbs_server does",
    "pliant qsub --native --moldable=gpus=1:2:4 -l select=1:ncpus=8:ngpus=4 train.sh": "as the last",
    "make test-pmu": "takes minutes in an emulated machine",
    "make prove": "takes minutes; tests/prove explores single faults",
    "make prove-seeds": "takes minutes; tests/prove runs fifty seeds",
    "make prove-seeds N=1000": "takes 40 minutes of CPU; tests/prove runs fifty seeds",
    "make prove-seeds MUTANTS=1": "takes minutes",
    "make prove-mutants": "takes hours; tests/prove takes some decisions out",
    "make drill": "takes minutes; tests/slurm/test_drill.py drills",
    "make bench": "takes half an hour",
    "make soak": "takes half an hour",
    "make drill SUITE=": "takes minutes in a container; tests/slurm/test_drill.py drills here",
    "make drill SUITE=forky N=100": "as the last",
    "pliant top": "tests/unit/test_top.py runs it, on a terminal of its own",
    "pliant metrics": "tests/unit/test_top.py runs it",
    "pliant metrics --textfile FILE": "as the last",
    "pliant metrics --serve 127.0.0.1:9680": "tests/unit/test_metrics.py serves, at another port",
    "pliant forget USER": "tests/unit/test_remembering.py lets a user be forgotten",
    "pliant history 3": "tests/slurm/test_history.py asks for others",
    "pliant history JOB": "as the last",
    "pliant report": "tests/slurm/test_history.py runs it",
}
"""Commands of the pages that no test types, and why."""


def console_commands() -> Iterator[tuple[str, str]]:
    """Every command that a page shows being typed, and what it printed first."""
    for typed in (typed for page in PAGES for block in blocks(page) for typed in block):
        yield typed.command, typed.shown.partition("\n")[0]


def typed_by_tests() -> set[tuple[str, str]]:
    """Every page and command that a test names when it types what a page shows."""
    return {
        (str(page.value), str(first.value))
        for path in (TOP / "tests").glob("*/*.py")
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and _name(call.func) in {"types", "on_page"}
        for page, first in [call.args[:2]]
        if isinstance(page, ast.Constant) and isinstance(first, ast.Constant)
    }


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def test_every_command_of_the_pages_is_typed_by_a_test() -> None:
    typed = {one for page, first in typed_by_tests() for one in on_page(page, first)}
    silent = {Typed(one.command) for one in typed}
    missing = [
        f"{page}: {one.command}"
        for page in PAGES
        for one in [*itertools.chain(*blocks(page)), *map(Typed, in_text(page))]
        if one not in typed | silent and one.command not in NOT_TYPED
    ]
    assert missing == []


def test_what_no_test_types_stands_on_a_page_and_is_typed_by_no_test() -> None:
    on_pages = {one.command for page in PAGES for block in blocks(page) for one in block}
    on_pages |= {command for page in PAGES for command in in_text(page)}
    assert NOT_TYPED.keys() - on_pages == set()
    assert [first for _, first in typed_by_tests() if first in NOT_TYPED] == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("job 2 waits\n", "job 2 waits", True),
        ("job 2 waits\n", "job 3 waits\n", False),
        ("A   B\n1   in 60 min\n", "A B\n1 in 59 min\n", True),
        ("11-20 20:27:20  mold\n", "01-02 03:04:05  mold\n", True),
        ("Slurm 24.11.5\n", "Slurm 22.05.8\n", True),
        ("first\n…\nlast\n", "first\nand\nmore\nlast\n", True),
        ("first\n…\nlast\n", "first\nlast\nmore\n", False),
    ],
)
def test_what_is_printed_may_differ_in_what_varies_alone(
    shown: str, printed: str, same: bool
) -> None:
    assert alike(shown, printed) is same


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


@pytest.mark.parametrize("command", ["sbatch", "qsub"])
def test_the_text_of_a_wrapper_names_every_flag(command: str) -> None:
    text = next(page.paragraphs for page in pages() if page.path == f"pliant {command}")
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
    if command.name in ("sbatch", "qsub"):
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
        for match in re.findall(r"`pliant ([a-z][^`]*)`", (TOP / page).read_text())
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
        for option, value in flags((TOP / page).read_text()):
            try:
                parse_option(Request(), option, value)
            except BadSpec as error:
                if value not in refused and not value.isupper():  # SPEC
                    wrong.append(f"{page}: {error}")
    assert wrong == []


def test_the_readme_says_the_same_flags_for_both_systems() -> None:
    table = r"^\| `--([a-z-]+)=([^`]+)` \| `([a-z_]+)=([^`]+)` \|"
    rows = re.findall(table, (TOP / "README.md").read_text(), re.MULTILINE)
    assert [FLAGS[flag] for flag, *_ in rows] == [o for o in RESOURCES if o != "colocate"]
    assert "`--colocate` is refused on PBS" in (TOP / "README.md").read_text()
    for flag, value, resource, said in rows:
        slurm = parse_option(Request(), FLAGS[flag], value)
        assert slurm == read_request(words_of({resource: said}, {})) != Request()


@pytest.mark.parametrize("page", ["configuration.md", "man/pliant.toml.5"])
def test_every_key_of_the_configuration_is_documented(page: str) -> None:
    text = (DOCS / page).read_text()
    keys = [
        *DaemonConfig.__struct_fields__,
        *SlurmConfig.__struct_fields__,
        *PbsConfig.__struct_fields__,
        *StoreConfig.__struct_fields__,
    ]
    words = [*keys, *Mode, *policies.names(), "default"]
    plain = text.replace("\\-", "-")
    assert [word for word in words if not re.search(rf"(`|\.BR? |\b){word}\b", plain)] == []


@pytest.mark.parametrize(
    ("name", "section"),
    [("daemon", DaemonConfig()), ("slurm", SlurmConfig()), ("pbs", PbsConfig())],
)
def test_the_documented_defaults_are_the_defaults(
    name: str, section: DaemonConfig | SlurmConfig | PbsConfig
) -> None:
    page = (DOCS / "configuration.md").read_text()
    text = page.partition(f"## [{name}]\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| (.*?) \|", text, re.MULTILINE))
    documented = {key: rows[key].strip("`").strip('"') for key in section.__struct_fields__}
    actual = {key: getattr(section, key) for key in section.__struct_fields__}
    assert documented == {
        key: str(list(value)) if isinstance(value, tuple) else str(value)
        for key, value in actual.items()
    }


def test_every_configuration_that_the_pages_show_is_right() -> None:
    shown = [block for page in PAGES for block in fenced(page, "toml")]
    assert len(shown) > 1
    for block in shown:
        raw = tomllib.loads(block)
        if raw.keys() <= {"daemon", "slurm", "pbs", "partitions"}:
            parse(raw)


def test_links_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (TOP / page).read_text()):
            if not (TOP / page).parent.joinpath(target).exists():
                broken.append(f"{page}: {target}")
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
        timeout=HANG_S,
    )
    assert done.stderr == ""


def test_what_is_said_to_test_a_promise_is_there() -> None:
    page = (TOP / "docs" / "promises.md").read_text()
    named = set(re.findall(r"`(tests/[^`]+)`", page))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (TOP / name).is_file()] == []
    targets = set(re.findall(r"`make ([a-z-]+)`", page))
    assert targets <= set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.M))


def test_what_finds_a_fault_again_is_there() -> None:
    page = (TOP / "docs" / "found.md").read_text()
    named = re.findall(r"`(tests/[^`]+)`: `(test_[^`]+)`", page)
    assert len(named) > 30
    for file, name in named:
        assert f"def {name}(" in (TOP / file).read_text(), (file, name)
    targets = set(re.findall(r"`make ([a-z-]+)", page))
    assert targets <= set(re.findall(r"^([a-z-]+):", (TOP / "Makefile").read_text(), re.M))


def test_what_is_said_to_notice_a_missing_decision_is_there() -> None:
    said = (TOP / "docs" / "mutants.md").read_text()
    files = re.findall(r"`(test_\w+)\.py`: ((?:`test_\w+`(?:, )?)+)", said)
    assert len(files) > 20
    gone = [
        (file, name)
        for file, names in files
        for name in re.findall(r"`(\w+)`", names)
        if f"def {name}(" not in (TOP / "tests" / "unit" / f"{file}.py").read_text()
    ]
    assert gone == []
