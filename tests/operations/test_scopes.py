"""Scopes in both spellings: which rights they grant, and how refusals name them."""

from typing import Any

import pytest
from msgspec.structs import replace

from a2a.errors import MissingScope
from a2a.language import Spelling
from a2a.requests import GetTask, SendMessage
from tasks_app import operations
from tasks_app.callers import scopes
from tasks_app.callers.access import check_right, check_scopes, for_agents, has_scopes
from tasks_app.callers.scopes import ACP, CANCEL, OWN, READ, WRITE, WRITE_WEBHOOKS, Right, narrow
from tasks_app.checks.agents import check_operations
from tasks_app.operations import OPERATIONS
from tests.conftest import Person
from tests.operations.asking import ask, message, sent
from tests.operations.webhooks import config

pytestmark = pytest.mark.django_db
RIGHTS = [value for value in vars(scopes).values() if isinstance(value, Right)]


def with_scopes(person: Person, *names: str) -> Person:
    return person._replace(caller=replace(person.caller, scopes=frozenset(names)))


def refusal(person: Person, right: Right, spelling: Spelling) -> dict[str, str]:
    with pytest.raises(MissingScope) as refused:
        check_right(person.caller, right, spelling)
    return refused.value.facts


@pytest.mark.requirement("ACP-14")
def test_every_right_has_a_scope_of_each_spelling_and_every_scope_a_right() -> None:
    assert {right.scope for right in RIGHTS} == set(OWN)
    assert {right.acp for right in RIGHTS} == set(ACP)
    assert len(ACP) == 7
    assert all({"*", right.scope, right.acp} <= right.granted_by <= {"*", *OWN, *ACP} for right in RIGHTS)


@pytest.mark.requirement("ACP-15")
def test_a_refusal_names_scopes_as_the_language_does(owner: Person) -> None:
    reader = with_scopes(owner, "acp:tasks:read", "acp:agent:identify", "weather")
    assert refusal(reader, CANCEL, "own") == {
        "required": "tasks:cancel",
        "provided": "acp:agent:identify tasks:read weather",
    }
    assert refusal(with_scopes(owner, "tasks:read", "weather"), CANCEL, "acp") == {
        "required": "acp:tasks:cancel",
        "provided": "acp:tasks:read weather",
    }
    with pytest.raises(MissingScope) as refused:
        check_scopes(reader.caller, ["tasks:write"], "acp")
    assert refused.value.facts["required"] == "acp:tasks:write"


@pytest.mark.requirement("ACP-14")
def test_acp_asks_every_caller_to_be_identified(owner: Person) -> None:
    check_right(with_scopes(owner, "acp:tasks:read", "acp:agent:identify").caller, READ, "acp")
    check_right(with_scopes(owner, "tasks:read").caller, READ, "acp")
    anonymous = with_scopes(owner, "acp:tasks:read")
    check_right(anonymous.caller, READ)
    assert refusal(anonymous, READ, "acp")["required"] == "acp:agent:identify"


def test_a_webhook_beside_a_message_needs_the_right_to_it(owner: Person) -> None:
    writer = with_scopes(owner, "acp:tasks:write")
    assert sent(writer, "hello", "echo")
    push = config("https://example.com/")
    with pytest.raises(MissingScope) as refused:
        ask(writer, SendMessage(message=message("hello"), push_config=push), agent="echo")
    assert refused.value.facts == {"required": WRITE_WEBHOOKS.scope, "provided": "tasks:write"}


def test_an_agent_sees_scopes_by_their_names_here(owner: Person) -> None:
    reader = with_scopes(owner, "acp:tasks:read", "weather")
    assert for_agents(reader.caller).scopes == {"tasks:read", "weather"}
    assert has_scopes(reader.caller, ["tasks:read", "weather"])
    assert not has_scopes(reader.caller, ["tasks:write"])
    assert WRITE.acp not in for_agents(reader.caller).scopes


@pytest.mark.parametrize("right", RIGHTS)
def test_no_token_widens_the_scopes_of_its_account(right: Right) -> None:
    for token in (*OWN, *ACP):
        for most in (*OWN, *ACP):
            granted = narrow(frozenset({token}), frozenset({most}))
            if not right.granted_by.isdisjoint(granted):
                assert right.granted_by >= {token, most}, (token, most)
    assert narrow(frozenset({right.scope}), frozenset({right.scope})) == {right.scope}


def test_a_method_without_a_declared_right_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_operations() == []
    undeclared: Any = None
    faulty = OPERATIONS | {GetTask: replace(OPERATIONS[GetTask], right=undeclared)}
    monkeypatch.setattr(operations, "OPERATIONS", faulty)
    (error,) = check_operations()
    assert (error.id, "GetTask" in str(error.hint)) == ("a2a.E040", True)
    del faulty[GetTask]
    assert [each.id for each in check_operations()] == ["a2a.E040"]
    with pytest.raises(TypeError):
        type(OPERATIONS[SendMessage])(OPERATIONS[SendMessage].function)  # type: ignore[call-arg]
