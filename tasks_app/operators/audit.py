"""Writing down what operators do: who, what, on which row, from what to what, and why.

The rows have no reference to users, and neither an admin page nor a command changes or deletes them. An act and its row
are written in one transaction where the act is one.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db.models import Model
from msgspec import Struct

from tasks_app import clock
from tasks_app.models.acts import Act

ADMIN, COMMAND = "admin", "command"


class Operator(Struct, frozen=True):
    """A person who acts on rows of others."""

    name: str
    door: str
    reason: str = ""


class Change(Struct, frozen=True):
    """A row that was acted on, and what was changed."""

    row: Model
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}


def write_down(by: Operator, verb: str, *changes: Change) -> None:
    """Add a row for each change."""
    now = clock.now()
    Act.objects.bulk_create(
        Act(
            at=now, operator=by.name[:150], door=by.door, verb=verb[:64], kind=kind_of(change.row),
            object_id=str(change.row.pk)[:64], name=str(change.row)[:255], reason=by.reason[:255],
            before=orjson.dumps(change.before).decode(), after=orjson.dumps(change.after).decode(),
        )
        for change in changes
    )  # fmt: skip


def kind_of(row: Model | type[Model]) -> str:
    """Return what people call rows of that table: webhook, API key."""
    return str(row._meta.verbose_name)[:32]


def of_state(rows: Iterable[Model], before: Mapping[Any, str], after: str) -> list[Change]:
    """Return the changes of rows that went from one state to another."""
    return [Change(row, {"state": before[row.pk]}, {"state": after}) for row in rows]
