"""The members of params that are not read, or contradict one another; and the sentences about those that are wrong."""

from typing import Any

import pytest

from a2a.dialects.rest_0_x import KIND, PROTO
from a2a.errors import ExtendedCardNotConfigured, Internal, InvalidParams, ParseError, TaskNotFound
from tests.protocol.speaking import BY_VERSION


@pytest.mark.parametrize("wrong", [1, "x", [], True], ids=repr)
@pytest.mark.parametrize(
    ("version", "method", "member"),
    [
        ("1.0", "GetTask", "metadata"),
        ("1.0", "SubscribeToTask", "metadata"),
        ("1.0", "SubscribeToTask", "historyLength"),
        ("1.0", "CancelTask", "historyLength"),
        ("0.3", "tasks/cancel", "historyLength"),
        ("0.3", "tasks/resubscribe", "historyLength"),
    ],
)
def test_a_member_of_other_methods_is_ignored_whatever_it_is(
    version: str, method: str, member: str, wrong: Any
) -> None:
    decode = BY_VERSION[version].methods[method].decode
    assert decode({"id": "t", member: wrong}) == decode({"id": "t"})


@pytest.mark.parametrize(
    ("said", "member"),
    [
        ({"configId": "c", "pushNotificationConfig": {"id": "d"}}, "configId"),
        ({"name": "tasks/t/pushNotificationConfigs/c", "pushNotificationConfig": {"id": "d"}}, "name"),
        ({"configId": "c", "config": {"name": "tasks/t/pushNotificationConfigs/d"}}, "name"),
    ],
)
def test_names_of_a_webhook_must_agree(said: dict[str, Any], member: str) -> None:
    with pytest.raises(InvalidParams) as told:
        PROTO.methods["tasks/pushNotificationConfig/set"].decode({"id": "t", **said})
    assert told.value.violations == ((member, "is not the id of the config"),)


@pytest.mark.parametrize(
    ("more", "id"), [({}, None), ({"configId": "None"}, "None"), ({"configId": "c"}, "c")], ids=["none", "None", "c"]
)
def test_the_name_of_a_webhook_without_an_id_names_none(more: dict[str, Any], id: str | None) -> None:
    """The official Python client 0.3.26 makes the name of the id that it has, which is None."""
    config = {"name": "tasks/t/pushNotificationConfigs/None", "pushNotificationConfig": {"url": "https://x.example/"}}
    said = {"id": "t", "parent": "tasks/t", "config": config, **more}
    assert PROTO.methods["tasks/pushNotificationConfig/set"].decode(said).config.id == id


@pytest.mark.parametrize(
    ("send", "parts", "role"),
    [
        (BY_VERSION["1.0"].methods["SendMessage"], "parts", "ROLE_USER"),
        (BY_VERSION["0.3"].methods["message/send"], "parts", "user"),
        (PROTO.methods["message/send"], "content", "ROLE_USER"),
    ],
)
def test_an_unknown_role_is_told_the_one_that_is_taken(send: Any, parts: str, role: str) -> None:
    with pytest.raises(InvalidParams) as told:
        send.decode({"message": {"messageId": "m", "role": "robot", parts: [{"kind": "text", "text": "x"}]}})
    assert told.value.violations == (("message.role", f"must be {role}"),)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ParseError(), "JSONParseError"),
        (Internal(), "InternalError"),
        (ExtendedCardNotConfigured(), "AuthenticatedExtendedCardNotConfiguredError"),
        (TaskNotFound(taskId="t"), "TaskNotFoundError"),
    ],
)
def test_an_error_over_rest_has_its_name_in_0_3(error: Any, name: str) -> None:
    for dialect in (KIND, PROTO):
        assert dialect.rest is not None
        assert dialect.rest.encode_error(error, 400, "INVALID_ARGUMENT")["type"] == name
