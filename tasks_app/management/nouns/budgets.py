"""`manage.py a2a budgets`: the most that tasks of tenants and principals may cost."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import CommandError

from a2a.money import parse_usd, show_usd
from tasks_app.management.arguments import add_holder, add_limit, add_operator, read_name, read_operator
from tasks_app.management.nouns import Noun, Printer, held_by
from tasks_app.models import Budget, Principal, Reservation, Tenant
from tasks_app.models.budgets import PERIODS
from tasks_app.operators.budgets import (
    NoBudget,
    find_budget,
    line_of,
    remove_budget,
    reset_budget,
    set_budget,
)
from tasks_app.operators.holders import NoSuchHolder, find_holder
from tasks_app.operators.refusals import sentence_of


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    set_parser = verbs.add_parser("set", help="set the budget of a tenant or of one of its principals")
    set_parser.add_argument("amount", type=_read_amount, help="dollars, such as 25 or 0.50")
    set_parser.add_argument(
        "--period",
        choices=[period for period, _ in PERIODS],
        help="when it begins anew: never (total), or with each day or month (UTC); by default as before, "
        "and never for a new budget",
    )
    show = verbs.add_parser("show", help="show one budget, and the tasks that have reserved money of it")
    add_limit(show)
    reset = verbs.add_parser("reset", help="set what is spent to zero; reservations of unfinished tasks stay")
    remove = verbs.add_parser("remove", help="remove a budget, so that nothing limits its holder any more")
    for verb in (set_parser, show, reset, remove):
        verb.add_argument("--tenant", type=read_name, default="default", help='the tenant; "default" by default')
        verb.add_argument(
            "--principal", type=read_name, help="a principal of the tenant; without it, the tenant itself"
        )
    for verb in (set_parser, reset, remove):
        add_operator(verb)
    listing = verbs.add_parser("list", help="list the newest budgets")
    add_holder(listing)
    add_limit(listing)


def _read_amount(text: str) -> int:
    try:
        return parse_usd(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{error}: {text[:70]!r}") from None


def _set(printer: Printer, options: dict[str, Any]) -> None:
    printer.print_line(
        line_of(set_budget(_holder(options), options["amount"], options["period"], read_operator(options)))
    )


def _show(printer: Printer, options: dict[str, Any]) -> None:
    budget = find_budget(_holder(options))
    if budget is None:
        raise CommandError(
            f"{_holder(options)} has no budget of its own: `manage.py a2a budgets list` prints all, and `set` sets one."
        )
    printer.print_line(line_of(budget))
    for row in printer.limit_rows(Reservation.objects.filter(budget=budget).order_by("-task_id"), options["limit"]):
        printer.print_line({"task": row.task_id, "reserved": show_usd(row.amount)})


def _list(printer: Printer, options: dict[str, Any]) -> None:
    rows = Budget.objects.select_related("tenant", "principal").order_by("-id")
    for budget in printer.limit_rows(held_by(rows, options), options["limit"]):
        printer.print_line(line_of(budget))


def _reset(printer: Printer, options: dict[str, Any]) -> None:
    printer.print_line(line_of(reset_budget(_holder(options), read_operator(options))))


def _remove(printer: Printer, options: dict[str, Any]) -> None:
    holder = _holder(options)
    budget = find_budget(holder)
    remove_budget(holder, read_operator(options))
    if budget is not None:
        printer.print_line(line_of(budget) | {"done": "remove"})


def _holder(options: dict[str, Any]) -> Tenant | Principal:
    return find_holder(options["tenant"], options["principal"])


_VERBS = {"set": _set, "show": _show, "list": _list, "reset": _reset, "remove": _remove}


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    try:
        _VERBS[options["verb"]](printer, options)
    except NoSuchHolder as error:
        raise CommandError(sentence_of(error)) from None
    except NoBudget as error:
        raise CommandError(str(error)) from None


BUDGETS = Noun(
    help="set, show, list, reset and remove what the tasks of tenants and principals may cost",
    add_arguments=_add_arguments,
    handle=_handle,
)
