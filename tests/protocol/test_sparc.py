"""The language SPARC: when a call is in it, the names of its events, and its errors."""

import orjson
import pytest

from a2a import errors
from a2a.dialects import v0_2, v0_3
from a2a.dialects.sparc import webhooks
from a2a.dialects.sparc.language import DIALECT
from a2a.dialects.sparc.streams import named_frame
from a2a.envelopes import jsonrpc
from a2a.errors import Error, InvalidParams
from a2a.languages import ALL
from tests.protocol.speaking import choose, refused, wire


@pytest.mark.requirement("SPARC-01")
def test_a_pin_chooses_it_and_without_one_nothing_changes() -> None:
    assert "sparc" in ALL.pinnable
    for method in v0_2.DIALECT.methods:
        assert choose(method, None, "sparc")[0] is DIALECT
        assert choose(method, "0.2", "sparc")[0] is DIALECT
        assert choose(method, "0.3", "sparc")[0] is v0_3.DIALECT
        assert choose(method, None)[0] is v0_3.DIALECT
        assert choose(method, "0.2")[0] is v0_2.DIALECT


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_call_of_its_method_in_another_language_is_told_which_language_has_it(version: str) -> None:
    refusal = refused("sparc/execute", version)
    assert refusal.language is ALL.by_name[f"a2a-{version}"]
    assert f"it is a method of sparc, and by its A2A-Version this call is in a2a-{version}" in str(wire(refusal))


def test_sparc_is_on_no_card() -> None:
    assert ALL.card_versions == ("1.0", "0.3")


@pytest.mark.requirement("SPARC-03")
@pytest.mark.parametrize(
    ("kind", "name"),
    [("task", "task-status-update"), ("status-update", "status-update"), ("artifact-update", "artifact-update")],
)
def test_an_event_has_a_name(kind: str, name: str) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":' + orjson.dumps({"kind": kind, "taskId": "x"}) + b"}"
    assert named_frame(data, 7) == b"event: " + name.encode() + b"\nid: 7\ndata: " + data + b"\n\n"


def test_the_id_of_a_call_does_not_name_an_event() -> None:
    odd = orjson.dumps(',"result":{"kind":"task"')
    data = b'{"jsonrpc":"2.0","id":' + odd + b',"result":{"kind":"message"}}'
    assert named_frame(data).startswith(b"event: message\n")
    failure = b'{"jsonrpc":"2.0","id":' + odd + b',"error":{}}'
    assert named_frame(failure).startswith(b"data: ")


@pytest.mark.requirement("SPARC-10")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            InvalidParams(("message", "is required")),
            {
                "code": -32600,
                "message": "Invalid Request",
                "data": {"details": "Missing required 'message' parameter", "requestId": "req-001"},
            },
        ),
        (
            errors.TaskNotFound(taskId="task-999"),
            {
                "code": -32001,
                "message": "TaskNotFoundError",
                "data": {"taskId": "task-999", "details": "Task not found or expired", "requestId": "req-001"},
            },
        ),
        (
            InvalidParams(("phase", "must be a word")),
            {"code": -32602, "message": "Invalid params", "data": {"requestId": "req-001"}},
        ),
    ],
)
def test_an_error_has_data_with_details_and_the_id_of_the_call(error: Error, expected: dict[str, object]) -> None:
    wire = orjson.loads(jsonrpc.failure("req-001", DIALECT.words(error), DIALECT).payload)["error"]
    assert (wire["code"], wire["message"]) == (expected["code"], expected["message"])
    assert wire["data"].items() >= expected["data"].items()  # type: ignore[attr-defined]  # the members of a table
    assert wire["data"]["details"]


@pytest.mark.requirement("SPARC-06")
@pytest.mark.parametrize(
    "form", [{"config": {"url": "https://a.test/"}}, {"pushNotificationConfig": {"url": "https://a.test/"}}, None]
)
def test_a_webhook_is_set_in_three_forms(form: dict[str, object] | None) -> None:
    request = webhooks.decode_config({"taskId": "t"} | (form or {"url": "https://a.test/"}))
    assert (request.task_id, request.config.url) == ("t", "https://a.test/")


def test_a_webhook_without_an_address_names_the_member() -> None:
    with pytest.raises(InvalidParams) as caught:
        webhooks.decode_config({"taskId": "t", "config": {}})
    assert caught.value.violations[0][0] == "config.url"
    with pytest.raises(InvalidParams) as caught:
        webhooks.decode_config({"taskId": "t"})
    assert caught.value.violations == (("config", "is required"),)
