"""`manage.py a2a users`: accounts of operators with their roles and their reach, as JSON lines."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from a2a.agents import registry
from tasks_app.management.arguments import (
    add_limit,
    add_operator,
    read_email,
    read_name,
    read_operator,
    read_scopes,
    read_text,
    read_user_name,
)
from tasks_app.management.nouns import Noun, Printer, report_unchanged
from tasks_app.models import Task
from tasks_app.operators import second_factor, users
from tasks_app.operators.audit import Operator
from tasks_app.operators.roles import ROLES

_ONE_ROLE = f"a role: {', '.join(ROLES)}, or a group that was made here"
_HELPS = {
    "enable": "let an operator log in, or make an account an operator's",
    "disable": "refuse an operator's logins, end the sessions and revoke the tokens",
    "role": "give an operator these roles in place of the former ones",
    "reach": "let an operator see the rows of these tenants and agents, in place of the former ones",
    "details": "set the email address or the names of an operator",
    "link": "let a user call in the name of a principal, from pages of this server (A2A_SCHEMES)",
    "unlink": "end the link of a user to a principal",
    "reset-second-factor": "remove the device of an operator, who enrols another at the next login",
    "password": "give an operator a random password, which is printed once, and revoke the tokens",
}
"""The verbs on an account that exists."""


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    listing = verbs.add_parser("list", help="list the accounts, newest first")
    listing.add_argument("--name", type=read_user_name, help="only the account of this name")
    add_limit(listing)
    make = verbs.add_parser("make", help="make an operator with a random password, which is printed once")
    make.add_argument("name", type=read_user_name, help="the name to log in with")
    make.add_argument(
        "--role",
        action="append",
        type=read_text,
        default=[],
        help=f"{_ONE_ROLE}; may be given several times; none by default",
    )
    make.add_argument("--email", type=read_email, default="", help="the address of the operator; empty by default")
    _add_reach(make)
    add_operator(make)
    for verb, text in _HELPS.items():
        change = verbs.add_parser(verb, help=text)
        change.add_argument("name", type=read_text, help="the name of the operator")
        _add_values(verb, change)
        add_operator(change)


def _add_values(verb: str, parser: ArgumentParser) -> None:
    """Add the arguments for what a verb sets."""
    match verb:
        case "role":
            parser.add_argument(
                "roles", nargs="*", type=read_text, metavar="role", help=f"{_ONE_ROLE}; several may be given"
            )
            parser.add_argument("--none", action="store_true", help="remove all roles")
        case "reach":
            _add_reach(parser)
            parser.add_argument("--none", action="store_true", help="let the operator see no rows of tenants")
        case "link":
            _add_link(parser)
        case "details":
            parser.add_argument("--email", type=read_email, help="the address; an empty text removes it")
            parser.add_argument("--first-name", type=read_text, help="the first name")
            parser.add_argument("--last-name", type=read_text, help="the last name")


def _add_link(parser: ArgumentParser) -> None:
    parser.add_argument("principal", type=read_name, help="the principal, which must exist")
    parser.add_argument("--tenant", type=read_name, default="default", help='its tenant; "default" by default')
    parser.add_argument("--scopes", type=read_scopes, required=True, help="the scopes of the user; * is all")


def _add_reach(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--tenant", type=read_name, action="append", default=[], help="a tenant; may be given several times"
    )
    parser.add_argument("--all-tenants", action="store_true", help="every tenant, also those to come")
    parser.add_argument(
        "--agent",
        type=read_name,
        action="append",
        default=[],
        help="only tasks of this agent, in these tenants; may be given several times",
    )


def _check_none(options: dict[str, Any], is_empty: bool, what: str) -> None:
    """Check that --none alone takes all away from an operator, so that forgotten words do not."""
    if is_empty and not options["none"]:
        raise CommandError(f"Give {what}, or --none to take all away.")
    if options["none"] and not is_empty:
        raise CommandError(f"Give {what} or --none, not both.")


def _warn_of_agents(printer: Printer, names: list[str]) -> None:
    """Warn of names that no agent here has. Agents of other processes are not known here, so none is refused."""
    for name in names:
        if registry.get(name) is None and not Task.objects.filter(agent=name).exists():
            printer.stderr.write(f"There is no agent {name!r} here, and no task of one: is the name right?")


def _read_reach(options: dict[str, Any]) -> users.NamedReach:
    return users.NamedReach(tenants=options["tenant"], all_tenants=options["all_tenants"], agents=options["agent"])


def _enable(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    if not users.set_active(by, user, True):
        report_unchanged(printer, f"user {user.username}", "enabled already")
    return {}


def _disable(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    if not users.set_active(by, user, False):
        report_unchanged(printer, f"user {user.username}", "disabled already")
    return {}


def _role(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    _check_none(options, not options["roles"], "a role")
    users.set_roles(by, user, options["roles"])
    return {}


def _reach(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    reach = _read_reach(options)
    _check_none(options, reach.is_empty, "tenants (and agents)")
    users.set_reach(by, user, reach)
    return {}


def _details(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    details = {name: options[name] for name in users.DETAILS if options[name] is not None}
    if not details:
        raise CommandError("Give --email, --first-name or --last-name.")
    users.set_details(by, user, details)
    return {}


def _link(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    link = users.link_user(by, user, options["principal"], options["tenant"], options["scopes"])
    return {"principal": f"{options['tenant']}/{options['principal']}", "scopes": link.scopes}


def _unlink(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    users.unlink_user(by, user)
    return {"principal": None}


def _reset_second_factor(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    second_factor.reset(user, by)
    return {}


def _password(printer: Printer, by: Operator, user: User, options: dict[str, Any]) -> dict[str, Any]:
    return {"password": users.reset_password(by, user)}


_VERBS: dict[str, Callable[[Printer, Operator, User, dict[str, Any]], dict[str, Any]]] = {
    "enable": _enable,
    "disable": _disable,
    "role": _role,
    "reach": _reach,
    "details": _details,
    "link": _link,
    "unlink": _unlink,
    "reset-second-factor": _reset_second_factor,
    "password": _password,
}


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "list":
        rows = User.objects.order_by("-id")
        if options["name"] is not None:
            rows = rows.filter(username=options["name"])
        for line in users.describe_users(printer.limit_rows(rows, options["limit"])):
            printer.print_line(line)
        return
    by = read_operator(options)
    try:
        if options["verb"] == "make":
            reach = _read_reach(options)
            user, password = users.make_user(by, options["name"], options["role"], reach, options["email"])
            more: dict[str, Any] = {"password": password}
        else:
            user = users.find_user(options["name"])
            more = _VERBS[options["verb"]](printer, by, user, options)
    except users.UserRefused as refusal:
        raise CommandError(str(refusal)) from None
    _warn_of_agents(printer, options.get("agent", []))
    printer.print_line(users.describe_user(user) | more)


USERS = Noun(
    help="list, make, enable and disable operators; set their roles, reach, passwords and links",
    add_arguments=_add_arguments,
    handle=_handle,
)
