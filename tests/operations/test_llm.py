"""The llm agent, against a real HTTP server on loopback that speaks the wire format, well and badly."""

import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from msgspec.structs import replace

from a2a.agents import registry
from a2a.requests import CancelTask, GetTask
from a2a.types import Part, Task
from tasks_app import clock, models
from tasks_app.agents import examples, llm
from tasks_app.checks import check_llm
from tasks_app.runner.runner import runner
from tests.conftest import PATIENCE, ROOT, Person, until
from tests.operations.asking import ask, message, send, sent, shown, text_of, words
from tests.support.cached_cards import forget_cards

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
KEY = "sk-the-key-that-nobody-may-see"
INSIDE = "an internal sentence of the endpoint"
DONE = "data: [DONE]\n\n"
BUSY = "has too much to do or its quota is used up; try again later"
LINK = Part(url="https://example.org/a.txt", media_type="text/plain")
"""A model is not shown what is behind it."""


def piece(text: str | None = None, reason: str | None = None) -> str:
    delta = {} if text is None else {"content": text}
    value = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n"


class Call:
    """One call that the endpoint got, and the way to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.handler = handler
        self.path = handler.path
        self.headers = handler.headers
        self.body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        self.go_on = threading.Event()
        """Set by a test that has seen enough."""
        self.closed = threading.Event()
        """The client has closed the connection."""

    def begin(self, status: int = 200, kind: str = "text/event-stream") -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def write(self, *texts: str | bytes) -> None:
        for text in texts:
            data = text if isinstance(text, bytes) else text.encode()
            self.handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def answer(self, *texts: str | bytes, status: int = 200, kind: str = "text/event-stream") -> None:
        self.begin(status, kind)
        self.write(*texts)
        self.end()

    def wait(self) -> None:
        assert self.go_on.wait(PATIENCE)

    def wait_for_close(self) -> None:
        """Reads, which gives nothing more, until the other side closes."""
        self.handler.connection.settimeout(PATIENCE)
        if self.handler.connection.recv(1) == b"":
            self.closed.set()

    def reset(self) -> None:
        """Breaks the connection as a crash does."""
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.connection.close()
        self.handler.close_connection = True


Script = Callable[[Call], None]


def talks(*texts: str | bytes, **more: Any) -> Script:
    return lambda call: call.answer(*texts, **more)


class Endpoint:
    """The server; what it does with a call is set by the test."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.script: Script = talks(piece("Hello"), DONE)
        self.faults: list[BaseException | None] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.close_connection = True
                call = Call(self)
                endpoint.calls.append(call)
                endpoint.script(call)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = False  # closing waits for them

            def handle_error(self, *_: Any) -> None:
                fault = sys.exc_info()[1]
                if not isinstance(fault, ConnectionError):  # A client that has heard enough hangs up.
                    endpoint.faults.append(fault)

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def __enter__(self) -> "Endpoint":
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for call in self.calls:
            call.go_on.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def endpoint(settings: Any) -> Iterator[Endpoint]:
    """An endpoint, and the agent that asks it; once, so that what goes wrong is seen at once."""
    with Endpoint() as found:
        settings.LLM_BASE_URL, settings.LLM_MODEL, settings.LLM_API_KEY = found.url, "small-model", KEY
        examples.offer_llm()
        offered = registry.get("llm")
        assert offered
        registry.add(replace(offered, attempts=1))
        yield found
        registry._agents.pop("llm")
    assert found.faults == []


