"""Unknown keys of a flood from many addresses: they are looked up in groups, and refused without the application."""

from typing import Any

import orjson
import pytest
from django.db import OperationalError

from a2a.errors import TooManyCalls
from tasks_app.callers import access
from tasks_app.callers.access import FindStored
from tasks_app.exchanges.refusals import tally
from tasks_app.limits import strangers
from tasks_app.transports.floods import refuse_early
from tests.conftest import Person
from tests.support.hand import Hand
from tests.support.wrong_credentials import begin_flood

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
ADDRESS = "192.0.2.9"
CALLS = {
    "A2A": b'{"jsonrpc":"2.0","id":"mine","method":"GetTask","params":{"id":"x"}}',
    "ACP": b'{"jsonrpc":"2.0","id":"mine","method":"tasks.get","params":{"taskId":"x"}}',
}
A2A = CALLS["A2A"]


def scope(key: str = "wrong", scheme: bytes = b"authorization") -> Any:
    value = key.encode() if scheme == b"x-api-key" else f"Bearer {key}".encode()
    headers = [(scheme, value), (b"content-type", b"application/json")]
    head = {"method": "POST", "path": "/jsonrpc", "root_path": "", "client": (ADDRESS, 40_000)}
    return {**head, "headers": headers}


@pytest.fixture(autouse=True)
async def flood(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    """Let a flood be under way, and time stand still."""
    begin_flood(monkeypatch, ADDRESS)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of the numbers of keys that are looked up together."""
    numbers: list[int] = []
    find = FindStored.do_many
    monkeypatch.setattr(FindStored, "do_many", lambda items: numbers.append(len(items[0].digests)) or find(items))
    return numbers


async def ask(call: Any, body: bytes = A2A) -> Any:
    """Return the refusal of a call; None if the application answers it."""
    early = refuse_early(call)
    answer = early(body) if early else None
    return await answer if answer is not None and not isinstance(answer, tuple) else answer


@pytest.mark.parametrize("scheme", [b"authorization", b"x-api-key"])
@pytest.mark.parametrize(("language", "code"), [("A2A", -38009), ("ACP", -40007)])
async def test_an_unknown_key_is_refused_in_its_language_and_counted(language: str, code: int, scheme: bytes) -> None:
    before = tally.totals[ADDRESS]
    status, headers, body = await ask(scope(scheme=scheme), CALLS[language])
    refusal = orjson.loads(body)
    assert (status, refusal["id"], refusal["error"]["code"]) == (401, "mine", code)
    assert b"invalid_token" in dict(headers)[b"www-authenticate"]
    assert tally.totals[ADDRESS] == before + 1


@pytest.mark.parametrize("path", ["/tasks/x", "/v1/tasks/x"])
async def test_over_rest_an_unknown_key_is_refused_and_counted_too(path: str, owner: Person) -> None:
    before = tally.totals[ADDRESS]
    status, headers, body = await ask({**scope(), "method": "GET", "path": path}, b"")
    assert (status, orjson.loads(body)["error"]["details"][0]["reason"]) == (401, "UNAUTHENTICATED")
    assert b"invalid_token" in dict(headers)[b"www-authenticate"]
    assert tally.totals[ADDRESS] == before + 1
    assert await ask({**scope(owner.key), "method": "GET", "path": path}, b"") is None


async def test_keys_of_a_moment_are_looked_up_together(owner: Person, groups: list[int]) -> None:
    answers = []
    for key in ("wrong-1", owner.key, "wrong-2"):
        early = refuse_early(scope(key))
        assert early is not None
        answers.append(early(A2A))
    results: list[Any] = [await answer for answer in answers]  # type: ignore[misc, union-attr]
    assert [result and result[0] for result in results] == [401, None, 401]
    assert groups == [3]


async def test_a_full_group_is_looked_up_at_once(groups: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.transports.doubts.MOST", 2)
    monkeypatch.setattr("tasks_app.transports.doubts.GROUP_SECONDS", 3600.0)
    early = [refuse_early(scope(f"wrong-{number}")) for number in range(2)]
    answers: list[Any] = [one(A2A) for one in early if one]
    assert [(await answer)[0] for answer in answers] == [401, 401]
    assert groups == [2]


async def test_an_address_with_too_many_unknown_keys_is_refused(settings: Any) -> None:
    settings.A2A_ADDRESS_FAILURES = 2
    assert [(await ask(scope(f"wrong-{number}")))[0] for number in range(4)] == [401, 401, 429, 429]
    with pytest.raises(TooManyCalls):
        strangers.check_failures(ADDRESS)


async def test_the_application_answers_when_keys_cannot_be_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(items: Any) -> Any:
        raise OperationalError("away")

    monkeypatch.setattr(FindStored, "do_many", fail)
    assert await ask(scope()) is None


async def test_the_first_unknown_keys_of_an_address_are_answered_and_recorded_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tally, "totals", {})
    assert await ask(scope()) is None


async def test_unknown_keys_of_a_flood_keep_it_going() -> None:
    before = access.misses.now
    await ask(scope())
    assert access.misses.now == before + 1


async def test_a_key_that_none_can_be_is_refused_without_a_look_up(groups: list[int]) -> None:
    assert (await ask(scope("x" * 600)))[0] == 401
    assert groups == []


async def test_evidence_that_no_scheme_takes_is_refused(settings: Any) -> None:
    settings.A2A_SCHEMES = ("mtls",)
    assert (await ask(scope()))[0] == 401


async def test_a_call_without_a_key_goes_to_the_application() -> None:
    assert refuse_early(scope(scheme=b"x-nothing")) is None


async def test_without_a_flood_no_key_is_looked_up_early() -> None:
    access.misses.__init__()  # type: ignore[misc]
    assert refuse_early(scope()) is None
