"""The look-up of a caller's own call by its id: that of JSON-RPC, that of the HTTP call, or that of its exchange."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from a2a.envelopes import Id
from tasks_app.exchanges.exchange import id_text
from tasks_app.models import Exchange

WINDOW = 5_000
"""The newest calls with an id that are looked at. Ids such as 1 are those of many clients."""
LONGEST = 255
"""Characters of an id that are recorded."""


class OwnCall(Struct, frozen=True):
    """A call that was not refused."""

    rpc_id: Id
    """The id in its type, or the text that led to the call if it has none."""
    task_id: str | None
    """The task that the call is about."""


def find_own_call(owner_id: int, call_id: str) -> OwnCall | None:
    """Return the owner's newest call with that id, if there is one among the newest calls of all owners with it.

    A call about a task comes before others.
    """
    if not call_id or "\0" in call_id or len(call_id) > LONGEST:
        return None
    # Each condition has an index of its own, so each is a statement of its own.
    conditions = ({"rpc_id": id_text(call_id)}, {"request_id": call_id}, {"pk": call_id})
    calls = [call for condition in conditions if (call := _newest(owner_id, condition))]
    row = next((call for call in calls if call["task_id"]), calls[0] if calls else None)
    return None if row is None else OwnCall(_rpc_id(row, call_id), row["task_id"])


def _newest(owner_id: int, condition: dict[str, Any]) -> Mapping[str, Any] | None:
    window = Exchange.objects.filter(**condition).order_by("-pk")[:WINDOW].values("pk")
    own = Exchange.objects.filter(pk__in=window, caller_id=owner_id, code__isnull=True)
    rows = own.order_by("-pk").values("rpc_id", "rpc_id_type", "task_id")
    return rows.filter(task_id__isnull=False).first() or rows.first()


def _rpc_id(row: Mapping[str, Any], call_id: str) -> Id:
    if row["rpc_id"] is None:
        return call_id
    if row["rpc_id_type"] != "number":
        return str(row["rpc_id"])
    return float(row["rpc_id"]) if "." in row["rpc_id"] or "e" in row["rpc_id"] else int(row["rpc_id"])
