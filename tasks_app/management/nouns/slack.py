"""`manage.py a2a slack`: workspaces of Slack, and the questions from them, as JSON lines."""

import sys
from argparse import ArgumentParser
from getpass import getpass
from typing import Any

from django.core.management.base import CommandError

from tasks_app.management.arguments import (
    add_ids,
    add_limit,
    add_operator,
    add_window,
    in_window,
    read_input,
    read_name,
    read_operator,
    read_scopes,
    read_text,
)
from tasks_app.management.nouns import Noun, Printer, act_on_ids, report_unchanged
from tasks_app.models import SlackQuestion, SlackWorkspace
from tasks_app.models.states import SlackQuestionState
from tasks_app.operators import columns
from tasks_app.operators.refusals import sentence_of
from tasks_app.slack import workspaces


def _add_arguments(parser: ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser(
        "add",
        help="add a workspace, or give one new secrets; the standard input has the bot token and, on a second line, "
        "the signing secret if the workspace has its own; at a terminal the command asks for both",
    )
    _add_caller(add)
    add.add_argument(
        "--scopes",
        type=read_scopes,
        default=workspaces.SCOPES,
        help=f'the scopes of its questions, separated by spaces; "{workspaces.SCOPES}" by default',
    )
    add.add_argument("--agent", type=read_name, help="the agent that answers; the default agent by default")
    add_operator(add)
    verbs.add_parser("list", help="list the workspaces")
    verbs.add_parser("check", help="ask Slack whether it accepts the bot token of each workspace")
    for verb, purpose in (
        ("disable", "refuse the events of a workspace until it is enabled"),
        ("enable", "accept the events of a disabled workspace again"),
    ):
        _add_team(verbs.add_parser(verb, help=purpose))
    mapping = verbs.add_parser("map", help="give the questions of one user a caller of their own")
    _add_team(mapping)
    mapping.add_argument("user", type=read_text, help="the id of the user in Slack, such as U0123ABCD")
    _add_caller(mapping)
    unmapping = verbs.add_parser("unmap", help="give the questions of a user the caller of the workspace again")
    _add_team(unmapping)
    unmapping.add_argument("user", type=read_text, help="the id of the user in Slack")
    _add_questions(verbs)


def _add_questions(verbs: Any) -> None:
    """Add the verbs about questions."""
    questions = verbs.add_parser("questions", help="list the newest questions, with the state of their replies")
    questions.add_argument(
        "--state", choices=[state.value for state in SlackQuestionState], help="only those in a state"
    )
    questions.add_argument("--task", type=read_text, help="only that of a task")
    add_window(questions)
    add_limit(questions)
    for verb, purpose in (
        ("send-again", "send replies again that have failed"),
        ("drop", "drop questions that are not answered yet"),
    ):
        acting = verbs.add_parser(verb, help=purpose)
        add_ids(acting, what="the ids of questions")
        add_operator(acting)


def _add_caller(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--principal", type=read_name, required=True, help="the caller of the questions; created if it is new"
    )
    parser.add_argument("--tenant", type=read_name, default="default", help='its tenant; "default" by default')


def _add_team(parser: ArgumentParser) -> None:
    parser.add_argument("team", type=read_text, help="the id of the workspace, as printed by `slack list`")
    add_operator(parser)


def _add(printer: Printer, options: dict[str, Any]) -> None:
    token, secret = _read_secrets()
    wish = workspaces.NewWorkspace(
        bot_token=token,
        signing_secret=secret,
        agent=options["agent"] or "",
        **{name: options[name] for name in ("principal", "tenant", "scopes")},
    )
    try:
        row = workspaces.connect(wish, read_operator(options))
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(workspaces.describe(row))


def _read_secrets() -> tuple[str, str]:
    """Return the bot token and the signing secret from the terminal, without an echo, or from the standard input."""
    if sys.stdin.isatty():
        return getpass("Bot token: ").strip(), getpass("Signing secret (empty: that of the settings): ").strip()
    lines = [line.strip() for line in read_input().splitlines() if line.strip()]
    if not 1 <= len(lines) <= 2:
        raise CommandError(
            "The standard input must have the bot token and, if the workspace has its own, the signing secret, "
            "each on a line of its own."
        )
    return lines[0], lines[1] if len(lines) > 1 else ""


def _list(printer: Printer, options: dict[str, Any]) -> None:
    for row in _rows():
        printer.print_line(workspaces.describe(row))


def _check(printer: Printer, options: dict[str, Any]) -> None:
    problems = 0
    for row in _rows():
        problem = workspaces.check(row)
        problems += bool(problem)
        printer.print_line({"team_id": row.team_id, "name": row.name} | ({"problem": problem} if problem else {}))
    if problems:
        raise CommandError(f"Workspaces with a problem: {problems}.", returncode=1)


def _switch(printer: Printer, options: dict[str, Any]) -> None:
    row = _find(options)
    verb = workspaces.disable if options["verb"] == "disable" else workspaces.enable
    if not verb(row, read_operator(options)):
        report_unchanged(printer, f"workspace {row.team_id}", f"{options['verb']}d already")
    printer.print_line(workspaces.describe(row))


def _map(printer: Printer, options: dict[str, Any]) -> None:
    row, by = _find(options), read_operator(options)
    try:
        workspaces.map_user(row, options["user"], options["principal"], options["tenant"], by)
    except ValueError as error:
        raise CommandError(sentence_of(error)) from None
    printer.print_line(workspaces.describe(row))


def _unmap(printer: Printer, options: dict[str, Any]) -> None:
    row = _find(options)
    workspaces.unmap_user(row, options["user"], read_operator(options))
    printer.print_line(workspaces.describe(row))


def _questions(printer: Printer, options: dict[str, Any]) -> None:
    rows = SlackQuestion.objects.select_related("owner", "tenant", "workspace").order_by("-pk")
    if options["state"]:
        rows = rows.filter(state=options["state"])
    if options["task"] is not None:
        rows = rows.filter(task_id=options["task"])
    for row in printer.limit_rows(in_window(rows, "created_at", options), options["limit"]):
        names = {"id": row.pk, "tenant": row.tenant.name, "owner": row.owner.name, "workspace": row.workspace.team_id}
        printer.print_line(names | {name: getattr(row, name) for name in columns.SLACK_QUESTION})


def _act(printer: Printer, options: dict[str, Any]) -> None:
    from tasks_app.slack.acts import ACTS

    act_on_ids(printer, options, ACTS[options["verb"].replace("-", "_")])


def _rows() -> Any:
    return SlackWorkspace.objects.select_related("principal__tenant").order_by("pk")


def _find(options: dict[str, Any]) -> SlackWorkspace:
    row: SlackWorkspace | None = _rows().filter(team_id=options["team"]).first()
    if row is None:
        raise CommandError(f"There is no workspace {options['team']}; `manage.py a2a slack list` prints all.")
    return row


_VERBS = {
    "add": _add,
    "list": _list,
    "check": _check,
    "disable": _switch,
    "enable": _switch,
    "map": _map,
    "unmap": _unmap,
    "questions": _questions,
    "send-again": _act,
    "drop": _act,
}


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    _VERBS[options["verb"]](printer, options)


SLACK = Noun(
    help="add, list, check and disable workspaces of Slack; list their questions, send replies again or drop questions",
    add_arguments=_add_arguments,
    handle=_handle,
)
