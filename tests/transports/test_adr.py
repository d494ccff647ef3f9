"""Answers of every kind against the published JSON Schemas; the signature of the card; tokens of other issuers."""

from typing import Any

import orjson
import pytest
from django.test import Client
from jsonschema import Draft202012Validator, ValidationError
from msgspec.structs import replace

from a2a.agents import define, registry
from a2a.dialects.adr import semantic
from a2a.errors import InvalidParams
from a2a.requests import CancelTask, SendMessage
from a2a.run import Run
from a2a.signatures import ALGORITHMS, BadSignature, new_key, verify
from a2a.types import Message, Part, Role
from tasks_app import counters
from tasks_app.cards.terms import terms_of
from tasks_app.event_log import charged
from tasks_app.limits.rate_limits import limits
from tasks_app.models import Budget, IdempotencyKey, ServiceAccount, Task
from tasks_app.operations import Context, perform_now
from tasks_app.operations.fitness import fit
from tests.conftest import Person
from tests.database.locks import needs_row_locks, stall
from tests.operations.money import amounts, limit
from tests.support.cached_cards import forget_cards
from tests.support.issuer import AUDIENCE, LocalIssuer
from tests.transports.token_calls import now

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
JSON = "application/json"


def schema(name: str, part: str = "") -> dict[str, Any]:
    response = Client().get(f"/schemas/adr-002/{name}.json")
    document: dict[str, Any] = orjson.loads(response.content)
    Draft202012Validator.check_schema(document)
    if not part:
        return document
    return {"$ref": f"#/$defs/{part}", "$defs": document["$defs"]}


def check(value: Any, name: str, part: str = "") -> None:
    Draft202012Validator(schema(name, part)).validate(value)


def post(path: str, wire: Any, authorization: str, **headers: str) -> Any:
    return Client().post(path, orjson.dumps(wire), JSON, headers={"authorization": authorization, **headers})


def call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.parametrize(
    ("verb", "path", "host", "status", "code", "reason"),
    [
        ("GET", "/agents/nobody/card", "testserver", 404, -32000, "AGENT_UNAVAILABLE"),
        ("POST", "/card", "testserver", 405, -32600, "VALIDATION_ERROR"),
        ("GET", "/card", "elsewhere.example", 400, -32600, "VALIDATION_ERROR"),
    ],
)
def test_a_refused_card_has_the_form_of_all_errors(
    settings: Any, verb: str, path: str, host: str, status: int, code: int, reason: str
) -> None:
    settings.ALLOWED_HOSTS, settings.A2A_TRUST_FORWARDED = ["testserver"], "x-forwarded"
    answer = Client(headers={"x-forwarded-host": host}).generic(verb, path)
    assert answer.status_code == status
    check(orjson.loads(answer.content), "errors")
    error = orjson.loads(answer.content)["error"]
    assert (error["code"], error["data"]["reason"]) == (code, reason)


@pytest.mark.requirement("ADR-15", "ADR-01", "ADR-18")
def test_cards_are_as_their_schema_says() -> None:
    card = orjson.loads(Client().get("/agents/priced/card").content)
    check(card, "card")
    for member in ("id", "limits", "privacy", "auth"):
        with pytest.raises(ValidationError):
            check({name: value for name, value in card.items() if name != member}, "card")
    Draft202012Validator.check_schema(card["outputs"])
    Draft202012Validator.check_schema(card["inputs"])


def test_the_card_names_its_agent_in_its_head() -> None:
    assert [Client().get(path)["X-Agent-ID"] for path in ("/card", "/agents/priced/card")] == ["echo", "priced"]


@pytest.mark.requirement("ADR-02")
@pytest.mark.parametrize(
    ("header", "budget", "outcome"),
    [("0.1", None, "refusal"), ("0.7", None, "degradation"), ("0.1", 1.0, "refusal"), ("1", 0.1, "refusal")],
)
def test_the_header_of_a_negotiation_limits_it_as_its_budget_does(
    service: None, owner: Person, header: str, budget: float | None, outcome: str
) -> None:
    wish = {"capabilities": ["priced"]} | ({} if budget is None else {"budget_usd": budget})
    answer = post("/negotiate", wish, f"Bearer {owner.key}", **{"x-budget-usd": header})
    assert orjson.loads(answer.content)["outcome"] == outcome


def test_a_header_of_a_negotiation_that_is_no_amount_is_refused(service: None, owner: Person) -> None:
    answer = post("/negotiate", {}, f"Bearer {owner.key}", **{"x-budget-usd": "zz"})
    assert (answer.status_code, "X-Budget-USD" in answer.content.decode()) == (400, True)


