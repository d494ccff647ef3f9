"""A call that is being answered, and what is recorded of it."""

import time
from collections.abc import Callable

import orjson
from msgspec import UNSET, UnsetType

from a2a.answers import Result, TaskPage
from a2a.envelopes import Id
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.database.rows import BodyRow, ExchangeRow
from tasks_app.exchanges.redaction import redacted, without_files
from tasks_app.ids import uuid7
from tasks_app.masking import mask_id

BARE = "rest"
"""The door whose calls have no envelope: their params are recorded, and their answers as they are."""
LIST_BYTES = 16_384
"""Answers to lists up to this are recorded as they are."""
_KINDS_OF_ID = {str: "string", int: "number", float: "number", type(None): "null", UnsetType: "absent"}


class OpenExchange:
    """A call that is being answered."""

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
        self.began = time.perf_counter()
        self.has_status = has_status
        """The door has HTTP statuses."""
        self.written = False
        """The request half was stored with the change."""
        self.doubtful = False
        """Or it was not: the call failed, and with it the change, it may be."""
        self.encode: Callable[[Result], bytes] | None = None
        """Set by the door: the whole answer of a result, so that both halves can be stored with the change."""
        self.answer: bytes | None = None
        """The encoded answer, once it was needed."""
        now = clock.now()
        self.row = ExchangeRow(
            id=uuid7(), request_id=request_id, rpc_id=_id_text(rpc_id), rpc_id_type=_KINDS_OF_ID[type(rpc_id)],
            door=door, envelope=envelope, trace=trace, created_at=now, request_bytes=len(request),
        )  # fmt: skip
        self._request = request
        self.body = BodyRow(exchange_id=self.row.id, request="")

    @property
    def request_id(self) -> str:
        """The id of the request as the caller is told."""
        return self.row.request_id or self.row.id

    @property
    def _is_about_webhooks(self) -> bool:
        """Its request and its answer name addresses that may be secrets of those who receive there."""
        return "ushNotificationConfig" in self.row.method

    def asked_by(self, caller: Caller) -> None:
        """The caller is known; only now is the content kept."""
        self.row.caller_id, self.row.tenant_id = caller.owner_id, caller.tenant_id
        self.asks(self._request)

    def asks(self, request: bytes) -> None:
        """Keep the whole request of an authenticated caller, where that is more than the body."""
        self.body.request = redacted(without_files(request), webhooks=self._is_about_webhooks)

    def about(self, task_id: str | None, context_id: str | None = None, seq: int | None = None) -> None:
        """Which task it was about, as of which event."""
        if task_id is not None:
            self.row.task_id = task_id[:36]
        if context_id is not None:
            self.row.context_id = mask_id(context_id[:255])
        if seq is not None:
            self.row.last_seq = seq

    def about_reply(self, context_id: str) -> None:
        """Note that it was about a direct reply, whatever task it seemed to be about."""
        self.row.task_id = self.row.last_seq = None
        self.about(None, context_id)

    def halves(self, result: Result | None) -> tuple[ExchangeRow | None, BodyRow | None]:
        """Return the rows stored with a change: the request half, and the other if there is a result already."""
        self.written = True
        if result is not None and self.encode is not None:
            self.answer = self.encode(result)
            self.end("result", self.answer)
        return self.row, self.body

    def stored(self, row: ExchangeRow | None) -> None:
        """Whether the halves went with the change: the row is gone from an item whose exchange was refused."""
        if row is None:
            self.unwritten()

    def unwritten(self) -> None:
        """Nothing was stored with a change after all."""
        self.written, self.answer, self.row.response_bytes = False, None, 0

    def lighten(self) -> None:
        """Drop the request, which is stored or about to be: an answer that is long in coming keeps none in memory."""
        self._request, self.body = b"", BodyRow(exchange_id=self.row.id, request="")

    def failed(self) -> None:
        """The call did, after its halves went with a change, it may be; nobody knows what became of that."""
        self.doubtful, self.answer, self.row.response_bytes = self.written, None, 0

    def end(self, outcome: str, answer: bytes = b"", *, code: int | None = None, status: int | None = 200) -> None:
        """How it was answered; without a status if nobody was there to be told."""
        row = self.row
        row.outcome, row.code, row.http_status = outcome, code, status if self.has_status else None
        row.duration_us = int((time.perf_counter() - self.began) * 1_000_000)
        row.response_bytes = row.response_bytes or len(answer)

    def keep(self, answer: bytes) -> None:
        """Stores the answer as it is: it cannot be derived from the log."""
        self.body.response = redacted(answer, webhooks=self._is_about_webhooks)

    def keep_result(self, result: Result) -> None:
        """Store the whole answer of a result that the log cannot give again."""
        if self.encode is not None:
            self.keep(self.encode(result))

    def keep_list(self, answer: bytes, page: TaskPage) -> None:
        """Store the answer to a list; of a large one the ids of its tasks, which are stored themselves."""
        if len(answer) <= LIST_BYTES:
            self.keep(answer)
            return
        ids = [task.id for task in page.tasks]
        shown = {
            "tasks": ids,
            "totalSize": page.total_size,
            "omitted": f"the other members, of {len(answer)} bytes in all",
        }
        self.body.response = orjson.dumps(shown).decode()


def _id_text(rpc_id: Id | UnsetType) -> str | None:
    if rpc_id is UNSET or rpc_id is None:
        return None
    if isinstance(rpc_id, str):
        return mask_id(rpc_id[:255]).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return str(rpc_id)[:255]
