"""Every error in every language by a real call: number, HTTP status and reason are those of the matrix."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from a2a import errors
from a2a.errors import Error
from a2a.languages import ALL
from a2a.requests import CancelTask
from tasks_app import clock
from tasks_app.asgi.handler import LeanHandler
from tasks_app.callers.access import new_key
from tasks_app.models import ApiKey, Principal
from tasks_app.operators.audit import Operator
from tasks_app.operators.permissions import set_permission
from tests.conftest import Person, person
from tests.fuzz import asking
from tests.operations.asking import ask, sent
from tests.support.draining import draining
from tests.support.every_method import SPEAKERS, last_json, post, speaker
from tests.support.speaker import Json, Speaker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]
SPOKEN = {"a2a-1.0": "1.0", "a2a-0.3": "0.3", "a2a-0.2": "0.2", "acp": "ACP", "adr": "ADR-002", "vapora": "VAPORA"}
SPOKEN |= {"zone": "zones", "sparc": "SPARC"}
"""The languages of the matrix, with their speakers over JSON-RPC."""
A2A = ("a2a-1.0", "a2a-0.3", "a2a-0.2", "vapora", "sparc")
URL = "https://hooks.example.com/x"
OUTSIDE = (*A2A, "acp")
UNREACHABLE: tuple[tuple[tuple[str, ...], set[type[Error]], str], ...] = (
    (("adr",), {errors.TaskNotFound, errors.TaskNotCancelable, errors.UnsupportedOperation}, "calls name no task"),
    (("adr", "zone"), {errors.PushNotSupported}, "there are no webhooks"),
    (("zone",), {errors.TaskNotCancelable}, "no method cancels"),
    (OUTSIDE, {errors.InvalidAgentResponse, errors.Timeout}, "a task that fails is an answer"),
    (("acp", "adr"), {errors.ExtendedCardNotConfigured}, "no method returns a card"),
    (("a2a-0.2", "sparc"), {errors.ExtendedCardNotConfigured}, "the extended card has a path without an envelope"),
    (("a2a-0.3", "a2a-0.2"), {errors.VersionNotSupported}, "a version that no dialect has is refused in 1.0"),
    (("acp", "adr", "zone"), {errors.VersionNotSupported}, "there are no versions"),
    ((*A2A, "adr", "zone"), {errors.SharedStreamNotFound, errors.SharedStreamClosed}, "there are no shared streams"),
    (
        tuple(name for name in SPOKEN if name != "sparc"),
        {errors.PermissionDenied, errors.WorkflowNotFound, errors.PhaseRefused, errors.MemoryNotFound},
        "there are neither workflows nor batches nor memory",
    ),
    (("acp",), {errors.IdempotencyConflict}, "messages have no ids"),
)
"""Cells that no call can reach: the languages, the errors, and the reason."""


@dataclass(kw_only=True)
class World:
    """A caller in one language, and what calls need."""

    name: str
    owner: Person
    settings: Any
    patch: pytest.MonkeyPatch
    ended: str = ""
    waiting: str = ""
    me: Speaker = field(init=False)

    def __post_init__(self) -> None:
        self.me = speaker(SPOKEN[self.name], self.owner.key)

    def ask(self, wish: str, params: Any, key: str = "", **headers: str) -> tuple[int, Json]:
        """Return the status and the JSON of the answer to a call."""
        me = speaker(SPOKEN[self.name], key or self.owner.key)
        status, _, body = post(me, me.call(wish, params), **headers)
        return status, last_json(body)

    def send(self, agent: str = "quick-coroutine", **more: Any) -> tuple[int, Json]:
        """Return the answer to a message to an agent."""
        return self.ask(self.wish, self.params(agent), **more)

    def params(self, agent: str | None, **more: Any) -> Any:
        return self.me.sending("hello", agent=agent, **more)

    @property
    def wish(self) -> str:
        return {"adr": "invoke", "zone": "execute"}.get(self.name, "send")

    def raw(self, body: bytes, key: str, path: str = "") -> tuple[int, Json]:
        """Return the answer to a body."""
        me = speaker(SPOKEN[self.name], key)
        _, own, _ = me.request_of(me.call(self.wish, self.params("echo")))

        async def call() -> tuple[int, Json]:
            async with me.door.ask("POST", path or own, body, me.headers()) as reply:
                return reply.status, json.loads(b"".join([chunk async for chunk in reply.chunks]))

        return asyncio.run(call())

    @property
    def pinned(self) -> str:
        """A key that is pinned to the language, if a key can be."""
        return new_key("pinned", language=self.name) if self.name in ALL.pinnable else self.owner.key


Call = Callable[[World], tuple[int, Json]]


def invalid_request(world: World) -> tuple[int, Json]:
    me = world.me
    _, path, body = me.request_of(me.call(world.wish, world.params("echo")))
    return world.raw(json.dumps(json.loads(body) | {"jsonrpc": "1.0"}).encode(), world.owner.key, path)


def method_not_found(world: World) -> tuple[int, Json]:
    return world.send("nope") if world.name == "adr" else world.ask("nope", {})


def invalid_params(world: World) -> tuple[int, Json]:
    wrong = {"id": "t", "historyLength": "many"} if world.name == "sparc" else {}
    return world.send(**{"X-Request-ID": ""}) if world.name == "adr" else world.ask("get", wrong)


def internal(world: World) -> tuple[int, Json]:
    async def broken(*args: Any) -> Any:
        raise RuntimeError("broken")

    with world.patch.context() as patch:
        patch.setattr("tasks_app.transports.handling.perform", broken)
        return world.send()


def push_not_supported(world: World) -> tuple[int, Json]:
    world.settings.A2A_PUSH = False
    return world.ask("push", world.me.webhook_of(world.ended, URL))


def beyond_limit(world: World) -> tuple[int, Json]:
    world.settings.A2A_TASK_MESSAGES = 1
    return world.ask(world.wish, world.params(None, task=world.waiting))


def task_ended(world: World) -> tuple[int, Json]:
    if world.name != "adr":
        return world.ask(world.wish, world.params(None, task=world.ended))
    again = {"X-Request-ID": str(uuid4())}
    _, answer = world.send("asks", **again)
    ask(world.owner, CancelTask(id=answer["result"]["task_id"]))
    return world.send("asks", **again)


def content_type(world: World) -> tuple[int, Json]:
    params = world.params("pictures")
    if world.name == "adr":
        params["params"] = {"a": 1}
    elif world.name == "zone":
        params = world.me.attaching(b"x", "application/zip") | {"agent": "pictures"}
    else:
        params["initialMessage" if world.name == "acp" else "message"]["parts"] = [world.me.data({"a": 1})]
    return world.ask(world.wish, params)


def no_card(world: World) -> tuple[int, Json]:
    world.settings.ALLOWED_HOSTS = ["agents.example"]
    _, path, body = world.me.request_of(world.me.call("card", {}))
    headers = world.me.headers(Host="other.example")
    # Django's own handler would refuse the name itself.
    answer = asyncio.run(asking.ask(LeanHandler(), asking.Call("POST", path, body, tuple(headers.items())), ""))
    return answer.status, json.loads(answer.content)


def stream_closed(world: World) -> tuple[int, Json]:
    _, answer = world.ask("begin", {})
    stream = answer["result"]["stream"]["streamId"]
    world.ask("end", {"streamId": stream})
    return world.ask("say", {"streamId": stream, "message": world.me.message("hello")})


def unknown_agent(world: World) -> tuple[int, Json]:
    if world.name != "adr":
        return world.send("nobody")
    _, path, body = world.me.request_of(world.me.call("invoke", world.params("x")))
    return world.raw(body, world.owner.key, f"/agents/nobody{path}")


def too_often(world: World) -> tuple[int, Json]:
    world.settings.A2A_CALLER_RATE = world.settings.A2A_CALLER_BURST = 1
    key = person("hasty", "home").key
    return [world.send(key=key) for _ in range(3)][-1]


def expired(world: World) -> tuple[int, Json]:
    key = new_key("late", tenant="home")
    ApiKey.objects.filter(principal__name="late").update(expires_at=clock.now() - timedelta(seconds=1))
    return world.send(key=key)


def conflict(world: World) -> tuple[int, Json]:
    same = str(uuid4())
    params, other = (world.me.sending(text, agent="quick-coroutine", now=True) for text in ("one", "two"))
    for each in (params, other):
        if world.name == "zone":
            each["idempotency_key"] = same
        elif world.name != "adr":
            each["message"]["messageId"] = same
    headers = {"X-Request-ID": same} if world.name == "adr" else {}
    world.ask(world.wish, params, **headers)
    return world.ask(world.wish, other, **headers)


def phase_refused(world: World) -> tuple[int, Json]:
    name = str(uuid4())
    world.ask("phase", {"workflowId": name, "phase": "specification"})
    return world.ask("phase", {"workflowId": name, "phase": "completion"})


def permission_denied(world: World) -> tuple[int, Json]:
    key = person("ruled", "home").key
    ruled = Principal.objects.get(name="ruled", tenant__name="home")
    set_permission(ruled, "namespace", "closed", allows=False, by=Operator("ada", "command", "a test"))
    return world.ask("store", {"namespace": "closed", "key": "k", "data": 1}, key=key)


def unavailable(world: World) -> tuple[int, Json]:
    with draining():
        return world.send()


CALLS: dict[type[Error], Call] = {
    errors.ParseError: lambda world: world.raw(b"{", world.pinned),
    errors.InvalidRequest: invalid_request,
    errors.MethodNotFound: method_not_found,
    errors.InvalidParams: invalid_params,
    errors.Internal: internal,
    errors.TaskNotFound: lambda world: world.ask("get", {"id": str(uuid4())}),
    errors.TaskNotCancelable: lambda world: world.ask("cancel", {"id": world.ended}),
    errors.PushNotSupported: push_not_supported,
    errors.UnsupportedOperation: beyond_limit,
    errors.TaskEnded: task_ended,
    errors.ContentTypeNotSupported: content_type,
    errors.InvalidAgentResponse: lambda world: world.send("raises"),
    errors.ExtendedCardNotConfigured: no_card,
    errors.ExtensionSupportRequired: lambda world: world.send("demanding"),
    errors.VersionNotSupported: lambda world: world.send(**{"A2A-Version": "7.1"}),
    errors.SharedStreamNotFound: lambda world: world.ask("end", {"streamId": "x"}),
    errors.SharedStreamClosed: stream_closed,
    errors.MemoryNotFound: lambda world: world.ask("retrieve", {"namespace": "n", "key": str(uuid4())}),
    errors.WorkflowNotFound: lambda world: world.ask("workflow", {"workflowId": str(uuid4())}),
    errors.PhaseRefused: phase_refused,
    errors.PermissionDenied: permission_denied,
    errors.UnknownAgent: unknown_agent,
    errors.BudgetExceeded: lambda world: world.send("priced", **{"X-Budget-USD": "0.01"}),
    errors.Timeout: lambda world: world.send("sleeper"),
    errors.RateLimited: too_often,
    errors.Unauthenticated: lambda world: world.send(key="wrong"),
    errors.ExpiredKey: expired,
    errors.MissingScope: lambda world: world.send(key=person("weak", "home", scopes="weather").key),
    errors.IdempotencyConflict: conflict,
    errors.Unavailable: unavailable,
}
"""A call that is refused with the error, in any language that can have it."""


def unreachable(name: str) -> set[type[Error]]:
    """Return the errors that no call in a language can have."""
    return {kind for languages, kinds, _ in UNREACHABLE if name in languages for kind in kinds}


def reason_in(error: Json) -> str | None:
    """Return the reason of an error object; None for one that says it in another way."""
    data = error.get("data")
    found: str | None = (data[0] if isinstance(data, list) else data).get("reason") if data else None
    return found


@pytest.fixture
def world(owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], World]:
    settings.A2A_DEFAULT_AGENT, settings.A2A_ADDRESS_FAILURES = "quick-coroutine", 0
    ended, waiting = sent(owner, agent="quick-coroutine").id, sent(owner, agent="asks-quickly").id

    def make(name: str) -> World:
        return World(name=name, owner=owner, settings=settings, patch=monkeypatch, ended=ended, waiting=waiting)

    return make


def test_every_error_has_a_call_or_no_language_that_could_have_it() -> None:
    assert set(CALLS) == set(errors.ALL)
    assert all(any(kind not in unreachable(name) for name in SPOKEN) for kind in CALLS)
    assert set(SPOKEN) <= {name for _, _, name in SPEAKERS.values()}


@pytest.mark.requirement("ACP-10", "ADR-10", "VAPORA-03", "VAPORA-04")
@pytest.mark.parametrize("name", SPOKEN)
def test_each_error_is_answered_as_the_matrix_says(world: Callable[[str], World], settings: Any, name: str) -> None:
    language, wrong = ALL.by_name[name], []
    for kind, call in CALLS.items():
        if kind in unreachable(name):
            continue
        with pytest.MonkeyPatch.context() as patch:
            here = world(name)
            here.settings = Settings(patch)
            status, answer = call(here)
        cell, error = language.column[kind], answer.get("error", {})
        reason = reason_in(error) if error else None
        if (error.get("code"), status) != (cell.number, cell.status) or reason not in (None, language.reason(kind)):
            wrong.append((kind.__name__, cell, status, answer))
    assert wrong == []


class Settings:
    """Settings that one call changes."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        object.__setattr__(self, "patch", patch)

    def __setattr__(self, name: str, value: Any) -> None:
        from django.conf import settings

        self.patch.setattr(settings, name, value)
