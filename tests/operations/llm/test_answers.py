"""Answers of the model, and what is sent to get them."""

import json
from functools import partial
from typing import Any

import pytest
from django.db import connections

from a2a.types import Part
from tasks_app import models
from tests.conftest import Person, until
from tests.operations.asking import message, send, sent, text_of
from tests.operations.llm.endpoint import DONE, KEY, LINK, Call, Endpoint, piece, talks, task_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_the_answer_is_streamed_in_order_into_one_artifact(owner: Person, endpoint: Endpoint) -> None:
    def script(call: Call) -> None:
        call.begin()
        call.write(piece("One"))
        call.wait()
        call.write(piece(" two"), piece(" three"), piece(None, "stop"), DONE)
        call.end()

    endpoint.script = script
    task = sent(owner, "count", "llm", return_immediately=True)
    first = until(lambda: models.Event.objects.filter(kind="artifactUpdate").first(), "the first word")
    assert models.Task.objects.get().state == "working"
    assert "One" in first.payload
    assert "two" not in first.payload
    endpoint.calls[0].go_on.set()
    until(lambda: models.Task.objects.get().state == "completed", "the end")
    done = task_of(owner, task.id)
    assert (text_of(done), len(done.artifacts)) == ("One two three", 1)


def test_the_endpoint_gets_the_key_the_model_and_the_message(owner: Person, endpoint: Endpoint) -> None:
    task = sent(owner, "hello", "llm")
    assert (task.status.state, text_of(task), len(task.artifacts)) == ("completed", "Hello", 1)
    (call,) = endpoint.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["Authorization"] == f"Bearer {KEY}"
    assert call.headers["Content-Type"] == "application/json"
    assert call.body == {
        "model": "small-model",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
    }


def test_without_a_key_no_authorization_is_sent(owner: Person, endpoint: Endpoint, settings: Any) -> None:
    settings.LLM_API_KEY = ""
    assert sent(owner, "hello", "llm").status.state == "completed"
    assert endpoint.calls[0].headers["Authorization"] is None


def test_proxies_in_the_environment_are_not_used(
    owner: Person, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert sent(owner, "hello", "llm").status.state == "completed"


def test_the_conversation_of_the_context_is_sent_along(owner: Person, stranger: Person, endpoint: Endpoint) -> None:
    send(stranger, message("not mine", context_id="c"), "echo")
    send(owner, message("one", context_id="c"), "llm")
    send(owner, message("two", context_id="c"), "replies")
    said = message(context_id="c", parts=(Part(text="three"), Part(data={"city": "Köln"}), LINK))
    send(owner, said, "llm")
    assert endpoint.calls[-1].body["messages"] == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": "You said two"},
        {"role": "user", "content": 'three\n{"city":"Köln"}'},
    ]


ANSWER = ["\n", "  Par", "is", " ", "\u2028", " is", "\n\n", "the\tcap", "ital.", "\x85 ", " \n"]


def test_the_second_call_carries_the_first_answer_byte_for_byte(owner: Person, endpoint: Endpoint) -> None:
    def script(call: Call) -> None:
        call.begin()
        try:
            for text in ANSWER:
                call.write(piece(text))
                # The next piece comes once this one is stored, so that the two are not joined.
                until(partial(is_stored, text), repr(text))
        finally:
            connections.close_all()  # those of this thread
        call.write(DONE)
        call.end()

    endpoint.script = script
    send(owner, message(" What is the capital?\n", context_id="c"), "llm")
    endpoint.script = talks(piece("Paris"), DONE)
    send(owner, message("Are you sure?", context_id="c"), "llm")
    assert endpoint.calls[1].body["messages"] == [
        {"role": "user", "content": " What is the capital?\n"},
        {"role": "assistant", "content": "".join(ANSWER)},
        {"role": "user", "content": "Are you sure?"},
    ]
    assert models.Event.objects.filter(kind="artifactUpdate").count() >= len(ANSWER)


def is_stored(text: str) -> bool:
    part = f'"text":{json.dumps(text, ensure_ascii=False)}'
    return models.Event.objects.filter(kind="artifactUpdate", payload__contains=part).exists()


def test_two_messages_of_the_same_side_are_sent_as_one(owner: Person, endpoint: Endpoint) -> None:
    endpoint.script = talks(status=500)
    send(owner, message("one", context_id="c"), "llm")
    endpoint.script = talks(piece("Hello"), DONE)
    send(owner, message("two", context_id="c"), "llm")
    assert endpoint.calls[-1].body["messages"] == [{"role": "user", "content": "one\n\ntwo"}]


def test_a_message_without_words_is_rejected_without_asking(owner: Person, endpoint: Endpoint) -> None:
    task = sent(owner, message(parts=(LINK, Part(text=" "))), "llm")
    assert task.status.state == "rejected"
    assert endpoint.calls == []


PECULIAR: dict[str, tuple[tuple[str | bytes, ...], str]] = {
    "other-fields": ((": a comment\n\nevent: x\nid: 1\nretry: 5\n", piece("Hi"), DONE), "Hi"),
    "crlf": ((piece("Hi").replace("\n", "\r\n"), "data:[DONE]\r\n\r\n"), "Hi"),
    "no-last-newline": ((piece("Hi"), "data: [DONE]"), "Hi"),
    "no-done": ((piece("Hi"), piece(None, "stop")), "Hi"),
    "neither": ((piece("Hi", "stop").strip(),), "Hi"),
    "line-separators": ((piece("a\u2028b\x85c"), DONE), "a\u2028b\x85c"),
    "byte-by-byte": (tuple(bytes([byte]) for byte in (piece("Grüße 🙂") + DONE).encode()), "Grüße 🙂"),
    "usage": ((piece("Hi"), 'data: {"choices":[],"usage":{"total_tokens":3}}\n\n', DONE), "Hi"),
    "null-content": (
        ('data: {"choices":[{"delta":{"role":"assistant","content":null}}]}\n\n', piece("Hi"), DONE),
        "Hi",
    ),
    "no-delta": ((piece("Hi"), 'data: {"choices":[{"finish_reason":"stop"}]}\n\n'), "Hi"),
    "after-done": ((piece("Hi"), DONE, piece("nobody hears this")), "Hi"),
}


@pytest.mark.parametrize(("stream", "text"), PECULIAR.values(), ids=PECULIAR)
def test_differences_between_endpoints_are_understood(
    owner: Person, endpoint: Endpoint, stream: tuple[str, ...], text: str
) -> None:
    endpoint.script = talks(*stream)
    task = sent(owner, "hello", "llm")
    assert (task.status.state, text_of(task)) == ("completed", text)
