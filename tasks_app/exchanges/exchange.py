"""A call under way, and what is recorded of it."""

import time
from collections.abc import Callable

import orjson
from django.conf import settings
from msgspec import UNSET, UnsetType

from a2a.answers import Result, TaskPage
from a2a.documents import Encoded
from a2a.envelopes import Id
from a2a.types import Json
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.rows import AuditRow, BodyRow, ExchangeRow
from tasks_app.exchanges.redaction import redact, unload_files
from tasks_app.ids import uuid7
from tasks_app.limits.quotas import quota
from tasks_app.masking import mask_id
from tasks_app.models.exchanges import LARGE_REQUEST

BARE = "rest"
"""The door whose calls have no envelope. Their params are recorded as the request, and their answers as they are."""
LIST_BYTES = 2_048
"""The largest answer to a list that is recorded whole. To look for secrets in a page of small tasks took a third of the
time of the call."""
_ID_TYPES = {str: "string", int: "number", float: "number", type(None): "null", UnsetType: "absent"}


class OpenExchange:
    """A call under way. Its request half may be written before its answer half."""

    def __init__(
        self,
        *,
        door: str,
        envelope: str | None = None,
        request_id: str,
        rpc_id: Id | UnsetType,
        request: bytes,
        trace: str = "",
        has_status: bool = True,
    ) -> None:
        self.start = time.perf_counter()
        self.has_status = has_status
        """Whether the door answers with HTTP statuses."""
        self.is_written = False
        """Whether the request half was stored with the change."""
        self.is_doubtful = False
        """Whether the call failed after the request half went with a change, which may or may not be stored."""
        self.encode: Callable[[Result], Encoded] | None = None
        """Encodes the whole answer for a result. The door sets it, so that both halves can be stored with the
        change."""
        self.answer: Encoded | None = None
        """The encoded answer, if it was stored with the change."""
        self.is_change = False
        """Whether the audit has an entry of the call."""
        self.is_audited = False
        """Whether the entry of the audit was stored with the change."""
        self.has_begun = False
        """Whether the call has changed something before its own change, so that it has an entry also if it is
        refused."""
        self.agent = ""
        """The agent that the call is for; empty for a call that sends no message."""
        self._caller: Caller | None = None
        now = clock.now()
        self.row = ExchangeRow(
            id=uuid7(),
            request_id=request_id,
            rpc_id=id_text(rpc_id),
            rpc_id_type=_ID_TYPES[type(rpc_id)],
            door=door,
            envelope=envelope,
            trace=trace,
            created_at=now,
            request_bytes=len(request),
        )
        self._request = request
        self.body = BodyRow(exchange_id=self.row.id, request="")

    @property
    def request_bytes(self) -> int:
        """The bytes of the request."""
        return self.row.request_bytes

    @property
    def request_id(self) -> str:
        """The request id that the caller gets: the caller's own, or else the id of the exchange."""
        return self.row.request_id or self.row.id

    @property
    def caller_name(self) -> str:
        """The name of the caller with that of its tenant; empty before it is known."""
        return f"{self._caller.tenant}/{self._caller.name}" if self._caller else ""

    @property
    def _is_about_webhooks(self) -> bool:
        """Whether the request and the answer may contain addresses of webhooks, which may be secrets."""
        return "ushNotificationConfig" in self.row.method

    def name_caller(self, caller: Caller) -> None:
        """Record the caller alone, as of a call that waits for its turn and may leave before it is read."""
        self._caller, self.row.caller_id, self.row.tenant_id = caller, caller.owner_id, caller.tenant_id

    def set_caller(self, caller: Caller) -> None:
        """Record the caller and the content of the request. Without a caller the content is not recorded."""
        self.name_caller(caller)
        self.set_request(self._request)

    def set_request(self, request: bytes) -> None:
        """Record the whole request of an authenticated caller, which may be more than the body.

        Of a large request of an owner at the quota only the size is recorded. Otherwise refused calls would go on to
        fill the database.
        """
        if omitted := self._omit("request", len(request)):
            self.body.request = omitted
            return
        self.body.request = redact(unload_files(request), webhooks=self._is_about_webhooks)
        if self.row.caller_id is not None and len(request) >= LARGE_REQUEST:
            quota.add(self.row.caller_id, len(self.body.request))

    def _omit(self, part: str, size: int) -> str:
        """Return what is recorded in place of a large part of a call whose caller has reached the quota; empty for any
        other, which is recorded."""
        owner_id = self.row.caller_id
        if size < LARGE_REQUEST or owner_id is None or not quota.is_reached(owner_id):
            return ""
        omitted = f"the {part}, of {size} bytes, because its caller has reached the quota"
        return orjson.dumps({"omitted": omitted}).decode()

    def about(self, task_id: str | None, context_id: str | None = None, seq: int | None = None) -> None:
        """Record the task of the call, its context, and the sequence number of the event up to which it was read."""
        if task_id is not None:
            self.row.task_id = task_id[:36]
        if context_id is not None:
            self.row.context_id = mask_id(context_id, 255)
        if seq is not None:
            self.row.last_seq = seq

    def about_reply(self, context_id: str) -> None:
        """Record that the call was about a direct reply, and drop the task that it seemed to be about."""
        self.row.task_id = self.row.last_seq = None
        self.about(None, context_id)

    def about_agent(self, name: str) -> None:
        """Note the agent that the call is for, by which calls are counted."""
        self.agent = name

    def halves(self, result: Result | None) -> tuple[ExchangeRow | None, BodyRow | None]:
        """Return the rows to store with a change: the request half, and the answer half if there is a result."""
        self.is_written = True
        if result is not None and self.encode is not None:
            self.answer = self.encode(result)
            self.end("result", self.answer)
        return self.row, self.body

    def entry(self, webhook: str = "") -> AuditRow | None:
        """Return the entry of the audit to store with a change; None for a call that has none.

        `webhook` is the id of the webhook that the call is about.
        """
        if not self.is_change or not settings.A2A_AUDIT or self._caller is None:
            return None
        self.is_audited = True
        return _entry(self.row, self._caller, webhook)

    def begin_change(self) -> None:
        """Record that the call has changed something, whose entry is still to come."""
        self.has_begun = True

    def change_nothing(self) -> None:
        """Record that the call has only read. Then the audit has no entry of it."""
        self.is_change = False

    def last_entry(self) -> AuditRow | None:
        """Return the entry of the audit to store behind the answer; None if it was stored with the change.

        It has an id of its own if it is unknown whether the change was stored, for then the entry of the change may be
        there as well.
        """
        if self.is_audited and not self.is_doubtful:
            return None
        is_doubtful, entry = self.is_audited, self.entry()
        if entry is not None:
            entry.outcome, entry.code = self.row.outcome, self.row.code
            if is_doubtful:
                entry.id, entry.created_at = uuid7(), clock.now()
        return entry

    def confirm(self, row: ExchangeRow | None) -> None:
        """Note whether the halves were stored with the change. A work item without a row lost its exchange.

        The entry of the audit is never lost with it.
        """
        if row is None:
            self.is_written, self.answer, self.row.response_bytes = False, None, 0

    def undo(self) -> None:
        """Take back halves() and entry(), because nothing was stored with a change after all."""
        self.confirm(None)
        self.is_audited = False

    def lighten(self) -> None:
        """Drop the request, which is stored or about to be: a call that waits for long keeps none in memory."""
        self._request, self.body = b"", BodyRow(exchange_id=self.row.id, request="")

    def fail(self) -> None:
        """Record that the call failed. If its halves went with a change, it is unknown whether they are stored.

        The method and the task of a call that failed may be made up, and so be secrets.
        """
        row = self.row
        row.method, row.task_id = mask_id(row.method, 64), row.task_id and mask_id(row.task_id, 36)
        self.is_doubtful, self.answer, self.row.response_bytes = self.is_written, None, 0

    def end(self, outcome: str, answer: Encoded = b"", *, code: int | None = None, status: int | None = 200) -> None:
        """Record the outcome, the error code and the HTTP status, which is None if the caller got no answer."""
        row = self.row
        row.outcome, row.code, row.http_status = outcome, code, status if self.has_status else None
        row.duration_us = int((time.perf_counter() - self.start) * 1_000_000)
        row.response_bytes = row.response_bytes or len(answer)

    def keep(self, answer: Encoded) -> None:
        """Record the answer itself, because it cannot be derived from the log.

        Of a large one to an owner at the quota only the size is recorded. A message that was accepted before is
        answered there too, and its answer may be a long reply.
        """
        omitted = self._omit("answer", len(answer))
        self.body.response = omitted or redact(bytes(answer), webhooks=self._is_about_webhooks)

    def keep_size(self, size: int) -> None:
        """Record the size of a description alone, which is the same for all callers."""
        self.body.response = orjson.dumps({"omitted": f"the description, of {size} bytes"}).decode()

    def keep_result(self, result: Result) -> None:
        """Record the whole answer for a result, because it cannot be derived from the log."""
        if self.encode is not None:
            self.keep(self.encode(result))

    def keep_outline(self, outline: Json, size: int) -> None:
        """Record what a large answer is about, and its size. The answer itself would take as much room with each call,
        and longer to search for secrets than to make."""
        self.body.response = redact(_with_size(outline, size))

    def keep_list(self, answer: Encoded, page: TaskPage) -> None:
        """Record the answer to a list. Of a large one only the ids of the tasks are recorded, which are stored
        themselves."""
        if len(answer) <= LIST_BYTES:
            self.keep(answer)
            return
        summary = {"tasks": [task.id for task in page.tasks], "totalSize": page.total_size}
        self.body.response = _with_size(summary, len(answer)).decode()


def _with_size(members: Json, size: int) -> bytes:
    """Return some members of an answer, and the size of all of them."""
    return orjson.dumps({**members, "omitted": f"the other members, of {size} bytes in all"})


def _entry(row: ExchangeRow, caller: Caller, webhook: str) -> AuditRow:
    return AuditRow(
        id=row.id,
        created_at=row.created_at,
        caller_id=caller.owner_id,
        caller=caller.name,
        tenant_id=caller.tenant_id,
        tenant=caller.tenant,
        credential=caller.credential,
        peer=row.peer,
        door=row.door,
        language=row.dialect,
        method=row.method,
        task_id=row.task_id,
        outcome="result",
        exchange_id=row.id,
        trace=row.trace,
        webhook=mask_id(webhook, 255),
    )


def id_text(rpc_id: Id | UnsetType) -> str | None:
    """Return an id of JSON-RPC as it is recorded; None for one that is null or absent."""
    if rpc_id is UNSET or rpc_id is None:
        return None
    if isinstance(rpc_id, str):
        return mask_id(rpc_id, 255).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return str(rpc_id)[:255]
