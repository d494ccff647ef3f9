"""Performing: what every door relies on, so that a new one cannot forget it."""

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from msgspec.structs import replace

from a2a.batches import BatchInput
from a2a.errors import MissingScope, TaskNotFound, Unavailable
from a2a.requests import CancelTask, GetTask, ListTasks, Request, SendMessage
from a2a.shared_streams import ChunkRole
from a2a.types import Message, Part, PushConfig, Role
from a2a.workflows import Phase
from tasks_app.database.work import DoSlowly, Step
from tasks_app.event_log import Head, ReadHead
from tasks_app.event_log.readers import readers
from tasks_app.models import Task
from tasks_app.operations import OPERATIONS, Context, authorize, perform, perform_now
from tasks_app.operations.dispatcher import _drive, _drive_now
from tasks_app.operations.operation import Await, Done, Grant
from tests.conftest import Person
from tests.operations.asking import message

pytestmark = [pytest.mark.django_db]
VALUES: dict[str, Any] = {
    "id": "1",
    "task_id": "1",
    "remote_id": "1",
    "stream_id": "1",
    "name": "echo",
    "parts": (Part(text="hello"),),
    "role": ChunkRole.USER,
    "sequence": 1,
    "namespace": "sparc",
    "workflow": "w",
    "phase": Phase.SPECIFICATION,
    "operation": "echo",
    "items": (BatchInput(task_id="1"),),
    "key": "1",
    "data": 1,
    "text": "hello",
    "message": Message(message_id="1", role=Role.USER, parts=(Part(text="hello"),)),
    "page_size": 10,
    "config": PushConfig(url="https://example.com/", language="a2a-1.0"),
}


def request_of(kind: type[Request]) -> Request:
    return kind(**{name: VALUES[name] for name in kind.__struct_fields__ if name in VALUES})


def driven(operation: Any, person: Person) -> Any:
    grant = async_to_sync(_drive)(operation, Context(caller=person.caller))
    assert isinstance(grant, Done)
    return grant.result


# --------------------------------------------------------------- first may it


@pytest.mark.parametrize("kind", OPERATIONS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("perform", [async_to_sync(perform), perform_now], ids=["on a loop", "on a thread"])
def test_without_its_scope_no_operation_is_performed(owner: Person, kind: type[Request], perform: Any) -> None:
    stranger = replace(owner.caller, scopes=frozenset({"another"}))
    with pytest.raises(MissingScope):
        perform(request_of(kind), Context(caller=stranger))
    with pytest.raises(MissingScope):
        authorize(kind, stranger)


@pytest.mark.parametrize("kind", [kind for kind in OPERATIONS if kind.changes], ids=lambda kind: kind.__name__)
def test_a_process_that_goes_down_takes_no_change(
    owner: Person, monkeypatch: pytest.MonkeyPatch, kind: type[Request]
) -> None:
    async def last_words() -> None:
        monkeypatch.setattr(readers, "draining", True)
        with pytest.raises(Unavailable):
            await perform(request_of(kind), Context(caller=owner.caller))
        with pytest.raises(TaskNotFound):
            await perform(GetTask(id="1"), Context(caller=owner.caller))

    async_to_sync(last_words)()


def test_a_request_that_waits_is_not_for_threads(owner: Person) -> None:
    with pytest.raises(TypeError, match="SendMessage waits or streams"):
        perform_now(SendMessage(message=message()), Context(caller=owner.caller, agent="form-coroutine"))


# ------------------------------------------------------------- then the steps


def test_a_step_has_its_result_and_its_errors_come_where_it_is_awaited(owner: Person) -> None:
    def fail() -> int:
        raise OperationalError("away")

    async def operation() -> Grant:
        head: Head | None = await ReadHead(task_id="1", sight=None)
        number = await DoSlowly(lambda: 5)
        with pytest.raises(OperationalError, match="away"):
            await DoSlowly(fail)
        return Done((head, number))  # type: ignore[arg-type]

    assert driven(operation(), owner) == (None, 5)
    assert _drive_now(operation()) == Done((None, 5))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "step",
    [lambda: asyncio.sleep(0), lambda: asyncio.Event().wait(), lambda: asyncio.sleep(1), Step],
    ids=["nothing", "an event", "a timer", "a step of no kind"],
)
def test_an_operation_that_awaits_anything_else_is_a_mistake(owner: Person, step: Callable[[], Any]) -> None:
    async def operation() -> Grant:
        await step()
        return Done(None)

    with pytest.raises(TypeError, match="an operation awaits"):
        driven(operation(), owner)


def test_a_step_outside_the_database_is_not_for_threads() -> None:
    async def operation() -> Grant:
        await Await(lambda: asyncio.sleep(0))
        return Done(None)

    with pytest.raises(TypeError, match="an operation awaits Await"):
        _drive_now(operation())


def test_an_operation_that_is_not_begun_or_not_ended_warns_nobody(owner: Person) -> None:
    """Warnings are errors in tests: a coroutine that is never awaited would be one."""
    context = Context(caller=replace(owner.caller, scopes=frozenset()))
    for request in (CancelTask(id="1"), ListTasks()):
        with pytest.raises(MissingScope):
            async_to_sync(perform)(request, context)
    driving = _drive(OPERATIONS[ListTasks].function(ListTasks(), context), context)
    with pytest.raises(RuntimeError, match="no running event loop"):
        driving.send(None)
    driving.close()
    gc.collect()
    assert not Task.objects.exists()
