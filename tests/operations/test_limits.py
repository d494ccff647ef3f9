"""Rate limits of callers and tenants in one process. Time stands still, so that the bucket is exact."""

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from a2a.errors import TooManyCalls
from a2a.requests import GetTask, ListTasks, Request, SendMessage
from a2a.workflows import SendInPhase, StreamInPhase
from tasks_app import clock
from tasks_app.callers.access import Caller
from tasks_app.checks.agents import check_costs
from tasks_app.limits import purses
from tasks_app.limits import rate_limits as module
from tasks_app.limits.purses import Purse
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import Rate
from tasks_app.models import Act, RateLimit
from tasks_app.operations import OPERATIONS, cost_of
from tasks_app.operators import rate_limits
from tasks_app.operators.audit import Operator
from tests.conftest import ROOT, Person
from tests.support.commands import printed, run

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


class Steady:
    """A monotonic clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.time = 1_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> Steady:
    steady = Steady()
    for place in (module, purses):
        monkeypatch.setattr(place, "monotonic", steady)
    return steady


def admitted(caller: Caller, number: int, cost: int = 1) -> int:
    """Return how many of so many calls at the same time are admitted."""

    async def spend() -> int:
        answers = await asyncio.gather(*(limits.spend(caller, cost) for _ in range(number)), return_exceptions=True)
        assert all(answer is None or isinstance(answer, TooManyCalls) for answer in answers)
        return answers.count(None)

    return asyncio.run(spend())


def refusal(caller: Caller, cost: int = 1) -> TooManyCalls:
    with pytest.raises(TooManyCalls) as refused:
        asyncio.run(limits.spend(caller, cost))
    return refused.value


def test_without_a_limit_nothing_is_counted(owner: Person) -> None:
    assert admitted(owner.caller, 1_000) == 1_000
    assert limits.fields(owner.caller) == ()
    assert not limits.purses


def test_a_burst_is_admitted_up_to_the_bucket_exactly(owner: Person, settings: Any, steady: Steady) -> None:
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 60, 10
    assert admitted(owner.caller, 16) == 10
    assert admitted(owner.caller, 1) == 0
    steady.time += 3
    assert admitted(owner.caller, 16) == 3


@pytest.mark.requirement("ACP-19", "SPARC-11")
def test_each_caller_has_a_bucket(owner: Person, colleague: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 5
    assert [admitted(owner.caller, 9), admitted(colleague.caller, 9)] == [5, 5]


def test_a_call_costs_what_its_operation_costs(owner: Person, settings: Any) -> None:
    assert [cost_of(kind) for kind in (GetTask, ListTasks, SendMessage)] == [1, 5, 10]
    assert all(operation.cost >= 1 for operation in OPERATIONS.values())
    settings.A2A_OPERATION_COSTS = {"SendMessage": 3}
    assert [cost_of(kind) for kind in (GetTask, SendMessage)] == [1, 3]
    settings.A2A_CALLER_RATE = 10
    assert admitted(owner.caller, 9, cost=3) == 3
    assert admitted(owner.caller, 9, cost=1) == 1


def test_a_cost_of_no_operation_stops_the_start(settings: Any) -> None:
    settings.A2A_OPERATION_COSTS = {"SendMessage": 3, "ListTasks": 0}
    assert check_costs() == []
    settings.A2A_OPERATION_COSTS = {"SendMesage": 3, "ListTasks": 0, "tasks": 1}
    errors = check_costs()
    assert [error.id for error in errors] == ["a2a.E041"] * 2
    for name, error in zip(("SendMesage", "tasks"), errors, strict=True):
        assert f"the cost of {name}, which is no operation" in error.msg


def test_the_page_of_limits_has_the_cost_of_each_operation() -> None:
    rows = re.findall(r"^\| (`.+?) \| (\d+) \|$", (ROOT / "docs" / "limits.md").read_text(), re.MULTILINE)
    costs = {name: int(cost) for names, cost in rows for name in re.findall(r"`(\w+)`", names)}
    assert costs == {kind.__name__: row.cost for kind, row in OPERATIONS.items() if row.cost != 1}


@pytest.mark.requirement("SPARC-22")
@pytest.mark.parametrize("kind", [SendInPhase, StreamInPhase])
def test_sixty_sends_a_minute_are_what_the_page_of_sparc_says(
    owner: Person, settings: Any, kind: type[Request]
) -> None:
    settings.A2A_CALLER_RATE = 600
    assert admitted(owner.caller, 70, cost=cost_of(kind)) == 60


def test_a_cost_beyond_the_bucket_needs_the_whole_bucket(owner: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 5
    assert admitted(owner.caller, 2, cost=10) == 1


def test_a_refusal_says_what_when_and_how_much(owner: Person, settings: Any, steady: Steady) -> None:
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 30, 12
    assert admitted(owner.caller, 1, cost=10) == 1
    error = refusal(owner.caller, cost=10)
    assert error.retry_after == 16
    limit = "calls of this caller by cost in 24 s"
    assert error.facts == {"limit": limit, "most": "12", "cost": "10", "retryAfter": "16"}
    steady.time += error.retry_after
    assert admitted(owner.caller, 2, cost=10) == 1


def test_the_headers_are_structured_fields_of_the_draft(owner: Person, settings: Any, steady: Steady) -> None:
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 60, 10
    assert admitted(owner.caller, 4) == 4
    policy = b'"caller";q=10;w=10'
    assert dict(limits.fields(owner.caller)) == {b"ratelimit-policy": policy, b"ratelimit": b'"caller";r=6;t=4'}
    steady.time += 2
    assert dict(limits.fields(owner.caller))[b"ratelimit"] == b'"caller";r=8;t=2'


def test_a_limit_of_a_tenant_is_shared_by_its_callers(owner: Person, colleague: Person, stranger: Person) -> None:
    rate_limits.set_limit(Operator("ann", "command"), tenant="home", per_minute=6)
    limits.load()
    assert admitted(owner.caller, 4) == 4
    assert admitted(colleague.caller, 4) == 2
    assert admitted(stranger.caller, 4) == 4
    assert dict(limits.fields(owner.caller))[b"ratelimit"] == b'"tenant";r=0;t=60'


def test_a_call_that_the_tenant_refuses_costs_its_caller_nothing(owner: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 100
    rate_limits.set_limit(Operator("ann", "command"), tenant="home", per_minute=1)
    limits.load()
    assert admitted(owner.caller, 5) == 1
    assert dict(limits.fields(owner.caller))[b"ratelimit"] == b'"caller";r=99;t=1, "tenant";r=0;t=60'


def test_a_row_takes_the_place_of_the_default(owner: Person, colleague: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 2
    by = Operator("ann", "command")
    row = rate_limits.set_limit(by, tenant="home", principal="owner", per_minute=60, burst=4)
    limits.load()
    assert [admitted(owner.caller, 9), admitted(colleague.caller, 9)] == [4, 2]
    rate_limits.set_limit(by, tenant="home", principal="owner", per_minute=0)
    limits.load()
    assert admitted(owner.caller, 100) == 100
    rate_limits.remove_limit(row, by)
    limits.load()
    assert admitted(owner.caller, 9) == 2


def test_a_change_is_applied_although_a_clock_was_ahead(owner: Person, colleague: Person) -> None:
    by = Operator("ann", "command")
    rate_limits.set_limit(by, tenant="home", principal="owner", per_minute=9)
    rate_limits.set_limit(by, tenant="home", principal="colleague", per_minute=2)
    RateLimit.objects.filter(per_minute=9).update(changed_at=clock.now() + timedelta(minutes=1))
    limits.load()
    assert [admitted(owner.caller, 20), admitted(colleague.caller, 20)] == [9, 2]
    rate_limits.set_limit(by, tenant="home", principal="colleague", per_minute=4)
    limits.load()
    assert admitted(colleague.caller, 20) == 4
    rate_limits.set_limit(by, tenant="home", principal="colleague", per_minute=9)
    rate_limits.set_limit(by, tenant="home", principal="owner", per_minute=4)
    limits.load()
    assert [admitted(owner.caller, 20), admitted(colleague.caller, 20)] == [4, 9], "the sums are the same"


def test_a_change_is_applied_that_was_stored_beside_another_one(owner: Person, colleague: Person) -> None:
    by = Operator("ann", "command")
    rate_limits.set_limit(by, tenant="home", principal="owner", per_minute=9)
    rate_limits.set_limit(by, tenant="home", principal="colleague", per_minute=2, burst=2)
    RateLimit.objects.update(changed_at=clock.now())
    limits.load()
    assert admitted(colleague.caller, 20) == 2
    for values, number in (({"per_minute": 5}, 2), ({"burst": 3}, 3)):
        RateLimit.objects.filter(burst=2).update(**values)
        limits.load()
        assert admitted(colleague.caller, 20) == number


def test_rules_that_have_not_changed_are_not_read_again(owner: Person, django_assert_num_queries: Any) -> None:
    rate_limits.set_limit(Operator("ann", "command"), tenant="home", principal="owner", per_minute=60)
    with django_assert_num_queries(2):
        limits.load()
    with django_assert_num_queries(1):
        limits.load()


def test_a_new_rule_leaves_the_buckets_of_others_as_they_are(owner: Person, colleague: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE = 5
    assert admitted(colleague.caller, 9) == 5
    rate_limits.set_limit(Operator("ann", "command"), tenant="home", principal="owner", per_minute=60)
    limits.load()
    assert admitted(colleague.caller, 9) == 0


def test_operators_set_list_and_remove_limits_by_command(owner: Person) -> None:
    (line,) = printed("a2a", "limits", "set", "60", "--tenant", "home", "--principal", "owner", "--operator", "ann")
    assert (line["tenant"], line["principal"], line["per_minute"], line["burst"]) == ("home", "owner", 60, None)
    (whole,) = printed("a2a", "limits", "set", "90", "--tenant", "home", "--burst", "9", "--operator", "ann")
    assert [each["id"] for each in printed("a2a", "limits", "list")] == [whole["id"], line["id"]]
    printed("a2a", "limits", "remove", str(line["id"]), "--operator", "ann", "--reason", "no need")
    assert list(RateLimit.objects.values_list("id", flat=True)) == [whole["id"]]
    acts = list(Act.objects.order_by("id").values_list("verb", "kind", "name", "reason"))
    assert acts[0] == ("set", "rate limit", "owner of home", "")
    assert acts[-1] == ("remove", "rate limit", "owner of home", "no need")
    assert json.loads(Act.objects.earliest("id").after) == {"per_minute": 60, "burst": None}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("60", "--tenant", "none"), "There is no tenant 'none': the first key of a principal makes one."),
        (
            ("60", "--tenant", "home", "--principal", "nobody"),
            "The tenant 'home' has no principal 'nobody': its first key makes it.",
        ),
    ],
)
def test_a_limit_of_nobody_is_refused(owner: Person, words: tuple[str, ...], sentence: str) -> None:
    assert run("a2a", "limits", "set", *words).errors == sentence


def test_a_hundred_thousand_callers_take_bounded_memory(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 1_000)
    settings.A2A_CALLER_RATE = 5
    for number in range(100_000):
        limits.fields(replace(owner.caller, owner_id=number))
    assert len(limits.purses) <= len(limits.of_owner) <= 1_000


def test_callers_take_bounded_memory_while_rules_change(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST", 100)
    settings.A2A_CALLER_RATE = 5
    for number in range(1_000):
        if number % 50 == 0:
            limits.edition = None
            limits.load()
        limits.fields(replace(owner.caller, owner_id=number))
    assert len(limits.purses) <= 100


def test_a_purse_that_goes_alone_begins_with_what_it_knows(steady: Steady) -> None:
    purse = Purse("caller:1", "caller", Rate(60, 100), steady())
    purse.level, purse.tokens, purse.ends = 30.0, 5, steady() + 1
    purse.go_alone([], steady())
    assert purse.state(steady()) == b'"caller";r=35;t=65'
    assert [purse.take_here(20, steady()), purse.take_here(20, steady())] == [True, False]
