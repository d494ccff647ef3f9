"""Invalid tokens of a flood: they are refused without the application, by the keys that the process has."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from jwt import PyJWK

from a2a.errors import InvalidKey
from tasks_app.callers import access, tokens
from tasks_app.callers.issuer_keys import PAUSE_SECONDS, source_of
from tasks_app.callers.issuers import issuers
from tasks_app.callers.schemes import Evidence
from tasks_app.exchanges.refusals import tally
from tasks_app.models import ServiceAccount
from tasks_app.transports import floods, keys
from tasks_app.transports.doubts import Doubts, find_wrong
from tasks_app.transports.floods import refuse_early
from tests.support.hand import Hand
from tests.support.issuer import LocalIssuer
from tests.support.wrong_credentials import begin_flood
from tests.transports.token_calls import FOREIGN

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]
ADDRESS = "192.0.2.9"
BODY = b'{"jsonrpc":"2.0","id":"mine","method":"GetTask","params":{"id":"x"}}'


@pytest.fixture(autouse=True)
async def flood(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    """Let a flood be under way, and time stand still."""
    begin_flood(monkeypatch, ADDRESS)


@pytest.fixture
async def known(issuer: LocalIssuer, account: ServiceAccount) -> LocalIssuer:
    """Return an issuer whose keys the process has."""
    await find_key(issuer)
    return issuer


async def find_key(issuer: LocalIssuer) -> PyJWK:
    return await source_of(issuers()[issuer.url]).find(issuer.newest, "RS256")


async def refuse(token: str) -> Any:
    """Return the early refusal of a call with the token; None if the application answers it."""
    headers = [(b"authorization", f"Bearer {token}".encode()), (b"content-type", b"application/json")]
    head = {"method": "POST", "path": "/jsonrpc", "root_path": "", "client": (ADDRESS, 40_000)}
    early = refuse_early({**head, "headers": headers})
    answer: Any = early(BODY) if early else None
    return answer and await answer


WRONG: dict[str, Callable[[LocalIssuer], str]] = {
    "a foreign signature": lambda issuer: issuer.token(key=FOREIGN),
    "another audience": lambda issuer: issuer.token(aud="somebody"),
    "another issuer": lambda issuer: issuer.token(iss="https://elsewhere.example"),
    "an unknown key": lambda issuer: issuer.token(header={"kid": "made-up"}),
    "no token": lambda issuer: "eyJhbGciOiJub25lIn0.e30.",
    "too long": lambda issuer: issuer.token(scope="x" * 9_000),
}


@pytest.mark.parametrize("name", WRONG)
async def test_an_invalid_token_is_refused_with_its_id_and_counted(known: LocalIssuer, name: str) -> None:
    counted, misses, fetches = tally.totals[ADDRESS], access.misses.now, known.fetches
    status, headers, body = await refuse(WRONG[name](known))
    assert (status, orjson.loads(body)["id"], orjson.loads(body)["error"]["code"]) == (401, "mine", -38009)
    assert b"invalid_token" in dict(headers)[b"www-authenticate"]
    assert (tally.totals[ADDRESS], access.misses.now, known.fetches) == (counted + 1, misses + 1, fetches)


async def test_tokens_of_a_moment_are_verified_together_on_another_thread(
    known: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    verify = tokens.verify
    monkeypatch.setattr(
        tokens, "verify", lambda *given: threads.append(threading.current_thread().name) or verify(*given)
    )
    ready: list[int] = []
    monkeypatch.setattr(floods, "doubted_tokens", Doubts(lambda group: ready.append(len(group)) or find_wrong(group)))
    answers = await asyncio.gather(
        refuse(known.token(key=FOREIGN)), refuse(known.token()), refuse(known.token(aud="x"))
    )
    assert [answer and answer[0] for answer in answers] == [401, None, 401]
    assert ready == [3]
    assert len(threads) == 3
    assert threading.current_thread().name not in threads


async def test_a_valid_token_and_one_that_has_only_expired_go_to_the_application(known: LocalIssuer) -> None:
    assert await refuse(known.token()) is None
    assert await refuse(known.token(iat=1, exp=2)) is None


async def test_a_token_whose_key_was_not_fetched_yet_goes_to_the_application(
    issuer: LocalIssuer, account: ServiceAccount
) -> None:
    assert await refuse(issuer.token(key=FOREIGN)) is None
    await find_key(issuer)
    assert await refuse(issuer.token(key=FOREIGN)) is not None


async def test_an_invalid_token_that_the_application_refuses_counts_for_the_flood(known: LocalIssuer) -> None:
    async def tried(token: str) -> int:
        before = access.misses.now
        with pytest.raises(InvalidKey):
            await keys.authenticate(Evidence("oidc", token), lambda: ADDRESS)
        return access.misses.now - before

    assert await tried(known.token(key=FOREIGN)) == 1
    assert await tried(known.token(iat=1, exp=2)) == 0


async def test_a_token_of_a_new_key_goes_to_the_application_when_that_would_fetch_keys(
    known: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(issuers()[known.url])
    known.rotate()
    token = known.token()
    assert await refuse(token) is not None
    # The last fetch took long, so the time between two fetches is over before its keys are as old as that.
    monkeypatch.setattr(source, "tried_at", source.tried_at - PAUSE_SECONDS)
    assert await refuse(token) is None
    under_way = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(source, "tried_at", source.fetched_at)
    monkeypatch.setattr(source, "flight", under_way)
    assert await refuse(token) is None
    under_way.set_result(None)
    assert await refuse(token) is not None


async def test_a_fetch_that_ends_meanwhile_does_not_refuse_its_new_key(
    known: LocalIssuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(issuers()[known.url])
    under_way = asyncio.get_running_loop().create_future()

    class Keys(dict[Any, Any]):
        """The former keys, which are replaced right after a look at them."""

        def get(self, *arguments: Any) -> Any:
            under_way.set_result(None)
            return super().get(*arguments)

    monkeypatch.setattr(source, "keys", Keys())
    monkeypatch.setattr(source, "tried_at", source.fetched_at)
    monkeypatch.setattr(source, "flight", under_way)
    assert source.find_known("new", "ES256") is None
