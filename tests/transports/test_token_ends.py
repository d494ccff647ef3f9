"""Permissions that a token opened end with it: streams, waiting calls, sockets, links and tickets."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.db import OperationalError
from websockets import InvalidStatus

from a2a import sse
from a2a.errors import Unauthenticated
from tasks_app import clock
from tasks_app.asgi.handler import LeanHandler
from tasks_app.event_log.readers import readers
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account as accounts
from tasks_app.models import Exchange, ServiceAccount, SocketTicket, Task
from tasks_app.operations import Context, Wait
from tasks_app.transports import keys, streams, waiting, websocket
from tasks_app.transports.waiting import wait_for_outcome
from tests.conftest import NO_TLS, PATIENCE, Person
from tests.support.accounts import holdings
from tests.support.hand import Hand
from tests.support.issuer import LocalIssuer
from tests.transports.websocket.door import bearer, call, dialled, frames_of, message, next_frame, streaming
from tests.transports.websocket.serving import DOORS, eventually, in_a_thread, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
BOTH = {"http": LeanHandler(), **DOORS}
JSON = {"Content-Type": "application/json"}
GONE = (1008, "the key of this socket is not valid any more")


@pytest.fixture(autouse=True)
def _soon(settings: Any, monkeypatch: pytest.MonkeyPatch, fresh_keys: None) -> None:
    settings.A2A_PING_SECONDS = 0.05
    settings.A2A_LEASE_SECONDS = 120  # more than tokens have, so that runs outlive them
    for module in (websocket, waiting):
        monkeypatch.setattr(module, "KEY_SECONDS", 0.1)


def token_of(issuer: LocalIssuer, hand: Hand, seconds: int = 60) -> str:
    """Return a token that is accepted for so many seconds."""
    now = int(hand().timestamp())
    return issuer.token(iat=now - 60, exp=now + seconds - 30)


def later(hand: Hand, seconds: float) -> None:
    """Move the hand on by more than a second, after which no caller is trusted without another look-up."""
    hand.on(seconds=seconds)
    keys._cache.clear()


def client(base: str, token: str) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=PATIENCE, verify=NO_TLS)


async def test_open_streams_end_with_their_token(account: ServiceAccount, issuer: LocalIssuer, hand: Hand) -> None:
    token = token_of(issuer, hand)
    async with serving(BOTH) as server, client(url(server), token) as http:
        body = call(1, "SendStreamingMessage", {"message": message(), "metadata": {"agent": "asks-credentials"}})
        following = asyncio.ensure_future(http.post("/jsonrpc", content=body, headers=JSON))
        await eventually(lambda: bool(readers.waiting))
        hand.on(seconds=59)
        await asyncio.sleep(0.2)
        assert not following.done()
        later(hand, 2)
        assert (await following).content.endswith(sse.REVOCATION)
        assert (await http.post("/jsonrpc", content=call(2, "ListTasks", {}), headers=JSON)).status_code == 401
    await eventually(lambda: not holdings(accounts))


async def test_sockets_and_their_streams_end_with_their_token(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand
) -> None:
    token = token_of(issuer, hand)
    async with serving(BOTH) as server, dialled(url(server), **bearer(token)) as socket:
        await socket.send(streaming("s", "asks-credentials"))
        await next_frame(socket)
        hand.on(seconds=61)
        frames = await frames_of(socket)
        ends = [frame["params"]["reason"] for frame in frames if frame.get("method") == "stream/end"]
        assert ends in (["revoked"], [])  # The socket may close first.
        assert (socket.close_code, socket.close_reason) == GONE


async def test_waiting_calls_end_with_their_token(account: ServiceAccount, issuer: LocalIssuer, hand: Hand) -> None:
    token = token_of(issuer, hand)
    async with serving(BOTH) as server, client(url(server), token) as http:
        following = asyncio.ensure_future(http.post("/jsonrpc", content=said("go"), headers=JSON))
        await eventually(lambda: bool(readers.waiting))
        hand.on(seconds=61)
        with pytest.raises(httpx.HTTPError):
            await following
    assert await in_a_thread(lambda: recorder.drain(PATIENCE))
    row = await in_a_thread(lambda: Exchange.objects.get(method="SendMessage"))
    assert (row.outcome, row.code) == ("broken", -38009)
    task = await in_a_thread(lambda: Task.objects.get().id)
    async with serving(BOTH) as server, client(url(server), token_of(issuer, hand)) as http:
        answer = await http.post("/jsonrpc", content=said("stop", task), headers=JSON)
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


class Away:
    """A database that is away for checks of keys. Many of them in a row are one loop that never waits."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, *_: Any) -> bool:
        self.asked += 1
        raise OperationalError if self.asked < 50 else RuntimeError("the check is done in a loop")


