"""Two operators at once: a row that another changes or removes before an act leads to a refusal, never to a fault."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Group, User, UserManager
from django.db import IntegrityError, connection, models
from django.test import Client
from django.urls import reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.models import (
    Act,
    Budget,
    MemoryEntry,
    MemoryUse,
    OperatorReach,
    OperatorToken,
    Permission,
    Principal,
    RateLimit,
    Relay,
    SlackWorkspace,
    Task,
    Tenant,
)
from tasks_app.models.budgets import TOTAL
from tasks_app.operators import budgets, groups, permissions, rate_limits, tokens, users
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR
from tests.conftest import PATIENCE, until
from tests.database.locks import needs_row_locks, under_way, waiting_for_locks
from tests.operators.people import OPS, operator, program
from tests.operators.tenants import Furniture
from tests.support.operators import task
from tests.transports.admin.pages import digest_in, form_digest, messages_of, registered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
BODIES: dict[str, dict[str, Any]] = {
    "roles-change": {"permissions": []},
    "accounts-change": {"scopes": "tasks:read"},
    "clients-change": {"scopes": "tasks:read", "redirect_uris": []},
    "rename": {"name": "night"},
    "role": {"roles": []},
    "details": {"email": "vera@example.com"},
    "reach": {"tenants": []},
    "link": {"tenant": "acme", "principal": "mine7-owner", "scopes": "*"},
    "map_user": {"user": "U1", "tenant": "acme", "principal": "mine7-owner"},
    "unmap_user": {"user": "U1"},
    "login": {"secret": "s"},
}
"""The bodies of verbs that need one, by the verb, or by its resource and the verb."""
READS = 12
"""A number of reads that no verb reaches."""
VERBS = [(each, name) for each in RESOURCES for name, verb in each.verbs().items() if verb.one]


@contextmanager
def removed_after(model: type[models.Model], pk: Any, reads: int) -> Iterator[list[Any]]:
    """Remove a row after so many reads of it, as another operator would: not while a transaction has it locked.

    Yields the list of its reads.
    """
    original, seen = model.from_db.__func__, []  # type: ignore[attr-defined]

    def from_db(cls: Any, *args: Any) -> Any:
        row = original(cls, *args)
        if row.pk == pk and len(seen) < reads and not connection.in_atomic_block:
            seen.append(row)
            if len(seen) == reads:
                model._default_manager.filter(pk=pk).delete()
        return row

    model.from_db = classmethod(from_db)  # type: ignore[assignment, method-assign]
    try:
        yield seen
    finally:
        del model.from_db


def make(furniture: Furniture, model: type[models.Model]) -> Any:
    if model is User:
        return operator()
    if model is Task:
        return task(furniture.rows[Principal])
    if model is Relay:
        return Relay.objects.create(name="far", credentials="x")
    if model is SlackWorkspace:
        return furniture.make(model)  # The questions of the first one keep it from being removed.
    row = furniture.rows.pop(model, None) or furniture.make(model)
    if model is MemoryEntry:  # The room of its owner counts it.
        MemoryUse.objects.filter(pk=row.owner_id).update(entries=9, size=9)
    return row


@pytest.mark.parametrize(("resource", "verb"), VERBS, ids=[f"{each.segment}-{verb}" for each, verb in VERBS])
def test_no_verb_of_the_api_fails_for_a_row_that_goes_meanwhile(resource: Any, verb: str, settings: Any) -> None:
    settings.A2A_RELAYS = {"far": {"url": "https://far.example"}}
    furniture, robot = Furniture("acme", "mine7"), program(ADMINISTRATOR)
    for reads in range(1, READS):
        row = make(furniture, resource.model)
        body = BODIES.get(f"{resource.segment}-{verb}") or BODIES.get(verb, {})
        with removed_after(resource.model, row.pk, reads) as seen:
            answer = robot.post(f"{resource.segment}/{row.pk}/{verb.replace('_', '-')}/", **body)
        assert answer.status_code in ({404, 409} if reads == 1 else {200, 404, 409}), (reads, answer.content)
        if len(seen) < reads:
            break
    assert reads > 1, "the row was read"


def actions() -> list[tuple[type[models.Model], str]]:
    return [
        (model, name)
        for model, page in registered().items()
        if model._meta.app_label == "tasks_app"
        for name in page.actions or ()
    ]


@pytest.mark.parametrize(("model", "action"), actions(), ids=lambda one: getattr(one, "__name__", one))
def test_no_action_of_the_admin_fails_for_a_row_that_goes_meanwhile(
    model: Any, action: str, client: Client, settings: Any
) -> None:
    settings.A2A_RELAYS = {"far": {"url": "https://far.example"}}
    furniture = Furniture("acme", "mine7")
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    path = reverse(f"admin:tasks_app_{model._meta.model_name}_changelist")
    for reads in range(1, READS):
        row = make(furniture, model)
        form = {"action": action, "_selected_action": [row.pk], "post": "yes"}
        with removed_after(model, row.pk, reads) as seen:
            assert client.post(path, form, follow=True).status_code == 200
        if len(seen) < reads:
            break


def test_a_budget_is_set_although_another_operator_removes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Furniture("acme", "mine7").rows[Principal]
    budgets.set_budget(owner, 5, TOTAL, OPS)
    row = Budget.objects.get(principal=owner)
    with removed_after(Budget, row.pk, 1):
        assert Budget.objects.first() == row
    assert budgets.set_budget(owner, 7, TOTAL, OPS).amount == 7
    client = Client()
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    row = Budget.objects.get(principal=owner)
    form = {"dollars": "3", "period": TOTAL, "_save": "Save"}
    with removed_after(Budget, row.pk, 1):
        answer = client.post(reverse("admin:tasks_app_budget_change", args=[row.pk]), form, follow=True)
    assert answer.status_code == 200


def test_a_user_that_another_operator_makes_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, original = program(ADMINISTRATOR), UserManager.create_user

    def create_twice(*words: Any, **values: Any) -> Any:
        original(*words, **values)
        return original(*words, **values)

    monkeypatch.setattr(UserManager, "create_user", create_twice)
    answer = robot.post("users/", username="vera", roles=[])
    assert answer.status_code == 400, answer.content
    assert "There is a user vera already" in answer.json()["errors"][0]["what"]


def test_two_users_whose_names_differ_in_capitals_are_not_both_made(monkeypatch: pytest.MonkeyPatch) -> None:
    robot, client, save = program(ADMINISTRATOR), Client(), User.save
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    password = "correct horse battery staple"
    form = {"username": "vera", "usable_password": "true", "password1": password, "password2": password}
    form |= {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}

    def save_after_another(user: User, *words: Any, **values: Any) -> None:
        if user.username == "vera":
            User(username="Vera").save()
        save(user, *words, **values)

    monkeypatch.setattr(User, "save", save_after_another)
    answer = robot.post("users/", username="vera", roles=[])
    assert answer.status_code == 400, answer.content
    assert "There is a user vera already" in answer.json()["errors"][0]["what"]
    page = client.post(reverse("admin:auth_user_add"), form, follow=True).content.decode()
    assert "another operator has made one of this name" in page
    assert User.objects.filter(username__iexact="vera").count() < 2


def _break_another_rule(*_: Any, **__: Any) -> None:
    OperatorReach.objects.bulk_create([OperatorReach(user=User.objects.latest("pk")) for _ in range(2)])


def test_only_the_rule_of_names_is_told_as_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    client, night = Client(), groups.make_role(OPS, "night", [])
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    monkeypatch.setattr("tasks_app.admin.users.record_acts", _break_another_rule)
    page = client.post(reverse("admin:auth_group_add"), {"name": "day"}, follow=True).content.decode()
    assert "another operator has made one of this name" not in page
    assert "Nothing was saved: a row that it needs was changed or removed meanwhile" in page
    assert not Group.objects.filter(name="day").exists()
    monkeypatch.setattr(UserManager, "create_user", _break_another_rule)
    monkeypatch.setattr(Group, "save", _break_another_rule)
    for verb in (
        lambda: users.make_user(OPS, "vera", [], users.NamedReach()),
        lambda: groups.make_role(OPS, "day", []),
        lambda: groups.rename_role(OPS, night, "day"),
    ):
        with pytest.raises(IntegrityError):
            verb()


def test_a_rate_limit_is_set_although_another_operator_sets_it_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    now, tenant = rate_limits._later(), Tenant.objects.create(name="abroad")

    def later() -> Any:
        RateLimit.objects.get_or_create(tenant=tenant, defaults={"per_minute": 5, "changed_at": now})
        return now

    monkeypatch.setattr(rate_limits, "_later", later)
    rate_limits.set_limit(OPS, tenant="abroad", per_minute=7)
    assert RateLimit.objects.get(tenant=tenant).per_minute == 7
    act = Act.objects.filter(kind="rate limit").latest("pk")
    assert (orjson.loads(act.before)["per_minute"], orjson.loads(act.after)["per_minute"]) == (5, 7)


@needs_row_locks
def test_the_last_permission_is_given_once_and_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    owner, client, original = Furniture("acme", "mine7").rows[Principal], Client(), permissions.set_permission
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    form = {"principal": owner.pk, "allows": "yes", "kind": "agent", "pattern": "echo"}
    is_checked = threading.Event()

    def set_other() -> Any:
        assert is_checked.wait(PATIENCE)
        return original(owner, "agent", "hello", allows=True, by=OPS)

    def set_late(*args: Any, **values: Any) -> Any:
        is_checked.set()
        until(lambda: others or waiting_for_locks(), "the act of the other operator, or its wait for this one")
        return original(*args, **values)

    Permission.objects.all().delete()
    monkeypatch.setattr(permissions, "MOST", 1)
    monkeypatch.setattr(permissions, "set_permission", set_late)
    with under_way(set_other) as others:
        answer = client.post(reverse("admin:tasks_app_permission_add"), form)
    assert (answer.status_code, str(Permission.objects.get())) == (302, "allow agent echo")
    (refusal,) = others
    assert "has 1 permissions at most: use a pattern" in str(refusal)


@pytest.mark.parametrize("is_active", [True, False])
def test_an_act_on_a_user_whom_another_operator_changed_is_recorded(is_active: bool) -> None:
    user = operator()
    users.set_active(OPS, user, is_active)
    seen = User.objects.get(pk=user.pk)
    users.set_active(OPS, user, not is_active)
    acts = Act.objects.filter(kind="user", object_id=str(user.pk))
    before = acts.count()
    assert users.set_active(OPS, seen, is_active), "the other operator's act is undone"
    assert acts.count() == before + 1
    assert orjson.loads(acts.latest("pk").before)["is_active"] is not is_active
    assert User.objects.get(pk=user.pk).is_active is is_active


def test_a_user_who_was_disabled_meanwhile_gets_no_token() -> None:
    user = operator()
    users.set_active(OPS, User.objects.get(pk=user.pk), False)
    with pytest.raises(tokens.TokenRefused):
        tokens.make_token(user, "a test", 1, OPS)
    users.set_active(OPS, user, True)
    assert not OperatorToken.objects.exists()


def test_a_form_from_before_another_operators_act_undoes_nothing(admin_client: Client) -> None:
    tom = operator(OPERATOR, name="tom")
    page = reverse("admin:auth_user_change", args=[tom.pk])
    reach = {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    form = {"username": "tom", "is_active": "on", "is_staff": "on", "email": "tom@example.org"} | reach
    form["groups"] = str(tom.groups.get().pk)
    stale = form | form_digest(admin_client, page)
    users.set_active(OPS, tom, False)
    users.set_roles(OPS, tom, [])
    now = form_digest(admin_client, page)  # in another tab
    for _ in range(2):
        refused = admin_client.post(page, stale, follow=True)
        (message,) = messages_of(refused)
        assert "Nothing was saved: it was changed after the form was opened, perhaps" in message
        fields = refused.context["adminform"].form
        assert (fields["is_active"].value(), fields["email"].value(), list(fields["groups"].value())) == (False, "", [])
        tom.refresh_from_db()
        assert (tom.is_active, users.roles_of(tom), tom.email) == (False, [], "")
    assert not Act.objects.filter(verb="change").exists()
    # That tab has shown the row as it is now, so the operator may save it knowingly.
    assert admin_client.post(page, form | now).status_code == 302
    tom.refresh_from_db()
    assert (tom.is_active, users.roles_of(tom)) == (True, [OPERATOR])


def test_a_form_that_does_not_say_what_it_showed_is_refused(admin_client: Client) -> None:
    tom, role = operator(name="tom"), groups.make_role(OPS, "watch", ["tasks_app.view_task"])
    inline = {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    for row, form in ((tom, {"email": "tom@example.org"} | inline), (role, {"name": "night"})):
        page = reverse(f"admin:auth_{row._meta.model_name}_change", args=[row.pk])
        admin_client.get(page)
        (message,) = messages_of(admin_client.post(page, form, follow=True))
        assert "Open the page again, and make your changes there." in message
    tom.refresh_from_db()
    role.refresh_from_db()
    assert (tom.is_active, tom.email, role.name) == (True, "", "watch")


def test_a_form_with_a_mistake_is_compared_again_when_it_is_corrected(admin_client: Client) -> None:
    role = groups.make_role(OPS, "watch", ["tasks_app.view_task"])
    page = reverse("admin:auth_group_change", args=[role.pk])
    wrong = admin_client.post(page, {"name": "Viewer"} | form_digest(admin_client, page))
    assert "There is a role" in wrong.content.decode()
    groups.change_role(OPS, role, ["tasks_app.view_task", "tasks_app.view_webhook"])
    (message,) = messages_of(admin_client.post(page, {"name": "night"} | digest_in(wrong), follow=True))
    assert "Nothing was saved" in message
    assert groups.describe_role(Group.objects.get(pk=role.pk)) == groups.describe_role(role)


def test_a_role_is_not_saved_over_the_change_of_another_operator(admin_client: Client) -> None:
    role = groups.make_role(OPS, "watch", ["tasks_app.view_task"])
    page = reverse("admin:auth_group_change", args=[role.pk])
    form = {"name": "watch", "permissions": str(role.permissions.get().pk)}
    stale = form | form_digest(admin_client, page)
    groups.change_role(OPS, role, [])
    assert "Nothing was saved" in admin_client.post(page, stale, follow=True).content.decode()
    assert not role.permissions.exists()
