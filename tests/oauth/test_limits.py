"""The limits of requests to the OAuth server by address."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory

from tasks_app.limits import strangers
from tasks_app.limits.rate_limits import limits
from tasks_app.models import OAuthClient, Principal
from tasks_app.oauth.limits import limit_wrong, spend
from tests.conftest import Person
from tests.oauth.conftest import Site, serving


@pytest.fixture(autouse=True)
def _no_failures() -> Iterator[None]:
    strangers.failures.clear()
    strangers.calls.clear()
    yield
    strangers.failures.clear()
    strangers.calls.clear()


def post(answer: HttpResponse, peer: str = "192.0.2.1") -> HttpResponse:
    def view(request: HttpRequest) -> HttpResponse:
        return answer

    response: HttpResponse = limit_wrong(view)(RequestFactory().post("/oauth2/token", REMOTE_ADDR=peer))
    return response


def test_an_address_with_wrong_secrets_has_to_wait_and_others_do_not(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 4
    right, wrong = HttpResponse("{}"), HttpResponse('{"error": "invalid_client"}', status=401)
    used = HttpResponse('{"error": "invalid_grant"}', status=400)
    unwise = HttpResponse('{"error": "invalid_scope"}', status=400)
    assert [post(answer).status_code for answer in (right, unwise, unwise, unwise, unwise, unwise)] == [200] + [400] * 5
    assert [post(answer).status_code for answer in (wrong, used, wrong, used)] == [401, 400, 401, 400]
    refused = post(right)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert b"wait" in refused.content.lower()
    assert post(right, "192.0.2.2").status_code == 200


def test_all_requests_count_among_the_calls_of_their_address(settings: Any) -> None:
    settings.A2A_ADDRESS_CALLS = 3
    answers = [post(HttpResponse("{}")) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200] * 3 + [429]
    assert int(answers[-1]["Retry-After"]) > 0
    assert post(HttpResponse("{}"), "192.0.2.2").status_code == 200


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("strict"), A2A_ADDRESS_FAILURES="4") as site:
        yield site


@pytest.mark.storage
@pytest.mark.parametrize(
    ("name", "path", "address", "statuses"),
    [
        ("native", "/oauth2/revoke", "127.0.0.2", [200] * 4 + [429] * 2),
        ("robot", "/oauth2/revoke", "127.0.0.3", [200] * 4 + [429] * 2),
        ("robot", "/oauth2/introspect", "127.0.0.4", [200] * 6),
    ],
)
def test_unknown_tokens_to_revoke_are_limited_by_address(
    strict: Site, name: str, path: str, address: str, statuses: list[int]
) -> None:
    """Give each case an address of its own, because they share a process."""
    program = strict.programs[name]
    auth = (program.id, program.secret) if program.secret else None
    with httpx.Client(transport=httpx.HTTPTransport(local_address=address), base_url=strict.url, timeout=30) as client:

        def send(text: str) -> httpx.Response:
            return client.post(path, data={"token": text, "client_id": program.id}, auth=auth)

        unknown = [send(f"tda_{number}") for number in range(6)]
    assert [answer.status_code for answer in unknown] == statuses
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in unknown if answer.status_code == 429)


@pytest.mark.storage
def test_a_token_at_the_address_of_another_agent_counts_like_a_wrong_one(strict: Site) -> None:
    token = strict.token(resource=f"{strict.url}/agents/echo")["access_token"]
    headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
    wire = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
    transport = httpx.HTTPTransport(local_address="127.0.0.5")
    with httpx.Client(transport=transport, base_url=strict.url, headers=headers, timeout=30) as client:
        at_its_own, *others, at_its_own_again = (
            client.post(f"/agents/{agent}/jsonrpc", json=wire).status_code for agent in ("echo", *["story"] * 6, "echo")
        )
    assert others == [401] * 4 + [429] * 2
    assert (at_its_own, at_its_own_again) == (200, 200)


@pytest.mark.django_db
def test_a_view_on_a_thread_spends_on_the_loop_that_has_the_buckets(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    async def note(caller: Any, cost: int) -> None:
        seen.append((asyncio.get_running_loop(), caller.owner_id, cost))

    async def call() -> asyncio.AbstractEventLoop:
        await sync_to_async(spend)(OAuthClient(principal=principal), 10, None)
        return asyncio.get_running_loop()

    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    monkeypatch.setattr(limits, "spend", note)
    loop = asyncio.run(call())
    assert seen == [(loop, principal.pk, 10)]
