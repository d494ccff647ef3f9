"""Peculiarities of 0.x: kinds, files, data that is no object, states with hyphens, the end of streams."""

from typing import Any

import orjson
import pytest

from a2a.answers import TaskPage
from a2a.dialects import cards_0_3, v0_3
from a2a.dialects.json.json_0_x import decode_part, decode_state, encode_part, encode_task
from a2a.dialects.json.json_1_0 import document, event_document
from a2a.errors import InvalidParams
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.states import TaskState
from a2a.types import Artifact, Card, Interface, Message, Part, Role, Status, Task
from tests.wire.values import CARD, at

HI = Message(message_id="m", role=Role.USER, parts=(Part(text="hi"),))
TASK = Task(id="t", context_id="c", status=Status(state=TaskState.WORKING, timestamp=at(1)), history=(HI, HI, HI))


def refused(wire: dict[str, Any]) -> str:
    with pytest.raises(InvalidParams) as caught:
        decode_part(wire, "message.parts[0]")
    return caught.value.violations[0][0]


def shown(event: Event) -> Any:
    frame = v0_3.encode_frame(event_document(event, task_id="t", context_id="c", seq=2), None)
    return None if frame is None else orjson.loads(frame)


PARTS: dict[str, tuple[Part, dict[str, Any]]] = {
    "text": (Part(text="a", metadata={"m": 1}), {"kind": "text", "text": "a", "metadata": {"m": 1}}),
    "bytes": (Part(raw=b"a", filename="n"), {"kind": "file", "file": {"bytes": "YQ==", "name": "n"}}),
    "empty bytes": (Part(raw=b""), {"kind": "file", "file": {"bytes": ""}}),
    "uri": (Part(url="u", media_type="a/b"), {"kind": "file", "file": {"uri": "u", "mimeType": "a/b"}}),
    "data": (Part(data={"a": None}), {"kind": "data", "data": {"a": None}}),
    "null": (
        Part(data=None),
        {"kind": "data", "data": {"value": None}, "metadata": {"data_part_compat": True}},
    ),
    "a list": (
        Part(data=[1], metadata={"m": 1}),
        {"kind": "data", "data": {"value": [1]}, "metadata": {"m": 1, "data_part_compat": True}},
    ),
}


@pytest.mark.parametrize(("part", "wire"), PARTS.values(), ids=PARTS)
def test_a_part_goes_out_with_its_kind_and_comes_back(part: Part, wire: dict[str, Any]) -> None:
    assert encode_part(part) == wire
    assert decode_part(wire, "part") == part
    assert decode_part({name: value for name, value in wire.items() if name != "kind"}, "part") == part


def test_text_and_data_lose_what_0_x_cannot_say() -> None:
    assert encode_part(Part(text="a", media_type="text/plain", filename="n")) == {"kind": "text", "text": "a"}
    assert encode_part(Part(data={}, media_type="application/json")) == {"kind": "data", "data": {}}


@pytest.mark.parametrize(
    "wire",
    [
        {"data": {"value": 1}, "metadata": {"data_part_compat": False}},
        {"data": {"value": 1, "more": 2}, "metadata": {"data_part_compat": True}},
        {"data": {"value": 1}},
    ],
)
def test_an_object_that_only_looks_wrapped_stays_as_it_is(wire: dict[str, Any]) -> None:
    assert decode_part(wire, "part") == Part(data=wire["data"], metadata=wire.get("metadata"))


@pytest.mark.parametrize(
    ("wire", "field"),
    [
        ({}, ""),
        ({"kind": "text"}, ""),
        ({"text": "a", "data": {}}, ""),
        ({"kind": "file", "file": {}}, ".file"),
        ({"file": {"bytes": "YQ==", "uri": "u"}}, ".file"),
        ({"file": {"bytes": None, "uri": None}}, ".file"),
        ({"kind": "data", "text": "a"}, ".kind"),
        ({"kind": "image", "text": "a"}, ".kind"),
        ({"type": "image", "text": "a"}, ".type"),
    ],
)
def test_a_part_has_exactly_one_content(wire: dict[str, Any], field: str) -> None:
    assert refused(wire) == f"message.parts[0]{field}"


def test_the_forms_of_upstreams_own_samples_are_accepted() -> None:
    assert decode_part({"kind": "file", "file": {"data": "YQ==", "name": "n"}}, "part") == Part(raw=b"a", filename="n")
    message = {"role": "user", "parts": [{"text": "hi"}]}
    request: Any = v0_3.DIALECT.methods["message/send"].decode({"messageId": "m", "message": message})
    assert request.message == HI


