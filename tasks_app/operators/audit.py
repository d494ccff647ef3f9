"""The record of what operators do: who did what to which row, the values before and after, and the reason.

Acts do not refer to users, so they outlive them. No admin page and no command changes or deletes an act. Where possible
an act is written in the same transaction as the change that it describes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db.models import Model
from msgspec import Struct

from tasks_app import clock
from tasks_app.models.acts import Act

ADMIN, COMMAND = "admin", "command"
"""The doors through which operators act."""


class Operator(Struct, frozen=True):
    """The person who acts, the door used and the reason given."""

    name: str
    door: str
    reason: str = ""


class Change(Struct, frozen=True):
    """A row that was acted on, with the changed columns before and after."""

    row: Model
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}


def record_acts(operator: Operator, verb: str, *changes: Change) -> None:
    """Record one act for each change."""
    now = clock.now()
    Act.objects.bulk_create(
        Act(
            at=now,
            operator=operator.name[:150],
            door=operator.door,
            verb=verb[:64],
            kind=kind_of(change.row),
            object_id=str(change.row.pk)[:64],
            name=str(change.row)[:255],
            reason=operator.reason[:255],
            before=orjson.dumps(change.before).decode(),
            after=orjson.dumps(change.after).decode(),
        )
        for change in changes
    )


def kind_of(row: Model) -> str:
    """Return the name of the row's table as operators read it, such as webhook or API key."""
    return str(row._meta.verbose_name)[:32]


def state_changes(rows: Iterable[Model], before: Mapping[Any, str], after: str) -> list[Change]:
    """Return one change for each row: from its state in `before`, a mapping by primary key, to the state `after`."""
    return [Change(row, {"state": before[row.pk]}, {"state": after}) for row in rows]
