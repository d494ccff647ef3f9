"""The two JSONs of 0.x over REST: one meaning, told apart by the call, answered in kind."""

import json
from typing import Any

import orjson
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from a2a.answers import Answer, Frame, Result
from a2a.dialects import cards_0_3, params_0_x, v0_3
from a2a.dialects.rest_0_x import KIND, PROTO, PROTO_CHANGES, form_of, wrap
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.requests import CancelTask, GetTask, ListTasks, SendMessage, StreamMessage, SubscribeToTask
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tests.wire import values

KINDLY: dict[str, Any] = {
    "message": {
        "kind": "message",
        "role": "user",
        "messageId": "m",
        "taskId": "t",
        "contextId": "c",
        "parts": [
            {"kind": "text", "text": "hi", "metadata": {"a_b": 1}},
            {"kind": "file", "file": {"uri": "https://example.org/a.pdf", "mimeType": "application/pdf", "name": "a"}},
            {"kind": "file", "file": {"bytes": "dGNr"}},
            {"kind": "data", "data": {"locale": "de"}},
        ],
        "metadata": {"x_y": 2},
        "extensions": ["https://example.org/e"],
    },
    "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 5, "blocking": True},
    "metadata": {"agent": "echo"},
}
PROTOLY: dict[str, Any] = {
    "message": {
        "role": "ROLE_USER",
        "messageId": "m",
        "taskId": "t",
        "contextId": "c",
        "content": [
            {"text": "hi", "metadata": {"a_b": 1}},
            {"file": {"fileWithUri": "https://example.org/a.pdf", "mimeType": "application/pdf", "name": "a"}},
            {"file": {"fileWithBytes": "dGNr"}},
            {"data": {"data": {"locale": "de"}}},
        ],
        "metadata": {"x_y": 2},
        "extensions": ["https://example.org/e"],
    },
    "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 5, "blocking": True},
    "metadata": {"agent": "echo"},
}
SNAKELY: dict[str, Any] = {
    # As a client that keeps the names of the protobuf writes it, under the older name of the message.
    "request": {
        "role": 1,
        "message_id": "m",
        "task_id": "t",
        "context_id": "c",
        "content": [
            {"text": "hi", "metadata": {"a_b": 1}},
            {"file": {"file_with_uri": "https://example.org/a.pdf", "mime_type": "application/pdf", "name": "a"}},
            {"file": {"file_with_bytes": "dGNr"}},
            {"data": {"data": {"locale": "de"}}},
        ],
        "metadata": {"x_y": 2},
        "extensions": ["https://example.org/e"],
    },
    "configuration": {"accepted_output_modes": ["text/plain"], "history_length": "5", "blocking": True},
    "metadata": {"agent": "echo"},
}


def proto_send(message: dict[str, Any] | None = None, **more: Any) -> SendMessage:
    said = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]} | (message or {})
    request = PROTO.methods["message/send"].decode({"message": said, **more})
    assert isinstance(request, SendMessage)
    return request


def fields(error: pytest.ExceptionInfo[InvalidParams]) -> list[str]:
    return [field for field, _ in error.value.violations]


# --------------------------------------------------------------------- choosing


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (KINDLY, "kind"),
        (PROTOLY, "proto"),
        (SNAKELY, "proto"),
        ({}, "proto"),
        ([], "proto"),
        (None, "proto"),
        ({"message": {"role": "user"}}, "kind"),
        ({"message": {}}, "kind"),
        ({"message": {"role": 1}}, "kind"),
        ({"message": {"role": "ROLE_USER", "parts": []}}, "proto"),
        ({"message": {"content": []}}, "proto"),
        ({"message": "hi"}, "proto"),
        ({"name": "tasks/t"}, "proto"),
        ({"config": {"url": "x"}}, "kind"),
        ({"config": {"pushNotificationConfig": {}}}, "proto"),
        ({"name": "x", "pushNotificationConfig": {}}, "proto"),
    ],
    ids=str,
)
def test_a_body_tells_its_dialect(body: Any, name: str) -> None:
    assert form_of(body).name == f"a2a-0.3-{name}"


# ----------------------------------------------------------------------- sends


def test_the_same_send_is_the_same_request_in_every_json() -> None:
    before = json.dumps([KINDLY, PROTOLY, SNAKELY])
    request = KIND.methods["message/send"].decode(KINDLY)
    assert request == v0_3.DIALECT.methods["message/send"].decode(KINDLY)
    assert PROTO.methods["message/send"].decode(PROTOLY) == request
    assert PROTO.methods["message/send"].decode(SNAKELY) == request
    assert isinstance(PROTO.methods["message/stream"].decode(PROTOLY), StreamMessage)
    assert json.dumps([KINDLY, PROTOLY, SNAKELY]) == before, "what came in is changed"


