"""The page of settings, read from the source of config/sections: their titles, readers and docstrings."""

import ast
import re
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from tasks_app.management.reference.markdown import code, page, sentence, table

INTRODUCTION = """
Settings come from the environment and are read in `config/sections` alone. A secret may come from a file:
`SECRET_KEY_FILE=…` names the file with the value of `SECRET_KEY`, and so for every setting. A development server also
reads the file `.env` of the project; the environment wins. A value that a setting cannot have ends the start with a
sentence. Lists are separated by commas. Defaults that are expressions are those of `config/sections`.
"""
KINDS = {
    "address": "address",
    "choice": "one of",
    "costs": "list of costs",
    "database": "URL",
    "flag": "true or false",
    "hosts": "list of hosts",
    "level": "level",
    "folder": "path",
    "long_secret": "text",
    "members": "JSON object",
    "names": "list",
    "networks": "list of networks",
    "number": "number",
    "origins": "list of origins",
    "path": "path",
    "relays": "list of relays",
    "execution": "place",
    "text": "text",
    "whole": "whole number",
}
"""The kind of value that each reader of config/environment.py returns."""
PATH = re.compile(r"str\(PROJECT / '(.+)'\)")
"""A file or folder of the project."""


class Setting(NamedTuple):
    """A call of a reader, and the docstring below it."""

    name: str
    kind: str
    default: str
    text: str


def make() -> str:
    """Return the page."""
    return page_of(sources())


def sources() -> list[str]:
    """Return the source of each section."""
    folder = Path(settings.ROOT) / "config" / "sections"
    return [(folder / f"{name}.py").read_text(encoding="utf-8") for name in settings.SECTIONS]


def page_of(sections: list[str]) -> str:
    """Return the page for the sources of the sections."""
    return page("Settings", INTRODUCTION, *(_page_section(ast.parse(source)) for source in sections))


def _page_section(module: ast.Module) -> str:
    title = (ast.get_docstring(module) or "").removesuffix(".")
    entries = [setting for statement, below in pairwise(module.body) for setting in _settings(statement, below)]
    return _section(title, entries)


def _section(title: str, entries: list[Setting]) -> str:
    rows = [(code(setting.name), setting.kind, setting.default, setting.text) for setting in entries]
    return f"## {title}\n\n" + table(("Name", "Value", "Default", "What it is"), rows)


def _settings(statement: ast.stmt, below: ast.stmt) -> list[Setting]:
    """Return the settings that an assignment reads into the variable named like them, each with the docstring below."""
    result: list[Setting] = []
    match statement, below:
        case ast.Assign(targets=[ast.Name(id=variable)]), ast.Expr(value=ast.Constant(value=str(text))):
            for call in ast.walk(statement.value):
                match call:
                    case ast.Call(func=ast.Name(id=reader), args=[ast.Constant(value=str(name)), *rest]):
                        if reader in KINDS and name.startswith(variable.lstrip("_")):
                            kind, default = _kind(reader, rest), _default(reader, rest[:1])
                            result.append(Setting(name, kind, default, sentence(text)))
    return result


def _kind(reader: str, arguments: list[ast.expr]) -> str:
    """Return the kind of value, with its bounds or with all values."""
    match arguments:
        case [ast.Tuple(elts=values)]:
            return f"{KINDS[reader]} {', '.join(map(_plain, values))}"
        case [_, *bounds]:
            limits = (f"{word} {_plain(bound)}" for word, bound in zip(("from", "to"), bounds, strict=False))
            return " ".join([KINDS[reader], *limits])
        case _:
            return KINDS[reader]


def _default(reader: str, arguments: list[ast.expr]) -> str:
    """Return the default value. If production and development differ, production comes first."""
    match arguments:
        case []:
            return "false" if reader == "flag" else ""
        case [ast.IfExp(body=development, orelse=production)]:
            return f"{_plain(production)}; in development {_plain(development)}".removeprefix("; ")
        case [ast.Name(id="DEVELOPMENT")]:
            return "false; in development true"
        case [ast.Tuple(elts=[first, *_])]:
            return _plain(first)
        case _:
            return _plain(arguments[0])


def _plain(node: ast.expr) -> str:
    """Return a value as an operator would write it, or the source of an expression."""
    match node:
        case ast.Constant(value=bool(value)):
            return str(value).lower()
        case ast.Constant(value=int(value) | float(value)):
            return f"{value:,}" if value >= 10_000 else str(value)
        case ast.Constant(value=str(value)):
            return code(value)
        case ast.JoinedStr(values=[ast.Constant(value=str(beginning)), *_]):
            return code(f"{beginning}…")
        case _:
            path = PATH.fullmatch(ast.unparse(node))
            return code(path[1] if path else ast.unparse(node))
