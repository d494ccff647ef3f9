"""Secrets are redacted before an exchange is stored."""

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from django.forms.models import model_to_dict

from tasks_app.exchanges.redaction import MASK, OVERLAP, TEXT_BYTES, WINDOW, redact
from tasks_app.exchanges.responses import response_text
from tasks_app.models import AuditEntry, Usage
from tests.conftest import Person
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import Post, call, new, task_id

KEY = f"tdk_{'Hunter2' * 7}"
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.parametrize(
    "secret",
    [
        {"token": "hunter2"},
        {"Password": 'hun"ter2 hunter2'},
        {"api_key": ["hunter2", "x"]},
        {"credentials": "hunter2"},
        {"deep": [{"secret": "hunter2"}]},
        {"token": {"a": {"b": 1}, "c": "hunter2"}},
        {"note": "eyJhbGciOiJI.eyJzdWIiOiIx.hunter2-x"},
        {"note": "tdk_hunter2hunter2hunter2"},
        {"access_token": None, "client_secret": "hunter2"},
        {"secret": ["]", "hunter2"]},
        {"authorization": "Bearer hunter2"},
    ],
    ids=str,
)
def test_secrets_are_redacted_and_the_answer_is_still_shown(post: Post, secret: dict[str, Any]) -> None:
    wire = new(agent="form-coroutine", rpc_id="mine")
    wire["params"]["message"]["metadata"] = secret
    _, content = post(wire)
    assert task_id(content)
    (exchange,) = recorded(1)
    assert "hunter2" not in exchange.body.request
    json.loads(exchange.body.request)
    assert json.loads(response_text(exchange))["id"] == "mine"


def test_a_secret_that_is_masked_in_the_request_is_masked_in_the_answer(post: Post) -> None:
    for method, agent in (("SendMessage", "form-coroutine"), ("SendStreamingMessage", "form-generator")):
        wire = new(agent=agent, method=method)
        wire["params"]["message"]["parts"] += [
            {"text": "key tdk_hunter2hunter2hunter2"},
            {"data": {"password": "hunter2"}},
        ]
        post(wire)
    for exchange in recorded(2):
        assert "hunter2" not in exchange.body.request + response_text(exchange)
        assert "[redacted]" in response_text(exchange)


@pytest.mark.parametrize(
    ("wire", "headers"),
    [
        (call("GetTask", {"id": KEY}), {}),
        (call(KEY, {"id": "none"}), {}),
        (call("CancelTask", {"id": KEY}, KEY), {}),
        (call("GetTask", {"id": "none"}), {"X-Request-ID": KEY}),
        (call("GetTask", {"id": "none"}), {"A2A-Version": KEY}),
    ],
)
def test_no_column_of_an_exchange_has_a_key(post: Post, wire: dict[str, Any], headers: dict[str, str]) -> None:
    post(wire, **headers)
    (exchange,) = recorded(1)
    rows = (model_to_dict(exchange), *AuditEntry.objects.values(), exchange.body.request)
    assert KEY[:20] not in str(rows)


def test_an_id_is_recorded_whose_mask_is_longer_than_its_secret(post: Post) -> None:
    long = f"{'x' * 249}://a@b"
    wire = new(agent="form-coroutine", rpc_id=long)
    wire["params"]["message"]["contextId"] = long
    task = task_id(post(wire)[1])
    hook = f"{'x' * 240}?key=a&b=cdefgh"
    post(call("DeleteTaskPushNotificationConfig", {"taskId": task, "id": hook}))
    post(call("CancelTask", {"id": task}, long))
    masked = f"{'x' * 249}://[re"
    sending, removal, cancellation = recorded(3)
    assert (sending.rpc_id, sending.context_id, removal.outcome, cancellation.rpc_id) == (
        masked,
        masked,
        "result",
        masked,
    )
    entries = AuditEntry.objects.order_by("id").values_list("method", "outcome")
    assert [outcome for _, outcome in entries] == ["result", "result", "error"]


def test_the_usage_history_has_a_call_whose_mask_is_longer_than_its_secret(post: Post) -> None:
    long = f"{'x' * 249}://a@b"
    wire = {"channel": long, "correlation_id": long, "text": "hello", "bot_token": "xoxb-0123456789ab"}
    post(call("execute_task", wire))
    row = Usage.objects.get()
    assert row.channel == row.correlation_id == f"{'x' * 249}://[re"


