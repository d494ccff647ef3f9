"""Descriptions in OpenRPC: they say what is accepted and answered, no more and no less, as the golden wire shows."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from a2a.errors import InvalidParams, ParseError
from a2a.language import Dialect
from a2a.languages import ALL, DIALECTS, KIN
from a2a.requests import SendMessage
from a2a.types import Role
from tests.support.descriptions import DRAFTS, Misdescribed, RpcDescription, rpc_description

Json = dict[str, Any]
WIRE = Path(__file__).parent.parent / "wire"
GOLDEN: dict[str, dict[str, Json]] = {
    dialect.version: json.loads((WIRE / f"v{dialect.version.replace('.', '_')}.json").read_text(encoding="utf-8"))
    for dialect in DIALECTS
}


def examples(*kinds: str) -> list[Any]:
    return [
        pytest.param(version, example["json"], id=f"{version} {name}")
        for version, golden in GOLDEN.items()
        for name, example in golden.items()
        if example["kind"] in kinds
    ]


def method_of(version: str, wire: Json) -> str:
    """Return the method whose call has the id of this answer."""
    calls = [example["json"] for example in GOLDEN[version].values() if example["kind"] == "request"]
    return str(next(call["method"] for call in calls if call["id"] == wire["id"]))


def described(version: str) -> RpcDescription:
    return rpc_description("rpc", version)


# ------------------------------------------------------------------- methods


OTHERS = [*ALL.by_name["acp"].methods, *ALL.by_name["zone"].methods]
"""The methods of languages beside A2A."""


def added(dialect: Dialect) -> list[str]:
    """Return the methods that kin of a version of A2A has, and the version lacks."""
    kin = [language for language in KIN if language.version == dialect.version]
    return [name for language in kin for name in language.methods if name not in dialect.methods]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_methods_of_a_version_are_described(dialect: Dialect) -> None:
    description = described(dialect.version)
    assert list(description.methods) == ["rpc.discover", *OTHERS, *dialect.methods, *added(dialect)]
    assert {description.language(name) for name in dialect.methods} == {dialect.name}


def test_without_a_version_each_name_is_in_its_newest_version() -> None:
    description = rpc_description()
    languages = {name: description.language(name) for name in description.methods}
    new, old, oldest = DIALECTS
    tables = [ALL.by_name["openrpc"], ALL.by_name["acp"], ALL.by_name["zone"], new, old]
    newest = {name: language.name for language in tables for name in language.methods}
    assert languages == newest | dict.fromkeys(added(oldest), "sparc")


@pytest.mark.parametrize("version", [None, *(dialect.version for dialect in DIALECTS)])
def test_a_body_that_cannot_be_read_has_an_error_of_every_method(version: str | None) -> None:
    """Such a body names no method, so its error is in no language."""
    description, neutral = rpc_description("rpc", version), ALL.endpoints["rpc"].neutral
    answer = {"jsonrpc": "2.0", "id": None, "error": neutral.encode_error(ParseError(), -32700)}
    for method in description.methods:
        description.check_answer(method, answer)


def test_a_method_says_its_scope_its_errors_and_whether_it_streams() -> None:
    description = described("1.0")
    method = description.methods["SubscribeToTask"]
    assert (method["x-scope"], method["x-streaming"], method["result"]["name"]) == ("tasks:read", True, "event")
    assert description.methods["GetTask"]["x-streaming"] is False
    assert {-32001, -32602, -38009} <= description.codes["GetTask"]
    assert len(method["errors"]) == len(ALL.by_name["a2a-1.0"].column)


def test_every_reference_leads_to_a_component() -> None:
    for dialect in DIALECTS:
        document = described(dialect.version).document
        text = orjson.dumps(document).decode()
        for place in text.split('"$ref":"#/components/')[1:]:
            kind, _, name = place.partition('"')[0].partition("/")
            assert name in document["components"][kind]


# -------------------------------------------------------------------- answers


@pytest.mark.parametrize(("version", "wire"), examples("answer", "error"))
def test_golden_answers_are_as_described(version: str, wire: Json) -> None:
    method = method_of(version, wire) if "result" in wire else "tasks/get" if version < "1" else "GetTask"
    described(version).check_answer(method, wire)


@pytest.mark.parametrize(("version", "wire"), examples("events"))
def test_golden_events_are_as_described(version: str, wire: list[Json]) -> None:
    for event in wire:
        described(version).check_answer(method_of(version, event), event)


def changes(value: Any) -> Iterator[Any]:
    """Yield the value with one more member in each of its objects, and without each of its members."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        for changed in changes(child) if key not in {"metadata", "params"} else ():
            other = copy.copy(value)
            other[key] = changed
            yield other
    if isinstance(value, dict):
        yield value | {"surplus": 1}


