"""Following in ACP: subscriptions, their notifications at a real receiver, and what they are signed with."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from standardwebhooks import Webhook as Verifier

from a2a.states import TaskState
from tasks_app.models import Task, Webhook
from tasks_app.webhooks import secret_of
from tests.conftest import Person
from tests.operations.rows import chunk, status
from tests.operations.webhooks import DONE, OPS, WORKS, happens, hook, pump, states, task
from tests.support.doors import StockDoor
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply, receiver

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("written_behind", "open"),
]
Json = dict[str, Any]
EVERY = ["STATUS_CHANGE", "NEW_MESSAGE", "NEW_ARTIFACT", "COMPLETED", "FAILED"]
SECRET = "whsec_" + "B" * 32


@pytest.fixture
def open(settings: Any) -> None:  # noqa: A001  # webhooks may lead to this machine, and calls need no TLS
    settings.A2A_OUTBOUND_LOOPBACK, settings.DEBUG = True, True


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as server:
        yield server


def post(wire: Any, key: str) -> Any:
    """Return the answer to a call; None for an empty body."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}

    async def go() -> tuple[int, bytes]:
        async with StockDoor().ask("POST", "/jsonrpc", json.dumps(wire).encode(), headers) as reply:
            return reply.status, b"".join([piece async for piece in reply.chunks])

    code, body = asyncio.run(go())
    assert code in {200, 204}, body
    return json.loads(body) if body else None


def call(person: Person, method: str, **params: Any) -> Json:
    answer: Json = post({"jsonrpc": "2.0", "id": "r", "method": method, "params": params}, person.key)
    return answer


def subscribe(person: Person, task_id: str, url: str, *events: str, **more: Any) -> Json:
    params = {"taskId": task_id, "callbackUrl": url} | ({"events": list(events)} if events else {}) | more
    answer = call(person, "tasks.subscribe", **params)
    assert answer["result"]["type"] == "subscription", answer
    subscription: Json = answer["result"]["subscription"]
    return subscription


def told(there: Receiver, path: str) -> list[tuple[str, Json]]:
    """Return event and data of each notification, in order, once each is a whole call without an id."""
    out = []
    for got in there.at(path):
        assert got.headers["content-type"] == "application/json"
        assert (got.json["jsonrpc"], got.json["method"], set(got.json)) == (
            "2.0",
            "task.notification",
            {"jsonrpc", "method", "params"},
        )
        params = got.json["params"]
        assert set(params) == {"taskId", "event", "timestamp", "data"}
        assert datetime.fromisoformat(params["timestamp"]).tzinfo
        out.append((params["event"], params["data"]))
    return out


@pytest.mark.requirement("ACP-06", "ACP-23")
def test_a_subscription_is_answered_in_its_wrapper(owner: Person) -> None:
    task_id, url = task(owner), "http://127.0.0.1:65001/hook"
    shown = subscribe(owner, task_id, url)
    webhook = Webhook.objects.get()
    assert shown == {
        "subscriptionId": webhook.name,
        "taskId": task_id,
        "callbackUrl": url,
        "events": ["STATUS_CHANGE", "COMPLETED", "FAILED"],
        "active": True,
        "createdAt": shown["createdAt"],
    }
    assert webhook.language == "acp"
    again = subscribe(owner, task_id, url, "NEW_ARTIFACT")
    assert again == shown | {"events": ["NEW_ARTIFACT"]}


