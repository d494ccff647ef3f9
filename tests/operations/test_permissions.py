"""Permissions by agent, skill, phase and batch operation: what they permit, and that what they do not is unknown."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from a2a.agents import registry
from a2a.errors import Error, PermissionDenied, TaskNotFound, UnknownAgent
from a2a.requests import CancelTask, GetExtendedCard, GetTask, ListTasks, Request, SendMessage, SubscribeToTask
from tasks_app.callers.permissions import check_permission, is_permitted
from tasks_app.callers.rules import KINDS, LONGEST, Kind, Rule, permit
from tasks_app.models import Act, Permission, Principal, Tenant
from tasks_app.operators.audit import Operator
from tasks_app.operators.permissions import MOST, remove_permission, set_permission
from tests.conftest import Person
from tests.operations.asking import ask, message, page, sent
from tests.support.callers import find_caller

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("replay")]
ADA = Operator("ada", "command", "a test")
ADDRESS = "http://localhost"


def again(person: Person) -> Person:
    """Return the person as their next call finds them."""
    caller = find_caller(person.key)
    assert caller
    return person._replace(caller=caller)


def ruled(person: Person, *rules: str, tenant: bool = False) -> Person:
    """Return the person under rules such as "allow agent echo"."""
    principal = Principal.objects.select_related("tenant").get(pk=person.caller.owner_id)
    for rule in rules:
        effect, kind, pattern = rule.split(" ")
        to: Principal | Tenant = principal.tenant if tenant else principal
        set_permission(to, kind, pattern, allows=effect == "allow", by=ADA)  # type: ignore[arg-type]  # some are wrong
    return again(person)


def refusal(person: Person, request: Request, **context: Any) -> tuple[type[Error], dict[str, str], str]:
    with pytest.raises(Error) as refused:
        ask(person, request, **context)
    return type(refused.value), refused.value.facts, refused.value.message


# ------------------------------------------------------------------ rules


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.requirement("SPARC-12")
def test_without_a_rule_of_a_kind_all_is_permitted_and_with_one_only_what_it_allows(owner: Person, kind: Kind) -> None:
    assert is_permitted(owner.caller, kind, "anything")
    other = KINDS[KINDS.index(kind) - 1]
    owner = ruled(owner, f"deny {other} *")
    check_permission(owner.caller, kind, "anything")
    owner = ruled(owner, f"allow {kind} completion", f"allow {kind} spec*", f"deny {kind} specification*")
    for name in ("completion", "spec", "spec-fast"):
        check_permission(owner.caller, kind, name)
    for name in ("completio", "completion2", "spe", "specification", "specifications", "anything", ""):
        with pytest.raises(PermissionDenied) as refused:
            check_permission(owner.caller, kind, name)
        assert refused.value.facts == {"kind": kind, "name": name}


def test_a_denial_counts_more_than_a_leave_whoever_has_it() -> None:
    rules = (Rule(True, "agent", "echo"), Rule(False, "agent", "e*"), Rule(True, "agent", "*"))
    assert not permit(rules, "agent", "echo")
    assert permit(rules, "agent", "story")


def test_rules_of_a_tenant_hold_for_each_of_its_principals(owner: Person, colleague: Person, stranger: Person) -> None:
    ruled(owner, "allow agent echo", tenant=True)
    for person, may in ((owner, False), (colleague, False), (stranger, True)):
        assert is_permitted(again(person).caller, "agent", "story") is may
        assert is_permitted(again(person).caller, "agent", "echo")
    assert not is_permitted(ruled(owner, "allow agent story", "deny agent echo").caller, "agent", "echo")


def test_rules_come_with_the_key_and_cost_no_statement(owner: Person, django_assert_num_queries: Any) -> None:
    ruled(owner, "allow agent echo")
    with django_assert_num_queries(1):
        found = again(owner)
    with django_assert_num_queries(0):
        assert not is_permitted(found.caller, "agent", "story")


# ----------------------------------------------------- an agent out of reach


def test_a_forbidden_agent_is_as_unknown_as_one_that_does_not_exist(owner: Person) -> None:
    owner = ruled(owner, "allow agent story", "allow agent asks")
    hello = message("hello")

    def sent_to(name: str) -> list[Any]:
        by_metadata = SendMessage(message=hello, metadata={"agent": name})
        address = {"agent": name}
        return [
            refusal(owner, SendMessage(message=hello), **address),
            refusal(owner, by_metadata),
            refusal(owner, GetExtendedCard(address=ADDRESS), **address),
            page(ask(owner, ListTasks(), **address)),
        ]

    forbidden, unknown = sent_to("form-coroutine"), sent_to("form-coroutina")
    assert str(forbidden).replace("form-coroutine", "form-coroutina") == str(unknown)
    assert forbidden[0][0] is UnknownAgent
    assert forbidden[3] == []


def test_the_default_agent_may_be_forbidden_too(owner: Person, settings: Any) -> None:
    owner = ruled(owner, "deny agent *")
    assert refusal(owner, SendMessage(message=message()))[:2] == (UnknownAgent, {"agent": settings.A2A_DEFAULT_AGENT})


def test_a_task_stays_its_owners_although_its_agent_takes_no_more_messages(owner: Person) -> None:
    task = sent(owner, "hello", agent="asks", return_immediately=True)
    owner = ruled(owner, "deny agent asks")
    follow_up = SendMessage(message=message("red", task_id=task.id))
    assert refusal(owner, follow_up)[:2] == (UnknownAgent, {"agent": "asks"})
    assert page(ask(owner, ListTasks())) == [task.id]
    assert ask(owner, GetTask(id=task.id)).task.id == task.id
    # Its own address is that of an unknown agent.
    for wish in (follow_up, GetTask(id=task.id), CancelTask(id=task.id), SubscribeToTask(id=task.id)):
        assert refusal(owner, wish, agent="asks") == refusal(owner, wish, agent="unknown")
        assert refusal(owner, wish, agent="asks")[0] is TaskNotFound
    assert page(ask(owner, ListTasks(), agent="asks")) == []
    ask(owner, CancelTask(id=task.id))


def test_a_permission_that_is_removed_opens_the_agent_again(owner: Person) -> None:
    owner = ruled(owner, "deny agent form-*")
    assert refusal(owner, SendMessage(message=message()), agent="form-coroutine")[0] is UnknownAgent
    (row,) = Permission.objects.all()
    assert remove_permission(row, ADA)
    assert not remove_permission(row, ADA)
    owner = again(owner)
    assert owner.caller.rules == ()
    assert sent(owner, agent="form-coroutine", return_immediately=True)
    assert list(Act.objects.order_by("id").values_list("verb", "kind")) == [
        ("deny", "permission"),
        ("remove", "permission"),
    ]


# ------------------------------------------------------------------- skills


def test_a_forbidden_skill_is_as_unknown_as_one_that_does_not_exist(owner: Person) -> None:
    owner = ruled(owner, "deny skill whisper", "allow skill *")

    def asking_for(skill: str) -> Any:
        return refusal(owner, SendMessage(message=message("hello"), metadata={"skill": skill}))

    assert asking_for("whisper") == (UnknownAgent, {"skill": "whisper"}, UnknownAgent(skill="whisper").message)
    assert str(asking_for("whisper")).replace("whisper", "whimper") == str(asking_for("whimper"))


def test_the_log_tells_operators_which_permission_is_lacking(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    owner = ruled(owner, "deny skill whisper")
    with caplog.at_level("INFO", logger="tasks_app"):
        assert refusal(owner, SendMessage(message=message("hello"), agent=singer().name))[0] is UnknownAgent
        assert refusal(owner, SendMessage(message=message("hello"), agent="nobody"))[0] is UnknownAgent
    (line,) = (each for each in caplog.messages if "is unknown to this caller" in each)
    assert line.startswith(f"home/owner: the agent {singer().name} is unknown to this caller: no permission allows the")


def test_a_message_that_names_no_skill_needs_all_skills_of_its_agent(owner: Person) -> None:
    owner = ruled(owner, "deny skill whisper", "allow skill *")
    assert {skill.id for skill in singer().skills} == {"sing", "whisper"}
    assert refusal(owner, SendMessage(message=message()), agent="singer")[0] is UnknownAgent
    assert refusal(owner, SendMessage(message=message(), metadata={"skill": "another"}), agent="singer")
    assert sent(owner, agent="singer", metadata={"skill": "sing"}, return_immediately=True)


def singer() -> Any:
    agent = registry.get("singer")
    assert agent
    return agent


def test_the_extended_card_shows_only_what_the_caller_may_use(owner: Person) -> None:
    def skills(person: Person, agent: str | None = None) -> set[str]:
        return {skill.id for skill in ask(person, GetExtendedCard(address=ADDRESS), agent=agent).card.skills}

    assert {"echo", "story", "sing", "whisper"} <= skills(owner)
    person = ruled(owner, "deny skill whisper", "allow skill *", "deny agent story", "allow agent *")
    assert "echo" in skills(person)
    assert not {"story", "whisper"} & skills(person)
    assert skills(person, "singer") == {"sing"}
    none = ruled(owner, "deny skill sing")
    assert refusal(none, GetExtendedCard(address=ADDRESS), agent="singer")[0] is UnknownAgent


# -------------------------------------------------------------------- doors


def test_no_door_tells_a_forbidden_agent_from_an_unknown_one(client: Client, owner: Person, fresh_keys: None) -> None:
    ruled(owner, "deny agent form-*", "allow agent *")
    send = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": send}
    headers = {"X-API-Key": owner.key, "X-Request-ID": "r"}

    def answers(agent: str) -> list[Any]:
        place = f"/agents/{agent}"
        replies = [
            client.post(f"{place}/jsonrpc", call, "application/json", headers=headers),
            client.post(f"{place}/message:send", send, "application/json", headers=headers),
            client.get(f"{place}/tasks", headers=headers | {"A2A-Version": "1.0"}),
            client.get(f"{place}/tasks/t", headers=headers | {"A2A-Version": "1.0"}),
            client.get(f"{place}/agent/authenticatedExtendedCard", headers=headers),
            client.post(f"{place}/ws/ticket", headers=headers),
            client.get(f"{place}/openrpc.json", headers=headers),
            client.get(f"{place}/openapi.json", headers=headers),
        ]
        return [(reply.status_code, sorted(reply.headers.items()), reply.content) for reply in replies]

    forbidden, unknown = answers("form-coroutine"), answers("form-coroutina")
    assert str(forbidden).replace("form-coroutine", "form-coroutina") == str(unknown)
    assert [status for status, _, _ in forbidden] == [200, 404, 200, 404, 404, 404, 404, 404]


# ---------------------------------------------------------------- operators


@pytest.mark.parametrize("pattern", ["", "a*b", "**x", "x" * (LONGEST + 1), "a\n"])
def test_a_pattern_is_a_name_or_the_beginning_of_names(owner: Person, pattern: str) -> None:
    with pytest.raises(ValueError, match="a pattern"):
        set_permission(Tenant.objects.get(), "agent", pattern, allows=True, by=ADA)
    assert not Permission.objects.exists()


def test_a_kind_is_one_of_four(owner: Person) -> None:
    with pytest.raises(ValueError, match="the kinds are agent, skill, phase, operation"):
        ruled(owner, "allow resource x")


def test_a_second_rule_for_a_pattern_replaces_the_first(owner: Person) -> None:
    owner = ruled(owner, "allow agent echo", "deny agent echo")
    assert [str(row) for row in Permission.objects.all()] == ["deny agent echo"]
    assert owner.caller.rules == (Rule(False, "agent", "echo"),)
    assert Act.objects.filter(verb="deny").get().before == '{"allows":true}'


def test_one_principal_has_only_so_many(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.operators.permissions.MOST", 2)
    assert MOST > 100
    ruled(owner, "allow agent a", "allow agent b", "deny agent b")
    with pytest.raises(ValueError, match="2 permissions at most"):
        ruled(owner, "allow agent c")


def test_a_row_for_a_principal_or_for_its_tenant_is_there_once(owner: Person) -> None:
    principal = Principal.objects.get()
    row: dict[str, Any] = {"tenant_id": principal.tenant_id, "allows": True, "kind": "agent", "pattern": "x"}
    for to in (principal, None):
        Permission.objects.create(principal=to, **row)
        with pytest.raises(IntegrityError), transaction.atomic():
            Permission.objects.create(principal=to, **row)
