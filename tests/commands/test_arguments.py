"""Arguments of all commands: each is read by a function, which refuses what no row and no output can have."""

import argparse
import io
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command, get_commands, load_command_class
from django.core.management.base import BaseCommand

from tasks_app import clock
from tasks_app.management.arguments import read_text
from tasks_app.models import Act, Principal, Refusals
from tasks_app.operators.audit import Change, record_acts
from tests.operators.people import OPS
from tests.operators.tenants import Furniture
from tests.support.commands import printed, run
from tests.support.operators import task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
REFUSED = ("z\udced", "\udcff", "a\0b")
"""Arguments of a shell that are not UTF-8, as Python has them, and U+0000."""
LONG = ("x" * 900, "x" * 5_000, "9" * 30, "9" * 5_000, "9" * 400 + "d", f"{'x' * 302}@example.com")
SAMPLES = ("1", "1d", "ops", "ada@example.com", "viewer")
"""Values of which each reader takes one."""
BASE = {option for each in BaseCommand().create_parser("", "check")._actions for option in each.option_strings}
"""Options that each command has from Django."""


class Argument(NamedTuple):
    """An argument of a command, and those that its command has beside it."""

    words: tuple[str, ...]
    action: argparse.Action
    actions: tuple[argparse.Action, ...]

    def __str__(self) -> str:
        return " ".join((*self.words, (self.action.option_strings or [self.action.dest])[0]))

    def line(self, value: str) -> list[str]:
        """Return a command line with this value, and with a valid one of each other argument that is required."""
        line = list(self.words)
        for each in self.actions:
            if each is self.action or each.required:
                text = value if each is self.action else sample_of(each)
                line.append(f"{each.option_strings[0]}={text}" if each.option_strings else text)
        return line


def sample_of(action: argparse.Action) -> str:
    if action.choices:
        return str(next(iter(action.choices)))
    for text in SAMPLES:
        try:
            action.type(text)  # type: ignore[operator, misc]  # each has a reader, as a test says
        except (argparse.ArgumentTypeError, ValueError):
            continue
        return text
    raise AssertionError(f"SAMPLES has no value for {action}")


def arguments_of(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[Argument]:
    """Yield the arguments with a value of a command and its subcommands."""
    own = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from arguments_of(inner, (*words, name))
        elif action.nargs != 0 and not BASE & set(action.option_strings):
            own.append(action)
    yield from (Argument(words, action, tuple(own)) for action in own)


def arguments() -> list[Argument]:
    # The arguments of `runserver` are those of Django's command.
    names = [name for name, app in get_commands().items() if app == "tasks_app" and name != "runserver"]
    parsers = {name: load_command_class("tasks_app", name).create_parser("manage.py", name) for name in sorted(names)}
    return [each for name, parser in parsers.items() for each in arguments_of(parser, (name,))]


ALL = arguments()
FILTERS = [
    each
    for each in ALL
    if each.action.option_strings and str(each.action.help).startswith("only ") and each.action.type is read_text
]
"""The filters of lists that take any text, also an empty one, such as that of an unset variable."""


def refusal_of(action: argparse.Action, value: str) -> str:
    """Return the sentence with which the reader refuses a value, or nothing. Parsers print these exceptions."""
    if action.choices:
        return "" if value in action.choices else "invalid choice"
    try:
        action.type(value)  # type: ignore[operator, misc]  # each has a reader, as a test says
    except (argparse.ArgumentTypeError, ValueError) as error:
        return str(error) if isinstance(error, argparse.ArgumentTypeError) else "invalid value"
    return ""


def is_refused(action: argparse.Action, value: str) -> bool:
    sentence = refusal_of(action, value)
    assert sentence == sentence.encode(errors="replace").decode(), "a terminal can show it"
    assert len(sentence) < 250
    return bool(sentence)


def test_each_argument_has_a_reader_or_choices() -> None:
    assert len(ALL) > 150
    assert [str(each) for each in ALL if each.action.type is None and not each.action.choices] == []


def test_an_argument_that_is_no_text_is_refused() -> None:
    assert [str(each) for each in ALL for value in REFUSED if not is_refused(each.action, value)] == []


def test_an_argument_that_is_very_long_is_refused_or_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    accepted = [(each, [value for value in LONG if not is_refused(each.action, value)]) for each in ALL]
    lines = [each.line(values[0]) for each, values in accepted if values]
    assert len(lines) > 50
    for line in lines:
        # Any other exception is a traceback.
        with suppress(CommandError, SystemExit):
            call_command(*line, stdout=io.StringIO(), stderr=io.StringIO())


@pytest.mark.parametrize("each", FILTERS, ids=str)
def test_an_empty_filter_finds_no_rows(each: Argument, olga: Principal) -> None:
    """Otherwise `deliveries list --task "$TASK" | ... deliveries retry -` would act on all rows."""
    Furniture("initech", "mine7")
    record_acts(OPS, "cancel", Change(task(olga)))
    Refusals.objects.create(minute=clock.now(), address="192.0.2.7", unauthenticated=1)
    words = ("exchanges", "list") if each.words == ("exchanges",) else each.words
    assert printed(*words) != []
    assert run(*words, each.action.option_strings[0], "").lines == []


def test_an_empty_kind_verb_or_address_is_refused_with_a_sentence(olga: Principal) -> None:
    record_acts(OPS, "cancel", Change(task(olga)))
    for words, sentence in (
        ("acts --kind", "No act has the kind ''"),
        ("acts --verb", "No act has the verb ''"),
        ("refusals --address", "'' is no IP address"),
    ):
        failed = run("a2a", *words.split(), "")
        assert (failed.code, sentence in failed.errors) == (1, True), failed


def test_a_key_of_number_zero_has_no_webhooks() -> None:
    Furniture("initech", "mine7")
    assert printed("deliveries", "webhooks") != []
    assert printed("deliveries", "webhooks", "--key", "0") == []


def test_a_refusal_is_a_sentence_about_the_argument() -> None:
    assert "argument --caller: must be text in UTF-8" in run("a2a", "audit", "export", "--caller", "z\udced").errors


@pytest.mark.parametrize("value", ["nope", "ada@", "a b@example.com", "x" * 250 + "@example.com"])
def test_the_email_of_an_operator_is_checked(value: str) -> None:
    failed = run("a2a", "users", "make", "zed", "--email", value)
    assert "--email" in failed.errors
    assert not User.objects.exists()
    assert [line["email"] for line in printed("a2a", "users", "make", "zed", "--email", "zed@example.com")] == [
        "zed@example.com"
    ]


def test_the_agents_of_a_reach_have_names_of_agents() -> None:
    printed("a2a", "users", "make", "vera")
    words = ("a2a", "users", "reach", "vera", "--all-tenants", "--agent")
    assert "1 to 64 printable characters" in run(*words, "x" * 65).errors
    assert [line["agents"] for line in printed(*words, "x" * 64)] == [["x" * 64]]
    assert list(Act.objects.order_by("id").values_list("verb", flat=True)) == ["make", "reach"]


@pytest.mark.parametrize("words", [("tasks", "cancel", "-"), ("deliveries", "retry", "-"), ("a2a", "slack", "add")])
def test_an_input_that_is_no_text_is_refused(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    more = ("--principal", "olga") if words[-1] == "add" else ()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"z\xed\n"), encoding="utf-8"))
    assert "The standard input is not text in UTF-8." in run(*words, *more).errors


def test_ids_of_the_input_are_read_like_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a\0b\n"))
    assert "An id of the standard input must be text in UTF-8 without U+0000" in run("tasks", "cancel", "-").errors
