"""`manage.py a2a roles`: roles of operators with their permissions, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import Group
from django.core.management.base import CommandError

from tasks_app.management.arguments import add_limit, add_operator, read_operator, read_text
from tasks_app.management.nouns import Noun, Printer
from tasks_app.operators import groups
from tasks_app.operators.users import UserRefused


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    add_limit(verbs.add_parser("list", help="list the roles with their permissions, newest first"))
    for verb, text in (
        ("make", "make a role, which `users role` gives to operators"),
        ("change", "give a role these permissions in place of the former ones"),
        ("rename", "give a role another name; operators who have it keep it"),
        ("remove", "remove a role, also from the operators who have it"),
    ):
        parser = verbs.add_parser(verb, help=text)
        parser.add_argument("name", type=read_text, help="the name of the role")
        if verb == "rename":
            parser.add_argument("to", type=read_text, help="the new name")
        elif verb != "remove":
            parser.add_argument(
                "permissions",
                nargs="*",
                type=read_text,
                metavar="permission",
                help="a permission, such as tasks_app.view_task; several may be given",
            )
            parser.add_argument("--none", action="store_true", help="give the role no permissions")
        add_operator(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    if options["verb"] == "list":
        for group in printer.limit_rows(Group.objects.order_by("-id"), options["limit"]):
            printer.print_line(groups.describe_role(group))
        return
    try:
        printer.print_line(_act(options))
    except UserRefused as refusal:
        raise CommandError(str(refusal)) from None


def _act(options: dict[str, Any]) -> dict[str, Any]:
    """Do the act, and return the role: as it is then, or as it was before its removal."""
    by = read_operator(options)
    if options["verb"] in ("make", "change") and bool(options["permissions"]) == options["none"]:
        raise CommandError("Give permissions, or --none for a role without any.")
    if options["verb"] == "make":
        return groups.describe_role(groups.make_role(by, options["name"], options["permissions"]))
    group = groups.find_role(options["name"])
    before = groups.describe_role(group)
    if options["verb"] == "remove":
        groups.remove_role(by, group)
        return before
    if options["verb"] == "rename":
        groups.rename_role(by, group, options["to"])
    else:
        groups.change_role(by, group, options["permissions"])
    return groups.describe_role(group)


ROLES = Noun(
    help="list, make, change, rename and remove roles of operators",
    add_arguments=_add_arguments,
    handle=_handle,
)
