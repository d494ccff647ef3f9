"""Webhook configs as they come in: what is wrong with each field, by its place."""

from typing import Any

import pytest

from a2a.dialects import v0_3, v1_0
from a2a.errors import InvalidParams
from a2a.types import PushConfig

URL = "https://example.org/"
SECRET = "whsec_" + "A" * 32
NEW, OLD = v1_0.DIALECT.methods, v0_3.DIALECT.methods


def new(**more: Any) -> Any:
    return NEW["CreateTaskPushNotificationConfig"].decode({"taskId": "t", "url": URL} | more)


def old(**more: Any) -> Any:
    return OLD["tasks/pushNotificationConfig/set"].decode(
        {"taskId": "t", "pushNotificationConfig": {"url": URL} | more}
    )


def inline(**more: Any) -> Any:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "x"}]}
    configuration = {"taskPushNotificationConfig": {"url": URL} | more}
    return NEW["SendMessage"].decode({"message": message, "configuration": configuration})


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"url": ""}, "url"),
    ({"url": 5}, "url"),
    ({"url": None}, "url"),
    ({"url": "https://" + "a" * 2048}, "url"),
    ({"id": "a/b"}, "id"),
    ({"id": "/"}, "id"),
    ({"id": "."}, "id"),
    ({"id": ".."}, "id"),
    ({"id": 5}, "id"),
    ({"id": "i" * 256}, "id"),
    ({"id": "a\0b"}, "id"),
    ({"id": "a\nb"}, "id"),
    ({"token": "t" * 1025}, "token"),
    ({"token": "a\r\nX: y"}, "token"),
    ({"token": "ü"}, "token"),
    ({"token": " a"}, "token"),
    ({"token": ["a"]}, "token"),
    ({"authentication": "Bearer"}, "authentication"),
]
WRONG_NEW: list[tuple[dict[str, Any], str]] = [
    ({"authentication": {"scheme": "Bear er"}}, "authentication.scheme"),
    ({"authentication": {"scheme": ["Bearer"]}}, "authentication.scheme"),
    ({"authentication": {"credentials": "x"}}, "authentication.scheme"),
    ({"authentication": {}}, "authentication.scheme"),
    ({"authentication": {"scheme": ""}}, "authentication.scheme"),
    ({"authentication": {"scheme": None}}, "authentication.scheme"),
    ({"authentication": {"schemes": ["Bearer"]}}, "authentication.scheme"),
    ({"authentication": {"scheme": "Bearer", "credentials": "x\ny"}}, "authentication.credentials"),
    ({"authentication": {"scheme": "Bearer", "credentials": "x" * 4097}}, "authentication.credentials"),
    ({"authentication": {"scheme": "standardwebhooks"}}, "authentication.credentials"),
    ({"authentication": {"scheme": "StandardWebhooks", "credentials": "whsec_AAAA"}}, "authentication.credentials"),
    ({"authentication": {"scheme": "StandardWebhooks", "credentials": "A" * 32}}, "authentication.credentials"),
    ({"authentication": {"scheme": "StandardWebhooks", "credentials": "whsec_?" * 9}}, "authentication.credentials"),
]
WRONG_OLD: list[tuple[dict[str, Any], str]] = [
    ({"authentication": {}}, "authentication.schemes"),
    ({"authentication": {"schemes": "Bearer"}}, "authentication.schemes"),
    ({"authentication": {"schemes": ["Bearer", "a b"]}}, "authentication.schemes[1]"),
    ({"authentication": {"schemes": ["a"] * 9}}, "authentication.schemes"),
    ({"authentication": {"schemes": [], "credentials": "x"}}, "authentication.credentials"),
]


def field(decode: Any, wrong: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as told:
        decode(**wrong)
    ((name, description),) = told.value.violations
    assert description
    return name


@pytest.mark.parametrize(("wrong", "name"), WRONG + WRONG_NEW, ids=str)
def test_1_0_names_the_field_that_is_wrong(wrong: dict[str, Any], name: str) -> None:
    assert field(new, wrong) == name
    assert field(inline, wrong) == f"configuration.taskPushNotificationConfig.{name}"


@pytest.mark.parametrize(("wrong", "name"), WRONG + WRONG_OLD, ids=str)
def test_0_x_names_the_field_that_is_wrong(wrong: dict[str, Any], name: str) -> None:
    assert field(old, wrong) == f"pushNotificationConfig.{name}"


def test_a_task_is_named_outside_a_send_and_only_there() -> None:
    assert field(new, {"taskId": ""}) == "taskId"
    assert field(inline, {"taskId": "t"}) == "configuration.taskPushNotificationConfig.taskId"
    for method in ("get", "list", "delete"):
        decode = OLD[f"tasks/pushNotificationConfig/{method}"].decode
        assert field(lambda decode=decode: decode({}), {}) == "id"  # type: ignore[misc]
    delete = OLD["tasks/pushNotificationConfig/delete"].decode
    assert field(lambda: delete({"id": "t"}), {}) == "pushNotificationConfigId"
    read = NEW["GetTaskPushNotificationConfig"].decode
    assert field(lambda: read({"taskId": "t"}), {}) == "id"


def test_a_webhook_whose_id_has_a_slash_is_still_read_and_removed() -> None:
    for name in ("Get", "Delete"):
        assert NEW[f"{name}TaskPushNotificationConfig"].decode({"taskId": "t", "id": "a/b"}).id == "a/b"
    for name in ("get", "delete"):
        decode = OLD[f"tasks/pushNotificationConfig/{name}"].decode
        assert decode({"id": "t", "pushNotificationConfigId": "a/b"}).id == "a/b"


@pytest.mark.parametrize("size", [-1, 101, 1.5, "x", True, 10**30])
def test_a_page_has_its_bounds(size: Any) -> None:
    decode = NEW["ListTaskPushNotificationConfigs"].decode
    assert field(lambda: decode({"taskId": "t", "pageSize": size}), {}) == "pageSize"


def test_snake_case_is_read_as_well_and_a_secret_is_no_credential() -> None:
    config: PushConfig = new(authentication={"scheme": "StandardWebhooks", "credentials": SECRET}).config
    assert (config.schemes, config.credentials) == (("StandardWebhooks",), SECRET)
    decoded = NEW["CreateTaskPushNotificationConfig"].decode({"task_id": "t", "url": URL})
    assert (decoded.task_id, decoded.config.url) == ("t", URL)
