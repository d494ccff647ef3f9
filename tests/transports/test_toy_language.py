"""A language that is not A2A, in one file: an envelope, error numbers and dotted methods of its own.

It passes the story over HTTP and over another door.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from django.test import AsyncClient
from django.urls import resolve
from msgspec import UNSET
from msgspec.structs import replace

from a2a import errors
from a2a.choice import Endpoint, Row, by_method
from a2a.dialects import v1_0
from a2a.envelopes import AnyMember, BadMember, Envelope, Failure, Id, Member, bare
from a2a.envelopes.body import holds_nul, read_json
from a2a.errors import Error, InvalidParams, InvalidRequest
from a2a.language import Cell, Language, Push
from a2a.languages import Languages
from a2a.types import Json
from tasks_app.callers.paths import segments_of, words_of
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Delivery, Exchange, Webhook
from tasks_app.urls import endpoint_urls
from tasks_app.urls import urlpatterns as doors
from tests.conftest import Person
from tests.support.chapters import CHAPTERS
from tests.support.doors import Door, StockDoor
from tests.support.exchanges import recorded
from tests.support.rpc_speakers import NewSpeaker
from tests.support.story import Chapter, cast
from tests.transports.test_toy_door import QueueDoor, told

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]

# --------------------------------------------------------------------- envelope


def parse(body: bytes) -> AnyMember:
    value = read_json(body)
    if not isinstance(value, dict):
        return BadMember(id=None, error=InvalidRequest(detail="a call must be an object"))
    call = value.get("call")
    if not isinstance(call, str):
        return BadMember(id=value.get("ref"), error=InvalidRequest(detail="call must be a string"), source=value)
    with_nul = holds_nul(body)
    return Member(id=value.get("ref"), method=call, params=value.get("with", UNSET), source=value, nul=with_nul)


def head(ref: Id) -> bytes:
    return b'{"ref":' + orjson.dumps(ref) + b',"ok":'


def failure(ref: Id, error: Error, language: Language, status: int | None = None) -> Failure:
    payload = orjson.dumps({"ref": ref, "wrong": language.error(error)})
    return Failure(payload, language.code(error), status or language.status(error))


ENVELOPE = Envelope(
    name="toy", parse=parse, head=head, tail=b"}", failure=failure, media=lambda language: "application/toy+json"
)

# --------------------------------------------------------------------- language

NAMES = {
    "send": "task.send",
    "stream": "task.stream",
    "get": "task.get",
    "list": "task.list",
    "cancel": "task.cancel",
    "subscribe": "task.follow",
    "push": "hook.add",
    "pushed": "hook.get",
    "pushes": "hook.list",
    "unpush": "hook.drop",
    "nope": "task.nope",
}
HTTP = {errors.Unauthenticated: 401, errors.ExpiredKey: 401}
COLUMN = {error: Cell(700 + place, HTTP.get(error, 200)) for place, error in enumerate(errors.ALL)}


def encode_error(error: Error, code: int) -> Json:
    violations = error.violations if isinstance(error, InvalidParams) else ()
    why = {
        "reason": error.reason,
        **error.facts,
        "fields": [{"field": field, "is": text} for field, text in violations],
    }
    return {"number": code, "says": error.message, "why": why}


LANGUAGE = Language(
    name="toy",
    methods={
        NAMES[wish]: v1_0.METHODS[name]
        for wish, name in NewSpeaker(door=StockDoor(), key="").names.items()
        if wish in NAMES
    },
    column=COLUMN,
    encode_error=encode_error,
    encode_frame=v1_0.encode_frame,
    push=Push(encode=v1_0.encode_push, has=v1_0.pushes, media="application/toy+json"),
)
ROW = Row(languages=(LANGUAGE,), choose=by_method, spelling=re.compile(r"\w+\.\w+"))
ENDPOINT = Endpoint(name="toy", paths=("toy",), envelope=ENVELOPE, neutral=LANGUAGE, rows=(ROW,))
urlpatterns = [*endpoint_urls([ENDPOINT]), *doors]
"""The URLs of a server that has the endpoint."""


@pytest.fixture(autouse=True)
def _spoken(speak: Callable[[Languages], None], settings: Any) -> None:
    speak(Languages(rows=(ROW,), endpoints=(ENDPOINT,)))
    settings.ROOT_URLCONF = __name__


# ---------------------------------------------------------------------- speaker

IN_A2A = {
    COLUMN[error].number: (cell.number, cell.reason or error.reason) for error, cell in v1_0.DIALECT.column.items()
}
"""The number and the reason that A2A has for each number of the language."""


@dataclass(kw_only=True)
class ToySpeaker(NewSpeaker):
    """A client of the language, which gives answers back in the words of the story."""

    media = "application/toy+json"
    error_is_list = False
    traits = frozenset()
    webhook_version = ""

    def __post_init__(self) -> None:
        self.names, self.path = NAMES, "/toy"

    endpoint = "toy"

    def rpc_answer(self, answer: Json) -> Json:
        return {"result": answer["ok"]} if "ok" in answer else {"error": {"code": answer["wrong"]["number"]}}

    def request_of(self, wire: Any) -> tuple[str, str, bytes]:
        toy = {"ref": wire["id"], "call": wire["method"], "with": wire["params"]}
        return "POST", self.path, orjson.dumps(toy)

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        assert set(answer) in ({"ref", "ok"}, {"ref", "wrong"})
        back = {"jsonrpc": "2.0", "id": answer["ref"]}
        if "ok" in answer:
            return back | {"result": answer["ok"]}
        wrong = answer["wrong"]
        assert wrong["number"] >= 700
        code, reason = IN_A2A[wrong["number"]]
        return back | {"error": {"code": code, "message": wrong["says"], "data": wrong["why"] | {"reason": reason}}}

    def event_of(self, answer: Json, wire: Json) -> Json:
        assert answer["ref"] == wire["id"]
        result: Json = answer["ok"]
        return result

    def delivered(self, media: str, body: Json) -> str:
        assert media == self.media
        return super().delivered("application/a2a+json", body)


DOORS: dict[str, type[Any]] = {"http": StockDoor, "queue": QueueDoor}
STORY = [chapter for chapter in CHAPTERS if not chapter.needs]


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("chapter", STORY, ids=[chapter.name for chapter in STORY])
def test_the_story_in_a_toy_language(owner: Person, stranger: Person, door: type[Any], chapter: Chapter) -> None:
    way: Any = door()
    story = chapter.tell(cast(ToySpeaker, None, way, owner.key, stranger.key))
    asyncio.run(told(story, way) if door is QueueDoor else story)  # type: ignore[arg-type]
    recorded = Exchange.objects.exclude(dialect="")
    assert set(recorded.values_list("dialect", "envelope")) <= {("toy", "toy")}
    assert {*Webhook.objects.values_list("version", "language")} <= {("", "toy")}
    assert {*Delivery.objects.values_list("version", "language")} <= {("", "toy")}


def speaker(door: Door, owner: Person) -> ToySpeaker:
    return ToySpeaker(door=door, key=owner.key)


def test_its_recorded_answers_are_derived_in_its_envelope(owner: Person) -> None:
    me = speaker(StockDoor(), owner)
    task = asyncio.run(me.send("hello", agent="echo"))
    asyncio.run(me.get(task["id"], historyLength=0))
    shown = orjson.loads(response_text(recorded(2)[1]))
    assert shown == {"ref": "rpc-2", "ok": {name: value for name, value in task.items() if name != "history"}}


def test_a_dotted_method_on_the_shared_endpoint_is_in_it(owner: Person) -> None:
    """Its numbers come in the envelope of the endpoint."""
    me = NewSpeaker(door=StockDoor(), key=owner.key)
    status, answer = asyncio.run(me.post({"jsonrpc": "2.0", "id": 1, "method": "task.get", "params": {"id": "x"}}))
    assert (status, answer["error"]["number"]) == (200, COLUMN[errors.TaskNotFound].number)
    (exchange,) = recorded(1)
    assert (exchange.dialect, exchange.envelope, exchange.code) == (
        "toy",
        "jsonrpc",
        COLUMN[errors.TaskNotFound].number,
    )


@pytest.mark.parametrize("path", ["/toy", "/toy/", "/agents/echo/toy", "/agents/echo/toy/"])
def test_its_paths_are_written_in_its_endpoint_alone(path: str) -> None:
    match = resolve(path)
    assert (match.func.endpoint, match.kwargs) == ("toy", {"agent": "echo"} if "agents" in path else {})  # type: ignore[attr-defined]  # set by the door


def test_the_segments_of_its_paths_and_routes_are_the_protocols() -> None:
    routes = replace(ENDPOINT, name="routes", paths=("", "v9"), envelope=bare.ENVELOPE, neutral=v1_0.DIALECT)
    spoken = Languages(endpoints=(ENDPOINT, routes))
    assert {"toy", "tasks", "v9"} <= segments_of(spoken)
    assert "tasks" in words_of(spoken)
    assert not {"toy", "v9"} & words_of(Languages(endpoints=(ENDPOINT,)))


@pytest.mark.parametrize(("endpoint", "path"), [("rpc", "/openrpc.json"), ("toy", "/toy/openrpc.json")])
def test_its_methods_are_described_by_its_table_alone(owner: Person, endpoint: str, path: str) -> None:
    response = asyncio.run(AsyncClient().get(path, headers={"authorization": f"Bearer {owner.key}"}))
    methods = {method["name"]: method for method in orjson.loads(response.content)["methods"]}
    assert methods.keys() >= LANGUAGE.methods.keys()
    assert {*LANGUAGE.methods} == {name for name, method in methods.items() if method["tags"] == [{"name": "toy"}]}
    assert methods["task.get"]["x-params"] == {"$ref": "#/components/schemas/toy.GetParams"}
    assert ("rpc.discover" in methods) is (endpoint == "rpc")