async def test_a_socket_ends_with_its_token_while_the_database_is_away(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Away()
    async with serving(BOTH) as server, dialled(url(server), **bearer(token_of(issuer, hand))) as socket:
        monkeypatch.setattr(websocket, "is_valid", away)
        hand.on(seconds=61)
        assert await frames_of(socket) == []
    assert (socket.close_code, socket.close_reason) == GONE


async def test_a_waiting_call_ends_with_its_token_while_the_database_is_away(owner: Person) -> None:
    wait = Wait(task_id="none", context_id="none", after=0, history_length=None)
    with pytest.raises(Unauthenticated):
        await wait_for_outcome(wait, Context(caller=owner.caller), Away(), clock.now().timestamp())


def said(text: str, task: str | None = None) -> str:
    more = {"taskId": task} if task else {}
    return call(1, "SendMessage", {"message": message(text, id=text, **more), "metadata": {"agent": "gate"}})


async def test_a_disabled_account_loses_its_streams_and_sockets(
    account: ServiceAccount, issuer: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.1)
    async with serving(BOTH) as server, dialled(url(server), **bearer(issuer.token())) as socket:
        await socket.send(streaming("s", "asks-credentials"))
        await next_frame(socket)
        now = clock.now()
        await in_a_thread(lambda: ServiceAccount.objects.update(disabled_at=now, not_before=None))
        await frames_of(socket)
        assert (socket.close_code, socket.close_reason) == GONE


async def test_a_ticket_of_an_account_opens_a_socket_until_the_token_ends(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand
) -> None:
    token = token_of(issuer, hand, 50)
    async with serving(BOTH) as server, client(url(server), token) as http:
        tickets = [(await http.post("/ws/ticket")).json()["ticket"] for _ in range(3)]
        (stored,) = await in_a_thread(lambda: set(SocketTicket.objects.values_list("key_digests", flat=True)))
        assert token not in stored
        async with dialled(url(server), f"/ws?ticket={tickets[0]}") as socket:
            await socket.send(call(1, "ListTasks", {}))
            assert "result" in await next_frame(socket)
            await socket.send(call(2, "CancelTask", {"id": "none"}))
            assert (await next_frame(socket))["error"]["code"] == -38010, "the scopes are those of the token"
        later(hand, 51)
        with pytest.raises(InvalidStatus):
            async with dialled(url(server), f"/ws?ticket={tickets[1]}"):
                pass


async def test_a_link_of_an_account_ends_with_the_token_and_the_account(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand
) -> None:
    token = token_of(issuer, hand, 600)
    async with serving(BOTH) as server, client(url(server), token) as http:
        body = call(1, "SendMessage", {"message": message(), "metadata": {"agent": "echo"}})
        task = (await http.post("/jsonrpc", content=body, headers=JSON)).json()["result"]["task"]["id"]
        made = (await http.post("/links", json={"taskId": task})).json()
        link = made["url"].partition("/links")[2]
        assert clock.now() < sse_time(made["expiresAt"]) <= clock.now() + timedelta(seconds=600)
        assert (await http.get("/links" + link, headers={"Authorization": ""})).status_code == 200
        hand.on(seconds=5)
        now = hand()
        await in_a_thread(lambda: ServiceAccount.objects.update(disabled_at=None, not_before=now))
        assert (await http.get("/links" + link, headers={"Authorization": ""})).status_code == 403
        await in_a_thread(lambda: ServiceAccount.objects.update(disabled_at=None, not_before=None))
        assert (await http.get("/links" + link, headers={"Authorization": ""})).status_code == 200
        later(hand, 600)
        assert (await http.get("/links" + link, headers={"Authorization": ""})).status_code == 403


async def test_a_link_that_is_made_while_a_refused_token_is_still_trusted_opens_nothing(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "TRUSTED_SECONDS", 60.0)
    async with serving(BOTH) as server, client(url(server), token_of(issuer, hand, 600)) as http:
        body = call(1, "SendMessage", {"message": message(), "metadata": {"agent": "echo"}})
        task = (await http.post("/jsonrpc", content=body, headers=JSON)).json()["result"]["task"]["id"]
        now = hand()
        await in_a_thread(lambda: ServiceAccount.objects.update(disabled_at=None, not_before=now))
        hand.on(seconds=1)
        made = await http.post("/links", json={"taskId": task})
        assert made.status_code == 200
        link = "/links" + made.json()["url"].partition("/links")[2]
        assert (await http.get(link, headers={"Authorization": ""})).status_code == 403


def sse_time(text: str) -> Any:
    return clock.now().fromisoformat(text)


async def test_a_recognised_token_is_not_used_after_its_end(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand
) -> None:
    token = token_of(issuer, hand, 40)
    async with serving(BOTH) as server, client(url(server), token) as http:
        assert (await http.post("/jsonrpc", content=call(1, "ListTasks", {}), headers=JSON)).status_code == 200
        later(hand, 41)
        assert (await http.post("/jsonrpc", content=call(1, "ListTasks", {}), headers=JSON)).status_code == 401


async def test_a_caller_is_trusted_no_longer_than_its_token(
    account: ServiceAccount, issuer: LocalIssuer, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "TRUSTED_SECONDS", 60.0)
    hand.time = hand.time.replace(microsecond=0)  # A token ends at a whole second.
    token = token_of(issuer, hand, 40)
    async with serving(BOTH) as server, client(url(server), token) as http:
        hand.on(seconds=39.8)
        assert (await http.post("/jsonrpc", content=call(1, "ListTasks", {}), headers=JSON)).status_code == 200
        hand.on(seconds=0.2)
        await asyncio.sleep(0.25)  # Trust is counted by the monotonic clock, which no hand moves.
        assert (await http.post("/jsonrpc", content=call(1, "ListTasks", {}), headers=JSON)).status_code == 401
