"""Links to streams: what one gives, and what it does not give."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.conf import settings as django_settings

from a2a import sse
from a2a.batches import BatchInput, ExecuteBatch
from a2a.requests import CancelTask
from tasks_app.asgi.handler import LeanHandler
from tasks_app.audit.refused_calls import OTHER_NETWORK
from tasks_app.callers.access import revoke
from tasks_app.callers.stream_links import EXPIRED, UNSIGNED, read_link
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.limits import strangers
from tasks_app.limits.accounts import account
from tasks_app.models import Act, ApiKey, Exchange, ExchangeBody, RefusedCalls, Task
from tasks_app.operations import Context, perform
from tasks_app.transports import streams
from tests.conftest import NO_TLS, PATIENCE, Person, Server, person, until
from tests.operations.asking import ask, message, sent
from tests.support.accounts import holdings
from tests.support.commands import printed, run
from tests.support.counts import store_counts
from tests.support.hand import Hand
from tests.transports.websocket.serving import in_a_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
Json = dict[str, Any]
Call = Callable[..., httpx.Response]


async def called(method: str, url: str, **more: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=LeanHandler())
    async with (
        asyncio.timeout(PATIENCE),
        httpx.AsyncClient(transport=transport, base_url="http://testserver", verify=NO_TLS) as client,
    ):
        return await client.request(method, url, **more)


def call(method: str, url: str, **more: Any) -> httpx.Response:
    return asyncio.run(called(method, url, **more))


def asked(who: Person, wish: Json, path: str = "/links") -> httpx.Response:
    return call("POST", path, json=wish, headers={"Authorization": f"Bearer {who.key}"})


def link(who: Person, task: str, path: str = "/links", **wish: Any) -> str:
    answer = asked(who, {"taskId": task} | wish, path)
    assert answer.status_code == 200, answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert set(answer.json()) == {"url", "expiresAt"}
    return str(answer.json()["url"])


def events(answer: httpx.Response) -> list[tuple[int, Json]]:
    """Return the numbered events of a stream."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream"
    found = []
    for block in answer.text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if "data" in lines:
            found.append((int(lines["id"]), json.loads(lines["data"])))
    return found


