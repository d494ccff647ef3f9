"""Refused calls of strangers: they are counted by address and minute, and too many wrong keys are not looked up."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import OperationalError
from django.http import HttpResponse
from django.test import AsyncClient, Client, RequestFactory
from django.urls import reverse
from msgspec.structs import replace

from tasks_app.asgi.handler import _owner_of
from tasks_app.callers.access import FindCaller, new_key
from tasks_app.exchanges import refusals
from tasks_app.exchanges.refusals import ADDRESSES, OTHERS, RECORDED, AddRefusals, tally
from tasks_app.ids import uuid7
from tasks_app.models import ApiKey, Refusals
from tasks_app.oauth.limits import limit_wrong
from tasks_app.transports import keys
from tasks_app.transports.http import Refusal
from tasks_app.upkeep.counts import Counts, count_routine
from tests.conftest import PATIENCE, Person, until
from tests.support.commands import printed
from tests.support.exchanges import recorded
from tests.support.hand import Hand
from tests.support.wrong_credentials import without_wait
from tests.transports.exchanges.calls import Post, call, new, old

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def rows() -> list[tuple[str, int, int, int, int]]:
    """Return all counts, written by now. Their own routine ends, because it may be writing the same counts."""
    count_routine.stop()
    tally.drain(PATIENCE)
    columns = ("address", "unauthenticated", "limited", "invalid", "recorded")
    return list(Refusals.objects.order_by("minute", "address").values_list(*columns))


def codes(post: Post, number: int, wire: Any, **more: Any) -> list[tuple[int, int]]:
    answers = [post(wire, key=f"tdk_guess-{guess}", **more) for guess in range(number)]
    return [(status, json.loads(content)["error"]["code"]) for status, content in answers]


def get(path: str) -> tuple[int, Any]:
    response = asyncio.run(AsyncClient().get(path))
    return response.status_code, response.headers


def end_trust() -> None:
    """Let the second pass for which a key is not looked up again."""
    for evidence, recognition in list(keys._cache.items()):
        keys._cache[evidence] = replace(recognition, ends=0.0)


def test_a_flood_of_wrong_keys_is_refused_without_a_look_up(
    post: Post, hand: Hand, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_ADDRESS_FAILURES = 5
    looks: list[FindCaller] = []
    find = FindCaller.do_many
    monkeypatch.setattr(FindCaller, "do_many", lambda items: looks.extend(items) or find(items))
    assert codes(post, 25, new()) == [(401, -38009)] * 5 + [(429, -38008)] * 20
    assert len(looks) == 5
    assert rows() == [("127.0.0.1", 5, 20, 0, RECORDED)]
    assert [exchange.http_status for exchange in recorded(RECORDED)] == [401] * 5 + [429] * 5


def test_a_key_that_was_valid_before_works_beside_a_flood(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 2
    wire = call("GetTask", {"id": "none"})
    assert post(wire)[0] == 200
    codes(post, 5, wire)
    end_trust()
    assert post(wire)[0] == 200, "the address of a flood may be that of many callers"


def test_a_revoked_key_counts_like_a_wrong_one(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 1
    wire = call("GetTask", {"id": "none"})
    assert post(wire)[0] == 200
    ApiKey.objects.all().delete()
    end_trust()
    assert [post(wire)[0], post(wire)[0]] == [401, 429]


def test_a_key_from_another_network_counts_like_a_wrong_one(post: Post, owner: Person, settings: Any) -> None:
    """A flood must not show which keys are valid elsewhere, nor stop the callers beside it."""
    settings.A2A_ADDRESS_FAILURES, settings.A2A_TRUSTED_PROXIES = 2, ["127.0.0.0/8"]
    key, wire = new_key("worker", tenant="home", networks="203.0.113.0/24"), call("GetTask", {"id": "none"})
    inside, outside, elsewhere = ({"X-Forwarded-For": f"{place}.7"} for place in ("203.0.113", "198.51.100", "192.0.2"))
    assert [post(wire, key=key, **inside)[0], post(wire, **outside)[0]] == [200, 200]
    refused, unknown = (
        [post(wire, key=one, **place) for _ in range(4)] for one, place in ((key, outside), ("tdk_unknown", elsewhere))
    )
    assert [status for status, _ in refused] == [401, 401, 429, 429]
    assert [without_wait(content) for _, content in refused] == [without_wait(content) for _, content in unknown]
    assert post(wire, key="tdk_unknown", **outside)[0] == 429, "all wrong credentials of an address count together"
    assert [post(wire, key=key, **inside)[0], post(wire, **outside)[0]] == [200, 200]


def test_a_large_body_with_a_key_from_another_network_counts_too(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 1
    headers = [(b"x-api-key", new_key("worker", tenant="home", networks="203.0.113.0/24").encode())]
    scope = {"type": "http", "method": "POST", "path": "/jsonrpc", "headers": headers, "client": ["192.0.2.1", 1]}
    statuses = []
    for _ in range(2):
        with pytest.raises(Refusal) as refused:
            asyncio.run(_owner_of(scope, True, 0))
        statuses.append(refused.value.status)
    assert statuses == [401, 429]


@pytest.mark.parametrize("wire", [new(), old(), new(method="SendStreamingMessage"), call("nope", {})])
def test_each_language_refuses_a_flood_with_its_code(post: Post, settings: Any, wire: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 1
    assert codes(post, 2, wire) == [(401, -38009), (429, -38008)]


@pytest.mark.parametrize("path", ["/message:send", "/v1/message:send"])
def test_rest_refuses_a_flood_with_429(post: Post, settings: Any, path: str) -> None:
    settings.A2A_ADDRESS_FAILURES = 1
    wire = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    assert [post(wire, key="tdk_wrong", path=path)[0] for _ in range(2)] == [401, 429]


@pytest.mark.parametrize("path", ["/ws/ticket", "/links"])
def test_doors_without_a_language_refuse_a_flood_with_429(settings: Any, path: str) -> None:
    settings.A2A_ADDRESS_FAILURES = 2

    async def ask(guess: int) -> int:
        headers = {"Authorization": f"Bearer tdk_guess-{guess}"}
        body = json.dumps({"taskId": "none"})
        answer = await AsyncClient().post(path, body, content_type="application/json", headers=headers)
        return answer.status_code

    assert [asyncio.run(ask(guess)) for guess in range(4)] == [401, 401, 429, 429]


def test_a_batch_of_a_stranger_is_one_refusal(post: Post, hand: Hand) -> None:
    post([new(), new()], key="tdk_wrong")
    assert rows() == [("127.0.0.1", 1, 0, 0, 1)]


def test_a_link_that_was_made_up_counts_like_a_wrong_key(hand: Hand, settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 2
    file = f"/files/{uuid7()}/x.txt?until=1&signature=x"
    answers = [get("/links/none?signature=x"), get(file), get(file)]
    assert [status for status, _ in answers] == [403, 403, 429]
    assert int(answers[2][1]["Retry-After"]) > 0


WRONG = {"Authorization": "Bearer tdo_nonsense"}
OTHER_DOORS: dict[str, Callable[[], int]] = {
    "the OAuth server": lambda: limit_wrong(lambda _: HttpResponse(status=401))(RequestFactory().post("/")).status_code,
    "the operators' API": lambda: Client().get("/api/v1/", headers=WRONG).status_code,
    "the metrics": lambda: asyncio.run(AsyncClient().get("/metrics", headers=WRONG)).status_code,
    "a file": lambda: get(f"/files/{uuid7()}/x.txt?until=1&signature=x")[0],
}
"""Requests that are no calls, with a wrong credential; each returns the status of its answer."""


@pytest.mark.parametrize("name", OTHER_DOORS)
def test_wrong_credentials_of_requests_that_are_no_calls_are_counted_too(hand: Hand, settings: Any, name: str) -> None:
    settings.A2A_ADDRESS_FAILURES = 2
    statuses = [OTHER_DOORS[name]() for _ in range(3)]
    assert statuses in ([401, 401, 429], [403, 403, 429])
    assert rows() == [("127.0.0.1", 2, 1, 0, 0)]
    recorded(0)


def test_counts_of_a_thread_without_a_loop_are_stored_by_the_routine(hand: Hand) -> None:
    count_routine.stop()
    tally.count("192.0.2.1", 401, has_exchange=False)
    assert tally.waiting
    Counts().run_round()
    assert not tally.waiting
    assert rows() == [("192.0.2.1", 1, 0, 0, 0)]


def test_minutes_and_addresses_have_rows_of_their_own(post: Post, hand: Hand, settings: Any) -> None:
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    hand.time = hand.time.replace(second=0)
    post(new(), key=None, **{"X-Forwarded-For": "2001:db8::1"})
    post(new(), key=None, **{"X-Forwarded-For": "2001:db8::2"})
    post(b"x" * 1_000_001, **{"X-Forwarded-For": "203.0.113.7"})
    hand.on(seconds=60)
    post(new(), key=None, **{"X-Forwarded-For": "2001:db8::1"})
    network = "2001:db8::/64"
    assert rows() == [(network, 2, 0, 0, 2), ("203.0.113.7", 0, 0, 1, 1), (network, 1, 0, 0, 1)]
    minutes = Refusals.objects.filter(address=network).order_by("minute").values_list("minute", flat=True)
    assert minutes[1] - minutes[0] == timedelta(minutes=1)


def test_many_addresses_share_a_row(post: Post, hand: Hand) -> None:
    async def flood() -> None:
        for number in range(100_000):
            tally.count(f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1", 401)

    asyncio.run(flood())
    assert len(tally.totals) == ADDRESSES + 1
    found = rows()
    assert len(found) == ADDRESSES + 1
    assert (OTHERS, 100_000 - ADDRESSES, 0, 0, RECORDED) in found


def test_operators_find_the_refusals_of_an_address(post: Post, hand: Hand, admin_client: Client) -> None:
    minute = hand().replace(second=0, microsecond=0)
    for address in ("192.0.2.1", "2001:db8::/64"):
        AddRefusals.do_many([AddRefusals({(minute, address): refusals.Count(limited=2, recorded=1)})])
    assert [line["address"] for line in printed("a2a", "refusals")] == ["192.0.2.1", "2001:db8::/64"]
    (line,) = printed("a2a", "refusals", "--address", "2001:db8::77")
    assert printed("a2a", "refusals", "--address", "2001:db8::/64") == [line]
    assert printed("a2a", "refusals", "--address", "others") == []
    with pytest.raises(CommandError, match=r"'10\.1' is no IP address"):
        printed("a2a", "refusals", "--address", "10.1")
    assert (line["address"], line["limited"], line["recorded"]) == ("2001:db8::/64", 2, 1)
    page = reverse("admin:tasks_app_refusals_changelist")
    assert "192.0.2.1" in admin_client.get(page).content.decode()
    shown = admin_client.get(page, {"q": "2001:db8::77"}).content.decode()
    assert "2001:db8::/64" in shown
    assert "192.0.2.1" not in shown


def test_two_processes_add_to_one_row(hand: Hand) -> None:
    minute = hand().replace(second=0, microsecond=0)
    one = AddRefusals({(minute, "192.0.2.1"): refusals.Count(limited=2)})
    AddRefusals.do_many([one, one])
    AddRefusals.do_many([one])
    assert rows() == [("192.0.2.1", 0, 6, 0, 0)]


def test_counts_wait_while_the_database_is_away(post: Post, hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(items: Any) -> Any:
        raise OperationalError("away")

    count_routine.stop()
    with monkeypatch.context() as patch:
        patch.setattr(AddRefusals, "do_many", away)
        post(new(), key=None)
        tally.drain(PATIENCE)
        until(lambda: tally.waiting, "the counts are kept")
        assert Refusals.objects.count() == 0
    post(new(), key=None)
    assert rows() == [("127.0.0.1", 2, 0, 0, 2)]
