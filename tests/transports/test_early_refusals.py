"""An early refusal has the bytes of the application, whatever is in the body and in the head."""

from contextlib import suppress
from typing import Any

import httpx
import pytest
from django.conf import settings

from a2a import languages
from a2a.errors import TooManyCalls
from tasks_app.asgi.cors import Cors
from tasks_app.asgi.handler import LeanHandler
from tasks_app.exchanges.refusals import tally
from tasks_app.limits import strangers
from tasks_app.transports.floods import refuse_early
from tests.support.hand import Hand
from tests.support.wrong_credentials import begin_flood, without_wait

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
ADDRESS, PAGE, OTHER = "192.0.2.7", "https://page.example", "https://other.example"
BODY = b'{"jsonrpc":"2.0","id":"mine","method":"GetTask","params":{"id":"x"}}'
BODIES = {
    "a call": BODY,
    "a call in ACP": BODY.replace(b"GetTask", b"tasks.get"),
    "an id that is a number": BODY.replace(b'"mine"', b"7"),
    "an id of no type": BODY.replace(b'"mine"', b"[1]"),
    "the id null": BODY.replace(b'"mine"', b"null"),
    "a notification": BODY.replace(b'"id":"mine",', b""),
    "a notification in ACP": BODY.replace(b'"id":"mine",', b"").replace(b"GetTask", b"tasks.get"),
    "a batch": b"[" + BODY + b"," + BODY + b"]",
    "an empty batch": b"[]",
    "no JSON": b"{",
    "nothing": b"",
    "no call": b"{}",
    "a call without a method": b'{"jsonrpc":"2.0","id":"mine"}',
    "a call of ACP of another version": BODY.replace(b"GetTask", b"tasks.get").replace(b'"2.0"', b'"1.0"'),
    "a notification of another version": BODY.replace(b'"id":"mine",', b"").replace(b'"2.0"', b'"1.0"'),
    "params of no type": BODY.replace(b'{"id":"x"}', b"7"),
}
HEADS = {
    "json": {},
    "a page": {"Origin": PAGE},
    "a page of another origin": {"Origin": OTHER},
    "compressed": {"Content-Encoding": "gzip"},
    "text": {"Content-Type": "text/plain"},
    "no type": {"Content-Type": ""},
    "json and an equals sign": {"Content-Type": "application/json=x; charset=utf-8"},
    "text and an equals sign": {"Content-Type": "text/plain=json; charset=utf-8"},
    "an unknown charset": {"Content-Type": "application/json; a*=nowhere''x"},
    "a page with a form": {"Origin": PAGE, "Content-Type": "application/x-www-form-urlencoded"},
}
PATHS = [
    f"/{start}{path}"
    for endpoint in languages.ALL.endpoints.values()
    if not endpoint.routes
    for path in endpoint.paths
    for start in ("", "agents/echo/", "agents/nothing/")
]
"""The paths of all languages with an envelope."""
LISTS = {"no": [], "one": [PAGE], "all": ["*"]}
CALLS = {
    **{f"{name} from {listed} origins": (name, BODY, listed) for name in HEADS for listed in LISTS},
    **{name: ("json", body, "no") for name, body in BODIES.items()},
}


@pytest.fixture(autouse=True)
async def flood(monkeypatch: pytest.MonkeyPatch, hand: Hand) -> None:
    """Let a flood be under way, and time stand still."""
    begin_flood(monkeypatch, ADDRESS)


@pytest.fixture(params=[False, True], ids=["with a wrong key", "of a refused address"])
def wrong(flood: None, request: pytest.FixtureRequest, settings: Any) -> None:
    """Use up the wrong credentials of the address for a minute, or do not."""
    if request.param:
        settings.A2A_ADDRESS_FAILURES = 1
        with suppress(TooManyCalls):
            while True:
                strangers.count_failure(ADDRESS)


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("name", CALLS)
async def test_the_early_refusal_of_any_call_is_the_usual_one(name: str, settings: Any) -> None:
    kind, body, listed = CALLS[name]
    settings.A2A_CORS_ORIGINS = LISTS[listed]
    await compare("POST", "/jsonrpc", {"Content-Type": "application/json"} | HEADS[kind], body)


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("path", PATHS)
async def test_the_early_refusal_at_any_path_is_the_usual_one(path: str) -> None:
    await compare("POST", path, {"Content-Type": "application/json"}, BODY)


@pytest.mark.usefixtures("wrong")
@pytest.mark.parametrize("listed", LISTS)
@pytest.mark.parametrize("sent", [[], [PAGE], [PAGE, OTHER], [OTHER, PAGE]], ids=str)
@pytest.mark.parametrize(("verb", "path"), [("GET", "/tasks/x"), ("POST", "/jsonrpc")])
async def test_the_early_refusal_has_the_usual_headers_for_pages(
    verb: str, path: str, sent: list[str], listed: str, settings: Any
) -> None:
    settings.A2A_CORS_ORIGINS = LISTS[listed]
    await compare(verb, path, [("Content-Type", "application/json"), *(("Origin", page) for page in sent)], b"")


async def compare(verb: str, path: str, headers: Any, body: bytes) -> None:
    """Check that a call is refused early as the application refuses it, and counted as often."""
    app = Cors(LeanHandler(), settings.A2A_CORS_ORIGINS)
    transport = httpx.ASGITransport(app=app, client=(ADDRESS, 40_000))
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        request = client.build_request(verb, path, content=body, headers=headers)
        request.headers["Authorization"] = "Bearer wrong"
        before = tally.totals[ADDRESS]
        status, fields, content = await refusal(request, body)
        between = tally.totals[ADDRESS]
        usual = await client.send(request)
    assert status == usual.status_code
    assert [between - before, tally.totals[ADDRESS] - between] == [1, 1]
    own = {field.decode(): value.decode() for field, value in fields}
    assert own.keys() == usual.headers.keys()
    assert {field for field, value in own.items() if value != usual.headers[field]} <= {"x-request-id", "retry-after"}
    assert without_wait(content) == without_wait(usual.content)


async def refusal(request: httpx.Request, body: bytes) -> Any:
    """Return the early refusal of a call."""
    fields = [(field.lower(), value) for field, value in request.headers.raw]
    path = {"method": request.method, "path": request.url.path, "root_path": ""}
    early = refuse_early({**path, "client": (ADDRESS, 40_000), "headers": fields})
    assert early is not None
    answer = early(body)
    assert answer is not None
    return answer if isinstance(answer, tuple) else await answer
