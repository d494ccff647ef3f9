"""The contract between the zones is the same over each carrier: one table of calls, four ways."""

import asyncio
import json
import threading
from typing import Any, NamedTuple
from uuid import uuid4

import msgspec
import orjson
import pytest
from kombu import Connection, Producer
from kombu import Queue as BrokerQueue

from a2a import errors
from a2a.client.bodies import MOST_VALUES
from a2a.failures import Failure, Retry
from tasks_app import models
from tasks_app.exchanges.recording import recorder
from tasks_app.zones import execution
from tasks_app.zones.agentcore import AgentCore
from tasks_app.zones.carriers import Carrier, NoAnswer
from tasks_app.zones.queue import CALLS, Queue, QueueDoor, Sealed, cipher_of
from tests.conftest import PATIENCE, Person, until
from tests.zones.carriers import ARN, PATH, SECRET, SIGNATURE, zone

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
KINDS = ("in-process", "https", "queue", "agentcore")
TOKEN = "xoxb-never-stored-anywhere"
PARAMS: dict[str, Any] = {"channel": "C1", "text": "hello", "bot_token": TOKEN, "correlation_id": "corr"}


class Vector(NamedTuple):
    """A body, and what its answer has."""

    body: bytes
    code: int | None = None
    """The code of the error; None for a result."""
    id: Any = "1"
    text: Any = ""
    """The text; ... for any."""
    status: str = "success"
    reason: str = ""
    """The reason of the error in a result."""


def wire(method: str = "execute_task", **more: Any) -> bytes:
    call = {"jsonrpc": "2.0", "id": "1", "method": method, "params": PARAMS} | more
    return json.dumps({name: value for name, value in call.items() if value is not ...}).encode()


def task(**params: Any) -> bytes:
    return wire(params=PARAMS | params)


VECTORS = {
    "a task": Vector(wire(), text="hello"),
    "a number as id": Vector(wire(id=7), id=7, text="hello"),
    "a long id": Vector(wire(id="é" * 500), id="é" * 500, text="hello"),
    "an agent that raises": Vector(task(agent="raises"), -32603),
    "an agent that is too slow": Vector(task(agent="sleeper"), -32001),
    "an agent that rejects": Vector(task(agent="rejects"), -32602),
    "an agent that is unknown": Vector(task(agent="nobody"), -38005),
    "an agent whose failures are results": Vector(
        task(agent="reports"), text="begun", status="error", reason="INVALID_AGENT_RESPONSE"
    ),
    "the same that is too slow": Vector(task(agent="reports-late"), text=..., status="error", reason="TIMEOUT"),
    "no id": Vector(wire(id=...), -32600, None),
    "no method": Vector(b'{"jsonrpc":"2.0","id":"1","params":{}}', -32600),
    "not JSON": Vector(b'{"jsonrpc', -32700, None),
    "an unknown method": Vector(wire("execute_nothing"), -32601),
    "no token": Vector(wire(params={"channel": "C1", "text": "hello"}), -32602),
    "a task that is unknown": Vector(wire("get_task", params={"task_id": "t"}), -38001),
}


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = settings.DEBUG = True


def carried(way: Carrier, body: bytes) -> Any:
    return orjson.loads(asyncio.run(way.carry(body)))


