"""The reach of operators: nothing of another tenant or agent is in any page or answer; and what roles may do."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from tasks_app import operations
from tasks_app.api.resources import RESOURCES
from tasks_app.models import (
    Act,
    ApiKey,
    Budget,
    Delivery,
    Exchange,
    OperatorReach,
    Principal,
    RateLimit,
    ServiceAccount,
    Task,
    Tenant,
    Webhook,
)
from tasks_app.models import Permission as PermissionRow
from tasks_app.operators import reach, users
from tasks_app.operators.reach import EVERYTHING, NOTHING, Reach, reach_of
from tasks_app.operators.roles import ADMINISTRATOR, AGENT_OWNER, AUDITOR, OPERATOR, ROLES, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import EVERYWHERE, OPS, Program, operator, program
from tests.operators.tenants import Furniture
from tests.support.commands import printed, run
from tests.transports.admin.pages import act, form_digest, registered

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
MINE, OTHER = "mine7", "other7"
HERE = NamedReach(tenants=["acme"])
SEARCHED = (Tenant, Principal, ApiKey, ServiceAccount, PermissionRow, Budget, RateLimit)  # for a part of a name


@pytest.fixture
def mine() -> Furniture:
    return Furniture("acme", MINE)


@pytest.fixture
def other() -> Furniture:
    return Furniture(f"{OTHER}-tenant", OTHER)


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def address(model: Any, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_no_page_of_the_admin_shows_a_byte_of_another_tenant(mine: Furniture, other: Furniture) -> None:
    client, everyone = browser(operator(ADMINISTRATOR, reach=HERE)), browser(operator(ADMINISTRATOR))
    shown = set()
    for model in registered():
        listing = address(model, "changelist")
        text = client.get(listing).content.decode()
        assert OTHER not in text, model
        if model in other.rows:
            # The mark is there for those who may see it, so its absence says something.
            assert OTHER in everyone.get(listing).content.decode() or model is Webhook, model
            row = other.rows[model]
            answer = client.get(address(model, "change", row.pk), follow=True)
            assert OTHER not in answer.content.decode(), model
            page = client.get(address(model, "change", mine.rows[model].pk), follow=True).content.decode()
            assert MINE in page or str(mine.rows[model]) in page, model
            shown.add(model)
    assert {Task, Exchange, Webhook, Delivery, Principal, ApiKey, Tenant, Act} <= shown


@pytest.mark.parametrize("model", [Task, Exchange])
def test_no_search_of_the_admin_finds_a_row_of_another_tenant(mine: Furniture, other: Furniture, model: Any) -> None:
    client = browser(operator(ADMINISTRATOR, reach=HERE))
    for text in (other.rows[Task].pk, other.rows[Exchange].pk, f"{OTHER}-context", f"{OTHER}-rpc"):
        answer = client.get(address(model, "changelist"), {"q": text})
        assert list(answer.context["cl"].result_list) == []


@pytest.mark.parametrize("model", SEARCHED)
def test_callers_and_their_rights_are_found_by_parts_of_names(mine: Furniture, other: Furniture, model: Any) -> None:
    nearby, everyone = browser(operator(ADMINISTRATOR, reach=HERE)), browser(operator(ADMINISTRATOR))
    for client, text, found in ((everyone, "acm", mine), (everyone, OTHER[1:], other), (nearby, OTHER[1:], None)):
        page = client.get(address(model, "changelist"), {"q": text})
        pks, number = [row.pk for row in page.context["cl"].result_list], "1 result (" if found else "0 results ("
        assert (pks, number in page.content.decode()) == ([found.rows[model].pk] if found else [], True), (model, text)


@pytest.mark.parametrize("model", [*SEARCHED, User, Group])
@pytest.mark.parametrize("text", ["a " * 1_000, "x" * 60_000, "_" * 30_000])
def test_a_search_with_too_many_words_or_letters_is_refused(mine: Furniture, model: Any, text: str) -> None:
    page = browser(User.objects.create_superuser("ada")).get(address(model, "changelist"), {"q": text})
    assert (page.status_code, "A search has at most" in page.content.decode()) == (200, True)
    assert list(page.context["cl"].result_list) == []


@pytest.mark.parametrize("name", ["verb", "kind"])
def test_the_sentence_for_an_unknown_verb_or_kind_has_none_of_another_tenant(
    mine: Furniture, other: Furniture, name: str
) -> None:
    """The furniture of a tenant has acts whose verb and kind are its mark."""
    for reach_, seen in ((HERE, False), (EVERYWHERE, True)):
        answer = program(AUDITOR, reach=reach_).get("acts/", **{name: "no-such"})
        text = answer.content.decode()
        assert (answer.status_code, MINE in text, OTHER in text) == (400, True, seen)


def test_no_list_and_no_row_of_the_api_has_a_byte_of_another_tenant(mine: Furniture, other: Furniture) -> None:
    robot, all_seeing = program(ADMINISTRATOR, reach=HERE), program(ADMINISTRATOR)
    walked = set()
    for resource in RESOURCES:
        assert OTHER not in robot.get(f"{resource.segment}/").content.decode(), resource
        row = other.rows.get(resource.model)
        if row is None:
            continue
        path = f"{resource.segment}/{row.pk}/"
        assert all_seeing.get(path).status_code == 200, resource
        assert OTHER in all_seeing.get(path).content.decode(), resource
        assert robot.get(f"{resource.segment}/{mine.rows[resource.model].pk}/").status_code == 200, resource
        missing = robot.get(path)
        assert missing.status_code == 404
        assert OTHER not in missing.content.decode()
        for name, verb in resource.verbs().items():
            if verb.one:
                assert robot.post(f"{path}{name.replace('_', '-')}/").status_code == 404, (resource, name)
        walked.add(resource.model)
    assert {Task, Exchange, Webhook, Delivery, Principal, ApiKey, Tenant, Act} <= walked


def test_a_call_about_a_task_of_another_tenant_stays_with_its_caller(mine: Furniture, other: Furniture) -> None:
    """Both tenants name one task and one request id; each sees its own call only, and not the state of the task."""
    task_id = mine.rows[Task].pk
    Exchange.objects.filter(pk__in=[row.rows[Exchange].pk for row in (mine, other)]).update(
        task_id=task_id, request_id="same"
    )
    client = browser(operator(VIEWER, reach=HERE))
    assert OTHER not in client.get(address(Task, "change", task_id)).content.decode()
    assert OTHER not in client.get(address(Exchange, "change", mine.rows[Exchange].pk)).content.decode()
    guest = browser(operator(VIEWER, reach=NamedReach(tenants=[f"{OTHER}-tenant"])))
    page = guest.get(address(Exchange, "change", other.rows[Exchange].pk)).content.decode()
    assert "no such task" in page
    assert MINE not in page
    assert "no such task" in guest.get(address(Exchange, "changelist")).content.decode()


def test_no_act_of_the_admin_reaches_a_row_of_another_tenant(
    mine: Furniture, other: Furniture, monkeypatch: pytest.MonkeyPatch
) -> None:
    canceled: list[str] = []
    monkeypatch.setattr(operations, "cancel_for_operator", lambda task_id, by: canceled.append(task_id))
    client, acts = browser(operator(ADMINISTRATOR, reach=HERE)), Act.objects.count()
    task_id = other.rows[Task].pk
    act(client, "task", "cancel_selected", task_id)
    client.post(address(Task, "changelist") + f"{task_id}/cancel/")
    act(client, "webhook", "disable", other.rows[Webhook].pk)
    act(client, "delivery", "give_up", other.rows[Delivery].pk)
    act(client, "delivery", "send_again", other.rows[Delivery].pk)
    act(client, "apikey", "revoke", str(other.rows[ApiKey].pk))
    assert canceled == []
    assert Act.objects.count() == acts
    act(client, "task", "cancel_selected", mine.rows[Task].pk, task_id)
    assert canceled == [mine.rows[Task].pk]


def test_no_act_of_many_rows_over_the_api_reaches_another_tenant(mine: Furniture, other: Furniture) -> None:
    robot = program(OPERATOR, reach=HERE)
    ids = [other.rows[Delivery].pk, mine.rows[Delivery].pk]
    results = robot.post("deliveries/give-up/", ids=ids).json()["results"]
    assert [(each["id"] == ids[0], bool(each["refusal"])) for each in results] == [(True, True), (False, False)]
    assert Delivery.objects.get(pk=ids[0]).state == "waiting"


def test_keys_are_made_for_ones_own_tenants_only(mine: Furniture, other: Furniture) -> None:
    robot = program(ADMINISTRATOR, reach=HERE)
    assert robot.post("keys/", principal="new", tenant="acme").status_code == 201
    for tenant in (f"{OTHER}-tenant", "not-yet-there"):
        assert robot.post("keys/", principal="new", tenant=tenant).status_code == 403
    assert not Tenant.objects.filter(name="not-yet-there").exists()


def test_a_clock_is_confirmed_by_those_who_see_every_tenant(mine: Furniture) -> None:
    assert program(ADMINISTRATOR, reach=HERE).post("processes/confirm-clock/").status_code == 403
    assert program(ADMINISTRATOR).post("processes/confirm-clock/").status_code == 200


def test_budgets_are_set_for_ones_own_tenants_only(mine: Furniture, other: Furniture) -> None:
    client, foreign = browser(operator(ADMINISTRATOR, reach=HERE)), other.rows[Principal]
    Budget.objects.all().delete()
    add = address(Budget, "add")
    form = {"tenant": other.rows[Tenant].pk, "principal": "", "dollars": "1", "period": "total"}
    here = form | {"tenant": mine.rows[Tenant].pk}
    for fields in (form, form | {"principal": foreign.pk}, here | {"principal": foreign.pk}):
        assert OTHER not in client.post(add, fields).content.decode()
    assert OTHER not in client.get(add, {"principal": foreign.pk}).content.decode()
    assert not Budget.objects.exists()
    assert client.post(add, here).status_code == 302
    assert Budget.objects.get().tenant == mine.rows[Tenant]


def test_the_form_of_a_permission_names_no_row_of_another_tenant(mine: Furniture, other: Furniture) -> None:
    client, add = browser(operator(ADMINISTRATOR, reach=HERE)), address(PermissionRow, "add")
    fields = {"principal": other.rows[Principal].pk, "tenant": other.rows[Tenant].pk}
    assert OTHER not in client.get(add, fields).content.decode()
    form = fields | {"allows": "yes", "kind": "agent", "pattern": "a*b"}
    assert OTHER not in client.post(add, form).content.decode()


def test_an_operator_of_some_agents_makes_nothing_for_a_whole_tenant(mine: Furniture) -> None:
    robot = program(ADMINISTRATOR, reach=NamedReach(tenants=["acme"], agents=["echo"]))
    assert robot.post("keys/", principal="new", tenant="acme").status_code == 403
    assert robot.post("budgets/", tenant="acme", amount="1").status_code == 403
    assert not ApiKey.objects.filter(principal__name="new").exists()


def test_an_operator_of_a_tenant_sees_no_operators_and_widens_no_reach(mine: Furniture) -> None:
    user = operator(ADMINISTRATOR, reach=HERE, name="tom")
    robot, client = program(ADMINISTRATOR, reach=HERE), browser(user)
    for segment in ("users", "tokens", "logins"):
        assert robot.get(f"{segment}/").json()["results"] == []
    assert robot.post("users/", username="eve", all_tenants=True, roles=[ADMINISTRATOR]).status_code == 403
    assert robot.post(f"users/{robot.user.pk}/reach/", all_tenants=True).status_code == 404
    assert client.get(reverse("admin:auth_user_change", args=[user.pk])).status_code == 302
    assert client.get(reverse("admin:auth_user_add")).status_code == 403
    assert client.get(reverse("admin:auth_group_add")).status_code == 403


def test_no_administrator_becomes_a_superuser_in_the_admin() -> None:
    ada, bob = User.objects.create_superuser("ada", password="a long password"), operator(ADMINISTRATOR, name="bob")
    client, place = browser(bob), reverse("admin:auth_user_change", args=[bob.pk])
    form = {"username": "bob", "is_superuser": "on", "is_active": "on", "is_staff": "on", "date_joined_0": "2026-01-01"}
    form |= {"date_joined_1": "00:00:00", "reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    form["user_permissions"] = str(Permission.objects.get(codename="delete_user").pk)
    assert client.post(place, form | form_digest(client, place)).status_code == 302
    bob.refresh_from_db()
    assert not bob.is_superuser
    assert not bob.user_permissions.exists()
    assert client.post(reverse("admin:auth_user_change", args=[ada.pk]), form | {"username": "eve"}).status_code == 403
    password = {"password1": "correct horse battery", "password2": "correct horse battery"}
    assert client.post(reverse("admin:auth_user_password_change", args=[ada.pk]), password).status_code == 403
    assert User.objects.get(pk=ada.pk).check_password("a long password")


def test_an_agent_owner_sees_the_tasks_of_the_agents_of_their_reach(mine: Furniture) -> None:
    story = Furniture("story-home", "story7", agent="story")
    robot = program(AGENT_OWNER, reach=NamedReach(all_tenants=True, agents=["story"]))
    for segment, model in (("tasks", Task), ("webhooks", Webhook), ("deliveries", Delivery)):
        (row,) = robot.get(f"{segment}/").json()["results"]
        assert row["id"] == story.rows[model].pk
        assert robot.get(f"{segment}/{mine.rows[model].pk}/").status_code == 404
    assert robot.get("exchanges/").status_code == 403
    nothing = program(AGENT_OWNER, reach=EVERYWHERE)
    assert nothing.get("tasks/").json()["results"] == []
    both = program(AGENT_OWNER, VIEWER, reach=NamedReach(tenants=["acme"], agents=["story"]))
    assert both.get("tasks/").json()["results"] == both.get("exchanges/").json()["results"] == []


def test_a_table_that_names_no_tenant_is_seen_by_operators_of_all_tenants_only(mine: Furniture) -> None:
    limited, whole = reach_of(operator(VIEWER, reach=HERE)), reach_of(operator(VIEWER))
    assert not hasattr(OperatorReach, "tenant_path")
    assert list(limited.limit(OperatorReach.objects.all())) == []
    assert whole.limit(OperatorReach.objects.all()).exists()


def test_without_a_reach_superusers_and_administrators_see_everything_and_others_nothing() -> None:
    ada = User.objects.create_superuser("ada", password="a long password")
    bob, eve = operator(ADMINISTRATOR), operator(VIEWER)
    OperatorReach.objects.all().delete()
    assert [reach_of(user) for user in (ada, bob, eve)] == [EVERYTHING, EVERYTHING, NOTHING]
    users.set_active(OPS, bob, False)
    assert reach_of(bob) == NOTHING
    assert reach.may_write(ada, "anything")


def test_an_operator_who_is_made_without_a_reach_has_none() -> None:
    root, eve = program(ADMINISTRATOR, reach=NamedReach()), operator(VIEWER, reach=NamedReach())
    assert not OperatorReach.objects.exists()
    assert [reach_of(root.user), reach_of(eve)] == [EVERYTHING, NOTHING]
    assert root.post("keys/", principal="olga").status_code == 201
    assert len(root.get("keys/").json()["results"]) == 1
    assert Act.objects.filter(kind="user", object_id=root.user.pk, verb="make").get().after.count("null") == 3
    users.set_reach(OPS, root.user, NamedReach())
    assert reach_of(User.objects.get(pk=root.user.pk)) == Reach(frozenset()), "a reach that is taken away is stored"


def test_a_command_takes_roles_and_reach_away_only_when_told_to() -> None:
    operator(VIEWER, name="tom")
    for verb, word in (("role", AUDITOR), ("reach", "--all-tenants")):
        assert "or --none to take all away" in run("a2a", "users", verb, "tom").errors
        assert "or --none, not both" in run("a2a", "users", verb, "tom", word, "--none").errors
        printed("a2a", "users", verb, "tom", word)
    assert reach_of(User.objects.get(username="tom")) == EVERYTHING
    printed("a2a", "users", "role", "tom", "--none")
    (line,) = printed("a2a", "users", "reach", "tom", "--none")
    assert (line["roles"], line["all_tenants"], line["tenants"]) == ([], False, [])


def test_a_reach_of_all_tenants_and_one_is_refused(mine: Furniture) -> None:
    operator(VIEWER, name="tom")
    failed = run("a2a", "users", "reach", "tom", "--all-tenants", "--tenant", "acme")
    assert "all tenants or those that you name" in failed.errors
    made = program(ADMINISTRATOR).post("users/", username="eve", roles=[], all_tenants=True, tenants=["acme"])
    assert (made.status_code, User.objects.filter(username="eve").exists()) == (400, False)


def test_an_agent_of_a_reach_that_is_not_known_is_a_warning(mine: Furniture) -> None:
    operator(VIEWER, name="tom")
    assert run("a2a", "users", "reach", "tom", "--all-tenants", "--agent", "echo").errors == ""
    warned = run("a2a", "users", "reach", "tom", "--all-tenants", "--agent", "nosuch")
    assert (warned.code, "There is no agent 'nosuch' here" in warned.errors) == (0, True)


def test_a_tenant_out_of_reach_is_refused_with_advice_about_the_reach(mine: Furniture) -> None:
    problem = program(ADMINISTRATOR, reach=HERE).post("keys/", principal="olga", tenant="initech").json()
    assert problem["detail"] == "The tenant initech is not one of yours."
    assert "users reach NAME --tenant TENANT`. The command replaces the whole reach" in problem["advice"]


MAY: dict[str, dict[str, str]] = {
    VIEWER: dict.fromkeys(
        ("tasks", "exchanges", "webhooks", "deliveries", "processes", "tenants", "principals", "keys"), "view"
    ),
    OPERATOR: {
        **dict.fromkeys(("exchanges", "tenants", "principals", "keys"), "view"),
        **dict.fromkeys(("tasks", "webhooks", "deliveries", "processes"), "view change"),
    },
    AGENT_OWNER: dict.fromkeys(("tasks", "webhooks", "deliveries"), "view change"),
    AUDITOR: dict.fromkeys(
        (
            *("tasks", "exchanges", "webhooks", "deliveries", "processes", "tenants", "principals", "keys"),
            *("acts", "logins", "tokens", "users"),
        ),
        "view",
    ),
}
"""By role: what it may do to each of our own resources. An administrator may do everything."""
OURS = frozenset({"acts", "logins", "users", "tokens"}.union(*MAY.values()))


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_what_its_row_says(role: str) -> None:
    robot = program(role)
    for resource in RESOURCES:
        if role != ADMINISTRATOR and resource.segment not in OURS:
            continue  # rows of other rooms, whose tests say what roles may do to them
        rights = "view add change delete" if role == ADMINISTRATOR else MAY[role].get(resource.segment, "")
        assert (robot.get(f"{resource.segment}/").status_code == 200) is ("view" in rights), resource
        page = browser(robot.user).get(address(resource.model, "changelist")) if has_page(resource.model) else None
        assert page is None or (page.status_code == 200) is ("view" in rights), resource
        for name, verb in resource.verbs().items():
            allowed = verb.permission in rights.split()
            refused = is_refused(robot, resource, name, one=verb.one)
            assert refused is not allowed, (resource, name)


def has_page(model: Any) -> bool:
    try:
        return bool(address(model, "changelist"))
    except NoReverseMatch:
        return False


def is_refused(robot: Program, resource: Any, name: str, *, one: bool) -> bool:
    """Return whether a verb is refused for the lack of its permission."""
    place = "" if name == "create" else f"{name.replace('_', '-')}/"
    answer = robot.post(f"{resource.segment}/{'999999999/' if one else ''}{place}", surplus=1)
    return answer.status_code == 403 and "lacks the permission" in answer.json()["detail"]


def test_migrate_gives_roles_their_permissions_again_and_takes_none_away() -> None:
    from django.apps import apps

    from tasks_app.operators.roles import set_permissions

    viewer = Group.objects.get(name=VIEWER)
    extra = Permission.objects.get(codename="view_act")
    viewer.permissions.set([extra])
    set_permissions(apps)
    names = set(viewer.permissions.values_list("codename", flat=True))
    assert {"view_act", "view_task"} <= names
    assert "change_task" not in names


def test_a_reach_is_taken_away_by_an_empty_list_alone() -> None:
    """An empty body is more often a mistake of a program than a wish."""
    robot, bob = program(ADMINISTRATOR), operator(ADMINISTRATOR, name="bob", reach=NamedReach(all_tenants=True))
    answer = robot.post(f"users/{bob.pk}/reach/", reason="a test")
    assert answer.status_code == 400, answer.content
    assert "Give tenants, or all_tenants as true" in answer.json()["errors"][0]["what"]
    assert reach_of(bob).is_whole
    assert robot.post(f"users/{bob.pk}/reach/", tenants=[]).json()["tenants"] == []
    assert not reach_of(bob).is_whole
