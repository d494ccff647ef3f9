"""Which calls of an address with too many wrong credentials are refused early, and what is counted of them."""

from contextlib import suppress
from typing import Any

import httpx
import orjson
import pytest

from a2a.errors import TooManyCalls
from tasks_app.asgi.handler import LeanHandler
from tasks_app.exchanges.refusals import RECORDED, tally
from tasks_app.limits import strangers
from tasks_app.transports import keys
from tasks_app.transports.floods import refuse_early
from tests.support.hand import Hand
from tests.support.wrong_credentials import without_wait

ADDRESS = "192.0.2.7"
BODY = b'{"jsonrpc":"2.0","id":"mine","method":"GetTask","params":{"id":"x"}}'


def scope(*fields: tuple[bytes, bytes], path: str = "/jsonrpc", verb: str = "POST", address: str = ADDRESS) -> Any:
    headers = [(b"authorization", b"Bearer wrong"), (b"content-type", b"application/json"), *fields]
    return {"method": verb, "path": path, "root_path": "", "client": (address, 40_000), "headers": headers}


@pytest.fixture(autouse=True)
def address_is_refused(settings: Any) -> None:
    """Use up the wrong credentials of the address for a minute."""
    settings.A2A_ADDRESS_FAILURES = 1
    with suppress(TooManyCalls):
        while True:
            strangers.count_failure(ADDRESS)


@pytest.fixture(autouse=True)
async def recorded(address_is_refused: None, hand: Hand) -> None:
    """Count the refusals of this minute that are recorded."""
    while tally.count(ADDRESS, 429):
        pass


async def test_a_wrong_key_is_refused_with_its_id_and_counted() -> None:
    early = refuse_early(scope())
    assert early is not None
    before = tally.totals[ADDRESS]
    answer = early(BODY)
    assert answer is not None
    status, headers, body = answer
    assert status == 429
    assert {b"retry-after", b"x-request-id", b"content-length"} < dict(headers).keys()
    assert orjson.loads(body)["id"] == "mine"
    assert tally.totals[ADDRESS] == before + 1


@pytest.mark.parametrize(("written", "made_up"), [(ADDRESS, "192.0.2.8"), ("192.0.2.8", ADDRESS)])
async def test_the_address_is_that_of_the_proxys_header_and_of_no_name_like_it(
    settings: Any, written: str, made_up: str
) -> None:
    settings.A2A_TRUSTED_PROXIES = ["10.0.0.1"]
    fields = ((b"x-forwarded-for", written.encode()), (b"x_forwarded_for", made_up.encode()))
    assert (refuse_early(scope(*fields, address="10.0.0.1")) is not None) == (written == ADDRESS)


async def test_the_first_refusals_of_a_minute_go_the_usual_way() -> None:
    tally.totals = {}
    early = refuse_early(scope())
    assert early is not None
    for _ in range(RECORDED):
        assert early(BODY) is None
        tally.count(ADDRESS, 429)
    assert early(BODY) is not None


@pytest.mark.parametrize(
    "call",
    [
        scope(address="192.0.2.8"),
        scope(path="/tasks/x"),
        scope(path="/nothing/here/at/all"),
        scope(path="/" + "x" * 200),
        scope(verb="PUT"),
        scope((b"content-encoding", b"gzip"), path="/message:send"),
        {**scope(), "headers": [(b"content-type", b"application/json")]},
    ],
    ids=[
        "another address",
        "no route",
        "no path",
        "a long path",
        "a verb",
        "gzip over REST",
        "no credential",
    ],
)
async def test_other_calls_go_the_usual_way(call: dict[str, Any]) -> None:
    early = refuse_early(call)
    assert early is None


async def test_a_key_that_was_valid_before_goes_the_usual_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "_cache", AllKeys())
    assert refuse_early(scope()) is None


async def test_large_bodies_go_the_usual_way() -> None:
    early = refuse_early(scope())
    assert early is not None
    assert early(BODY + b" " * 20_000) is None


@pytest.mark.parametrize(
    ("path", "setting"),
    [("/jsonrpc", "A2A_BODY_BYTES"), ("/message:send", "A2A_BODY_BYTES"), ("/invoke", "A2A_INVOKE_BYTES")],
)
async def test_bodies_beyond_a_small_limit_go_the_usual_way(path: str, setting: str, settings: Any) -> None:
    early = refuse_early(scope(path=path))
    assert early is not None
    assert early(BODY + b" " * 2_000) is not None
    setattr(settings, setting, 1_500)
    assert early(BODY + b" " * 2_000) is None


REST = [
    ("GET", "/tasks/x", b""),
    ("GET", "/v1/tasks/x", b""),
    ("GET", "/agents/echo/tasks/x", b""),
    ("POST", "/message:send", b'{"message":{}}'),
    ("POST", "/agents/echo/message:send", b"{"),
    ("POST", "/v1/message:send", b"{}"),
    ("POST", "/tasks/x:cancel", b""),
    ("DELETE", "/tasks/x/pushNotificationConfigs/y", b""),
]
"""Calls over REST: the verb, the path and the body."""


@pytest.mark.parametrize(("verb", "path", "body"), REST, ids=lambda value: value if isinstance(value, str) else "")
async def test_over_rest_the_early_refusal_is_the_usual_one(verb: str, path: str, body: bytes) -> None:
    early = refuse_early(scope((b"content-encoding", b"identity"), path=path, verb=verb))
    assert early is not None
    answer = early(body)
    assert isinstance(answer, tuple)
    status, fields, content = answer
    transport = httpx.ASGITransport(app=LeanHandler(), client=(ADDRESS, 40_000))
    headers = {"Authorization": "Bearer wrong", "Content-Type": "application/json", "Content-Encoding": "identity"}
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
        usual = await client.request(verb, path, content=body)
    assert (status, usual.status_code) == (429, 429)
    own = {name.decode(): value.decode() for name, value in fields}
    assert own.keys() == usual.headers.keys()
    assert {name for name, value in own.items() if value != usual.headers[name]} <= {"x-request-id", "retry-after"}
    assert without_wait(content) == without_wait(usual.content)


@pytest.mark.parametrize(
    ("call", "body"),
    [
        (scope(path="/tasks/x", verb="GET"), b"{}"),
        (scope((b"content-type", b"text/plain"), path="/message:send"), b"{}"),
        (scope(path="/message:send"), b" " * 20_000),
    ],
    ids=["a GET with a body", "another type", "a large body"],
)
async def test_over_rest_bodies_that_are_refused_for_themselves_go_the_usual_way(call: Any, body: bytes) -> None:
    early = refuse_early(call)
    assert early is not None
    assert early(body) is None


@pytest.mark.parametrize(("verb", "path"), [("PUT", "/tasks/x"), ("GET", "/message:send"), ("GET", "/v1/nothing/x")])
async def test_over_rest_calls_without_a_route_go_the_usual_way(verb: str, path: str) -> None:
    assert refuse_early(scope(path=path, verb=verb)) is None


async def test_no_call_is_refused_early_when_no_address_is_refused() -> None:
    strangers.failures.clear()
    assert refuse_early(scope()) is None
    strangers.barrier.until = 0.0
    assert refuse_early(scope()) is None


class AllKeys(dict[Any, Any]):
    """A cache with every key."""

    def __contains__(self, _: object) -> bool:
        return True
