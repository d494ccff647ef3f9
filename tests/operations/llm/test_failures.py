"""Failures of the endpoint, told in our own words."""

import json
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from tasks_app import models
from tasks_app.agents import llm
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import sent, text_of
from tests.operations.llm.endpoint import (
    BUSY,
    DONE,
    INSIDE,
    KEY,
    Call,
    Endpoint,
    Script,
    piece,
    sentence,
    talks,
    task_of,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


REFUSED = "refused this server's credentials"


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (302, "did not accept the request"),
        (400, "did not accept the request"),
        (401, REFUSED),
        (403, REFUSED),
        (404, "does not know the model, or is not a chat endpoint"),
        (413, "found the conversation too long"),
        (429, BUSY),
        (500, "is out of order"),
        (503, "is out of order"),
    ],
)
def test_a_refusal_is_told_without_what_the_endpoint_says(
    owner: Person, endpoint: Endpoint, status: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.script = talks(json.dumps({"error": {"message": f"{INSIDE} {KEY}"}}), status=status, kind="text/json")
    task = sent(owner, "hello", "llm")
    assert sentence(task) == f"The language model's endpoint {said} (HTTP {status})."
    assert len(endpoint.calls) == 1
    assert KEY not in caplog.text
    assert INSIDE not in caplog.text


def test_an_endpoint_that_is_not_there_is_told(owner: Person, endpoint: Endpoint, settings: Any) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # The socket never listens.
        settings.LLM_BASE_URL = f"http://127.0.0.1:{nobody.getsockname()[1]}/v1"
        assert sentence(sent(owner, "hello", "llm")) == "The language model's endpoint cannot be reached."


def test_an_endpoint_that_lets_nobody_in_is_given_up(
    owner: Person, endpoint: Endpoint, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "CONNECT_SECONDS", 0.2)
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # The system accepts one or two connections, and the others wait.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        settings.LLM_BASE_URL = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        assert sentence(sent(owner, "hello", "llm")) == "The language model's endpoint cannot be reached."


@pytest.mark.parametrize("streaming", [True, False], ids=["in-mid-stream", "before-the-first-byte"])
def test_an_endpoint_that_falls_silent_is_given_up(
    owner: Person, endpoint: Endpoint, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "READ_SECONDS", 1.0)  # A busy machine may be silent for a moment, too.

    def script(call: Call) -> None:
        if streaming:
            call.begin()
            call.write(piece("So far"))
        call.wait_for_close()

    endpoint.script = script
    task = sent(owner, "hello", "llm")
    assert sentence(task) == "The language model was silent for 1 s and was given up."
    assert text_of(task) == ("So far" if streaming else "")
    assert endpoint.calls[0].closed.wait(PATIENCE)


NONSENSE: dict[str, str | bytes] = {
    "no-json": "data: {\n\n",
    "no-object": "data: 1\n\n",
    "nothing-in-it": "data: {}\n\n",
    "an-old-error": f'data: {{"object":"error","message":"{INSIDE}"}}\n\n',
    "no-text": 'data: {"choices":[{"delta":{"content":7}}]}\n\n',
    "no-list": 'data: {"choices":{}}\n\n',
    "no-utf-8": b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    "half-a-character": 'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n',
    "a-page": f"<html>{INSIDE}</html>",
    "no-stream": json.dumps({"choices": [{"message": {"role": "assistant", "content": INSIDE}}]}),
    "an-endless-line": "data: " + "x" * (llm.LINE_BYTES + 1),
}


@pytest.mark.parametrize("stream", NONSENSE.values(), ids=NONSENSE)
def test_an_answer_that_is_no_stream_of_text_fails_the_task(
    owner: Person, endpoint: Endpoint, stream: str | bytes
) -> None:
    def script(call: Call) -> None:
        call.begin()
        call.write(piece("So far"), stream)
        call.end()

    endpoint.script = script
    task = sent(owner, "hello", "llm")
    assert sentence(task) == ("The language model's endpoint answered with something that is not a stream of text.")
    assert text_of(task) == "So far"


def test_an_error_in_the_stream_is_told_without_its_words(
    owner: Person, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.script = talks(piece("So far"), f"data: {json.dumps({'error': {'message': INSIDE + KEY}})}\n\n", DONE)
    task = sent(owner, "hello", "llm")
    assert sentence(task) == "The language model reported an error."
    assert text_of(task) == "So far"
    assert INSIDE not in caplog.text


@pytest.mark.parametrize("stream", [(DONE,), (piece(""), piece(" \n", "stop"), DONE)], ids=["nothing", "blanks"])
def test_an_empty_answer_is_a_failure(owner: Person, endpoint: Endpoint, stream: tuple[str, ...]) -> None:
    endpoint.script = talks(*stream)
    assert sentence(sent(owner, "hello", "llm")) == "The language model gave an empty answer."


def hang_up(call: Call) -> None:
    """The end of the connection without the end of the answer."""
    call.begin()
    call.write(piece("So far"))


def crash(call: Call) -> None:
    call.begin()
    call.write(piece("So far"))
    call.wait()
    call.reset()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (hang_up, "The connection to the language model broke."),
        (crash, "The connection to the language model broke."),
        (talks(piece("So far")), "The language model's answer broke off."),
    ],
    ids=["hang-up", "crash", "no-end"],
)
def test_an_answer_that_breaks_off_keeps_what_came_and_fails(
    owner: Person, endpoint: Endpoint, script: Script, said: str
) -> None:
    endpoint.script = script
    task = sent(owner, "hello", "llm", return_immediately=True)
    until(lambda: models.Event.objects.filter(kind="artifactUpdate").exists(), "the first words")
    endpoint.calls[0].go_on.set()
    until(lambda: models.Task.objects.get().state == "failed", "the end")
    task = task_of(owner, task.id)
    assert sentence(task) == said
    assert text_of(task) == "So far"
