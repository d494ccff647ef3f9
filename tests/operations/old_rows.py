"""Rows past their retention time, and what a purge prints."""

from datetime import datetime, timedelta
from typing import Any

from a2a.events import StatusChanged
from a2a.states import TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.event_log import append_many, create_many
from tasks_app.ids import uuid7_at
from tasks_app.models import DirectReply, Exchange, ExchangeBody, IdempotencyKey, Refusals, Run, SocketTicket
from tests.conftest import Person
from tests.operations.rows import addition, creation
from tests.support.commands import printed

DAY = timedelta(days=1)


def fill(owner: Person, number: int, age: timedelta, *, open_: bool = False) -> None:
    """Tasks with two events and a run each, keys, exchanges with bodies and direct replies of that age, and tickets
    that expired then."""
    for place in range(number):
        then = clock.now() - age + timedelta(milliseconds=place)
        id = uuid7_at(then)
        create_many([creation(owner, id, id=id)])
        if not open_:
            complete(id, then)
        Run.objects.create(task_id=id, fence=1, worker="w", ended_at=then, outcome="completed")
        IdempotencyKey.objects.filter(key=id).update(created_at=then)
        Exchange.objects.create(id=id, rpc_id_type="absent", door="http", created_at=then)
        ExchangeBody.objects.create(exchange_id=id)
        DirectReply.objects.create(
            id=id, owner_id=owner.caller.owner_id, context_id="c", message="{}", reply="{}", created_at=then
        )
        add_ticket(owner, id, then)
        Refusals.objects.create(minute=then, address=id, limited=1)


def add_ticket(owner: Person, digest: str, end: datetime) -> None:
    SocketTicket.objects.create(digest=digest, owner_id=owner.caller.owner_id, key_digests="d", expires_at=end)


def complete(id: str, then: datetime) -> None:
    append_many([addition(id, StatusChanged(status=Status(state=TaskState.COMPLETED, timestamp=then)))])


def purged(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "purge", *words)


def of(lines: list[dict[str, Any]], field: str) -> dict[str, int]:
    return {line["rows"]: line[field] for line in lines}