def test_a_message_of_another_kind_is_refused() -> None:
    message = {"kind": "task", "messageId": "m", "role": "user", "parts": [{"text": "hi"}]}
    with pytest.raises(InvalidParams) as caught:
        v0_3.DIALECT.methods["message/send"].decode({"message": message})
    assert caught.value.violations[0][0] == "message.kind"


@pytest.mark.parametrize("state", TaskState)
def test_a_state_is_written_with_hyphens(state: TaskState) -> None:
    wire = encode_task(Task(id="t", context_id="c", status=Status(state=state, timestamp=at(1))))["status"]["state"]
    assert wire == str(state).replace("_", "-")
    assert decode_state(wire, "status") is state


def test_the_unknown_state_is_no_filter() -> None:
    assert decode_state("unknown", "status") is None
    assert decode_state(None, "status") is None


@pytest.mark.parametrize("wire", ["", "input_required", "TASK_STATE_WORKING", "cancelled", "Working"])
def test_other_states_are_refused(wire: str) -> None:
    with pytest.raises(InvalidParams):
        decode_state(wire, "status")


FINAL = {"completed", "failed", "canceled", "rejected", "input-required"}


@pytest.mark.parametrize("state", TaskState)
def test_a_status_is_final_when_the_stream_closes_after_it(state: TaskState) -> None:
    update = shown(StatusChanged(status=Status(state=state, timestamp=at(1))))
    assert update.pop("final") is (update["status"]["state"] in FINAL)
    assert (update["kind"], update["taskId"], update["contextId"]) == ("status-update", "t", "c")


@pytest.mark.parametrize(("append", "last"), [(False, False), (True, False), (True, True), (False, True)])
def test_an_artifact_update_always_has_both_flags(append: bool, last: bool) -> None:
    artifact = Artifact(artifact_id="a", parts=(Part(text="x"),))
    update = shown(ArtifactAdded(artifact=artifact, append=append, last_chunk=last))
    assert (update["kind"], update["append"], update["lastChunk"]) == ("artifact-update", append, last)


def test_a_message_of_the_caller_is_shown_as_the_status_it_brought() -> None:
    assert shown(MessageAdded(message=HI)) is None
    update = shown(MessageAdded(message=HI, status=Status(state=TaskState.SUBMITTED, timestamp=at(1))))
    assert (update["kind"], update["status"]["state"], update["final"]) == (
        "status-update",
        "submitted",
        False,
    )


def test_a_created_task_is_shown_as_a_task() -> None:
    assert shown(TaskCreated(task=TASK)) == orjson.loads(orjson.dumps(encode_task(TASK)))


@pytest.mark.parametrize(("length", "left"), [(None, 3), (1, 1), (9, 3)])
def test_the_history_is_cut(length: int | None, left: int) -> None:
    frame = v0_3.encode_frame(document(TASK, 1), length)
    assert len(orjson.loads(frame or b"")["history"]) == left


def test_a_history_of_nothing_is_left_out() -> None:
    assert "history" not in orjson.loads(v0_3.encode_frame(document(TASK, 1), 0) or b"")


@pytest.mark.parametrize("asked", [True, False])
def test_a_list_shows_artifacts_only_if_asked(asked: bool) -> None:
    page = TaskPage(tasks=(document(TASK, 1),), next_page_token="", total_size=1, include_artifacts=asked)
    wire = orjson.loads(v0_3.encode_page(page))
    assert wire["tasks"][0].get("artifacts") == ([] if asked else None)
    assert (wire["nextCursor"], wire["totalSize"]) == ("", 1)


def test_the_url_of_a_card_is_where_json_rpc_is_spoken() -> None:
    ours = "https://agent.example.com/ws"
    places = (Interface(url=ours, binding="https://example.com/ws", version="0.3"), *CARD.interfaces)
    card = cards_0_3.encode_card(Card(name="n", description="d", version="1", skills=(), interfaces=places))
    assert (card["url"], card["preferredTransport"]) == ("https://agent.example.com/jsonrpc", "JSONRPC")
    assert [place["transport"] for place in card["additionalInterfaces"]] == [
        "JSONRPC",
        "https://example.com/ws",
        "HTTP+JSON",
    ]


def test_a_card_without_places_for_0_x_shows_the_ones_it_has() -> None:
    places = (Interface(url="https://a.example", binding="JSONRPC", version="1.0"),)
    card = cards_0_3.encode_card(Card(name="n", description="d", version="1", skills=(), interfaces=places))
    assert card["url"] == "https://a.example"
    assert "security" not in card
