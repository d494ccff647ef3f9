"""Large answers that are owed: to changes, to messages that are sent again, and to calls that wait."""

import asyncio
import gc
import json
import threading
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

import pytest
from django.test import AsyncRequestFactory
from django.utils import timezone

from a2a import types
from a2a.answers import Answer
from a2a.errors import RateLimited, Unavailable
from a2a.requests import GetTask
from a2a.states import TaskState
from a2a.workflows import PHASES, SetPhase
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.limits.accounts import Holding, account
from tasks_app.models import PhaseTask, Task, Workflow
from tasks_app.operations.operation import CallerLeft, Context, Wait
from tasks_app.operations.room import counting_request, make_room
from tasks_app.operations.waiting import wait_on
from tasks_app.transports.enveloped import jsonrpc
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, message, sent, shown
from tests.support.gates import gate_before_calls

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
ASYNC = "form-coroutine"
LONG = "x" * 60_000
SHARE = 100_000


@pytest.fixture(autouse=True)
def _share(settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES = SHARE


async def answer(
    person: Person, method: str, params: Any, departure: Callable[[], Awaitable[None]] | None = None
) -> Any:
    """Return the answer to a call, whose client does not read it yet. It has left when the departure returns."""
    wire = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await posted(person, wire, departure)


async def posted(
    person: Person,
    wire: Any,
    departure: Callable[[], Awaitable[None]] | None = None,
    take_weight: Callable[[], Holding | None] | None = None,
) -> Any:
    request = AsyncRequestFactory().post(
        "/", json.dumps(wire), content_type="application/json", headers={"Authorization": f"Bearer {person.key}"}
    )
    if departure is not None:
        request.departure = departure  # type: ignore[attr-defined]  # our handler of ASGI sets it
    if take_weight is not None:
        request.take_weight = take_weight  # type: ignore[attr-defined]  # as well
    return await jsonrpc(request)


def read(response: Any) -> Any:
    """Have the client read an answer, and return its JSON."""
    for close in response._resource_closers:
        close()
    return json.loads(response.content)


def sending(name: str, text: str = LONG, agent: str = "echo", **more: Any) -> Any:
    parts = [{"text": text}]
    return {"message": {"messageId": name, "role": "ROLE_USER", "parts": parts} | more, "metadata": {"agent": agent}}


def unsent(person: Person) -> int:
    return account.amounts["bodies", person.caller.owner_id]


async def test_a_large_answer_to_a_change_counts_until_it_is_sent(owner: Person, colleague: Person) -> None:
    first = await answer(owner, "SendMessage", sending("1"))
    assert first.status_code == 200, "what was done is answered, however large that is"
    assert unsent(owner) > SHARE
    refused = await answer(owner, "SendMessage", sending("2", "hello"))
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert await bridge.ask(Do(Task.objects.count)) == 1
    assert (await answer(colleague, "SendMessage", sending("1", "hello"))).status_code == 200
    assert read(first)["result"]["task"]
    assert unsent(owner) == 0
    assert (await answer(owner, "SendMessage", sending("2", "hello"))).status_code == 200


@pytest.mark.parametrize("repeats", [10_000, 20_000], ids=["within the share", "beyond it"])
async def test_a_large_answer_counts_bytes_and_not_characters(owner: Person, repeats: int) -> None:
    sent = read(await answer(owner, "SendMessage", sending("1", "\N{GRINNING FACE}" * repeats)))
    shown = await answer(owner, "GetTask", {"id": sent["result"]["task"]["id"]})
    assert len(shown.content) > 8 * repeats
    assert unsent(owner) == min(len(shown.content), SHARE)
    read(shown)
    assert unsent(owner) == 0


async def test_a_batch_behind_its_headers_counts_until_no_member_is_in_memory(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_PING_SECONDS = 0.05
    gate = gate_before_calls(monkeypatch)
    wires = [{"jsonrpc": "2.0", "id": number, "method": "GetTask", "params": {"id": "none"}} for number in range(2)]
    weight = account.hold(owner.caller.owner_id, "bodies", 20_000)
    response = await posted(owner, wires, take_weight=lambda: weight)
    assert unsent(owner) == 20_000
    gate.set()
    assert len(json.loads(b"".join([piece async for piece in response.streaming_content]))) == 2
    assert unsent(owner) == 0


async def test_a_message_that_is_sent_again_takes_its_answer_from_the_account(owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES = 150_000  # for two of the answers, and not for three
    wish = sending("again", agent=ASYNC) | {"configuration": {"returnImmediately": True}}
    read(await answer(owner, "SendMessage", wish))
    again, as_well, refused = [await answer(owner, "SendMessage", wish) for _ in range(3)]
    assert (again.status_code, as_well.status_code) == (200, 200)
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    for one in (again, as_well):
        assert read(one)["result"]["task"]["history"][0]["parts"][0]["text"] == LONG
    assert unsent(owner) == 0
    assert (await answer(owner, "SendMessage", wish)).status_code == 200
    assert await bridge.ask(Do(Task.objects.count)) == 1


@pytest.mark.parametrize("change", ["CancelTask", "SendMessage"])
def test_a_change_without_room_for_its_answer_is_not_made(owner: Person, change: str) -> None:
    tasks = [sent(owner, message(LONG), ASYNC, return_immediately=True).id for _ in range(2)]
    said = {"configuration": {"returnImmediately": True}}
    wishes: list[Any] = [{"id": task} for task in tasks]
    if change == "SendMessage":
        wishes = [sending(f"more of {task}", "more", ASYNC, taskId=task) | said for task in tasks]

    async def work() -> None:
        first, second = [await answer(owner, change, wish) for wish in wishes]
        assert (first.status_code, second.status_code) == (200, 429)
        assert read(first)["result"]
        assert unsent(owner) == 0

    asyncio.run(work())
    before, after = (shown(ask(owner, GetTask(id=task))) for task in (tasks[1], tasks[0]))
    assert (before.status.state, len(before.history)) == ("submitted", 1)
    assert (after.status.state, len(after.history)) != ("submitted", 1)


@pytest.mark.parametrize("is_cancelled", [False, True], ids=["the caller leaves", "the call is cancelled"])
def test_a_call_without_an_end_gives_its_room_back_at_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """The error keeps its traceback, with the context of the call, until garbage is collected."""
    monkeypatch.setattr("tasks_app.database.waits.WATCH_AFTER", 0)
    task, free = sent(owner, message(LONG), ASYNC, return_immediately=True).id, threading.Event()
    calls: list[asyncio.Task[Any]] = []

    async def leave() -> None:
        assert unsent(owner) > 0
        if is_cancelled and not calls[0].cancelling():
            calls[0].cancel()
            await asyncio.Event().wait()

    async def work() -> None:
        bridge.put(Do(lambda: free.wait(PATIENCE)))  # The change waits behind it.
        calls.append(asyncio.ensure_future(answer(owner, "CancelTask", {"id": task}, leave)))
        await asyncio.wait(calls)

    gc.disable()
    try:
        asyncio.run(work())
        assert unsent(owner) == 0
    finally:
        gc.enable()
        free.set()


def test_a_workflow_without_room_for_its_results_stays_in_its_phase(owner: Person) -> None:
    for name in ("first", "second"):
        workflow = ask(owner, SetPhase(workflow=name, phase=PHASES[0]))
        row = Workflow.objects.get(name=workflow.name)
        result = json.dumps([{"artifactId": "a", "parts": [{"text": LONG}]}])
        PhaseTask.objects.create(
            workflow=row,
            phase=PHASES[0],
            task_id=name,
            agent="specifier",
            state=TaskState.COMPLETED,
            artifacts=result,
            created_at=timezone.now(),
            ended_at=timezone.now(),
        )

    async def work() -> None:
        wishes = [{"workflowId": name, "phase": PHASES[1]} for name in ("first", "second")]
        first, second = [await answer(owner, "sparc/phase/set", wish) for wish in wishes]
        assert (first.status_code, second.status_code) == (200, 429)
        assert LONG in json.dumps(read(first))
        assert unsent(owner) == 0

    asyncio.run(work())
    assert dict(Workflow.objects.values_list("name", "phase")) == {"first": PHASES[1], "second": PHASES[0]}


def test_a_batch_whose_client_leaves_gives_its_room_back_at_once(owner: Person, settings: Any) -> None:
    settings.A2A_PING_SECONDS = 0.1
    # The answer is smaller than the share, because it may come before the second call begins.
    calls = [sending("done", LONG[: SHARE // 4]), sending("waits", "hello", ASYNC)]
    wire = [{"jsonrpc": "2.0", "id": n, "method": "SendMessage", "params": call} for n, call in enumerate(calls)]

    async def work() -> None:
        response = await posted(owner, wire)
        pieces = response.streaming_content
        async with asyncio.timeout(PATIENCE):
            while not unsent(owner):
                await anext(pieces)
            await anext(pieces)  # The batch has begun to wait, and is cancelled.
        await pieces.aclose()
        for close in response._resource_closers:
            close()
        assert unsent(owner) == 0

    gc.disable()
    try:
        asyncio.run(work())
    finally:
        gc.enable()


# ------------------------------------------------------------ calls that wait


def waiting(person: Person, seconds: float = PATIENCE, *, waits: bool = True, request: int = 0) -> Context:
    ends = perf_counter() + seconds
    return Context(
        caller=person.caller, patience=ends, counts_answer=True, waits_for_room=waits, request_weight=request
    )


async def test_answers_to_waits_get_room_in_their_order(owner: Person, colleague: Person) -> None:
    contexts = [waiting(owner) for _ in range(3)]
    works = [asyncio.ensure_future(make_room(context, 60_000)) for context in contexts]
    other = waiting(colleague)
    assert await make_room(other, 60_000), "each owner has a share"
    for place, work in enumerate(works):
        assert await work
        await asyncio.sleep(0.1)
        assert [one.weight is not None for one in contexts] == [each == place for each in range(3)]
        contexts[place].release()
    other.release()
    assert unsent(owner) == 0


async def test_a_wait_for_room_ends_with_the_patience_of_its_call(owner: Person) -> None:
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    assert not await make_room(waiting(owner, 0.1), 60_000)
    with pytest.raises(RateLimited):
        await make_room(waiting(owner, waits=False), 60_000)
    holding.release()


async def test_a_wait_for_room_ends_when_its_caller_has_left(owner: Person) -> None:
    async def leave() -> None:
        """Return at once: the caller has left."""

    async def stay() -> None:
        await asyncio.Event().wait()

    holding = account.hold_body(owner.caller.owner_id, SHARE)
    context = waiting(owner, 0.1)
    context.departure = leave
    with pytest.raises(CallerLeft):
        await make_room(context, 60_000)
    context.departure = stay
    assert not await make_room(context, 60_000)
    holding.release()


async def test_a_wait_for_room_ends_when_the_process_goes_down(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    monkeypatch.setattr(readers, "draining", True)
    with pytest.raises(Unavailable):
        await make_room(waiting(owner), 60_000)
    holding.release()


def test_calls_with_large_requests_do_not_wait_for_each_other(owner: Person) -> None:
    """The account has each request until its call is answered, so that none of them would ever have room."""
    tasks = [sent(owner, message(LONG), ASYNC, return_immediately=True) for _ in range(2)]
    request = SHARE * 45 // 100

    async def call(task: types.Task) -> Any:
        holding, context = account.hold_body(owner.caller.owner_id, request), waiting(owner, request=request)
        wait = Wait(task_id=task.id, context_id=task.context_id, after=1, history_length=None, seconds=0.01)
        try:
            return await wait_on(wait, context)
        finally:
            holding.release()
            context.release()

    async def work() -> list[Any]:
        return await asyncio.gather(*(call(task) for task in tasks))

    assert [type(result) for result in asyncio.run(work())] == [Answer, Answer]
    assert unsent(owner) == 0


async def test_the_first_answer_of_an_owner_waits_for_answers_to_all_others(
    owner: Person, colleague: Person, settings: Any
) -> None:
    settings.A2A_BODIES_BYTES = SHARE
    holding = account.hold_body(colleague.caller.owner_id, SHARE)
    assert not await make_room(waiting(owner, 0.1), 60_000)
    with counting_request(waiting(colleague, request=SHARE)):
        context = waiting(owner)
        assert await make_room(context, 60_000), "what fills the account is the request of a call that waits"
    context.release()
    holding.release()
    assert unsent(owner) == 0


async def test_a_small_answer_waits_for_no_room(owner: Person) -> None:
    holding = account.hold_body(owner.caller.owner_id, SHARE)
    context = waiting(owner)
    assert await make_room(context, 1_000)
    assert context.weight is None
    holding.release()