def test_a_negotiation_about_too_many_capabilities_is_refused(service: None, owner: Person) -> None:
    key = f"Bearer {owner.key}"
    names = [f"skill-{place}" for place in range(1001)]
    answer = post("/negotiate", {"capabilities": names}, key)
    assert (answer.status_code, "1,000 entries at most" in answer.content.decode()) == (400, True)
    answer = post("/negotiate", {"capabilities": names[:1000]}, key)
    assert len(orjson.loads(answer.content)["limitations"]["refused"]) == 1000


@pytest.mark.requirement("ADR-15", "ADR-02", "ADR-03", "ADR-10")
def test_answers_and_errors_are_as_their_schemas_say(service: None, owner: Person) -> None:
    key = f"Bearer {owner.key}"
    check(call("echo", text="x"), "invoke", "Call")
    check(
        orjson.loads(post("/invoke", call("quick-coroutine", text="x"), key, **{"x-request-id": "a"}).content),
        "invoke",
        "Answer",
    )
    wish = {"capabilities": ["priced", "nope"], "budget_usd": 0.7}
    check(wish, "negotiate", "NegotiateParams")
    check(orjson.loads(post("/negotiate", wish, key).content), "negotiate", "NegotiateAnswer")
    refusals = [
        post("/invoke", call("quick-raises"), key, **{"x-request-id": "b"}),
        post("/invoke", call("quick-coroutine"), key),
        post("/invoke", call("nope"), key, **{"x-request-id": "c"}),
        post("/invoke", {"invalid": "request"}, key, **{"x-request-id": "d"}),
        post("/invoke", [call("echo")], key, **{"x-request-id": "e"}),
        post("/negotiate", {"capabilities": 7}, key),
        post("/negotiate", {"budget_usd": -1}, key),
        post("/invoke", call("echo"), "Bearer wrong", **{"x-request-id": "f"}),
    ]
    assert [each.status_code for each in refusals] == [500, 400, 400, 400, 400, 400, 400, 401]
    for each in refusals:
        check(orjson.loads(each.content), "errors")


@pytest.mark.requirement("ADR-12")
def test_a_card_is_signed_like_other_cards(settings: Any) -> None:
    settings.A2A_CARD_KEY, settings.A2A_PUBLIC_URL = new_key(), "https://a.example"
    card = orjson.loads(Client().get("/agents/priced/card").content)
    keys = orjson.loads(Client().get("/.well-known/jwks.json").content)
    assert verify(card, keys, ALGORITHMS)["limits"] == card["limits"]
    check(card, "card")
    with pytest.raises(BadSignature):
        verify(card | {"limits": card["limits"] | {"max_cost_per_invoke": 0.01}}, keys, ALGORITHMS)


@pytest.mark.parametrize(
    ("version", "semantic_version"),
    [
        ("1.2.3-rc.1", "1.2.3-rc.1"),
        ("2", "2.0.0"),
        ("1.4", "1.4.0"),
        ("June 7", "0.0.0+June-7"),
        ("…", "0.0.0+unknown"),
    ],
)
def test_the_version_of_a_card_is_semantic(version: str, semantic_version: str) -> None:
    assert semantic(version) == semantic_version


@pytest.mark.requirement("ADR-11", "ADR-18")
def test_a_token_of_a_service_account_may_call(service: None, issuer: LocalIssuer, account: ServiceAccount) -> None:
    answer = post("/invoke", call("quick-coroutine", text="x"), f"Bearer {issuer.token()}", **{"x-request-id": "a"})
    assert (answer.status_code, orjson.loads(answer.content)["result"]["text"]) == (200, "x")
    forget_cards()
    auth = orjson.loads(Client().get("/agents/priced/card").content)["auth"]
    assert auth == {"method": "oidc", "issuer": issuer.url, "audience": AUDIENCE}


@pytest.mark.requirement("ADR-11")
@pytest.mark.parametrize(
    "claims",
    [{"aud": "elsewhere"}, {"sub": "nobody"}, {"iss": "https://other.example"}, {"exp": now(-60)}],
    ids=lambda claims: next(iter(claims)),
)
@pytest.mark.parametrize("path", ["/invoke", "/invoke/stream", "/negotiate"])
def test_a_token_with_a_wrong_claim_is_refused(
    issuer: LocalIssuer, account: ServiceAccount, claims: dict[str, Any], path: str
) -> None:
    before = IdempotencyKey.objects.count()
    answer = post(path, call("quick-coroutine"), f"Bearer {issuer.token(**claims)}", **{"x-request-id": "a"})
    error = orjson.loads(answer.content)["error"]
    assert (answer.status_code, error["code"], error["data"]["reason"]) == (401, -38009, "UNAUTHENTICATED")
    assert 'error="invalid_token"' in answer["WWW-Authenticate"]
    assert IdempotencyKey.objects.count() == before