@pytest.fixture
def asked_again(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """An endpoint that is asked as often as usual, without a pause."""
    monkeypatch.setattr(examples, "BACKOFF", 0)
    examples.offer_llm()
    return endpoint


def seen(person: Person, task_id: str) -> Task:
    return shown(ask(person, GetTask(id=task_id)))


def sentence(task: Task) -> str:
    """What a task that failed says, which is nothing that is not for callers."""
    assert task.status.state == "failed"
    assert task.status.message
    wire = words(task)
    assert KEY not in wire
    assert INSIDE not in wire
    assert "127.0.0.1" not in wire
    run = models.Run.objects.get(task_id=task.id)
    assert (run.outcome, run.reference) == ("failed", "")
    assert KEY not in run.traceback
    return task.status.message.text


# --------------------------------------------------------------- it answers


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
    done = seen(owner, task.id)
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


def test_what_the_environment_says_of_proxies_is_not_heard(
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
                # Each piece is an event of its own, so that none was joined with its neighbour before it was stored.
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
def test_what_endpoints_do_differently_is_understood(
    owner: Person, endpoint: Endpoint, stream: tuple[str, ...], text: str
) -> None:
    endpoint.script = talks(*stream)
    task = sent(owner, "hello", "llm")
    assert (task.status.state, text_of(task)) == ("completed", text)


# --------------------------------------------------------------- it is stopped


@pytest.mark.parametrize("streaming", [True, False], ids=["in-mid-stream", "before-the-first-byte"])
def test_cancel_closes_the_call(owner: Person, endpoint: Endpoint, streaming: bool) -> None:
    def script(call: Call) -> None:
        if streaming:
            call.begin()
            call.write(piece("One"))
        call.wait_for_close()

    endpoint.script = script
    task = sent(owner, "count", "llm", return_immediately=True)
    if streaming:
        until(lambda: models.Event.objects.filter(kind="artifactUpdate").exists(), "the first word")
    until(lambda: endpoint.calls, "the call")
    assert shown(ask(owner, CancelTask(id=task.id))).status.state == "canceled"
    assert endpoint.calls[0].closed.wait(PATIENCE)
    assert models.Task.objects.get().state == "canceled"


def test_an_interrupted_answer_is_asked_for_again_without_our_notice_of_it(
    owner: Person, asked_again: Endpoint
) -> None:
    endpoint = asked_again
    endpoint.script = Call.wait_for_close
    task = sent(owner, "count", "llm", return_immediately=True)
    until(lambda: endpoint.calls, "the call")
    endpoint.script = talks(piece("Again"), DONE)
    runner.running[task.id].release()
    assert endpoint.calls[0].closed.wait(PATIENCE)
    until(lambda: models.Task.objects.get().state == "completed", "the second try")
    done = seen(owner, task.id)
    assert text_of(done) == "Again"
    assert done.history[-1].text.startswith("Interrupted")
    assert endpoint.calls[1].body == endpoint.calls[0].body


def test_an_endpoint_that_is_busy_for_a_while_is_asked_again(owner: Person, asked_again: Endpoint) -> None:
    answers = iter([talks(INSIDE, status=429), talks(piece("So far")), talks(piece("Hello"), DONE)])
    asked_again.script = lambda call: next(answers)(call)  # noqa: PLW0108  # the next one with each call
    task = sent(owner, "hello", "llm")
    assert (task.status.state, text_of(task)) == ("completed", "Hello")
    assert [message.text for message in task.history[1:]] == [
        f"Attempt 1 of 3 failed: The language model's endpoint {BUSY} (HTTP 429); tried again in 0.0 s.",
        "Attempt 2 of 3 failed: The language model's answer broke off; tried again in 0.0 s.",
    ]
    assert asked_again.calls[0].body == asked_again.calls[2].body


def test_an_endpoint_that_says_when_to_come_back_is_asked_then(owner: Person, asked_again: Endpoint) -> None:
    asked_again.script = busy_for_an_hour
    sent(owner, "hello", "llm", return_immediately=True)
    until(models.Run.objects.exists, "the first attempt")
    row = models.Task.objects.get()
    assert row.not_before
    assert timedelta(minutes=59) < row.not_before - clock.now() < timedelta(minutes=73)


def busy_for_an_hour(call: Call) -> None:
    call.handler.send_response(503)
    call.handler.send_header("Retry-After", "3600")
    call.handler.send_header("Content-Length", "0")
    call.handler.end_headers()


def test_an_endpoint_that_refuses_for_good_is_asked_once(owner: Person, asked_again: Endpoint) -> None:
    asked_again.script = talks("{}", status=401)
    assert sentence(sent(owner, "hello", "llm")).endswith("(HTTP 401).")
    assert len(asked_again.calls) == 1


# ------------------------------------------------------------------- it fails

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
        nobody.bind(("127.0.0.1", 0))  # and never listens
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
        for _ in range(4):  # The system takes one or two, and leaves the others waiting.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        settings.LLM_BASE_URL = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        assert sentence(sent(owner, "hello", "llm")) == "The language model's endpoint cannot be reached."


@pytest.mark.parametrize("streaming", [True, False], ids=["in-mid-stream", "before-the-first-byte"])
def test_an_endpoint_that_falls_silent_is_given_up(
    owner: Person, endpoint: Endpoint, streaming: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llm, "READ_SECONDS", 0.2)

    def script(call: Call) -> None:
        if streaming:
            call.begin()
            call.write(piece("So far"))
        call.wait_for_close()

    endpoint.script = script
    task = sent(owner, "hello", "llm")
    assert sentence(task) == "The language model was silent for 0.2 s and was given up."
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
def test_nonsense_is_called_so(owner: Person, endpoint: Endpoint, stream: str | bytes) -> None:
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
    task = seen(owner, task.id)
    assert sentence(task) == said
    assert text_of(task) == "So far"


# --------------------------------------------------------------- its settings


def cards() -> tuple[int, str]:
    """The status of the agent's own card, and the card of the default agent."""
    client = Client()
    forget_cards()  # Outside of tests agents do not change while the process lives.
    own = client.get("/agents/llm/.well-known/agent-card.json").status_code
    whole = client.get("/.well-known/agent-card.json").content.decode()
    forget_cards()
    return own, whole


def test_it_is_on_the_card_when_it_is_configured(endpoint: Endpoint) -> None:
    status, card = cards()
    assert status == 200
    assert '"id":"chat"' in card


@pytest.mark.parametrize(("url", "model"), [("", ""), ("http://127.0.0.1/v1", ""), ("", "small-model")])
def test_it_is_not_on_the_card_unless_it_is_configured(settings: Any, url: str, model: str) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL = url, model
    examples.offer_llm()
    status, card = cards()
    assert status == 404
    assert '"id":"chat"' not in card


@pytest.mark.parametrize(
    ("environment", "there"),
    [({}, False), ({"LLM_BASE_URL": "http://127.0.0.1/v1/", "LLM_MODEL": "small-model"}, True)],
    ids=["without", "with"],
)
def test_the_environment_decides_whether_it_is_there(environment: dict[str, str], there: bool) -> None:
    code = (
        "import django; django.setup(); from django.conf import settings; from a2a.agents import registry; "
        "print(registry.get('llm') is not None, settings.LLM_BASE_URL)"
    )
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LLM_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=clean | {"DJANGO_SETTINGS_MODULE": "config.settings"} | environment,
    )
    assert done.stdout.split() == ([str(there), "http://127.0.0.1/v1"] if there else [str(there)])


@pytest.mark.parametrize(
    ("url", "model", "key", "said"),
    [
        ("", "", "", None),
        ("https://model.example/v1", "small-model", KEY, None),
        ("https://model.example/v1", "", "", "LLM_MODEL is not set"),
        ("", "small-model", "", "LLM_BASE_URL is not set"),
        ("model.example/v1", "small-model", "", "LLM_BASE_URL must be"),
        ("ftp://model.example", "small-model", "", "LLM_BASE_URL must be"),
        ("http://model.example:port", "small-model", "", "LLM_BASE_URL must be"),
        ("https://", "small-model", "", "LLM_BASE_URL must be"),
        (f"https://me:{KEY}@model.example/v1", "small-model", "", "LLM_BASE_URL must be"),
        (f"https://model.example/v1?key={KEY}", "small-model", "", "LLM_BASE_URL must be"),
        ("https://model.example/v1", "small-model", f"{KEY}\nX", "LLM_API_KEY has characters"),
        ("https://model.example/v1", "small-model", f"{KEY}é", "LLM_API_KEY has characters"),
    ],
)
def test_a_check_names_what_is_wrong_with_the_settings(
    settings: Any, url: str, model: str, key: str, said: str | None
) -> None:
    settings.LLM_BASE_URL, settings.LLM_MODEL, settings.LLM_API_KEY = url, model, key
    found = check_llm()
    assert [error.id for error in found] == (["a2a.E003"] if said else [])
    assert all(said and said in error.msg and KEY not in error.msg for error in found)


def test_a_key_that_cannot_be_sent_is_never_shown(owner: Person, endpoint: Endpoint, settings: Any) -> None:
    settings.LLM_API_KEY = f"{KEY}\nX"
    task = sent(owner, "hello", "llm")
    assert sentence(task) == "The language model is not configured properly on this server."
    assert endpoint.calls == []