@pytest.mark.parametrize(("version", "wire"), examples("answer", "events"))
def test_an_answer_with_a_member_more_is_not_as_described(version: str, wire: Any) -> None:
    for event in wire if isinstance(wire, list) else [wire]:
        method, result = method_of(version, event), event["result"]
        others = [changed for changed in changes(result) if not is_data(result, changed)]
        for changed in others:
            with pytest.raises(Misdescribed):
                described(version).check_answer(method, event | {"result": changed})
        assert others or result in ([], None)


def is_data(before: Any, after: Any) -> bool:
    """Return whether two results differ in data of a caller or an agent alone, which may have any members."""
    if isinstance(before, dict):
        keys = [key for key in before if before[key] != after.get(key)]
        if before.keys() != after.keys():
            return False
        return all(
            key in {"data", "securitySchemes", "security", "schemes"} or is_data(before[key], after[key])
            for key in keys
        )
    return all(one == other or is_data(one, other) for one, other in zip(before, after, strict=True))


# --------------------------------------------------------------------- params


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(("version", "wire"), examples("request"))
def test_golden_params_are_as_described(version: str, wire: Json, draft: Any) -> None:
    description, params = described(version), wire.get("params", {})
    description.check_params(wire["method"], params)
    assert description.fault(description.methods[wire["method"]]["x-params"], params, draft) == ""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in inner for deeper in places(child, (*path, key)))]


def changed(params: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    other = copy.copy(params)
    other[path[0]] = changed(params[path[0]], path[1:], value)
    return other


VALUES: list[Any] = [None, True, -1, 0, 1, 1.5, 2**31, "", "x", "3", "a\nb", "x" * 5_000, [], [1], ["x"], {}, {"x": 1}]


def accepted(version: str, method: str, params: Any) -> bool:
    """Return whether the params are accepted. A message of an agent is refused behind the decoder."""
    try:
        request = ALL.by_name[f"a2a-{version}"].methods[method].decode(copy.deepcopy(params))
    except InvalidParams:
        return False
    return not (isinstance(request, SendMessage) and request.message.role is Role.AGENT)


@pytest.mark.parametrize(("version", "wire"), examples("request"))
def test_params_are_accepted_if_and_only_if_they_are_as_described(version: str, wire: Json) -> None:
    description, method, params = described(version), wire["method"], wire.get("params", {})
    schema, wrong = description.methods[method]["x-params"], []
    for path in places(params):
        for value in VALUES:
            other = changed(params, path, value)
            fault = description.fault(schema, other)
            # JSON-RPC has no params that are null; some methods read them as absent.
            if accepted(version, method, other) is not (fault == "") and other is not None:
                wrong.append((path, str(value)[:30], fault))
    assert wrong == []


TYPED = {"type": "file", "text": "a"}
OLD_MESSAGE = {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}


@pytest.mark.parametrize(
    ("version", "method", "params"),
    [
        ("1.0", "SendMessage", {"message": {"message_id": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}),
        ("0.3", "message/send", {"messageId": "m", "message": OLD_MESSAGE}),
    ],
    ids=["1.0 in snake_case", "0.3 with the id beside the message"],
)
def test_some_spellings_of_samples_are_accepted_beyond_the_description(version: str, method: str, params: Json) -> None:
    """These are all: docs/descriptions.md lists them."""
    assert accepted(version, method, params)
    assert described(version).fault(described(version).methods[method]["x-params"], params)


@pytest.mark.parametrize(
    ("version", "method", "params"),
    [
        ("1.0", "GetTask", {"id": "t", "historyLength": str(2**31)}),
        ("1.0", "ListTasks", {"statusTimestampAfter": "2026-13-02T09:15:05Z"}),
        ("1.0", "ListTasks", {"status": 0.0}),
        (
            "1.0",
            "CreateTaskPushNotificationConfig",
            {"taskId": "t", "url": "https://x.example", "authentication": {"scheme": "StandardWebhooks"}},
        ),
        (
            "0.3",
            "message/send",
            {"message": OLD_MESSAGE | {"messageId": "m", "parts": [{"type": "file", "text": "a"}]}},
        ),
    ],
)
def test_some_values_are_refused_that_no_schema_excludes(version: str, method: str, params: Json) -> None:
    assert not accepted(version, method, params)
    assert described(version).fault(described(version).methods[method]["x-params"], params) == ""
