"""A hook and all that it uses of Pliant, as one text.

From the names that the hook imports it goes on to the definitions that those use, and so on; each
definition stands once, after what it uses, and nothing else comes along.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from pliant import __version__, resources
from pliant.hooks.older import METHODS, VERSION, TooNew, translated

HOOKS = (
    *("queuejob", "modifyjob", "movejob", "runjob"),
    *("execjob_launch", "execjob_epilogue"),
    "periodic",
)
FORMER = ("execjob_prologue",)
"""The hooks of earlier releases that are none any more: each cost every job a start of Python."""
HOOK, PRELUDE = "hook", "prelude"
_TAKEN = ast.Pass()
_STAND_INS = {
    "dataclasses": ("dataclass", "astuple", "replace"),
    "enum": ("StrEnum",),
    "math": ("prod",),
}
_NOT_NEEDED = ("__future__", "typing", "collections.abc")
_OF_PBS = "pbs"
_HEAD = """\
# Pliant {version}: the {name} hook for PBS. Made by `python -m pliant.hooks`; do not edit.
# Whatever goes wrong in it, the job goes on as if Pliant were not there: see its last lines.
# KeyboardInterrupt is the hook's alarm; accept() and reject() raise SystemExit, which passes.
"""
_FRAME = """\
try:
    import pbs
except (Exception, KeyboardInterrupt) as trouble:
    import pbs
    try:
        pbs.logmsg(pbs.LOG_WARNING, "pliant: {name}: " + ascii(repr(trouble))[:200] + ": accepted")
    except (Exception, KeyboardInterrupt):
        pass
    pbs.event().accept()
"""


def hook_text(name: str) -> str:
    """Return the hook for an event, whole.

    Raises TooNew where a module that it uses cannot be said in Python 3.6.
    """
    source = resources.find("plugins", "pbs", f"{name}.py").read_text()
    frame = ast.parse(_FRAME.format(name=name))
    attempt = frame.body[0]
    assert isinstance(attempt, ast.Try)  # noqa: S101  # as it is written above
    attempt.body += bundled(source)
    written = ast.unparse(ast.fix_missing_locations(frame)) + "\n"
    # A server's locale is its own: other characters stand in texts alone, and are escaped there.
    text = _HEAD.format(version=__version__, name=name)
    text += written.encode("ascii", "backslashreplace").decode()
    ast.parse(text, feature_version=VERSION)
    return text


def bundled(source: str) -> list[ast.stmt]:
    """Return the statements of a hook, each after all that it uses of Pliant.

    Raises TooNew.
    """
    return _Bundle().hook(source)


@dataclass(slots=True)
class _Module:
    """A module's own definitions by name, and where the names come from that it imports."""

    definitions: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    standard: dict[str, ast.stmt] = field(default_factory=dict)


class _Bundle:
    """What is put together so far, in order."""

    def __init__(self) -> None:
        self.modules: dict[str, _Module] = {}
        self.of: dict[str, str] = {}  # the module of each definition that is taken
        self.imports: set[str] = set()
        self.statements: list[ast.stmt] = []

    def hook(self, source: str) -> list[ast.stmt]:
        """Return the statements of a hook and of all that it uses."""
        self.modules[HOOK], calls = _read(source)
        for statement in calls:  # what only a later call uses stands after an earlier one
            self.take_used(statement, HOOK)
            self.statements.append(statement)
        return self.statements

    def take(self, name: str, where: str) -> None:
        """Take the definition that a name stands for in a module, and what that uses."""
        module = self.module(where)
        if name in module.definitions:
            known = self.of.setdefault(name, where)
            if known != where:
                raise TooNew(f"{name} stands in {where} and in {known}: rename one")
            statement, module.definitions[name] = module.definitions[name], _TAKEN
            if statement is not _TAKEN:  # nor while what it uses is looked for
                self.take_used(statement, where)
                self.statements.append(statement)
        elif name in module.imported:
            source, original = module.imported[name]
            self.take(original, source)
        elif name in module.standard:
            statement = module.standard[name]
            if ast.dump(statement) not in self.imports:
                self.imports.add(ast.dump(statement))
                self.statements.append(statement)

    def take_used(self, statement: ast.stmt, where: str) -> None:
        """Take what a statement uses."""
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                self.take(node.id, where)

    def module(self, name: str) -> _Module:
        """Return a module, read once."""
        if name not in self.modules:
            self.modules[name], _ = _read(_source(name))
        return self.modules[name]


def _source(module: str) -> str:
    if module == PRELUDE:
        return resources.find("plugins", "pbs", "prelude.py").read_text()
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise TooNew(f"{module} is no module that can be read")
    return Path(spec.origin).read_text()


def _read(source: str) -> tuple[_Module, list[ast.stmt]]:
    """Return what a module defines, and its other statements: in a hook, what it does."""
    module, calls = _Module(imported={name: (PRELUDE, name) for name in METHODS}), []
    for statement in translated(ast.parse(source)).body:
        match statement:
            case ast.ImportFrom() | ast.Import():
                _note_import(module, statement)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                module.definitions[name] = statement
            case ast.Assign(targets=[ast.Name(id=name)]):
                module.definitions[name] = statement
            case ast.Expr(value=ast.Constant()):
                pass  # a docstring
            case _:
                calls.append(statement)
    return module, calls


def _note_import(module: _Module, statement: ast.Import | ast.ImportFrom) -> None:
    source = (statement.module or "") if isinstance(statement, ast.ImportFrom) else ""
    for alias in statement.names:
        name = alias.asname or alias.name
        if source.startswith("pliant"):
            module.imported[name] = (source, alias.name)
        elif alias.name in _STAND_INS.get(source, ()):
            module.imported[name] = (PRELUDE, alias.name)
        elif source not in _NOT_NEEDED and name != _OF_PBS:
            module.standard[name] = _one_import(statement, alias)


def _one_import(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(statement.module, [alias], 0)
