"""The headers about rate limits, which every answer to a caller with a limit has, whatever its door."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from a2a.requests import Execute, Invoke, SendMessage, StreamInvoke, StreamMessage
from a2a.workflows import SendInPhase, StreamInPhase
from config.asgi import application
from tasks_app.callers.stream_links import make_link
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tests.conftest import Person
from tests.fuzz.asking import ask
from tests.fuzz.calls import Call
from tests.operations.asking import sent
from tests.support.every_method import SPEAKERS, WISHES, kinds_of, speaker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
JSON = ("Content-Type", "application/json")
SENDING = (SendMessage, SendInPhase, Execute, Invoke, StreamMessage, StreamInPhase, StreamInvoke)
CALLS = {
    "JSON-RPC": Call(
        "POST", "/jsonrpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ListTasks"}).encode(), (JSON,)
    ),
    "REST": Call("GET", "/tasks", b""),
    "the extended card": Call("GET", "/agent/authenticatedExtendedCard", b""),
    "a description": Call("GET", "/openapi.json", b""),
    "a ticket": Call("POST", "/ws/ticket", b""),
    "a link": Call("POST", "/links", b'{"taskId": "none"}', (JSON,)),
}


@pytest.fixture
def limited(owner: Person) -> Iterator[Person]:
    """Give the owner a bucket that is enough for one of the calls, and fills in 20 minutes."""
    limits.rules[("caller", owner.caller.owner_id)] = Rate(0.25, 5)
    limits.forget()
    yield owner
    limits.rules.clear()
    limits.forget()


@pytest.mark.parametrize("name", CALLS)
def test_an_answer_and_a_refusal_have_the_headers(limited: Person, name: str) -> None:
    with asyncio.Runner() as runner:
        for status in ("any", 429):
            answer = runner.run(ask(application, CALLS[name], limited.key))
            assert answer.status == status or status == "any"
            assert answer.headers["ratelimit-policy"] == '"caller";q=5;w=1200'
            assert answer.headers["ratelimit"].startswith('"caller";r=')
            limits.pay(limited.caller, 4)
        assert int(answer.headers["retry-after"]) > 0


def calls_of(name: str, key: str) -> list[Call]:
    """Return a message in a language, one that is answered with a stream if the language has those, and a batch."""
    me, kinds = speaker(name, key), kinds_of(SPEAKERS[name][2])
    wishes = [WISHES[kind] for kind in SENDING if kind in kinds]
    found = [me.call(wish, me.sending("hello", agent="quick-coroutine")) for wish in wishes]
    requests = [(me.request_of(wire), me.headers()) for wire in found]
    assert found, "each language has a method that sends"
    if me.has_envelope:
        requests.append((("POST", me.path, json.dumps(found).encode()), me.headers()))
    return [Call(verb, path, body, tuple(headers.items())) for (verb, path, body), headers in requests]


@pytest.mark.parametrize("name", SPEAKERS)
def test_each_language_has_the_headers_in_answers_and_refusals(limited: Person, name: str) -> None:
    with asyncio.Runner() as runner:
        for number in range(len(calls_of(name, limited.key))):
            limits.forget()
            for is_refused in (False, True):
                call = calls_of(name, limited.key)[number]
                answer = runner.run(ask(application, call, limited.key))
                is_batch = call.body.startswith(b"[")
                assert answer.status == (429 if is_refused and not is_batch else 200), answer
                assert answer.headers["ratelimit-policy"] == '"caller";q=5;w=1200'
                assert answer.headers["ratelimit"].startswith('"caller";r=0;t=')
                assert ("retry-after" in answer.headers) is (is_refused and not is_batch)


def test_a_link_whose_stream_has_been_seen_has_the_headers(limited: Person) -> None:
    task = sent(limited, "hello", "echo")
    url = make_link(task.id, limited.caller.owner_id, limited.caller).describe("")["url"]
    with asyncio.Runner() as runner:
        for status in (204, 429):
            seen = Call("GET", url, b"", (("Last-Event-ID", "99"),))
            answer = runner.run(ask(application, seen, limited.key))
            assert (answer.status, answer.headers["ratelimit-policy"]) == (status, '"caller";q=5;w=1200')
            limits.pay(limited.caller, 4)