@pytest.mark.parametrize(
    "body",
    [
        '{"metadata":{"password":"hunter2"},"metadata":{}}',
        '{"token":"hunter2","token":null}',
        '{"credentials"\n:\n"hunter2",}',
        '{"note":"https://me:hunter2@example.org/"}',
        '{"note":"https://me:p@hunter2@example.org/"}',
        '{"note":"https:\\/\\/hunter2@example.org"}',
        '{"url":"https://example.org/?X-Amz-Signature=hunter2"}',
        '{"url":"https://example.org/hook?a=1&access_token=hunter2#x"}',
        '{"url":"https://example.org/?sig=hunter2"}',
        '{"url":"https://example.org/?next=/there?my-token=hunter2?x&b=2"}',
    ],
)
def test_no_way_of_writing_keeps_a_secret(body: str) -> None:
    assert "hunter2" not in redact(body.encode())


@pytest.mark.parametrize(
    "secret",
    [
        '"password":"hunter2"',
        '"my_token":"hunter2"',
        '"x":"tdk_hunter2hunter2hunter2"',
        '"x":"sk-hunter2hunter2hunter2"',
        '"x":"ghp_hunter2hunter2hunter2hunter2hunter2"',
    ],
)
def test_a_secret_is_found_wherever_it_stands_in_a_large_body(secret: str) -> None:
    for place in range(WINDOW - len(secret) - OVERLAP, WINDOW + OVERLAP):
        body = f'{{"pageToken":1,"a":"{"x" * (place - 22)}",{secret},"b":"{"x" * WINDOW}"}}'
        assert "hunter2" not in redact(body.encode()), place


def test_a_body_that_is_too_deep_to_be_written_again_is_refused_and_recorded(post: Post) -> None:
    for depth in (300, 500, 900):
        _, content = post(b'{"token":"hunter2","deep":' + b"[" * depth + b"]" * depth + b"}")
        assert json.loads(content)["error"]["code"] == -32600
    for exchange in recorded(3):
        assert exchange.outcome == "refused"
        assert exchange.body.request.startswith('{"token": [redacted]')


def test_a_text_without_secrets_stays() -> None:
    for body in (
        '{"text":"mail me@example.org","n":123456789012345678901234567890,"x":1.10}',
        '{"url":"https://example.org/a@b?design=1&page=2"}',
    ):
        assert redact(body.encode()) == body


@pytest.fixture
def impatient() -> Iterator[None]:
    """Stop a test that would not end: nothing else interrupts a regular expression."""

    def stop(*_: Any) -> None:
        raise AssertionError("not within 30 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("text", ["eyJ" * 300_000, "{token " + "a_" * 400_000, "tdk_" * 200_000, "passwd" * 100_000])
def test_a_hostile_text_is_cleaned_in_one_pass(text: str) -> None:
    # A search that backtracks at each letter would take minutes.
    clean = MASK if text.startswith("tdk_") else text
    assert redact(text.encode()) == clean[:TEXT_BYTES]
    whole = json.loads(redact(json.dumps({"token": 1, "text": text}).encode()))
    assert whole == {"token": MASK, "text": clean}


def test_a_webhook_is_recorded_without_its_secrets(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    _, made = post(new(agent="asks"))
    config = {
        "taskId": task_id(made),
        "id": "mine",
        "url": "http://127.0.0.1:65001/",
        "token": "canary-token",
        "authentication": {"scheme": "Bearer", "credentials": "canary-credentials"},
    }
    _, content = post(call("CreateTaskPushNotificationConfig", config))
    assert b"canary-token" in content
    inline = {"taskPushNotificationConfig": {**config, "taskId": ""}}
    post(new(configuration=inline))
    for method in ("GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"):
        post(call(method, {"taskId": task_id(made), "id": "mine"}))
    found = recorded(5)
    assert [row.task_id for row in found[:2]] == [task_id(made)] * 2
    for row in found:
        assert "canary" not in row.body.request + row.body.response + response_text(row)
    assert json.loads(response_text(found[1]))["result"]["id"] == "mine"
    assert json.loads(response_text(found[4]))["result"] == {}


def test_a_page_token_is_no_secret_that_is_looked_for() -> None:
    body = b'{ "nextPageToken": "eyx", "next": {"page_token": 1} }'
    assert redact(b'{ "nextPageToken": "x" }') == '{ "nextPageToken": "x" }', "it was parsed"
    assert MASK not in redact(body)
    assert MASK in redact(b'{"nextPageToken": "x", "token": "y"}')