def test_defaults_that_protobuf_leaves_out_are_what_they_are() -> None:
    assert not proto_send().return_immediately
    assert proto_send(configuration={}).return_immediately
    assert proto_send(configuration={"blocking": None}).return_immediately
    assert proto_send(configuration={"blocking": False}).return_immediately
    assert not proto_send(configuration={"blocking": True}).return_immediately
    assert proto_send(configuration={"historyLength": 0}).history_length is None
    for nothing in ("0", 0.0, "0.0", "0e0"):
        assert proto_send(configuration={"historyLength": nothing}).history_length is None
    assert proto_send(configuration={"historyLength": "3e0"}).history_length == 3
    assert proto_send(configuration={"historyLength": 3}).history_length == 3


@pytest.mark.parametrize("name", ["pushNotification", "push_notification", "pushNotificationConfig"])
def test_a_webhook_of_a_send_is_seen_under_every_name(name: str) -> None:
    seen = proto_send(configuration={name: {"url": "https://example.org"}})
    config = {"configuration": {"pushNotificationConfig": {"url": "https://example.org"}}}
    same = params_0_x.decode_send(SendMessage, KINDLY | config).push_config
    assert same
    # An error about the address has the field name of this JSON.
    assert seen.push_config == replace(same, path="configuration.pushNotification.url")


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"content": ...}, "message.content"),
        ({"content": []}, "message.content"),
        ({"content": "hi"}, "message.content"),
        ({"content": ["hi"]}, "message.content[0]"),
        ({"content": [{"text": "a"}, {}]}, "message.content[1]"),
        ({"content": [{"text": "a", "data": {"data": {}}}]}, "message.content[0]"),
        ({"content": [{"text": 5}]}, "message.content[0].text"),
        ({"content": [{"data": {"a": 1}}]}, "message.content[0].data.data"),
        ({"content": [{"data": {"data": [1]}}]}, "message.content[0].data"),
        ({"content": [{"data": 5}]}, "message.content[0].data"),
        ({"content": [{"file": {}}]}, "message.content[0].file"),
        ({"content": [{"file": {"fileWithBytes": "?"}}]}, "message.content[0].file.fileWithBytes"),
        ({"content": [{"file": {"fileWithUri": 5}}]}, "message.content[0].file.fileWithUri"),
        ({"role": "user"}, "message.role"),
        ({"role": "ROLE_UNSPECIFIED"}, "message.role"),
        ({"role": 7}, "message.role"),
        ({"role": True}, "message.role"),
        ({"role": []}, "message.role"),
        ({"role": ...}, "message.role"),
        ({"messageId": ""}, "message.messageId"),
        ({"metadata": [1]}, "message.metadata"),
    ],
    ids=str,
)
def test_a_wrong_field_is_named_as_it_was_sent(message: dict[str, Any], field: str) -> None:
    wire = {"messageId": "m", "role": "ROLE_USER", "content": [{"text": "hi"}]} | message
    with pytest.raises(InvalidParams) as told:
        PROTO.methods["message/send"].decode({"message": {k: v for k, v in wire.items() if v is not ...}})
    assert [place.replace("message.parts", "message.content") for place in fields(told)] == [field]
    assert "parts" not in str(told.value.violations)


@pytest.mark.parametrize("value", [5, "x", [], None, {"blocking": 1}, {"historyLength": "x"}, {"historyLength": -1}])
def test_a_bad_configuration_is_refused_as_in_the_other_json(value: Any) -> None:
    if value is None:
        assert not proto_send(configuration=None).return_immediately
        return
    with pytest.raises(InvalidParams) as told:
        proto_send(configuration=value)
    assert fields(told)[0].startswith("configuration")


def test_an_empty_data_part_is_an_empty_object() -> None:
    assert [part.data for part in proto_send({"content": [{"data": {}}, {"data": {"data": {}}}]}).message.parts] == [
        {},
        {},
    ]


# ------------------------------------------------------------------- all others


