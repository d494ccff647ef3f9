"""Tasks: found by state, context or reference, shown whole, and canceled."""

from typing import Any

import orjson
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from a2a.errors import Error
from a2a.money import show_usd
from tasks_app import event_log, operations
from tasks_app.api.paging import read_numbers
from tasks_app.api.problems import Refused
from tasks_app.api.resource import OwnedRow, Resource
from tasks_app.api.verbs import verb
from tasks_app.cards.addresses import public
from tasks_app.database.keyset import fetch_page
from tasks_app.files import with_links
from tasks_app.models import Event, RelayedTask, Run, Task
from tasks_app.operators import columns, lookup
from tasks_app.operators.audit import Operator
from tasks_app.operators.damage import BROKEN
from tasks_app.operators.refusals import reason_of

LARGE = ("status", "metadata", "snapshot_status", "artifacts", "history")
"""Columns that lists do not read."""
EVENTS, MOST_EVENTS = 50, 100
"""Events of a page by default, and at most. One of them may have a megabyte."""
MOST_SEQ = 2**31 - 1


class Dollars(serializers.CharField):
    """An amount that is stored in millionths of a dollar, as text in dollars."""

    def to_representation(self, value: Any) -> str:
        return show_usd(value)


class TaskRow(OwnedRow):
    budget = Dollars(allow_null=True, help_text="The most that the caller pays, in dollars; null: no limit.")
    share = Dollars(allow_null=True, help_text="The most that stored budgets had left for it; null: enough.")
    reserved = Dollars(help_text="What stored budgets hold for it until it ends.")
    spent = Dollars(help_text="What its runs have reported.")

    class Meta:
        model = Task
        fields = ("id", "tenant", "owner", *columns.TASK)


class Tasks(Resource):
    segment = "tasks"
    model = Task
    serializer_class = TaskRow
    filters = {"state": "state"}
    bounded = {"agent": "agent", "owner": "owner"}
    page_parameters = ("before", "limit")

    def rows(self) -> Any:
        return Task.objects.select_related("tenant", "owner").defer(*LARGE)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        return (*super().parameters(), "find")

    def select(self, rows: QuerySet[Any], values: dict[str, str]) -> QuerySet[Any]:
        # `find` takes a task id, a context id, or the reference of a failure.
        if (text := values.pop("find", None)) is not None:
            rows = lookup.find_tasks(text, rows)
        if (owner := values.pop("owner", None)) is not None:
            rows = lookup.owned_by(rows, owner)
        return super().select(rows, values)

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        page = read_numbers(request, {"before": MOST_SEQ, "limit": MOST_EVENTS}, "a task")
        events, before = _read_events(row.pk, **page)
        following = before and replace_query_param(request.build_absolute_uri(), "before", before)
        runs = Run.objects.filter(task_id=row.pk).order_by("id").values(*columns.RUN)
        more = {"task": _read_document(row.pk), "events": events, "next": following, "runs": list(runs)}
        relayed = RelayedTask.objects.filter(pk=row.pk).values(*columns.RELAYED).first()
        return Response(self.describe(row) | more | {"relayed": relayed})

    @verb()
    def cancel(self, row: Task, values: dict[str, Any], operator: Operator) -> None:
        """Cancel the task. Its agent is told to stop, and its caller sees it as canceled."""
        try:
            operations.cancel_for_operator(row.pk, operator)
        except Error as error:
            raise Refused(f"{reason_of(error)}.") from None


def _read_document(task_id: str) -> Any:
    """Return the task as callers see it; None if its log is damaged, which the doctor says in words."""
    try:
        stored = event_log.read_many([event_log.ReadTask(task_id=task_id, sight=None)])[0]
    except BROKEN:
        return None
    return _read_json(stored.document.json()) if stored else None


def _read_events(task_id: str, before: int = MOST_SEQ, limit: int = EVENTS) -> tuple[list[dict[str, Any]], int | None]:
    """Return the newest events below a number, oldest first; and the number for the older ones, if there are any."""
    rows = Event.objects.filter(task_id=task_id, seq__lt=before).order_by("-seq").values(*columns.EVENT)
    newest, more = fetch_page(rows, limit)
    events = [each | {"payload": _read_json(each["payload"].encode())} for each in reversed(newest)]
    return events, events[0]["seq"] if more else None


def _read_json(text: Any) -> Any:
    """Return the value of a stored document. References to files are secrets: there are links instead, which expire."""
    linked = bytes(with_links(text, public()))
    try:
        return orjson.loads(linked)
    except ValueError:  # a damaged row
        return linked.decode(errors="replace")
