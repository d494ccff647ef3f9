"""The tables. Only event_log writes tasks and events, and only exchanges writes exchanges.

Ids are UUIDs as text, so that columns and stored JSON agree byte for byte. JSON columns are text, sent as they are.
"""

from tasks_app.models.acts import Act
from tasks_app.models.audit import AuditEntry, RefusedCalls
from tasks_app.models.batches import Batch, BatchItem
from tasks_app.models.budgets import Budget, DrawnCost, Reservation
from tasks_app.models.callers import ApiKey, Principal, ServiceAccount, SocketTicket, Tenant, UserLink
from tasks_app.models.clients import OAuthClient
from tasks_app.models.exchanges import Exchange, ExchangeBody
from tasks_app.models.memory import MemoryEntry, MemoryUse
from tasks_app.models.operators import OperatorDevice, OperatorReach, OperatorToken
from tasks_app.models.permissions import Permission
from tasks_app.models.processes import Process
from tasks_app.models.rate_limits import RateLimit
from tasks_app.models.receivers import Receiver
from tasks_app.models.refusals import Refusals
from tasks_app.models.relays import Relay, RelayedTask
from tasks_app.models.shared_streams import AgentAnswer, Chunk, Participant, SharedStream
from tasks_app.models.slack import SlackQuestion, SlackUser, SlackWorkspace
from tasks_app.models.tasks import STATES, DirectReply, Event, File, IdempotencyKey, Run, Task
from tasks_app.models.webhooks import Delivery, DeliveryTry, Webhook
from tasks_app.models.workflows import PhaseTask, Workflow
from tasks_app.models.wrong_logins import WrongLogins
from tasks_app.models.zones import RunSecret, Usage

__all__ = [
    "STATES",
    "Act",
    "AgentAnswer",
    "ApiKey",
    "AuditEntry",
    "Batch",
    "BatchItem",
    "Budget",
    "Chunk",
    "Delivery",
    "DeliveryTry",
    "DirectReply",
    "DrawnCost",
    "Event",
    "Exchange",
    "ExchangeBody",
    "File",
    "IdempotencyKey",
    "MemoryEntry",
    "MemoryUse",
    "OAuthClient",
    "OperatorDevice",
    "OperatorReach",
    "OperatorToken",
    "Participant",
    "Permission",
    "PhaseTask",
    "Principal",
    "Process",
    "RateLimit",
    "Receiver",
    "Refusals",
    "RefusedCalls",
    "Relay",
    "RelayedTask",
    "Reservation",
    "Run",
    "RunSecret",
    "ServiceAccount",
    "SharedStream",
    "SlackQuestion",
    "SlackUser",
    "SlackWorkspace",
    "SocketTicket",
    "Task",
    "Tenant",
    "Usage",
    "UserLink",
    "Webhook",
    "Workflow",
    "WrongLogins",
]
