"""The record of what operators do: who did what to which row, the values before and after, and the reason.

Acts do not refer to users, so they outlive them. No admin page and no command changes or deletes an act. Where possible
an act is written in the same transaction as the change that it describes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from django.apps import apps
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from msgspec import Struct

from tasks_app import clock
from tasks_app.callers.peers import peer_of, trace_of
from tasks_app.database.rows import ActRow
from tasks_app.models.acts import Act

ADMIN, API, COMMAND = "admin", "api", "command"
"""The doors through which operators act."""
PURGED = "rows"
"""The kind of the acts about rows of several tables."""


class Operator(Struct, frozen=True):
    """The person who acts, the door used and the reason given; over a network, the address and trace of the call."""

    name: str
    door: str
    reason: str = ""
    peer: str | None = None
    trace: str | None = None


class Change(Struct, frozen=True):
    """A row that was acted on, with the changed columns before and after."""

    row: Model
    before: Mapping[str, Any] = {}
    after: Mapping[str, Any] = {}


def record_acts(operator: Operator, verb: str, *changes: Change) -> None:
    """Record one act for each change."""
    tenants = _tenants_of([change.row for change in changes])
    Act.objects.bulk_create(
        Act(**_act_of(operator, verb, **_describe(change), tenant_id=tenants.get(change.row.pk))) for change in changes
    )


def act_row(operator: Operator, verb: str, change: Change, tenant_id: int) -> ActRow:
    """Return an act that is stored with the events of its change."""
    return ActRow(**_act_of(operator, verb, **_describe(change), tenant_id=tenant_id))


def record_purge(operator: Operator, rows: Mapping[str, Any]) -> None:
    """Record one act for the deletion of old rows. `rows` has the facts of each kind of row, by its name."""
    name = ", ".join(rows)[:255]
    Act(**_act_of(operator, "purge", kind=PURGED, name=name, after=orjson.dumps(rows).decode())).save()


def _act_of(operator: Operator, verb: str, **columns: Any) -> dict[str, Any]:
    """Return the columns of an act."""
    return {
        "at": clock.now(),
        "operator": operator.name[:150],
        "door": operator.door,
        "verb": verb[:64],
        "reason": operator.reason[:255],
        "peer": operator.peer,
        "trace": operator.trace,
        **columns,
    }


def _describe(change: Change) -> dict[str, Any]:
    return {
        "kind": kind_of(change.row),
        "object_id": str(change.row.pk)[:64],
        "name": str(change.row)[:255],
        "before": orjson.dumps(change.before).decode(),
        "after": orjson.dumps(change.after).decode(),
    }


def _tenants_of(rows: Sequence[Model]) -> dict[Any, int]:
    """Return the tenants of rows of one table by their keys, without those that belong to no tenant."""
    path = getattr(type(rows[0]), "tenant_path", "") if rows else ""
    if not path:
        return {}
    return dict(
        type(rows[0])._default_manager.filter(pk__in=[row.pk for row in rows]).values_list("pk", path).order_by()
    )


def operator_of(request: HttpRequest, door: str, reason: str = "") -> Operator:
    """Return the operator behind a request to the admin or to the API, as an act names them."""
    return Operator(
        name=request.user.get_username(),
        door=door,
        reason=reason.strip()[:255],
        peer=peer_of(request),
        trace=trace_of(request) or None,
    )


def kind_of(row: Model) -> str:
    """Return the name of the row's table as operators read it, such as webhook or API key."""
    return str(row._meta.verbose_name)[:32]


def check_kind(kind: str, among: QuerySet[Act] | None = None) -> None:
    """Check that acts can have this kind, so that a mistake is not taken for a list without acts. Raises ValueError.

    The sentence names the kinds of `among`, the acts that an operator may see; None for all.
    """
    tables = {str(model._meta.verbose_name)[:32] for model in apps.get_models()}
    if kind not in tables and kind != PURGED:
        _check_exists("kind", kind, among)


def check_verb(verb: str, among: QuerySet[Act] | None = None) -> None:
    """Check that acts can have this verb: there is one among those that an operator may see. Raises ValueError."""
    _check_exists("verb", verb, among)


def _check_exists(column: str, value: str, among: QuerySet[Act] | None) -> None:
    rows = (Act.objects.all() if among is None else among).order_by()
    if rows.filter(**{column: value}).exists():
        return  # To list all values reads the whole table, which only a refusal needs.
    if values := set(rows.values_list(column, flat=True).distinct()):
        raise ValueError(f"no act has the {column} {value!r}: there are {', '.join(sorted(values))}")


def state_changes(rows: Iterable[Model], before: Mapping[Any, str], after: str) -> list[Change]:
    """Return one change for each row: from its state in `before`, a mapping by primary key, to the state `after`."""
    return [Change(row, {"state": before[row.pk]}, {"state": after}) for row in rows]
