"""The filters of a list of tasks: their SQL, and the binding of page tokens to them."""

import hashlib
from datetime import datetime
from typing import Literal

import orjson
from msgspec import Struct

from a2a.states import TaskState
from tasks_app.database.keyset import Parameter
from tasks_app.database.sql import sql_time

STATES = [state.value for state in TaskState]
_UNINDEXED = "%s || ''"
"""An expression that no index answers, in place of a column. Databases take conditions for independent of each other,
and so would choose the wrong index."""


class Filters(Struct, frozen=True, kw_only=True):
    """The filters of one list of one caller; None for a filter that is not set."""

    tenant_id: int | None
    owner_id: int
    agent: str | None
    context_id: str | None
    state: str | None
    since: datetime | None
    leader: Literal["", "agent", "context"] = ""
    """The filter whose index range is read where both agent and context are set: no index has both."""

    def conditions(self) -> tuple[str, list[Parameter]]:
        """Return the SQL of all filters but the state, and its parameters."""
        agent = "t.agent" if self.leader != "context" else _UNINDEXED % "t.agent"
        context = "t.context_id" if self.leader != "agent" else _UNINDEXED % "t.context_id"
        values = {
            "t.owner_id = %s": self.owner_id,
            "t.tenant_id = %s": self.tenant_id,
            f"{agent} = %s": self.agent,
            f"{context} = %s": self.context_id,
            "t.status_at >= %s": None if self.since is None else sql_time(self.since),
        }
        active = {sql: value for sql, value in values.items() if value is not None}
        return " and ".join(active), list(active.values())

    def binding(self) -> str:
        """Return a digest that binds page tokens to this list of this caller."""
        since = self.since and self.since.isoformat()
        values = [self.tenant_id, self.owner_id, self.agent, self.context_id, self.state, since]
        return hashlib.sha256(orjson.dumps(values)).hexdigest()[:16]
