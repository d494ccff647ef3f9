"""The plan of a conversation: all that is decided about it before anything is stored."""

from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from a2a.agents import Agent
from a2a.documents import TaskDocument
from a2a.preferences import Preferences
from a2a.requests import SendMessage, StreamMessage
from a2a.run import Run
from a2a.types import Message
from tasks_app.database.errands import insist
from tasks_app.database.rows import FileRow, KeyRow
from tasks_app.event_log import late_cost
from tasks_app.limits.budgets import Charge
from tasks_app.operations.operation import Context


class Plan(Struct, kw_only=True):
    """The plan of a conversation that a message begins."""

    agent: Agent
    request: SendMessage
    context: Context
    run: Run
    key: KeyRow
    now: datetime
    preferences: Preferences
    quick: bool
    """True if the agent runs inside the call."""
    files: list[FileRow] = []
    """Files of the message, and of the answer of a quick agent."""
    charge: Charge | None = None
    """The reservation that its task needs of stored budgets."""
    share: int = 0
    """The amount that the call of a quick agent has reserved."""
    advance: str = ""
    """The id of the advance that the call draws on; empty without one."""
    is_writing: bool = False
    """Whether the conversation of a quick agent is being stored, or is stored."""
    first: TaskDocument | None = None
    """The task as of its first event, with which a stream begins."""

    def final_cost(self) -> int:
        """Return the cost of the run to write, in millionths of a dollar. Whatever the agent reports from now on is
        charged to the stored budgets at once."""
        spending, charge = self.run.spending, self.charge
        if charge is None:
            return spending.spent
        return spending.close(lambda amount: insist(late_cost(charge.task_id, amount, charge.budgets)))

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return isinstance(self.request, StreamMessage)

    @property
    def answers_now(self) -> bool:
        """Whether the stored task is the answer. A call that waits for a queued agent is answered later."""
        return (self.quick or self.request.return_immediately) and not self.streams


def with_ids(message: Message, task_id: str, context_id: str) -> Message:
    """Return the message with the ids of the task it belongs to."""
    return replace(message, task_id=task_id, context_id=context_id)
