"""Arguments that several commands take: the functions that add them to a parser, and the functions that read them."""

import os
import pwd
import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter, _ActionsContainer
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, DjangoHelpFormatter
from django.core.validators import validate_email
from django.db.models import Model, QuerySet

from tasks_app import clock
from tasks_app.management.database_command import DEFAULT_LINES, MOST_LINES
from tasks_app.operators import lookup
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.texts import LONGEST_EMAIL, LONGEST_URL, check_printable, check_scopes

M = TypeVar("M", bound=Model)

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
"""Units of an age, such as 15m."""
MOST_CHARACTERS = 1_000
"""Characters of a text that is searched for, at most. Every id and every name is shorter."""


class _KeepLines(DjangoHelpFormatter, RawDescriptionHelpFormatter):
    """The help formatter of Django, without re-wrapping of the examples."""


def add_examples(parser: ArgumentParser, *lines: str) -> None:
    """Show command lines as examples at the end of the help."""
    parser.formatter_class = _KeepLines
    parser.epilog = "\n".join(["examples:", *(f"  manage.py {line}" for line in lines)])


def add_operator(parser: ArgumentParser) -> None:
    """Add the options for the name and the reason that are recorded with an act."""
    parser.add_argument(
        "--operator",
        type=read_name,
        default=find_account(),
        help="the name to record with the act; your account by default",
    )
    parser.add_argument("--reason", type=read_reason, default="", help="the reason to record with the act")


def add_ids(parser: ArgumentParser, metavar: str = "id", what: str = "the ids") -> None:
    """Add the argument for the ids of the rows that a verb acts on. `read_ids` reads it."""
    parser.add_argument(
        "ids", type=read_text, nargs="+", metavar=metavar, help=f"{what}, or - to read them from the input"
    )


def add_limit(parser: ArgumentParser) -> None:
    """Add the option for the number of lines that a list prints."""
    parser.add_argument(
        "--limit", type=read_limit, default=DEFAULT_LINES, help=f"the most lines to print; {DEFAULT_LINES} by default"
    )


def add_holder(parser: ArgumentParser) -> None:
    """Add the options for the tenant and the principal of the rows in a list."""
    parser.add_argument("--tenant", type=read_name, help="only those of this tenant")
    parser.add_argument("--principal", type=read_name, help="only those of the principal of this name")


def add_since(parser: _ActionsContainer) -> None:
    """Add the option for the oldest time in a list."""
    parser.add_argument(
        "--since",
        type=read_time,
        metavar="TIME",
        help="list nothing older than a time such as 2026-11-21T03:00 (UTC) or an age such as 15m or 7d",
    )


def check_window(options: Mapping[str, Any]) -> None:
    """Check that `--since` is earlier than `--until`, because another window can only be empty. Raises CommandError."""
    if options["since"] and options["until"] and options["since"] >= options["until"]:
        raise CommandError("--since must be earlier than --until.")


def add_window(parser: _ActionsContainer) -> None:
    """Add the options for both ends of a list, which `in_window` reads."""
    add_since(parser)
    parser.add_argument(
        "--until", type=read_time, metavar="TIME", help="list only what is older than a time or an age, as --since"
    )


def in_window(rows: QuerySet[M], moment: str, options: Mapping[str, Any]) -> QuerySet[M]:
    """Return the rows whose time, a column, is in the window of the options. Raises CommandError."""
    check_window(options)
    return lookup.in_window(rows, moment, options["since"], options["until"])


def find_account() -> str:
    """Return the name of the account that runs the command."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run under a user id without a name
        return str(os.getuid())


def read_operator(options: Mapping[str, Any]) -> Operator:
    """Return the operator and the reason from the options that `add_operator` added."""
    return Operator(name=options["operator"], door=COMMAND, reason=options["reason"])


def read_ids(arguments: Sequence[str]) -> list[str]:
    """Return the ids from the arguments, or from the standard input if the only argument is a dash."""
    if list(arguments) != ["-"]:
        return list(arguments)
    try:
        return [read_text(id) for id in read_input().split()]
    except ArgumentTypeError as error:
        raise CommandError(f"An id of the standard input {error}.") from None


def read_input() -> str:
    """Return the text of the standard input. Raises CommandError."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise CommandError("The standard input is not text in UTF-8.") from None


