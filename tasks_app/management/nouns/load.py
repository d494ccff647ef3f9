"""`manage.py a2a load`: the numbers of queued and running tasks by owner and agent, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.db.models import Count, Min, Q

from a2a.states import UNFINISHED, TaskState
from tasks_app.management.arguments import add_limit
from tasks_app.management.nouns import Noun, Printer
from tasks_app.models import Task

QUEUED, RUNNING = Count("id", filter=Q(state=TaskState.SUBMITTED)), Count("id", filter=Q(state=TaskState.WORKING))
OLDEST = Min("created_at", filter=Q(state=TaskState.SUBMITTED))


def _add_arguments(parser: ArgumentParser) -> None:
    add_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    unfinished = Task.objects.filter(state__in=UNFINISHED)
    total = unfinished.aggregate(queued=QUEUED, running=RUNNING)
    most = {"owner": settings.A2A_OWNER_TASKS, "agent": settings.A2A_AGENT_TASKS, "all": settings.A2A_TASKS}
    printer.print_line({"owner": None, "agent": None, **total, "most": most})
    groups = unfinished.values("owner__tenant__name", "owner__name", "queue", "agent")
    counts = groups.annotate(queued=QUEUED, running=RUNNING, oldest=OLDEST).order_by("-queued", "-running")
    for row in counts[: options["limit"]]:
        names = {"tenant": row["owner__tenant__name"], "owner": row["owner__name"]}
        printer.print_line(names | {name: value for name, value in row.items() if "__" not in name})


LOAD = Noun(
    help="count queued and running tasks by owner and agent, next to the limits",
    add_arguments=_add_arguments,
    handle=_handle,
)
