"""The nouns of `manage.py a2a`, one module each. A noun declares its arguments and does its work."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from django.core.management.base import CommandError
from django.db.models import Model, QuerySet
from msgspec import Struct

from tasks_app.management.arguments import read_ids, read_operator
from tasks_app.operators.audit import Operator

M = TypeVar("M", bound=Model)


class Printer(Protocol):
    """The part of the command that a noun prints with."""

    stdout: Any
    stderr: Any

    def print_line(self, value: dict[str, Any]) -> None:
        """Print the value as a line of JSON."""
        ...

    def limit_rows(self, rows: QuerySet[Any], limit: int) -> Iterator[Any]:
        """Yield up to `limit` rows, and report on stderr if there are more."""
        ...


class Noun(Struct, frozen=True, kw_only=True):
    """A subcommand of `manage.py a2a`."""

    help: str
    add_arguments: Callable[[ArgumentParser], None]
    handle: Callable[[Printer, dict[str, Any]], None]
    """The function that does the work. It may raise CommandError."""
    needs_database: bool = True
    """True if the database must have every migration before the work begins."""


def owned_line(row: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the line of a row with an owner: its id, its tenant, its owner and these columns."""
    owned = {"id": row.pk, "tenant": row.tenant.name, "owner": row.owner.name}
    return owned | {name: getattr(row, name) for name in names}


def held_by(rows: QuerySet[M], options: dict[str, Any]) -> QuerySet[M]:
    """Return the rows of the tenant and of the principal that the options of `add_holder` name."""
    has_tenant = any(field.name == "tenant" for field in rows.model._meta.fields)
    columns = {"tenant": "tenant__name" if has_tenant else "principal__tenant__name", "principal": "principal__name"}
    return rows.filter(**{column: options[name] for name, column in columns.items() if options[name]})


def find_row(rows: QuerySet[M], id: int, what: str, noun: str) -> M:
    """Return the row with an id. Raises CommandError, which calls the row `what`, as the list of the noun shows it."""
    row = rows.filter(pk=id).first()
    if row is None:
        raise missing_row(id, what, noun)
    return row


def missing_row(id: int, what: str, noun: str) -> CommandError:
    """Return the error for an id that no row has."""
    return CommandError(f"There is no {what} with the id {id}; `manage.py a2a {noun} list` prints all ids.")


def act_on_ids(printer: Printer, options: dict[str, Any], act: Callable[[str, Operator], None]) -> None:
    """Do an act on each row of the arguments, and print what came of each. Raises CommandError if any was refused."""
    from tasks_app.webhooks import one_by_one  # loads the HTTP client

    answers = one_by_one(act)(read_ids(options["ids"]), read_operator(options))
    for id, answer in answers.items():
        printer.print_line({"id": id} | ({"refused": answer.refusal} if answer.refusal else {"done": options["verb"]}))
    if refusals := sum(bool(answer.refusal) for answer in answers.values()):
        raise CommandError(f"{refusals} of {len(answers)} refused.", returncode=1)


def report_unchanged(printer: Printer, what: str, state: str) -> None:
    """Report on stderr that a verb changed nothing, because the row is in this state already. There is no act then."""
    printer.stderr.write(f"Nothing was changed: {what} is {state}.")