def test_calls_without_a_body_decode_in_both() -> None:
    for dialect in (KIND, PROTO):
        decode = {name: method.decode for name, method in dialect.methods.items()}
        assert decode["tasks/get"]({"id": "t", "historyLength": 0}) == GetTask(id="t", history_length=0)
        assert decode["tasks/cancel"]({"id": "t", "name": "tasks/t"}) == CancelTask(id="t")
        assert decode["tasks/cancel"]({"id": "t", "metadata": {"a": 1}}) == CancelTask(id="t", metadata={"a": 1})
        assert decode["tasks/resubscribe"]({"id": "t"}) == SubscribeToTask(id="t", closes=True)
        for state in ("canceled", "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"):
            assert decode["tasks/list"]({"status": state}) == ListTasks(state=TaskState.CANCELED)
        assert decode["tasks/list"]({"status": "TASK_STATE_UNSPECIFIED"}) == ListTasks()
        with pytest.raises(InvalidParams) as told:
            decode["tasks/cancel"]({"id": "t", "name": "tasks/u"})
        assert fields(told) == ["name"]
        with pytest.raises(InvalidParams) as told:
            decode["tasks/list"]({"status": "TASK_STATE_NONSENSE"})
        assert fields(told) == ["status"]


CONFIG = {"id": "c", "url": "https://example.org/hook"}
CONFIGS = "pushNotificationConfigs"


@pytest.mark.parametrize(
    "body",
    [
        {"parent": "tasks/t", "configId": "c", "config": {"name": "x", "pushNotificationConfig": CONFIG}},
        {"parent": "tasks/t", "config_id": "c", "config": {"name": "x", "push_notification_config": CONFIG}},
        {"configId": "c", "config": {"pushNotificationConfig": {"url": CONFIG["url"]}}},
        {"name": f"tasks/t/{CONFIGS}/c", "pushNotificationConfig": CONFIG},
        {"configId": "c", "name": "", "pushNotificationConfig": {"url": CONFIG["url"]}},
        {"parent": "tasks/t", "name": f"tasks/t/{CONFIGS}/c", "pushNotificationConfig": {"url": CONFIG["url"]}},
        {"config": CONFIG},
    ],
    ids=",".join,
)
def test_a_webhook_may_be_told_in_every_shape_in_use(body: dict[str, Any]) -> None:
    before, _ = PROTO_CHANGES["tasks/pushNotificationConfig/set"]
    assert before({"id": "t", **body}) == {"taskId": "t", "pushNotificationConfig": CONFIG}
    with pytest.raises(InvalidParams) as told:
        before({"id": "t", **body, "parent": "tasks/u"})
    assert fields(told) == ["parent"]


def test_webhooks_are_answered_in_both_jsons() -> None:
    wire = {"taskId": "t", "pushNotificationConfig": CONFIG}
    named = {"name": f"tasks/t/{CONFIGS}/c", "pushNotificationConfig": CONFIG}

    def answer(name: str, result: Any) -> Any:
        method = Method(request=GetTask, decode=lambda params: GetTask(id="t"), encode=orjson.dumps)
        return orjson.loads(wrap(method, *PROTO_CHANGES[f"tasks/pushNotificationConfig/{name}"]).encode(result))

    assert answer("set", wire) == answer("get", wire) == named
    assert answer("list", [wire]) == {"configs": [named]}
    assert answer("list", []) == {"configs": []}
    assert answer("delete", None) == {}


# ---------------------------------------------------------------------- answers


def encoded(name: str, result: Result, *, proto: bool = True) -> Any:
    return orjson.loads((PROTO if proto else KIND).methods[name].encode(result))


STATUS = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-03-02T09:15:05.250Z"}
TASK = {
    "id": values.TASK,
    "contextId": values.CONTEXT,
    "status": STATUS,
    "artifacts": [
        {
            "artifactId": values.ARTIFACT,
            "name": "summary",
            "description": "Invoice summary",
            "parts": [{"text": "Total due: 42.00 EUR"}, {"data": {"data": {"total": 42, "currency": "EUR"}}}],
        }
    ],
    "history": [
        {
            "messageId": values.FIRST,
            "role": "ROLE_USER",
            "content": [{"text": "Summarise the attached invoice."}],
            "contextId": values.CONTEXT,
            "taskId": values.TASK,
        }
    ],
}


def test_a_task_in_the_json_of_the_protobuf() -> None:
    assert encoded("tasks/get", values.COMPLETED) == TASK
    assert encoded("message/send", values.COMPLETED) == {"task": TASK}
    assert encoded("tasks/cancel", values.CANCELED)["status"]["state"] == "TASK_STATE_CANCELLED"
    asked = encoded("message/send", values.INPUT_REQUIRED)["task"]["status"]
    assert asked["message"]["content"] == [{"text": "Which currency should the total use?"}]
    assert encoded("tasks/list", values.PAGE)["tasks"][0]["status"]["state"] == "TASK_STATE_WORKING"
    assert encoded("tasks/list", values.EMPTY_PAGE) == {"tasks": [], "nextCursor": "", "totalSize": 0}