def refusal(answer: httpx.Response, status: int) -> str:
    """Return the message of an error in the form of REST."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["code"] == status
    return str(error["message"])


async def followed(url: str, meanwhile: Callable[[], Awaitable[Any]]) -> httpx.Response:
    """Return the whole stream; something happens once it is open."""
    following = asyncio.ensure_future(called("GET", url))
    while not readers.waiting:
        await asyncio.sleep(0.01)
        assert not following.done(), following.result().text
    await meanwhile()
    return await following


# ------------------------------------------------------------------ what it gives


def test_a_link_gives_the_stream_of_its_task_and_then_stops_the_browser(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    assert url.startswith(f"http://testserver/links/{task}?signature=")
    answer = call("GET", url)
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store, no-transform"
    assert answer.headers["x-accel-buffering"] == "no"
    ((last, first),) = events(answer)
    assert (first["task"]["id"], first["task"]["status"]["state"]) == (task, "TASK_STATE_COMPLETED")
    again = call("GET", url, headers={"Last-Event-ID": str(last)})
    assert (again.status_code, again.content) == (204, b"")
    assert call("GET", f"{url}&afterSequence={last}").status_code == 204


def test_a_stream_by_link_resumes_and_gives_each_event_once(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    seqs = [seq for seq, _ in events(call("GET", url, headers={"Last-Event-ID": "1"}))]
    assert seqs == list(range(1, Task.objects.get(pk=task).last_seq + 1))
    # A header, which a browser sends by itself, is newer than the address.
    newer = call("GET", f"{url}&afterSequence=1", headers={"Last-Event-ID": "2"})
    assert [seq for seq, _ in events(newer)] == seqs[1:]
    assert "Last-Event-ID must be a whole" in refusal(call("GET", url, headers={"Last-Event-ID": "x"}), 400)
    assert "afterSequence must be a whole" in refusal(call("GET", f"{url}&afterSequence=-1"), 400)


def test_a_question_does_not_end_the_stream(owner: Person) -> None:
    task = sent(owner, agent="asks").id
    url = link(owner, task, version="0.3")
    answer = asyncio.run(followed(url, partial(perform, CancelTask(id=task), Context(caller=owner.caller))))
    assert [list(event) for _, event in events(answer)] == [["task"], ["statusUpdate"]]


@pytest.mark.parametrize(
    ("version", "first"), [(None, "TASK_STATE"), ("1.0", "TASK_STATE"), ("1.0.1", "TASK_STATE"), ("0.3", "TASK_STATE")]
)
def test_events_come_in_the_version_of_the_link(owner: Person, version: str | None, first: str) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task, **({"version": version} if version else {}))
    answer = call("GET", url, headers={"A2A-Version": "9.9"})
    assert first in answer.text
    assert answer.headers["a2a-version"] == ("0.3" if version == "0.3" else "1.0")


def test_a_link_of_an_agent_is_below_its_address(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task, "/agents/echo/links")
    assert urlsplit(url).path == f"/agents/echo/links/{task}"
    assert events(call("GET", url))
    assert events(call("GET", url.replace("/agents/echo", "")))
    assert refusal(call("GET", url.replace("/echo/", "/story/")), 404)
    assert refusal(asked(owner, {"taskId": task}, "/agents/story/links"), 404)


def test_a_link_to_a_batch_is_below_the_address_of_its_agent(owner: Person) -> None:
    items = (BatchInput(message=message("a")),)
    batch = ask(owner, ExecuteBatch(operation="any", items=items), agent="gate").task.id
    assert urlsplit(link(owner, batch, "/agents/gate/links")).path == f"/agents/gate/links/{batch}"
    assert asked(owner, {"taskId": batch}, "/agents/echo/links").status_code == 404


def test_a_stream_by_link_is_recorded_with_its_caller_and_without_the_link(owner: Person, server: Server) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    call("GET", url)
    call("GET", url, headers={"Last-Event-ID": "99"})
    call("GET", url + "x")
    assert recorder.drain(PATIENCE)
    rows = list(Exchange.objects.exclude(door="rest").order_by("id"))
    assert [(row.door, row.outcome, row.http_status) for row in rows] == [
        ("link", "stream", 200),
        ("link", "result", 204),
        ("link", "refused", 403),
    ]
    assert {row.caller_id for row in rows[:2]} == {owner.caller.owner_id}
    assert {row.task_id for row in rows[:2]} == {task}
    made = Exchange.objects.get(method="links/create")
    assert (made.task_id, made.caller_id, made.outcome) == (task, owner.caller.owner_id, "result")
    (signature,) = parse_qs(urlsplit(url).query)["signature"]
    stored = "".join(row.request + (row.response or "") for row in ExchangeBody.objects.all())
    assert f"/links/{task}" in stored
    assert signature not in stored
    assert signature.split(":")[0] not in stored


def test_the_log_of_a_server_has_no_link(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.owner}"}
    message = {"messageId": "link-in-log", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    with httpx.Client(base_url=server.url, headers=headers, verify=NO_TLS, timeout=PATIENCE) as client:
        task = client.post("/message:send", json={"message": message}).json()["task"]["id"]
        url = client.post("/links", json={"taskId": task}).json()["url"]
    assert url.startswith(f"{server.url}/links/{task}?")
    assert httpx.get(url, verify=NO_TLS).status_code == 200
    assert httpx.get(url[:-1], verify=NO_TLS).status_code == 403
    until(lambda: server.log.read_text().count(f"/links/{task}") == 2, "two lines of the log")
    (signature,) = parse_qs(urlsplit(url).query)["signature"]
    assert signature[:-1] not in server.log.read_text()


# ----------------------------------------------------------- what it does not give


def test_a_link_with_a_changed_character_is_refused(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    (signature,) = parse_qs(urlsplit(url).query)["signature"]
    for place, letter in enumerate(signature):
        for other in {"A", "a", letter.swapcase(), ""} - {letter}:
            with pytest.raises(ValueError, match=UNSIGNED):
                read_link(task, signature[:place] + other + signature[place + 1 :])
    for changed in (url[:-1], url + "A", url.replace("signature=", "Signature="), url.partition("?")[0]):
        assert UNSIGNED in refusal(call("GET", changed), 403)
    many = "&".join(f"x{number}=1" for number in range(2_000))
    assert UNSIGNED in refusal(call("GET", f"{url.partition('?')[0]}?{many}"), 403)


def test_a_link_leads_to_no_other_task_and_to_no_other_method(owner: Person) -> None:
    task, other = sent(owner, agent="echo").id, sent(owner, agent="echo").id
    url = link(owner, task)
    assert UNSIGNED in refusal(call("GET", url.replace(task, other)), 403)
    for method in ("POST", "PUT", "DELETE", "HEAD", "PATCH"):
        answer = call(method, url)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
    query = urlsplit(url).query
    for path in (f"/tasks/{task}", f"/tasks/{task}:subscribe", f"/v1/tasks/{task}", "/tasks"):
        assert call("GET", f"{path}?{query}").status_code == 401
    (signature,) = parse_qs(query)["signature"]
    assert call("GET", f"/tasks/{task}", headers={"Authorization": f"Bearer {signature}"}).status_code == 401


def test_a_link_to_a_file_is_no_link_to_a_stream(owner: Person, settings: Any) -> None:
    from django.core import signing

    task = sent(owner, agent="echo").id
    value = [task, owner.caller.owner_id, None, 2**40, "1.0"]
    for salt in ("tasks_app.files", "django.core.signing"):
        with pytest.raises(ValueError, match=UNSIGNED):
            read_link(task, signing.dumps(value, salt=salt))
    for wrong in ([], [task], {"task": task}, "x", [task, "1", None, 2**40, "1.0"]):
        with pytest.raises(ValueError, match=UNSIGNED):
            read_link(task, signing.dumps(wrong, salt="tasks_app.stream_links"))


def test_a_link_expires_and_ends_an_open_stream(owner: Person, hand: Hand, settings: Any) -> None:
    settings.A2A_PING_SECONDS = 0.05
    url = link(owner, sent(owner, agent="asks").id, seconds=60)
    hand.on(seconds=59)
    answer = asyncio.run(followed(url, partial(in_a_thread, partial(hand.on, seconds=1))))
    assert events(answer)
    assert answer.content.endswith(sse.EXPIRY)
    assert EXPIRED in refusal(call("GET", url), 403)
    assert not holdings(account)


def test_a_link_ends_with_the_key_that_made_it(owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_PING_SECONDS = 0.05
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.05)
    other = person("owner", "home")
    task = sent(owner, agent="asks").id
    url, still = link(owner, task), link(other, task)
    mine = ApiKey.objects.filter(pk=owner.caller.key_id)
    answer = asyncio.run(followed(url, partial(in_a_thread, partial(revoke, mine))))
    assert answer.content.endswith(sse.REVOCATION)
    assert "that made this link is not valid" in refusal(call("GET", url), 403)
    ask(other, CancelTask(id=task))
    assert events(call("GET", still))
    ApiKey.objects.all().delete()
    assert "that made this link is not valid" in refusal(call("GET", still), 403)


def test_a_link_to_a_deleted_task_leads_nowhere(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    Task.objects.all().delete()
    for headers in ({}, {"Last-Event-ID": "9"}):
        assert refusal(call("GET", url, headers=headers), 404)


def test_streams_by_link_count_as_those_of_the_owner(owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_STREAMS = 1
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    held = account.hold(owner.caller.owner_id, "streams")
    answer = call("GET", url)
    assert (answer.status_code, "retry-after" in answer.headers) == (429, True)
    held.release()
    assert events(call("GET", url))


# ------------------------------------------------------------------- who makes one


def test_only_who_may_read_a_task_makes_a_link_to_it(owner: Person, colleague: Person, stranger: Person) -> None:
    task = sent(owner, agent="echo").id
    for who in (colleague, stranger):
        assert refusal(asked(who, {"taskId": task}), 404)
    for unknown in ("none", "", "a\0b"):
        assert refusal(asked(owner, {"taskId": unknown}), 404)
    assert refusal(asked(person("owner", "home", scopes="tasks:write"), {"taskId": task}), 403)
    assert refusal(asked(Person("wrong", owner.caller), {"taskId": task}), 401)
    assert refusal(call("POST", "/links", json={"taskId": task}), 401)
    assert call("GET", "/links").status_code == 405
    reader = person("owner", "home", scopes="tasks:read")
    url = link(reader, task)
    ApiKey.objects.filter(pk=reader.caller.key_id).update(scopes="tasks:write")
    assert refusal(call("GET", url), 403)


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({}, "taskId"),
        ({"taskId": 7}, "taskId"),
        ([], "params"),
        ({"seconds": 0}, "seconds must be"),
        ({"seconds": -5}, "seconds must be"),
        ({"seconds": 3601}, "seconds must be from 1 to 3600"),
        ({"seconds": 1.5}, "seconds must be an integer"),
        ({"seconds": "soon"}, "seconds must be an integer"),
        ({"version": "9.9"}, "ersion"),
        ({"version": ""}, "ersion"),
        ({"version": 1}, "version"),
    ],
    ids=str,
)
def test_a_wrong_wish_is_refused_by_name(owner: Person, wish: Any, words: str) -> None:
    task = sent(owner, agent="echo").id
    whole = wish if not isinstance(wish, dict) or not wish or "taskId" in wish else {"taskId": task} | wish
    assert words in refusal(asked(owner, whole), 400)


def test_a_wish_is_json_and_short(owner: Person) -> None:
    headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    assert refusal(call("POST", "/links", content=b"{", headers=headers), 400)
    assert refusal(call("POST", "/links", content=b" " * 20_000, headers=headers), 413)
    assert refusal(call("POST", "/links", content=b" " * 9_000_000, headers=headers), 413)
    assert refusal(call("POST", "/links", content=b"{}", headers=headers | {"Content-Type": "text/plain"}), 415)


def test_an_operator_may_switch_links_and_streams_off(owner: Person, settings: Any) -> None:
    task = sent(owner, agent="echo").id
    url = link(owner, task)
    settings.A2A_LINK_SECONDS = 0
    assert "A2A_LINK_SECONDS" in json.dumps(asked(owner, {"taskId": task}).json())
    assert run("tasks", "link", task).code == 1
    settings.A2A_LINK_SECONDS = 3600
    settings.A2A_STREAMING = False
    assert refusal(asked(owner, {"taskId": task}), 400)
    assert refusal(call("GET", url), 400)


# --------------------------------------------------------------------- the command


def test_an_operator_makes_a_link_by_command(owner: Person) -> None:
    task = sent(owner, agent="echo").id
    (line,) = printed("tasks", "link", task, "--seconds", "90", "--operator", "ada", "--reason", "a look")
    assert line["id"] == task
    url = urlsplit(line["url"])
    assert f"{url.scheme}://{url.netloc}" == f"http://{django_settings.HOST}:{django_settings.PORT}"
    ApiKey.objects.all().delete()
    assert events(call("GET", f"{url.path}?{url.query}"))
    act = Act.objects.get()
    assert (act.verb, act.operator, act.object_id, act.reason) == ("link", "ada", task, "a look")
    assert json.loads(act.after) == {"expiresAt": line["expiresAt"]}
    for words, sentence in (
        (["none"], "There is no task"),
        ([task, "--seconds", "0"], "seconds must be"),
        ([task, "--a2a-version", "9"], "9; "),
    ):
        refused = run("tasks", "link", *words)
        assert (refused.code, sentence in refused.errors) == (1, True), refused.errors


def test_a_link_of_a_key_is_followed_from_its_networks_alone(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    url = link(owner, task.id)
    for networks, status in (("127.0.0.0/8", 200), ("10.0.0.0/8 2001:db8::/32", 403)):
        ApiKey.objects.update(networks=networks)
        assert call("GET", url).status_code == status
    store_counts()
    assert RefusedCalls.objects.get().reason == OTHER_NETWORK


def test_a_link_whose_stream_has_been_seen_costs_its_caller_a_unit(owner: Person, settings: Any) -> None:
    url = link(owner, sent(owner, "hello", "echo").id)
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 1, 3
    answers = [call("GET", url, headers={"Last-Event-ID": "99"}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [204] * 3 + [429] * 2
    assert int(answers[-1].headers["retry-after"]) > 0
    assert "Too many calls" in refusal(answers[-1], 429)
    assert answers[-1].headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("end", ["", "x"], ids=["right", "wrong"])
def test_calls_by_link_count_among_those_of_their_address(owner: Person, settings: Any, end: str) -> None:
    url = link(owner, sent(owner, "hello", "echo").id)
    settings.A2A_ADDRESS_CALLS = 3
    strangers.calls.clear()
    statuses = [call("GET", url + end, headers={"Last-Event-ID": "99"}).status_code for _ in range(5)]
    assert statuses == [403 if end else 204] * 3 + [429] * 2
