"""Which large bodies without evidence are refused by their heads alone, and what is counted of them."""

from typing import Any

import httpx
import pytest

from tasks_app.asgi.cors import Cors
from tasks_app.asgi.handler import LeanHandler
from tasks_app.exchanges.refusals import tally
from tasks_app.transports.bodies import SMALL
from tasks_app.transports.unread import refuse_unread
from tests.support.hand import Hand

ADDRESS, PAGE = "192.0.2.9", "https://page.example"
PATHS = ["/", "/jsonrpc", "/agents/echo/jsonrpc", "/message:send", "/v1/message:send", "/invoke", "/a2a"]


def scope(*fields: tuple[bytes, bytes], path: str = "/jsonrpc", size: int | str = SMALL + 1, verb: str = "POST") -> Any:
    headers = [(b"content-length", str(size).encode()), (b"content-type", b"application/json"), *fields]
    return {"method": verb, "path": path, "root_path": "", "client": (ADDRESS, 40_000), "headers": headers}


@pytest.fixture(autouse=True)
async def recorded(hand: Hand) -> None:
    """Count the refusals of this minute that are recorded."""
    while tally.count(ADDRESS, 401):
        pass


@pytest.mark.parametrize("listed", [[], [PAGE], ["https://other.example"], ["*"]])
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("coding", ["identity", "gzip"])
async def test_the_early_refusal_is_the_usual_one_and_counted(
    path: str, coding: str, listed: list[str], settings: Any
) -> None:
    settings.A2A_CORS_ORIGINS = listed
    before = tally.totals[ADDRESS]
    answer = refuse_unread(scope((b"origin", PAGE.encode()), (b"content-encoding", coding.encode()), path=path))
    assert answer is not None
    assert tally.totals[ADDRESS] == before + 1
    status, fields, content = answer
    transport = httpx.ASGITransport(app=Cors(LeanHandler(), listed), client=(ADDRESS, 40_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        headers = {"Content-Type": "application/json", "Origin": PAGE, "Content-Encoding": coding}
        usual = await client.post(path, content=b" " * (SMALL + 1), headers=headers)
    assert (status, content) == (usual.status_code, usual.content) == (401, usual.content)
    own = {name.decode(): value.decode() for name, value in fields} | {"connection": "close"}
    assert own.keys() == usual.headers.keys()
    assert {name for name, value in own.items() if value != usual.headers[name]} == {"x-request-id"}


OTHERS = {
    "small": scope(size=SMALL),
    "no number": scope(size="x" * 9),
    "too large": scope(size=10**9),
    "a long number": scope(size="1" * 5_000),
    "a page": scope(path="/admin/login/"),
    "no path": scope(path="/nothing/here/at/all"),
    "a long path": scope(path="/" + "x" * 200),
    "a verb": scope(verb="PUT"),
    "a bearer": scope((b"authorization", b"Bearer wrong")),
    "a key": scope((b"x-api-key", b"wrong")),
    "a root path": {**scope(), "root_path": "/below"},
}


@pytest.mark.parametrize("name", OTHERS)
async def test_other_calls_go_the_usual_way(name: str) -> None:
    assert refuse_unread(OTHERS[name]) is None


async def test_the_first_refusals_of_a_minute_go_the_usual_way() -> None:
    tally.totals = {}
    assert refuse_unread(scope()) is None