def test_a_message_in_protobuf_json_has_only_members_that_it_knows() -> None:
    parts = (
        Part(raw=b"tck", filename="a.txt", media_type="text/plain", metadata={"a": 1}),
        Part(url="https://example.org"),
        Part(data=[1, None]),
    )
    said = Message(message_id="m", role=Role.AGENT, parts=parts, context_id="c", reference_task_ids=("t",))
    assert encoded("message/send", Answer(message=said)) == {
        "message": {
            "messageId": "m",
            "role": "ROLE_AGENT",
            "contextId": "c",
            "content": [
                {
                    "file": {"fileWithBytes": "dGNr", "name": "a.txt", "mimeType": "text/plain"},
                    "metadata": {"a": 1},
                },
                {"file": {"fileWithUri": "https://example.org"}},
                {"data": {"data": {"value": [1, None]}}, "metadata": {"data_part_compat": True}},
            ],
        }
    }


def test_the_result_of_a_send_is_wrapped_in_both_jsons() -> None:
    bare = orjson.loads(v0_3.encode_answer(values.COMPLETED))
    assert encoded("message/send", values.COMPLETED, proto=False) == {"task": bare}
    assert encoded("tasks/get", values.COMPLETED, proto=False) == bare
    said = orjson.loads(v0_3.encode_answer(values.REPLIED))
    assert encoded("message/send", values.REPLIED, proto=False) == {"message": said}


@pytest.mark.parametrize(
    ("frames", "names"),
    [
        (values.STREAM_COMPLETED, ["task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"]),
        (values.STREAM_INPUT_REQUIRED, ["task", "statusUpdate"]),
        (values.STREAM_MESSAGE, ["message"]),
    ],
)
def test_events_of_a_stream_are_wrapped_in_both_jsons(frames: tuple[Frame, ...], names: list[str]) -> None:
    kindly = [orjson.loads(KIND.encode_frame(frame, None) or b"") for frame in frames]
    protoly = [orjson.loads(PROTO.encode_frame(frame, None) or b"") for frame in frames]
    assert [name for event in kindly for name in event] == names == [name for event in protoly for name in event]
    for frame, event in zip(frames, kindly, strict=True):
        (inner,) = event.values()
        assert inner == orjson.loads(v0_3.encode_frame(frame, None) or b"")
    assert "kind" not in json.dumps(protoly)


def test_the_last_event_is_final_and_what_is_false_is_left_out() -> None:
    *_, works, one, two, ends = [
        orjson.loads(PROTO.encode_frame(frame, None) or b"") for frame in values.STREAM_COMPLETED
    ]
    assert "final" not in works["statusUpdate"]
    assert ends["statusUpdate"] == {
        "taskId": values.TASK,
        "contextId": values.CONTEXT,
        "status": STATUS,
        "final": True,
    }
    assert set(one["artifactUpdate"]) == {"taskId", "contextId", "artifact"}
    assert (two["artifactUpdate"]["append"], two["artifactUpdate"]["lastChunk"]) == (True, True)


def test_a_card_can_be_read_as_json_and_as_protobuf_and_is_not_signed() -> None:
    _, after = PROTO_CHANGES["agent/getAuthenticatedExtendedCard"]
    card = cards_0_3.encode_card(values.CARD)
    shown = after(card | {"signatures": [{"protected": "x", "signature": "y"}]})
    assert {name: value for name, value in shown.items() if name != "securitySchemes"} == {
        name: value for name, value in card.items() if name != "securitySchemes"
    }
    assert shown["securitySchemes"] == {
        "bearer": {"type": "http", "scheme": "Bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}},
        "key": {
            "type": "apiKey",
            "in": "header",
            "name": "X-API-Key",
            "description": "The same key",
            "apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"},
        },
    }
    assert after({"name": "bare"}) == {"name": "bare"}


def test_the_extended_card_needs_no_params() -> None:
    for dialect in (KIND, PROTO):
        method = dialect.methods["agent/getAuthenticatedExtendedCard"]
        assert method.decode({}) == v0_3.DIALECT.methods["agent/getAuthenticatedExtendedCard"].decode(UNSET)
