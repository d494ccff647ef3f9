"""The wire, as recorded: requests decode to these values; answers, events, errors, cards encode to this JSON.

To see what a version looks like, read its file; to change it on purpose, change the file.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from a2a import errors
from a2a.answers import Frame, Result
from a2a.card_choice import hybrid_card
from a2a.dialects import cards_0_3, cards_1_0, v0_2, v0_3, v1_0
from a2a.dialects.json import json_0_x, json_1_0
from a2a.dialects.json.json_1_0 import document, event_document, event_of, task_of
from a2a.documents import EventDocument, TaskDocument
from a2a.envelopes import Member, jsonrpc
from a2a.language import Dialect
from a2a.requests import Request
from tests.protocol.speaking import choose, neutral
from tests.wire import values, wishes

DIALECTS = {"v1_0": v1_0.DIALECT, "v0_3": v0_3.DIALECT, "v0_2": v0_2.DIALECT}
GOLDEN = {name: json.loads(Path(__file__).with_name(f"{name}.json").read_text(encoding="utf-8")) for name in DIALECTS}

REQUESTS: dict[str, dict[str, Request]] = {
    "v1_0": wishes.REQUESTS_1_0,
    "v0_3": wishes.REQUESTS_0_3,
    "v0_2": wishes.REQUESTS_0_2,
}

ANSWERS_0_X: dict[str, tuple[str, Result]] = {
    "message-send.response.task-completed": ("message/send", values.COMPLETED),
    "message-send.response.task-input-required": ("message/send", values.INPUT_REQUIRED),
    "message-send.response.message": ("message/send", values.REPLIED),
    "tasks-get.response": ("tasks/get", values.WORKING),
    "tasks-list.response": ("tasks/list", values.PAGE),
    "tasks-cancel.response": ("tasks/cancel", values.CANCELED),
    "push-set.response": ("tasks/pushNotificationConfig/set", values.WRITTEN_WEBHOOK),
    "push-get.response": ("tasks/pushNotificationConfig/get", values.READ_WEBHOOK),
    "push-list.response": ("tasks/pushNotificationConfig/list", values.WEBHOOKS),
    "push-delete.response": ("tasks/pushNotificationConfig/delete", None),
}
ANSWERS: dict[str, dict[str, tuple[str, Result]]] = {
    "v1_0": {
        "SendMessage.response.task-completed": ("SendMessage", values.COMPLETED),
        "SendMessage.response.task-input-required": ("SendMessage", values.INPUT_REQUIRED),
        "SendMessage.response.message": ("SendMessage", values.REPLIED),
        "GetTask.response": ("GetTask", values.WORKING),
        "GetTask.response.no-history": ("GetTask", values.NO_HISTORY),
        "ListTasks.response": ("ListTasks", values.PAGE),
        "ListTasks.response.empty": ("ListTasks", values.EMPTY_PAGE),
        "CancelTask.response": ("CancelTask", values.CANCELED),
        "GetExtendedAgentCard.response": ("GetExtendedAgentCard", values.EXTENDED_CARD),
        "CreateTaskPushNotificationConfig.response": ("CreateTaskPushNotificationConfig", values.WRITTEN_WEBHOOK),
        "GetTaskPushNotificationConfig.response": ("GetTaskPushNotificationConfig", values.READ_WEBHOOK),
        "ListTaskPushNotificationConfigs.response": ("ListTaskPushNotificationConfigs", values.WEBHOOKS),
        "DeleteTaskPushNotificationConfig.response": ("DeleteTaskPushNotificationConfig", None),
    },
    "v0_3": ANSWERS_0_X | {"extended-card.response": ("agent/getAuthenticatedExtendedCard", values.EXTENDED_CARD)},
    "v0_2": ANSWERS_0_X,
}

EVENTS_0_X: dict[str, tuple[Frame, ...]] = {
    "message-stream.events.completed": values.STREAM_COMPLETED,
    "message-stream.events.input-required": values.STREAM_INPUT_REQUIRED,
    "message-stream.events.message-only": values.STREAM_MESSAGE,
    "tasks-resubscribe.events": values.STREAM_RESUMED,
}
EVENTS: dict[str, dict[str, tuple[Frame, ...]]] = {
    "v1_0": {
        "SendStreamingMessage.events.completed": values.STREAM_COMPLETED,
        "SendStreamingMessage.events.input-required": values.STREAM_INPUT_REQUIRED,
        "SendStreamingMessage.events.message-only": values.STREAM_MESSAGE,
        "SubscribeToTask.events": values.STREAM_RESUMED,
    },
    "v0_3": EVENTS_0_X,
    "v0_2": EVENTS_0_X,
}

WEBHOOKS_0_X: dict[str, EventDocument] = {"push-webhook.body": values.COMPLETES_EVENT}
WEBHOOKS: dict[str, dict[str, EventDocument]] = {
    "v1_0": {
        "push-webhook.artifact-update.body": values.LAST_CHUNK,
        "push-webhook.status-update.body": values.COMPLETES_EVENT,
        "push-webhook.task.body": values.CREATES_EVENT,
    },
    "v0_3": WEBHOOKS_0_X,
    "v0_2": WEBHOOKS_0_X,
}

ERRORS: dict[str, dict[str, errors.Error]] = {
    "v1_0": values.ERRORS_1_0,
    "v0_3": values.ERRORS_0_3,
    "v0_2": values.ERRORS_0_X,
}

CARDS = {
    "v1_0": {"agent-card": cards_1_0.encode_card, "agent-card.hybrid": hybrid_card},
    "v0_3": {"agent-card": cards_0_3.encode_card},
    "v0_2": {"agent-card": v0_2.encode_card},
}

TABLES: dict[str, dict[str, dict[str, Any]]] = {
    "request": REQUESTS,
    "answer": ANSWERS,
    "events": EVENTS,
    "webhook": WEBHOOKS,
    "error": ERRORS,
    "card": CARDS,
}


def every(kind: str) -> pytest.MarkDecorator:
    names = [(version, name) for version, table in TABLES[kind].items() for name in table]
    return pytest.mark.parametrize(("version", "name"), names)


def golden(version: str, name: str) -> Any:
    return GOLDEN[version][name]["json"]


def plain(body: bytes | None) -> Any:
    assert body is not None
    return orjson.loads(body)


@pytest.mark.parametrize("version", DIALECTS)
def test_every_example_is_tested_as_what_it_is(version: str) -> None:
    kinds = {name: kind for kind, tables in TABLES.items() for name in tables[version]}
    assert kinds == {name: example["kind"] for name, example in GOLDEN[version].items()}


@pytest.mark.parametrize("version", DIALECTS)
def test_every_method_has_an_example(version: str) -> None:
    assert {golden(version, name)["method"] for name in REQUESTS[version]} == set(DIALECTS[version].methods)


@every("request")
@pytest.mark.requirement("SPARC-01")
def test_a_request_decodes_to_its_value(version: str, name: str) -> None:
    call = jsonrpc.parse(orjson.dumps(golden(version, name)))
    assert isinstance(call, Member)
    dialect, method = choose(call.method, DIALECTS[version].version)
    assert dialect is DIALECTS[version]
    assert method.decode(call.params) == REQUESTS[version][name]


@every("answer")
@pytest.mark.requirement("SPARC-01")
def test_an_answer_encodes_to_its_json(version: str, name: str) -> None:
    method, result = ANSWERS[version][name]
    body = DIALECTS[version].methods[method].encode(result)
    assert plain(jsonrpc.ENVELOPE.reply(golden(version, name)["id"], body)) == golden(version, name)


@every("events")
@pytest.mark.requirement("SPARC-01")
def test_events_encode_to_their_json(version: str, name: str) -> None:
    dialect, wire = DIALECTS[version], golden(version, name)
    bodies = [dialect.encode_frame(frame, None) for frame in EVENTS[version][name]]
    assert [plain(jsonrpc.ENVELOPE.reply(wire[0]["id"], body or b"")) for body in bodies] == wire


@every("events")
def test_a_stored_event_comes_back_as_it_was(version: str, name: str) -> None:
    for frame in EVENTS[version][name]:
        match frame:
            case TaskDocument():
                assert document(task_of(frame), frame.seq) == frame
            case EventDocument(task_id=task_id, context_id=context_id, seq=seq):
                event = event_of(frame)
                assert event_document(event, task_id=task_id, context_id=context_id, seq=seq) == frame


@every("webhook")
def test_the_body_of_a_delivery_encodes_to_its_json(version: str, name: str) -> None:
    body = DIALECTS[version].push.encode(WEBHOOKS[version][name], lambda: values.DONE)
    assert plain(body) == golden(version, name)


@every("error")
def test_an_error_encodes_to_its_json(version: str, name: str) -> None:
    wire = golden(version, name)
    assert plain(jsonrpc.failure(wire["id"], ERRORS[version][name], DIALECTS[version]).payload) == wire


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_envelope_errors_look_the_same_before_the_version_is_known(dialect: Dialect) -> None:
    for error in (errors.ParseError(), errors.InvalidRequest(), errors.MethodNotFound()):
        assert neutral(error) == dialect.error(error)


@every("card")
def test_a_card_encodes_to_its_json(version: str, name: str) -> None:
    assert plain(orjson.dumps(CARDS[version][name](values.CARD))) == golden(version, name)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_a_task_value_and_its_document_encode_alike(dialect: Dialect) -> None:
    stored = values.task(values.COMPLETES.status.state, artifacts=(values.SUMMARY,))
    encode_task = json_1_0.encode_task if dialect is v1_0.DIALECT else json_0_x.encode_task
    from_value = plain(orjson.dumps(encode_task(task_of(stored))))
    framed = plain(dialect.encode_frame(stored, None))
    assert from_value == framed.get("task", framed)
