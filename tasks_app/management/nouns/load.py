"""`manage.py a2a load`: how many tasks wait and run, by owner and agent, as JSON lines."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.db.models import Count, Min, Q

from tasks_app.management.nouns import Noun, Printer
from tasks_app.management.operator import takes_limit
from tasks_app.models import Task

QUEUED, RUNNING = Count("id", filter=Q(state="submitted")), Count("id", filter=Q(state="working"))
OLDEST = Min("created_at", filter=Q(state="submitted"))


def _add_arguments(parser: ArgumentParser) -> None:
    takes_limit(parser)


def _handle(printer: Printer, options: dict[str, Any]) -> None:
    unfinished = Task.objects.filter(state__in=["submitted", "working"])
    total = unfinished.aggregate(queued=QUEUED, running=RUNNING)
    most = {"owner": settings.A2A_OWNER_TASKS, "agent": settings.A2A_AGENT_TASKS, "all": settings.A2A_TASKS}
    printer.line({"owner": None, "agent": None, **total, "most": most})
    groups = unfinished.values("owner__tenant__name", "owner__name", "queue", "agent")
    found = groups.annotate(queued=QUEUED, running=RUNNING, oldest=OLDEST).order_by("-queued", "-running")
    for row in found[: options["limit"]]:
        names = {"tenant": row["owner__tenant__name"], "owner": row["owner__name"]}
        printer.line(names | {name: value for name, value in row.items() if "__" not in name})


LOAD = Noun(
    help="how many tasks wait and run, by owner and agent, and how many there may be",
    add_arguments=_add_arguments,
    handle=_handle,
)