@pytest.mark.requirement("ACP-06", "ACP-10")
def test_a_stranger_cannot_subscribe_and_learns_nothing(owner: Person, stranger: Person) -> None:
    task_id = task(owner)
    answers = [
        call(person, "tasks.subscribe", taskId=id, callbackUrl="http://127.0.0.1:65001/")["error"]
        for person, id in ((stranger, task_id), (stranger, "0" * 36), (owner, "0" * 36))
    ]
    assert {answer["code"] for answer in answers} == {-40001}
    assert not Webhook.objects.exists()


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "callbackUrl"),
        ({"callbackUrl": ""}, "callbackUrl"),
        ({"callbackUrl": "ftp://example.org/"}, "callbackUrl"),
        ({"callbackUrl": "http://u:p@127.0.0.1:65001/"}, "callbackUrl"),
        ({"callbackUrl": "x" * 3000}, "callbackUrl"),
        ({"callbackUrl": "http://127.0.0.1:65001/", "events": []}, "events"),
        ({"callbackUrl": "http://127.0.0.1:65001/", "events": ["DONE"]}, "events[0]"),
        ({"callbackUrl": "http://127.0.0.1:65001/", "events": "FAILED"}, "events"),
        ({"callbackUrl": "http://127.0.0.1:65001/", "secret": "short"}, "secret"),
    ],
)
@pytest.mark.requirement("ACP-11")
def test_a_wrong_subscription_is_refused_with_its_field(owner: Person, params: Json, field: str) -> None:
    error = call(owner, "tasks.subscribe", taskId=task(owner), **params)["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, f"params.{field}")
    assert not Webhook.objects.exists()


def test_a_task_has_ten_subscriptions_at_most(owner: Person) -> None:
    task_id = task(owner)
    for place in range(10):
        subscribe(owner, task_id, f"http://127.0.0.1:65001/{place}")
    error = call(owner, "tasks.subscribe", taskId=task_id, callbackUrl="http://127.0.0.1:65001/x")["error"]
    assert (error["code"], error["data"]["field"]) == (-32602, "params.callbackUrl")
    subscribe(owner, task_id, "http://127.0.0.1:65001/3", "FAILED")


@pytest.mark.requirement("ACP-08", "ACP-23")
def test_each_event_becomes_one_notification_that_the_filter_lets_pass(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    subscribe(owner, task_id, there.url + "/default")
    subscribe(owner, task_id, there.url + "/every", *EVERY)
    subscribe(owner, task_id, there.url + "/status", "STATUS_CHANGE")
    subscribe(owner, task_id, there.url + "/said", "NEW_MESSAGE")
    for version in ("1.0", "0.3"):
        hook(owner, task_id, f"{there.url}/{version}", version)
    happens(task_id, WORKS, status(TaskState.WORKING, "thinking"), chunk("one", append=False), chunk(" two"), DONE)
    pump()
    assert [event for event, _ in told(there, "/default")] == ["STATUS_CHANGE", "STATUS_CHANGE", "COMPLETED"]
    assert [event for event, _ in told(there, "/status")] == ["STATUS_CHANGE"] * 3
    every = told(there, "/every")
    assert [event for event, _ in every] == [
        "STATUS_CHANGE",
        "STATUS_CHANGE",
        "NEW_ARTIFACT",
        "NEW_ARTIFACT",
        "COMPLETED",
    ]
    (said,) = told(there, "/said")
    assert (said[0], said[1]["role"], said[1]["parts"]) == (
        "NEW_MESSAGE",
        "agent",
        [{"type": "TextPart", "content": "thinking"}],
    )
    working, _, first, second, end = (data for _, data in every)
    assert (working["taskId"], working["status"]) == (task_id, "WORKING")
    assert first["parts"] == [{"type": "TextPart", "content": "one"}]
    assert second["parts"] == [{"type": "TextPart", "content": " two"}]
    assert (first.get("metadata"), second["metadata"], first["artifactId"]) == (
        None,
        {"append": True},
        second["artifactId"],
    )
    # The end has the task as tasks.get shows it.
    assert end == call(owner, "tasks.get", taskId=task_id)["result"]["task"]
    assert end["artifacts"][0]["parts"] == [{"type": "TextPart", "content": "one two"}]
    times = [got.json["params"]["timestamp"] for got in there.at("/every")]
    assert len(set(times)) == 5, "receivers know a notification by task, event and time"
    # Those of A2A on the same task are as ever.
    assert [got.seq for got in there.at("/1.0")] == [2, 3, 4, 5, 6]
    assert there.at("/0.3")[-1].json["status"]["state"] == "completed"


def test_the_timestamps_of_events_of_one_instant_differ(owner: Person, there: Receiver, hand: Hand) -> None:
    task_id = task(owner)
    subscribe(owner, task_id, there.url, "NEW_ARTIFACT")
    happens(task_id, WORKS, *(chunk(str(place)) for place in range(20)))
    pump()
    times = [got.json["params"]["timestamp"] for got in there.got]
    assert (len(set(times)), sorted(times)) == (20, times)


@pytest.mark.requirement("ACP-23")
@pytest.mark.parametrize("own", [True, False], ids=["own secret", "secret of the server"])
def test_a_receiver_verifies_both_forms_of_the_signature(owner: Person, there: Receiver, own: bool) -> None:
    task_id = task(owner)
    subscribe(owner, task_id, there.url, **({"secret": SECRET} if own else {}))
    happens(task_id, DONE)
    pump()
    secret = SECRET if own else secret_of(Webhook.objects.get().pk, OPS)
    (got,) = there.got
    expected = hmac.new(secret.encode(), got.raw, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(bytes.fromhex(got.headers["x-acp-signature"]), bytes.fromhex(expected))
    assert got.headers["x-webhook-signature"] == f"sha256={expected}"
    assert Verifier(secret).verify(got.raw, dict(got.headers)) == got.json
    assert secret not in str(got)


@pytest.mark.requirement("ACP-23")
def test_a_notification_is_retried_with_its_id_and_in_order(owner: Person, there: Receiver, hand: Hand) -> None:
    task_id = task(owner)
    subscribe(owner, task_id, there.url)
    there.script = [Reply(503), Reply(500)]
    happens(task_id, WORKS, DONE)
    gaps = []
    for seconds in (0, 7, 37):
        hand.on(seconds=seconds)
        before = len(there.got)
        pump()
        gaps.append(len(there.got) - before)
    assert gaps == [1, 1, 2]
    assert [event for event, _ in told(there, "/")] == ["STATUS_CHANGE"] * 3 + ["COMPLETED"]
    ids = [got.headers["webhook-id"] for got in there.got]
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[0]
    assert len({got.raw for got in there.got[:3]}) == 1
    assert states() == [(2, "delivered", 3), (3, "delivered", 1)]


@pytest.mark.requirement("ACP-23")
def test_a_notification_that_is_refused_is_a_dead_letter(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    subscribe(owner, task_id, there.url)
    there.script = [Reply(400)]
    happens(task_id, WORKS, DONE)
    pump()
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]


@pytest.mark.requirement("ACP-23")
def test_failures_rejections_and_cancellations_have_their_events(owner: Person, there: Receiver) -> None:
    for state in (TaskState.FAILED, TaskState.REJECTED, TaskState.CANCELED, TaskState.INPUT_REQUIRED):
        task_id = task(owner)
        subscribe(owner, task_id, f"{there.url}/{state.value}")
        happens(task_id, status(state, "because"))
    pump()
    events = {got.path[1:]: (event, data["status"]) for got in there.got for event, data in told(there, got.path)}
    assert events == {
        "failed": ("FAILED", "FAILED"),
        "rejected": ("FAILED", "FAILED"),
        "canceled": ("STATUS_CHANGE", "CANCELED"),
        "input_required": ("STATUS_CHANGE", "INPUT_REQUIRED"),
    }


@pytest.mark.requirement("ACP-21")
def test_a_task_is_created_with_an_agent_and_a_priority(owner: Person) -> None:
    message = {"role": "user", "parts": [{"type": "TextPart", "content": "hello"}]}
    for priority, number in (("LOW", -3000), ("NORMAL", 0), ("HIGH", 3000), ("URGENT", 6000)):
        answer = call(owner, "tasks.create", initialMessage=message, assignTo="tries-twice", priority=priority)
        row = Task.objects.get(pk=answer["result"]["task"]["taskId"])
        assert (row.agent, row.priority) == ("tries-twice", number)
        assert answer["result"]["task"]["assignedAgent"] == "tries-twice"
    refusals = [
        call(owner, "tasks.create", initialMessage=message, **more)["error"]
        for more in ({"assignTo": "nobody"}, {"priority": "SOON"}, {"priority": 1}, {"assignTo": 1})
    ]
    assert [error["code"] for error in refusals] == [-40005, -32602, -32602, -32602]
    assert [error["data"].get("field") for error in refusals[1:]] == [
        "params.priority",
        "params.priority",
        "params.assignTo",
    ]
    assert Task.objects.count() == 4
