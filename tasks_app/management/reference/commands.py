"""The page of commands, generated from their parsers and from the rules of the Makefile if there is one."""

import argparse
import re
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.core.management import load_command_class
from django.core.management.base import BaseCommand

from tasks_app.management.reference.markdown import code, page, sentence, table

INTRODUCTION = """
`manage.py` runs with the Python of the environment: `.venv/bin/python manage.py`. Commands print JSON lines, and end
with a sentence and exit code 1 where the database is away or lacks migrations. `manage.py COMMAND --help` says the same
as this page. `changepassword`, `createsuperuser` and `runserver` extend commands of Django or Daphne, and take their
options, too.
"""
RULE = re.compile(r"^([a-z]+):.* ## (.+)$", re.MULTILINE)


def make() -> str:
    """Return the page."""
    folder = Path(__file__).resolve().parent.parent / "commands"
    names = sorted(path.stem for path in folder.glob("[a-z]*.py"))
    return page("Commands", INTRODUCTION, *_make_rules(), *(_command(name) for name in names))


def _make_rules() -> list[str]:
    makefile = Path(settings.ROOT) / "Makefile"
    if not makefile.exists():
        return []
    rules = RULE.findall(makefile.read_text(encoding="utf-8"))
    return ["## make\n\n" + table(("Rule", "What it does"), [(code(f"make {name}"), text) for name, text in rules])]


def _command(name: str) -> str:
    command = load_command_class("tasks_app", name)
    parser = command.create_parser("manage.py", name)
    inherited = {action.dest for action in _inherited(command)._actions} | {"skip_checks"}
    parts = [f"## {name}", sentence(command.help)]
    for line, text, leaf in _leaves(f"manage.py {name}", "", parser):
        actions = [each for each in leaf._actions if each.dest not in inherited or not each.option_strings]
        usage = " ".join([line, *filter(None, map(_positional, actions))])
        options = [(code(_option(action)), _help(action)) for action in actions]
        parts += [f"`{usage}`" + (f": {text}" if text else "")]
        parts += [table(("Argument", "What it is"), options)] if options else []
    return "\n\n".join(parts)


def _inherited(command: BaseCommand) -> ArgumentParser:
    """Return a parser with the options of all commands, or of the command that this one extends."""
    parents = [kind for kind in type(command).__mro__[1:] if issubclass(kind, BaseCommand)]
    return parents[0]().create_parser("manage.py", "any")


def _leaves(line: str, text: str, parser: ArgumentParser) -> Iterator[tuple[str, str, ArgumentParser]]:
    """Yield a parser with its command line, or the parsers of its subcommands with theirs."""
    branches = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not branches:
        yield line, text, parser
    for branch in branches:
        helps = {action.dest: action.help or "" for action in branch._choices_actions}
        for name, below in branch.choices.items():
            yield from _leaves(f"{line} {name}", helps.get(name, ""), below)


def _positional(action: argparse.Action) -> str:
    if action.option_strings:
        return ""
    name = str(action.metavar or action.dest).upper()
    return {"+": f"{name}...", "*": f"[{name}...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def _option(action: argparse.Action) -> str:
    """Return an argument as an operator types it."""
    if not action.option_strings:
        return _positional(action)
    value = "" if action.nargs == 0 else f" {action.metavar or action.dest.upper()}"
    return f"{action.option_strings[-1]}{value}"


def _help(action: argparse.Action) -> str:
    # With nargs="*", argparse wants the empty list among the choices.
    choices = ", ".join(str(choice) for choice in action.choices or () if choice != [])
    return "; ".join(filter(None, [action.help or "", f"one of {choices}" if choices else ""])).replace("%%", "%")
