"""The rows that are written in groups, as values. tables.py has the statements that write them."""

from datetime import datetime

from msgspec import Struct

from a2a.documents import EventKind
from tasks_app.masking import mask_trace
from tasks_app.models.states import DeliveryState, WebhookState


class Row(Struct, kw_only=True, gc=False):
    """A row of any table. `n` is the place of its item in the group, not a column; other fields are columns."""

    n: int = 0


class KeyRow(Row, kw_only=True, gc=False):
    owner_id: int
    key: str
    fingerprint: str
    task_id: str | None
    turn_id: str | None
    """The direct reply, for a message without a task."""
    created_at: datetime


class TaskRow(Row, kw_only=True, gc=False, rename={"fence": "attempt", "attempt": "tries"}):
    id: str
    tenant_id: int
    owner_id: int
    context_id: str
    agent: str
    state: str
    status: str
    status_at: datetime
    last_seq: int
    metadata: str | None
    snapshot_seq: int
    snapshot_status: str
    artifacts: str
    history: str
    queue: str
    priority: int
    timeout: float
    max_attempts: int
    created_at: datetime
    joined_seq: int | None = None
    attempt: int = 0
    fence: int = 0
    wants: str = ""
    pushes: bool = False
    size: int = 0
    messages: int = 0
    budget: int | None = None
    share: int | None = None
    spent: int = 0
    reserved: int = 0


class EventRow(Row, kw_only=True, gc=False, rename={"fence": "attempt"}):
    task_id: str
    seq: int
    """Before an append numbers it: the place among the events of its change, counted from 1."""
    kind: EventKind
    payload: str
    state: str | None
    actor: str
    created_at: datetime
    exchange_id: str | None = None
    fence: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.size = len(self.payload)


class DirectReplyRow(Row, kw_only=True, gc=False):
    id: str
    owner_id: int
    context_id: str
    message: str
    reply: str
    created_at: datetime


class RunRow(Row, kw_only=True, gc=False, rename={"fence": "number"}):
    task_id: str
    fence: int
    worker: str
    started_at: datetime | None
    ended_at: datetime
    outcome: str
    reference: str = ""
    traceback: str = ""

    def __post_init__(self) -> None:
        # Every traceback passes here on its way to the database.
        if self.traceback:
            self.traceback = mask_trace(self.traceback)


class ExchangeRow(Row, kw_only=True, gc=False):
    id: str
    request_id: str
    rpc_id: str | None
    rpc_id_type: str
    door: str
    created_at: datetime
    envelope: str | None = None
    dialect: str = ""
    version: str = ""
    method: str = ""
    caller_id: int | None = None
    tenant_id: int | None = None
    task_id: str | None = None
    context_id: str | None = None
    peer: str | None = None
    trace: str = ""
    outcome: str = ""
    code: int | None = None
    http_status: int | None = None
    duration_us: int | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    frames: int = 0
    first_seq: int | None = None
    last_seq: int | None = None


class AuditRow(Row, kw_only=True, gc=False):
    id: str
    created_at: datetime
    caller_id: int
    caller: str
    tenant_id: int
    tenant: str
    credential: str
    peer: str | None
    door: str
    language: str
    method: str
    task_id: str | None
    outcome: str
    exchange_id: str
    trace: str
    webhook: str = ""
    code: int | None = None


class ActRow(Row, kw_only=True, gc=False):
    at: datetime
    operator: str
    door: str
    verb: str
    kind: str
    object_id: str
    name: str
    before: str
    after: str
    reason: str
    peer: str | None
    trace: str | None
    tenant_id: int | None


class FileRow(Row, kw_only=True, gc=False):
    id: str
    holder: str
    name: str
    media_type: str
    size: int
    digest: str
    created_at: datetime


class PositionRow(Row, kw_only=True, gc=False):
    task_id: str
    position: str


class ReservationRow(Row, kw_only=True, gc=False):
    task_id: str
    budget_id: int
    amount: int
    orphan_at: datetime | None = None


class WebhookRow(Row, kw_only=True, gc=False, rename={"name": "config_id"}):
    id: str
    task_id: str
    name: str
    """The id that its owner chose."""
    version: str
    url: str
    address: str
    key_id: int | None
    host: str
    schemes: str
    token: str
    credentials: str
    secret: str
    due_at: datetime | None
    created_at: datetime
    updated_at: datetime
    caller_credential: str | None = None
    evidence_at: datetime | None = None
    language: str | None = None
    notices: int | None = None
    state: str = WebhookState.ACTIVE.value
    reason: str = ""


class DeliveryRow(Row, kw_only=True, gc=False, rename={"webhook_id": "config_id", "attempt": "tries"}):
    id: str
    webhook_id: str
    task_id: str
    seq: int
    version: str
    created_at: datetime
    language: str | None = None
    interim: bool = False
    state: str = DeliveryState.WAITING.value
    attempt: int = 0
    error: str = ""


class UsageRow(Row, kw_only=True, gc=False):
    id: str
    created_at: datetime
    tenant_id: int
    owner_id: int
    correlation_id: str
    channel: str
    task_id: str = ""
    outcome: str = "executed"
    skipped: str = ""


class SecretRow(Row, kw_only=True, gc=False):
    key: str
    sealed: str
    expires_at: datetime


class BodyRow(Row, kw_only=True, gc=False):
    exchange_id: str
    request: str
    response: str = ""