@pytest.mark.requirement("ZONE-01", "ZONE-02", "ZONE-05", "ZONE-06", "ZONE-07", "ZONE-10")
@pytest.mark.parametrize("kind", KINDS)
def test_each_call_is_answered_alike_over_each_carrier(
    owner: Person, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zone(kind, owner.key, monkeypatch) as open_carrier:
        for name, vector in VECTORS.items():
            answer = carried(open_carrier(owner.key), vector.body)
            assert (answer["jsonrpc"], answer["id"]) == ("2.0", vector.id), name
            if vector.code is None:
                assert answer.keys() == {"jsonrpc", "id", "result"}
                result = answer["result"]
                assert (result["status"], result["correlation_id"]) == (vector.status, "corr"), name
                assert result["response_text"] == vector.text or (vector.text is ... and result["response_text"])
                assert result.get("error", {}).get("data", {}).get("reason", "") == vector.reason, name
            else:
                assert answer.keys() == {"jsonrpc", "id", "error"}, name
                assert (answer["error"]["code"], bool(answer["error"]["message"])) == (vector.code, True), name
                assert TOKEN not in str(answer)


@pytest.mark.requirement("ZONE-11")
@pytest.mark.parametrize("kind", KINDS)
def test_a_task_is_accepted_and_polled_over_each_carrier(
    owner: Person, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zone(kind, owner.key, monkeypatch) as open_carrier:
        way = open_carrier(owner.key)
        key = f"once-{kind}-{uuid4()}"
        body = task(wait=False, idempotency_key=key, agent="form-coroutine")
        first, again = carried(way, body)["result"], carried(way, body)["result"]
        assert first["task_id"] == again["task_id"]
        result = first
        while result["status"] == "accepted":
            result = carried(way, wire("get_task", params={"task_id": first["task_id"]}))["result"]
        assert (result["status"], result["response_text"]) == ("success", "hello")
    assert models.Task.objects.count() == 1


@pytest.mark.requirement("ZONE-14")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "agentcore"])
def test_a_deployment_without_a_good_key_reaches_no_agent(
    owner: Person, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zone(kind, owner.key, monkeypatch) as open_carrier:
        answer = carried(open_carrier("nobody's"), wire())
    assert answer["error"]["code"] == -38009
    assert not models.Task.objects.exists()
    assert recorder.drain(PATIENCE)
    assert not models.ExchangeBody.objects.filter(request__contains="hello").exists()


def test_a_call_of_agentcore_is_signed_and_names_its_runtime(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[dict[str, str]] = []
    with zone("agentcore", owner.key, monkeypatch, log) as open_carrier:
        carried(open_carrier(""), wire())
    (headers,) = log
    assert headers["path"] == PATH
    assert SIGNATURE.fullmatch(headers["authorization"])
    assert len(headers["x-amzn-bedrock-agentcore-runtime-session-id"]) >= 33
    assert headers["content-type"] == "application/json"


def test_no_answer_of_aws_is_told_without_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(NoAnswer) as error:
        asyncio.run(AgentCore(ARN).carry(wire()))
    assert TOKEN not in str(error.value)


def test_a_message_under_another_secret_is_dropped(
    owner: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with zone("queue", owner.key, monkeypatch) as open_carrier:
        right = open_carrier(owner.key)
        assert isinstance(right, Queue)
        with monkeypatch.context() as patch:
            patch.setattr("tasks_app.zones.queue.PATIENCE", 0.6)
            with pytest.raises(NoAnswer):
                carried(Queue(right.url, "another secret", owner.key), wire())
        until(lambda: "sealed under another" in caplog.text, "it is dropped")
        assert carried(right, wire())["result"]["status"] == "success"
    assert TOKEN not in cipher_of("x").encrypt(wire()).decode()


@pytest.mark.parametrize("is_sealed", [False, True], ids=["not sealed", "without a place for its answer"])
def test_a_message_that_is_no_call_ends_no_door(
    owner: Person, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_sealed: bool
) -> None:
    body = cipher_of(SECRET).encrypt(msgspec.msgpack.encode(Sealed(wire(), owner.key))) if is_sealed else "hello"
    with zone("queue", owner.key, monkeypatch) as open_carrier:
        way = open_carrier(owner.key)
        assert isinstance(way, Queue)
        with Connection(way.url) as connection, connection.channel() as channel:
            Producer(channel).publish(body, routing_key=CALLS, declare=[BrokerQueue(CALLS)])
        assert carried(way, wire())["result"]["status"] == "success"
    assert "is dropped" in caplog.text
    assert models.Task.objects.count() == 1


# --------------------------------------------------------------- the caller


class Event(threading.Event):
    """An event that is set at the seventh wait, and notes how long each should last."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0)
        if len(self.waits) == 7:
            self.set()
        return self.is_set()


def test_a_broker_that_is_away_is_asked_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_: str) -> Connection:
        raise ConnectionError

    monkeypatch.setattr("tasks_app.zones.queue._connect", connect)
    door = QueueDoor("redis://nowhere", SECRET, asyncio.new_event_loop())
    door.stopping = Event()
    door.run()
    door.loop.close()
    assert door.stopping.waits == [0.5, 1, 2, 4, 5, 5, 5]


class Script:
    """A carrier that answers from a script. An exception is raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        self.bodies.append(body)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return orjson.dumps(answer)


def result(script: Script) -> Any:
    return asyncio.run(execution.call(script, "execute_task", PARAMS, "corr"))


RIGHT = {"jsonrpc": "2.0", "id": "corr", "result": {"status": "success", "response_text": "", "task_id": "t"}}


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "FIRST_PAUSE", 0.0)


@pytest.mark.usefixtures("no_pause")
@pytest.mark.parametrize(
    "wrong", [NoAnswer("gone"), [], {"jsonrpc": "2.0"}, RIGHT | {"id": "another"}, RIGHT | {"result": {"status": 1}}]
)
def test_a_call_without_an_answer_is_sent_again_as_it_was(wrong: Any) -> None:
    script = Script(wrong, RIGHT)
    assert result(script) == RIGHT["result"]
    assert len(set(script.bodies)) == 1
    assert len(script.bodies) == 2


@pytest.mark.usefixtures("no_pause")
def test_an_answer_of_very_many_values_is_not_parsed(caplog: pytest.LogCaptureFixture) -> None:
    values = orjson.Fragment(b"[" + b"[]," * MOST_VALUES + b"[]]")
    script = Script(RIGHT | {"more": values}, RIGHT)
    assert result(script) == RIGHT["result"]
    assert len(script.bodies) == 2
    assert f"the answer has more than {MOST_VALUES} JSON values" in caplog.text


@pytest.mark.usefixtures("no_pause")
def test_a_zone_that_never_answers_is_tried_later() -> None:
    with pytest.raises(Retry) as error:
        result(Script(*[NoAnswer("gone")] * execution.TRIES))
    assert error.value.reason == errors.Unavailable.reason


@pytest.mark.parametrize(
    ("reason", "kind"),
    [("RATE_LIMITED", Retry), ("UNAVAILABLE", Retry), ("TIMEOUT", Failure), ("UNAUTHENTICATED", Failure)],
)
def test_an_error_is_not_sent_again_at_once(reason: str, kind: type[Failure]) -> None:
    wrong = {"jsonrpc": "2.0", "id": "corr", "error": {"code": -1, "message": TOKEN, "data": {"reason": reason}}}
    script = Script(wrong)
    with pytest.raises(kind) as error:
        result(script)
    assert type(error.value) is kind
    assert TOKEN not in error.value.text