def make_number_reader(lowest: int, highest: int) -> Callable[[str], int]:
    """Return a function that reads an argument as a whole number between two bounds."""

    def read(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(highest))
        if not (is_number and lowest <= int(text) <= highest):
            raise ArgumentTypeError(f"must be a number from {lowest:,} to {highest:,}, not {text[:70]!r}")
        return int(text)

    return read


read_limit = make_number_reader(1, MOST_LINES)
read_row_id = make_number_reader(0, 2**63 - 1)


def read_text(text: str, most: int = MOST_CHARACTERS) -> str:
    """Read a text that the database can search for, such as an id. Raises ArgumentTypeError, as all readers do."""
    if len(text) > most:
        raise ArgumentTypeError(f"must have at most {most:,} characters, not {len(text):,}")
    # Python decodes bytes that are not UTF-8 to unpaired surrogates. PostgreSQL takes neither these nor U+0000.
    if "\0" in text or text != text.encode(errors="replace").decode():
        raise ArgumentTypeError(f"must be text in UTF-8 without U+0000, not {text[:70]!r}")
    return text


def read_url(text: str) -> str:
    """Read a URL, which may be longer than a text to search for. The act that stores it checks its parts."""
    return read_text(text, LONGEST_URL)


def read_email(text: str) -> str:
    """Read the address of an operator, which may be empty."""
    try:
        if text:
            validate_email(read_text(text))
    except ValidationError:
        raise ArgumentTypeError(f"must be an email address, not {text[:70]!r}") from None
    if len(text) > LONGEST_EMAIL:
        raise ArgumentTypeError(f"must have at most {LONGEST_EMAIL} characters, not {len(text)}")
    return text


def read_days(text: str) -> float:
    """Read a number of days, which may have a fraction."""
    try:
        return float(read_text(text))
    except ValueError:
        raise ArgumentTypeError(f"must be a number of days, not {text[:70]!r}") from None


def give_readers(parser: ArgumentParser, **readers: Callable[[str], Any]) -> None:
    """Give arguments that a command of Django has added these functions to read them, by the names of the arguments."""
    for action in parser._actions:
        if action.dest in readers:
            action.type = readers[action.dest]


def read_name(text: str) -> str:
    """Read a name that fits every name column, without the spaces around it, which the other doors drop as well."""
    name = text.strip()
    if not 1 <= len(name) <= 64:
        raise ArgumentTypeError(f"must have 1 to 64 printable characters, not {len(name)}: {text[:70]!r}")
    return _read_printable(name)


def read_user_name(text: str) -> str:
    """Read the name of an operator, as the other doors do. Making the operator checks its characters and its length."""
    return read_text(text).strip()


def read_reason(text: str) -> str:
    """Read the reason for an act."""
    if len(text) > 255:
        raise ArgumentTypeError(f"must have at most 255 printable characters, not {len(text)}: {text[:70]!r}")
    return _read_printable(text)


def _read_printable(text: str) -> str:
    try:
        check_printable(text)
    except ValidationError as error:
        raise ArgumentTypeError(f"{error.message}: {text[:70]!r}") from None
    return text


def read_scopes(text: str, most: int = 255) -> str:
    """Read the scopes of a key, or of another server, which have `most` characters."""
    try:
        check_scopes(text)
    except ValidationError as error:
        raise ArgumentTypeError(error.message) from None
    if not (1 <= len(text) <= most and text.strip()):
        raise ArgumentTypeError(f"must have 1 to {most} printable characters, not {len(text)}")
    return text


def read_time(text: str) -> datetime:
    """Read a time, in UTC unless it names another zone, or an age such as 15m."""
    age = re.fullmatch(r"([0-9]{1,5})([smhd])", text)
    try:
        if age:
            return clock.now() - timedelta(**{UNITS[age[2]]: int(age[1])})
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ArgumentTypeError(
            f"must be a time such as 2026-11-21T03:00 or an age such as 15m: {text[:70]!r}"
        ) from None