@pytest.mark.requirement("ADR-10")
def test_a_caller_beyond_its_rate_is_told_when_to_come_back(service: None, owner: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 10
    limits.forget()
    key = f"Bearer {owner.key}"
    first, second = (post("/invoke", call("quick-coroutine"), key, **{"x-request-id": name}) for name in "ab")
    assert (first.status_code, second.status_code) == (200, 429)
    error = orjson.loads(second.content)["error"]
    assert (error["code"], error["data"]["reason"], second["Retry-After"].isdigit()) == (-32003, "RATE_LIMITED", True)
    assert terms_of(registry.get("priced") or registry.get("echo")).per_minute == 1  # type: ignore[arg-type]  # one is there
    limits.forget()


@pytest.mark.requirement("ADR-06")
def test_a_call_beyond_the_latency_is_a_timeout_and_its_task_goes_on(
    service: None, owner: Person, settings: Any
) -> None:
    settings.A2A_INVOKE_SECONDS = 0.1
    answer = post("/invoke", call("waits"), f"Bearer {owner.key}", **{"x-request-id": "a"})
    error = orjson.loads(answer.content)["error"]
    assert (answer.status_code, error["code"], error["data"]["reason"]) == (408, -32002, "TIMEOUT")
    task = Task.objects.get(pk=error["data"]["taskId"])
    assert task.state in {"submitted", "working"}
    again = post("/invoke", call("waits"), f"Bearer {owner.key}", **{"x-request-id": "a"})
    assert orjson.loads(again.content)["error"]["data"]["taskId"] == task.pk
    perform_now(CancelTask(id=task.pk), Context(caller=owner.caller))
    ended = post("/invoke", call("waits"), f"Bearer {owner.key}", **{"x-request-id": "a"})
    assert (ended.status_code, orjson.loads(ended.content)["error"]["data"]["reason"]) == (409, "TASK_ENDED")


@needs_row_locks
@pytest.mark.usefixtures("new_sessions")
@pytest.mark.parametrize(
    ("place", "status"), [("reserve", 503), ("settle", 200)], ids=["before the agent runs", "as its task is stored"]
)
def test_a_call_that_stalls_within_a_transaction_does_not_fail(
    service: None, owner: Person, monkeypatch: pytest.MonkeyPatch, place: str, status: int
) -> None:
    """A process was frozen for longer than a lease. No transaction of its call was committed."""
    limit(owner, 4)
    function, turns = getattr(charged, place), list[int]()

    def stalls(*arguments: Any) -> Any:
        turns.append(len(turns))
        if turns == [0]:
            stall()
        return function(*arguments)

    monkeypatch.setattr(charged, place, stalls)
    wire, headers = call("priced-quick", text="0.25"), {"x-request-id": "a"}
    answer = post("/invoke", wire, f"Bearer {owner.key}", **headers)
    assert answer.status_code == status
    if status == 503:
        error = orjson.loads(answer.content)["error"]
        assert (error["code"], error["data"]["reason"]) == (-32000, "AGENT_UNAVAILABLE")
        assert error["data"]["retryable"]
    again = post("/invoke", wire, f"Bearer {owner.key}", **headers)
    assert (again.status_code, orjson.loads(again.content)["result"]["text"]) == (200, "0.25 of None")
    assert amounts(Budget.objects.get()) == (0, 0.25)


@pytest.mark.requirement("ADR-13")
def test_a_message_beyond_the_tokens_of_the_agent_is_refused(owner: Person) -> None:
    def counts(run: Run) -> str:
        """Count."""
        return run.text

    agent = define(counts, {"max_input_tokens": 2})
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="12345678"),))
    request, context = SendMessage(message=message), Context(caller=owner.caller)
    fit(request, agent, context)
    longer = replace(message, parts=(Part(text="123456789"),))
    with pytest.raises(InvalidParams) as error:
        fit(replace(request, message=longer), agent, context)
    assert "about 3 tokens" in error.value.message


@pytest.mark.requirement("ADR-16")
def test_calls_of_an_agent_are_counted_with_their_time(service: None, owner: Person) -> None:
    def numbers() -> tuple[int, int, int]:
        calls, times = counters.agent_calls.total(), counters.agent_time.total()
        answered, failed = (
            calls.get((name, what), 0) for name, what in (("bench", "answered"), ("quick-raises", "failed"))
        )
        return answered, failed, times.get(("quick-raises",), 0)

    before = numbers()
    for name in ("bench", "quick-raises"):
        answer = post("/invoke", call(name), f"Bearer {owner.key}", **{"x-request-id": name})
        assert (answer["X-Agent-ID"], answer["X-Request-ID"]) == (name, name)
    after = numbers()
    assert (after[0] - before[0], after[1] - before[1]) == (1, 1)
    assert after[2] > before[2]
