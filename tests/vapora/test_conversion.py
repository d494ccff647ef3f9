"""The conversion of errors: what each looks like on the wire is written in tests/wire/vapora.json."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from a2a import errors
from a2a.dialects import v0_3, vapora
from a2a.envelopes import jsonrpc
from a2a.errors import Error
from a2a.languages import ALL
from tasks_app.database.errors import Busy

Json = dict[str, Any]
WIRE: dict[str, Json] = json.loads((Path(__file__).parents[1] / "wire" / "vapora.json").read_text("utf-8"))
JSON_RPC = {
    errors.ParseError: -32700,
    errors.InvalidRequest: -32600,
    errors.ExtensionSupportRequired: -32600,
    errors.VersionNotSupported: -32600,
    errors.MethodNotFound: -32601,
    errors.InvalidParams: -32602,
    errors.ContentTypeNotSupported: -32602,
    errors.Internal: -32603,
    errors.InvalidAgentResponse: -32603,
}
"""The errors that JSON-RPC has a code for. All others have the one code of domain errors."""


def error_of(name: str) -> Error:
    """Return the error that an example is about, with its facts."""
    data: Json = dict(WIRE[name]["json"]["error"]["data"])
    del data["reason"]
    violations = [(each["field"], each["description"]) for each in data.pop("violations", ())]
    kind = getattr(errors, name)
    return errors.InvalidParams(*violations, **data) if kind is errors.InvalidParams else kind(**data)  # type: ignore[no-any-return]  # by its name


def converted(error: Error, rpc_id: Any = 7) -> tuple[int, Json]:
    failure = jsonrpc.failure(rpc_id, error, vapora.LANGUAGE)
    return failure.status, orjson.loads(failure.payload)


@pytest.mark.requirement("VAPORA-03", "VAPORA-04")
@pytest.mark.parametrize("name", WIRE)
def test_an_error_is_converted_to_its_json_and_its_status(name: str) -> None:
    example = WIRE[name]
    assert converted(error_of(name), example["json"]["id"]) == (example["status"], example["json"])


@pytest.mark.requirement("VAPORA-03")
def test_every_error_has_an_example_and_a_cell() -> None:
    names = {error.__name__ for error in errors.ALL}
    assert names == WIRE.keys()
    assert set(vapora.COLUMN) == set(errors.ALL)


@pytest.mark.requirement("VAPORA-03")
@pytest.mark.parametrize("error", errors.ALL, ids=lambda error: error.reason)
def test_an_error_has_the_code_of_json_rpc_or_the_one_of_the_domain(error: type[Error]) -> None:
    assert vapora.COLUMN[error].number == JSON_RPC.get(error, -32000)


def test_every_status_says_that_the_call_failed_and_404_that_the_task_is_absent() -> None:
    assert all(400 <= status < 600 for _, status, _ in vapora.COLUMN.values())
    assert [error for error, cell in vapora.COLUMN.items() if cell.status == 404] == [errors.TaskNotFound]


@pytest.mark.parametrize(("error", "status"), [(errors.TooManyCalls(), 429), (Busy(), 503), (errors.InvalidKey(), 401)])
def test_a_twin_is_converted_as_its_row(error: Error, status: int) -> None:
    found, wire = converted(error)
    assert (found, wire["error"]["code"], wire["error"]["data"]["reason"]) == (status, -32000, error.reason)


@pytest.mark.parametrize("rpc_id", [None, 0, 1, "1", "", "é"], ids=repr)
def test_an_error_always_has_the_id_of_its_call(rpc_id: Any) -> None:
    _, wire = converted(errors.TaskNotFound(), rpc_id)
    assert wire.keys() == {"jsonrpc", "id", "error"}
    assert (wire["id"], type(wire["id"])) == (rpc_id, type(rpc_id))


def test_all_but_errors_and_deliveries_is_that_of_a2a_0_3() -> None:
    same = {"methods", "encode_frame", "push", "version", "encode_card", "spelling", "extensions_header"}
    assert [name for name in same if is_different(name)] == []
    assert vapora.LANGUAGE.pushes_as == v0_3.DIALECT.name


def test_an_absent_task_keeps_the_words_of_a2a_0_3_and_an_absent_webhook_is_a_wrong_param() -> None:
    task, webhook = errors.TaskNotFound(taskId="t"), errors.TaskNotFound(taskId="t", webhookId="w")
    assert vapora.LANGUAGE.words(task) is v0_3.words(task)
    assert isinstance(vapora.LANGUAGE.words(webhook), errors.InvalidParams)


def is_different(name: str) -> bool:
    return getattr(vapora.LANGUAGE, name) != getattr(v0_3.DIALECT, name)


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (-32000, 404, "TASK_NOT_FOUND"),
        (-32000, 409, "IDEMPOTENCY_CONFLICT or TASK_NOT_CANCELABLE or UNSUPPORTED_OPERATION"),
        (-32000, 503, "UNAVAILABLE"),
        (-32000, None, ""),
        (-32700, 400, "PARSE_ERROR"),
    ],
)
def test_operators_see_the_reason_as_far_as_code_and_status_tell_it(code: int, status: int | None, reason: str) -> None:
    assert ALL.reason(code, "vapora", status) == reason
