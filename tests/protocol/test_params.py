"""Params: what is taken leniently, what is refused, and the field that a refusal names."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import UNSET

from a2a.dialects import v0_3, v1_0
from a2a.errors import InvalidParams
from a2a.params import read_base64, read_time, read_whole, write_base64, write_time
from a2a.requests import (
    CancelTask,
    GetExtendedCard,
    GetTask,
    ListTasks,
    Request,
    SendMessage,
    SubscribeToTask,
)
from a2a.states import TaskState
from a2a.types import Part, Role

Json = dict[str, Any]
NEW = {name: method.decode for name, method in v1_0.DIALECT.methods.items()}
OLD = {name: method.decode for name, method in v0_3.DIALECT.methods.items()}


def new(message: Json | None = None, **params: Any) -> Any:
    base = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    return NEW["SendMessage"]({"message": base | (message or {}), **params})


def old(message: Json | None = None, **params: Any) -> Any:
    base = {"messageId": "m", "role": "user", "parts": [{"text": "hi"}]}
    return OLD["message/send"]({"message": base | (message or {}), **params})


def new_part(part: Json) -> Part:
    return new({"parts": [part]}).message.parts[0]  # type: ignore[no-any-return]


def old_part(part: Json) -> Part:
    return old({"parts": [part]}).message.parts[0]  # type: ignore[no-any-return]


def field(call: Callable[[], Any]) -> str:
    with pytest.raises(InvalidParams) as caught:
        call()
    [(name, description)] = caught.value.violations
    assert description
    return name


def test_1_0_takes_snake_case_as_well() -> None:
    snake = {
        "message": {
            "message_id": "m",
            "role": "ROLE_USER",
            "context_id": "c",
            "task_id": "t",
            "reference_task_ids": ["r"],
            "metadata": {"my_key": 1},
            "parts": [{"data": {"my_key": 1}, "media_type": "application/json"}],
        },
        "configuration": {"history_length": 2, "return_immediately": True, "accepted_output_modes": ["a/b"]},
    }
    request = NEW["SendMessage"](snake)
    assert isinstance(request, SendMessage)
    assert (request.history_length, request.return_immediately) == (2, True)
    assert request.accepted_output_modes == ("a/b",)
    message = request.message
    assert (message.message_id, message.context_id, message.task_id) == ("m", "c", "t")
    assert message.reference_task_ids == ("r",)
    assert message.parts == (Part(data={"my_key": 1}, media_type="application/json"),)
    assert message.metadata == {"my_key": 1}


def test_1_0_takes_snake_case_in_the_other_methods() -> None:
    listed = NEW["ListTasks"]({"page_size": 3, "page_token": "p", "include_artifacts": True, "context_id": "c"})
    assert listed == ListTasks(page_size=3, page_token="p", include_artifacts=True, context_id="c")
    assert NEW["GetTask"]({"id": "t", "history_length": 1}) == GetTask(id="t", history_length=1)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "SUBMITTED"),
        (2, "WORKING"),
        (3, "COMPLETED"),
        (4, "FAILED"),
        (5, "CANCELED"),
        (6, "INPUT_REQUIRED"),
        (7, "REJECTED"),
        (8, "AUTH_REQUIRED"),
    ],
)
def test_1_0_takes_the_number_of_a_state(number: int, name: str) -> None:
    by_name = NEW["ListTasks"]({"status": f"TASK_STATE_{name}"})
    assert NEW["ListTasks"]({"status": number}) == by_name == ListTasks(state=TaskState[name])


@pytest.mark.parametrize("status", [None, 0, "TASK_STATE_UNSPECIFIED"], ids=repr)
def test_1_0_lists_every_state_if_none_is_specified(status: object) -> None:
    assert NEW["ListTasks"]({"status": status}) == ListTasks()


@pytest.mark.parametrize("status", ["working", "TASK_STATE_CANCELLED", "", 9, -1, 2**63, True, 1.0], ids=repr)
def test_1_0_refuses_other_states(status: object) -> None:
    assert field(lambda: NEW["ListTasks"]({"status": status})) == "status"


def test_1_0_takes_the_number_of_a_role() -> None:
    assert new({"role": 1}).message.role is Role.USER
    assert new({"role": 2}).message.role is Role.AGENT


@pytest.mark.parametrize("send", [new, old])
def test_a_message_has_a_thousand_parts_at_most(send: Callable[[Json], Any]) -> None:
    part = {"text": "hi"}
    assert len(send({"parts": [part] * 1_000}).message.parts) == 1_000
    assert field(lambda: send({"parts": [part] * 1_001})) == "message.parts"


@pytest.mark.parametrize("role", ["user", "ROLE_UNSPECIFIED", "", 0, 3, 2**70], ids=repr)
def test_1_0_refuses_other_roles(role: object) -> None:
    assert field(lambda: new({"role": role})) == "message.role"


@pytest.mark.parametrize("length", [3, 3.0, "3", "03", "3.0", "3e0", "30e-1", "0.3E+1"], ids=repr)
def test_1_0_takes_an_integer_however_protojson_writes_it(length: object) -> None:
    assert NEW["GetTask"]({"id": "t", "historyLength": length}) == GetTask(id="t", history_length=3)


@pytest.mark.parametrize(
    "length", ["", "3.5", "1e-1", "+3", " 3", "0x3", "3e", "inf", "\u0663", "9" * 41, "3\n"], ids=repr
)
def test_1_0_refuses_other_strings_as_numbers(length: str) -> None:
    assert field(lambda: NEW["GetTask"]({"id": "t", "historyLength": length})) == "historyLength"


@pytest.mark.parametrize("length", [2**31, 2.0**31, "2147483648", "1e10", "1e999", 1e300, 10**18], ids=repr)
@pytest.mark.parametrize("decode", [NEW["GetTask"], OLD["tasks/get"]], ids=["1.0", "0.3"])
def test_a_number_beyond_int32_is_refused(decode: Callable[[Any], Any], length: object) -> None:
    assert field(lambda: decode({"id": "t", "historyLength": length})) == "historyLength"


def test_the_largest_int32_is_taken() -> None:
    assert NEW["GetTask"]({"id": "t", "historyLength": 2**31 - 1}).history_length == 2**31 - 1
    assert OLD["tasks/get"]({"id": "t", "historyLength": 2147483647.0}).history_length == 2**31 - 1


def test_whole_says_the_bounds() -> None:
    for low in (-1, "-1", -1.0):
        with pytest.raises(InvalidParams) as caught:
            read_whole(low, "historyLength")
        assert caught.value.violations[0][1].startswith("must be at least 0, not -1")
    for value in (0, 101, "101", 10**17):
        with pytest.raises(InvalidParams) as caught:
            read_whole(value, "pageSize", 1, 100)
        assert caught.value.violations[0][1].startswith("must be from 1 to 100, not ")


@pytest.mark.parametrize(("decode", "name"), [(NEW["ListTasks"], "pageSize"), (OLD["tasks/list"], "limit")])
def test_the_size_of_a_page_has_bounds(decode: Callable[[Any], Any], name: str) -> None:
    assert [decode({name: size}).page_size for size in (1, 50, 100, 2.0)] == [1, 50, 100, 2]
    assert decode({}).page_size == decode({name: None}).page_size == 50
    sizes: list[object] = [0, -1, 101, 2**63, 1.5, True, [], {}]
    for size in sizes:
        assert field(lambda size=size: decode({name: size})) == name  # type: ignore[misc]


@pytest.mark.parametrize("decode", [NEW["ListTasks"], OLD["tasks/list"]], ids=["1.0", "0.3"])
def test_a_list_without_params_is_the_first_page(decode: Callable[[Any], Any]) -> None:
    assert decode(UNSET) == decode(None) == decode({}) == ListTasks()


def test_null_is_absent() -> None:
    nothing = {
        "contextId": None,
        "taskId": None,
        "metadata": None,
        "extensions": None,
        "referenceTaskIds": None,
    }
    assert new(nothing, configuration=None, metadata=None, tenant=None) == new()
    assert old(nothing | {"kind": None}, configuration=None, metadata=None) == old()
    settings = {"historyLength": None, "returnImmediately": None, "acceptedOutputModes": None}
    assert new(configuration=settings) == new()
    assert old(configuration={"historyLength": None, "blocking": None, "acceptedOutputModes": None}) == old()
    assert NEW["GetTask"]({"id": "t", "historyLength": None}) == GetTask(id="t")


def test_null_is_absent_in_a_part_but_for_1_0_data() -> None:
    nothing = {"url": None, "raw": None, "filename": None, "mediaType": None, "metadata": None}
    assert new_part({"text": "hi"} | nothing) == Part(text="hi")
    assert new_part({"data": None}) == Part(data=None)
    assert new_part({"data": None} | nothing) == Part(data=None)
    assert field(lambda: new_part({"text": "hi", "data": None})) == "message.parts[0]"
    assert old_part({"kind": None, "text": "hi", "file": None, "data": None}) == Part(text="hi")
    assert field(lambda: old_part({"kind": "data", "data": None})) == "message.parts[0]"


@pytest.mark.parametrize("value", [1, "two", True, [1, None], {}, {"a": {"b": []}}, 0, "", 1.5], ids=repr)
def test_1_0_data_is_any_value(value: object) -> None:
    assert new_part({"data": value}) == Part(data=value)


def test_empty_text_is_text() -> None:
    assert new_part({"text": ""}) == old_part({"text": ""}) == Part(text="")


BASE64 = {
    "padded": ("_w==".replace("_", "/"), b"\xff"),
    "unpadded": ("/w", b"\xff"),
    "URL-safe": ("-_-_", b"\xfb\xff\xbf"),
    "standard": ("+/+/", b"\xfb\xff\xbf"),
    "empty": ("", b""),
    "two short": ("YQ", b"a"),
    "one short": ("YWI", b"ab"),
    "whole": ("YWJj", b"abc"),
}


@pytest.mark.parametrize(("text", "content"), BASE64.values(), ids=BASE64)
def test_every_kind_of_base64_is_read(text: str, content: bytes) -> None:
    assert read_base64(text, "raw") == content
    assert new_part({"raw": text}).raw == content
    assert old_part({"file": {"bytes": text}}).raw == content
    assert read_base64(write_base64(content), "raw") == content


@pytest.mark.parametrize("text", ["A", "AAAAA", "YW Jj", "YWJj\n", "YQ==YQ==", "\u00e9", "****", "data:,a"])
def test_a_text_that_is_no_base64_is_refused(text: str) -> None:
    assert field(lambda: new_part({"raw": text})) == "message.parts[0].raw"
    assert field(lambda: old_part({"file": {"bytes": text}})) == "message.parts[0].file.bytes"


@pytest.mark.parametrize("digits", range(10))
def test_a_time_may_have_0_to_9_digits_of_a_second(digits: int) -> None:
    fraction = "." + "123456789"[:digits] if digits else ""
    time = read_time(f"2026-03-02T09:15:05{fraction}Z", "since")
    micro = int("123456789"[: min(digits, 6)].ljust(6, "0"))
    micro = 0 if digits == 0 else micro
    assert time == datetime(2026, 3, 2, 9, 15, 5, micro, tzinfo=UTC)


def test_a_time_is_turned_into_utc() -> None:
    assert read_time("2026-03-02T10:15:05+01:00", "since") == datetime(2026, 3, 2, 9, 15, 5, tzinfo=UTC)
    assert read_time("2026-03-02t09:15:05z", "since") == datetime(2026, 3, 2, 9, 15, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        *("", "now", "2026-03-02", "2026-03-02T09:15:05", "2026-13-02T09:15:05Z", "2026-03-02T25:00:00Z"),
        *(
            "0001-01-01T00:00:00+23:59",
            "9999-12-31T23:59:59-23:59",
            "1772442905",
            "\u0662026-03-02T09:15:05Z",
        ),
        *("2026-W10-1T00:00:00Z", "2026-03-02T09:15:05.1234567890Z", "20260302T091505Z", "2026-03-02T09:15Z"),
        *("2026-03-02T09:15:05+0100", "2026-03-02T09:15:05+01:00:30"),
    ],
)
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    assert field(lambda: NEW["ListTasks"]({"statusTimestampAfter": text})) == "statusTimestampAfter"


def test_a_time_is_sent_with_milliseconds_and_z() -> None:
    assert write_time(datetime(2026, 3, 2, 9, 15, 5, 250_999, tzinfo=UTC)) == "2026-03-02T09:15:05.250Z"
    assert write_time(datetime(2026, 3, 2, 9, 15, 5, tzinfo=UTC)) == "2026-03-02T09:15:05.000Z"


WITH_A_TASK = [
    ("GetTask", "tasks/get", GetTask(id="t")),
    ("CancelTask", "tasks/cancel", CancelTask(id="t")),
    ("SubscribeToTask", "tasks/resubscribe", SubscribeToTask(id="t")),
]


@pytest.mark.parametrize(("now", "then", "request_"), WITH_A_TASK)
def test_a_task_is_named_by_its_id(now: str, then: str, request_: Request) -> None:
    assert NEW[now]({"id": "t"}) == request_
    assert type(OLD[then]({"id": "t"})) is type(request_)
    assert OLD[then]({"id": "t"}) == OLD[then]({"taskId": "t"}) == OLD[then]({"id": None, "taskId": "t"})
    for params in ({}, {"id": ""}, {"id": None}, {"id": 1}, {"id": ["t"]}):
        assert field(lambda params=params: NEW[now](params)) == "id"  # type: ignore[misc]
        assert field(lambda params=params: OLD[then](params)) == "id"  # type: ignore[misc]
    assert field(lambda: OLD[then]({"taskId": 1})) == "taskId"


def test_0_3_resubscribes_to_ended_tasks_too() -> None:
    assert OLD["tasks/resubscribe"]({"id": "t"}) == SubscribeToTask(id="t", closes=True)


@pytest.mark.parametrize("method", ["GetTask", "SendMessage", "tasks/get", "message/send"])
@pytest.mark.parametrize("params", [UNSET, None, [], ["t"], "t", 1, True], ids=repr)
def test_params_must_be_an_object(method: str, params: object) -> None:
    assert field(lambda: (NEW | OLD)[method](params)) == "params"


def test_only_the_extended_card_may_leave_params_out() -> None:
    for decode in (NEW["GetExtendedAgentCard"], OLD["agent/getAuthenticatedExtendedCard"]):
        assert decode(UNSET) == decode(None) == decode({}) == GetExtendedCard()
        assert field(lambda decode=decode: decode([])) == "params"  # type: ignore[misc]


WRONG: dict[str, tuple[Json, Json, str]] = {
    "no message id": ({"messageId": None}, {}, "message.messageId"),
    "an empty message id": ({"messageId": ""}, {}, "message.messageId"),
    "a number as message id": ({"messageId": 1}, {}, "message.messageId"),
    "no role": ({"role": None}, {}, "message.role"),
    "a boolean as role": ({"role": True}, {}, "message.role"),
    "an unknown role": ({"role": "robot"}, {}, "message.role"),
    "no parts": ({"parts": None}, {}, "message.parts"),
    "empty parts": ({"parts": []}, {}, "message.parts"),
    "parts as an object": ({"parts": {}}, {}, "message.parts"),
    "a part as text": ({"parts": ["hi"]}, {}, "message.parts[0]"),
    "an empty part": ({"parts": [{"text": "a"}, {}]}, {}, "message.parts[1]"),
    "a number as text": ({"parts": [{"text": "a"}, {"text": 1}]}, {}, "message.parts[1].text"),
    "metadata of a part": ({"parts": [{"text": "a", "metadata": []}]}, {}, "message.parts[0].metadata"),
    "a number as context id": ({"contextId": 1}, {}, "message.contextId"),
    "a number as task id": ({"taskId": 1}, {}, "message.taskId"),
    "metadata of the message": ({"metadata": "a"}, {}, "message.metadata"),
    "extensions as text": ({"extensions": "a"}, {}, "message.extensions"),
    "a number as extension": ({"extensions": ["a", 1]}, {}, "message.extensions[1]"),
    "a number as reference": ({"referenceTaskIds": [1]}, {}, "message.referenceTaskIds[0]"),
    "configuration as a list": ({}, {"configuration": []}, "configuration"),
    "history as a boolean": ({}, {"configuration": {"historyLength": True}}, "configuration.historyLength"),
    "history as a fraction": ({}, {"configuration": {"historyLength": 1.5}}, "configuration.historyLength"),
    "negative history": ({}, {"configuration": {"historyLength": -1}}, "configuration.historyLength"),
    "modes as text": (
        {},
        {"configuration": {"acceptedOutputModes": "a"}},
        "configuration.acceptedOutputModes",
    ),
    "a number as mode": (
        {},
        {"configuration": {"acceptedOutputModes": [1]}},
        "configuration.acceptedOutputModes[0]",
    ),
    "metadata": ({}, {"metadata": 1}, "metadata"),
}


@pytest.mark.parametrize("send", [new, old], ids=["1.0", "0.3"])
@pytest.mark.parametrize(("message", "params", "name"), WRONG.values(), ids=WRONG)
def test_a_wrong_type_names_its_field(send: Callable[..., Any], message: Json, params: Json, name: str) -> None:
    assert field(lambda: send(message, **params)) == name


def test_an_absent_member_is_named_where_it_should_be() -> None:
    for decode, role in ((NEW["SendMessage"], "ROLE_USER"), (OLD["message/send"], "user")):
        assert field(lambda decode=decode: decode({})) == "message"  # type: ignore[misc]
        inner = {"messageId": "m", "role": role}
        assert field(lambda decode=decode, inner=inner: decode({"message": inner})) == "message.parts"  # type: ignore[misc]


def test_the_members_of_each_version_alone_name_their_field() -> None:
    assert field(lambda: new(configuration={"returnImmediately": "yes"})) == "configuration.returnImmediately"
    push = "configuration.taskPushNotificationConfig"
    assert field(lambda: new(configuration={"taskPushNotificationConfig": "url"})) == push
    assert field(lambda: new(tenant=1)) == "tenant"
    assert field(lambda: old(configuration={"blocking": "yes"})) == "configuration.blocking"
    assert field(lambda: old(configuration={"historyLength": "3"})) == "configuration.historyLength"
    assert field(lambda: old(configuration={"pushNotificationConfig": []})) == "configuration.pushNotificationConfig"


def test_the_params_of_one_generation_are_refused_by_the_other() -> None:
    assert field(lambda: new({"role": "user"})) == "message.role"
    assert field(lambda: old({"role": "ROLE_USER"})) == "message.role"


def test_blocking_is_the_opposite_of_returning_immediately() -> None:
    assert old().return_immediately is False
    assert old(configuration={"blocking": True}).return_immediately is False
    assert old(configuration={"blocking": False}).return_immediately is True


@pytest.mark.parametrize("send", [new, old], ids=["1.0", "0.3"])
def test_an_agent_as_sender_is_for_the_operation_to_refuse(send: Callable[..., Any]) -> None:
    assert send({"role": 2 if send is new else "agent"}).message.role is Role.AGENT


def test_unknown_members_are_ignored() -> None:
    assert new({"kind": "message", "x": 1}, y=2, configuration={"z": 3}) == new()
    assert old({"x": 1}, y=2, configuration={"sparcPhase": "refinement"}) == old()
