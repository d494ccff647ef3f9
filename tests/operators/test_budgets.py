"""Budgets for operators: set, shown, reset and removed, by command, in the admin and as JSON, each with an act."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a.money import MICRO
from tasks_app.models import Act, Budget, Principal, RateLimit, Reservation, Tenant
from tasks_app.operators.rate_limits import set_limit
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tests.operators.people import OPS, operator, program
from tests.support.commands import printed, run
from tests.support.operators import task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.fixture
def budget(olga: Principal) -> Budget:
    """Return a budget of which half is reserved by a task, and an eighth spent."""
    row = Budget.objects.create(tenant=olga.tenant, principal=olga, amount=8 * MICRO, reserved=4 * MICRO, spent=MICRO)
    Reservation.objects.create(task_id=task(olga).pk, budget=row, amount=4 * MICRO)
    return row


LINE = {"tenant": "acme", "principal": "olga", "amount": "8.00", "period": "total", "reserved": "4.00"}
LINE |= {"spent": "1.00", "left": "3.00", "resets_at": None}


def test_the_commands_set_show_list_reset_and_remove(budget: Budget) -> None:
    olga = ("--tenant", "acme", "--principal", "olga")
    shown, held = printed("a2a", "budgets", "show", *olga)
    assert shown == {"id": budget.pk, **LINE}
    assert held == {"task": Reservation.objects.get().task_id, "reserved": "4.00"}
    assert printed("a2a", "budgets", "list") == [shown]
    (line,) = printed("a2a", "budgets", "reset", *olga, "--reason", "a refund")
    assert (line["spent"], line["reserved"], line["left"]) == ("0.00", "4.00", "4.00")
    (line,) = printed("a2a", "budgets", "set", "0.25", "--tenant", "acme", "--period", "month")
    assert (line["principal"], line["amount"], line["period"]) == (None, "0.25", "month")
    assert line["resets_at"].endswith("-01T00:00:00+00:00")
    (line,) = printed("a2a", "budgets", "remove", *olga)
    assert (line["id"], line["principal"], line["done"]) == (budget.pk, "olga", "remove")
    assert [line["principal"] for line in printed("a2a", "budgets", "list")] == [None]
    assert list(Act.objects.order_by("id").values_list("verb", "kind", "name", "reason")) == [
        ("reset", "budget", "acme/olga", "a refund"),
        ("set", "budget", "acme", ""),
        ("remove", "budget", "acme/olga", ""),
    ]


def test_a_budget_keeps_its_period_when_its_amount_is_set(budget: Budget) -> None:
    acme, chief = ("--tenant", "acme"), program(ADMINISTRATOR)
    (line,) = printed("a2a", "budgets", "set", "25", *acme)
    assert line["period"] == "total"
    printed("a2a", "budgets", "set", "25", *acme, "--period", "month")
    (line,) = printed("a2a", "budgets", "set", "30", *acme)
    assert (line["amount"], line["period"], line["resets_at"] is None) == ("30.00", "month", False)
    assert chief.post("budgets/", tenant="acme", amount="35").json()["period"] == "month"
    (line,) = printed("a2a", "budgets", "set", "40", *acme, "--period", "total")
    assert (line["period"], line["resets_at"]) == ("total", None)


def test_a_command_about_nothing_says_what_is_missing(budget: Budget) -> None:
    for words, sentence in (
        (("show", "--tenant", "nowhere"), "There is no tenant 'nowhere'"),
        (("show", "--tenant", "acme"), "acme has no budget of its own: `manage.py a2a budgets list` prints all"),
        (("set", "1", "--tenant", "acme", "--principal", "no"), "The tenant 'acme' has no principal 'no'"),
        (("reset", "--tenant", "acme"), "acme has no budget."),
        (("remove", "--tenant", "acme"), "acme has no budget."),
    ):
        failed = run("a2a", "budgets", *words)
        assert (failed.lines, failed.code != 0, sentence in failed.errors) == ([], True, True), failed
    assert "must be dollars as digits" in run("a2a", "budgets", "set", "-1", "--tenant", "acme").errors


def test_the_api_does_the_same_within_the_reach_and_the_role(budget: Budget) -> None:
    robot = program(OPERATOR)
    assert robot.get("budgets/").json()["results"] == [{"id": budget.pk, **LINE}]
    shown = robot.get(f"budgets/{budget.pk}/").json()
    assert shown["tasks"] == [{"task": Reservation.objects.get().task_id, "reserved": "4.00"}]
    assert robot.post("budgets/", tenant="acme", amount="1").status_code == 403, "an operator sees them only"
    chief = program(ADMINISTRATOR)
    made = chief.post("budgets/", tenant="acme", amount="2.5", period="day", reason="a trial")
    assert (made.status_code, made.json()["amount"], made.json()["principal"]) == (201, "2.50", None)
    assert chief.post(f"budgets/{budget.pk}/reset/").json()["spent"] == "0.00"
    assert chief.post(f"budgets/{budget.pk}/remove/").json()["reserved"] == "4.00"
    assert not Budget.objects.filter(pk=budget.pk).exists()
    for body in (
        {"tenant": "acme", "amount": "1e3"},
        {"tenant": "no", "amount": "1"},
        {"tenant": "acme", "amount": 1.5, "principal": "no"},
    ):
        assert chief.post("budgets/", **body).status_code == 400, body
    assert list(Act.objects.filter(kind="budget").order_by("id").values_list("verb", "reason")) == [
        ("set", "a trial"),
        ("reset", ""),
        ("remove", ""),
    ]


def test_the_admin_shows_a_budget_with_its_tasks_and_sets_it(budget: Budget) -> None:
    viewer, chief = Client(), Client()
    viewer.force_login(operator(VIEWER))
    chief.force_login(operator(ADMINISTRATOR))
    place = reverse("admin:tasks_app_budget_change", args=[budget.pk])
    page = viewer.get(place).content.decode()
    assert all(word in page for word in ("4.00", "1.00", "3.00", Reservation.objects.get().task_id))
    assert viewer.post(place, {"dollars": "9", "period": "total"}).status_code == 403
    assert chief.post(place, {"dollars": "9", "period": "day", "reason": "more work"}).status_code == 302
    budget.refresh_from_db()
    assert (budget.amount, budget.period, budget.reserved, budget.principal.name if budget.principal else "") == (
        9 * MICRO,
        "day",
        4 * MICRO,
        "olga",
    )
    other = Principal.objects.create(tenant=Tenant.objects.create(name="other"), name="ann")
    form = {"tenant": budget.tenant_id, "principal": other.pk, "dollars": "1", "period": "total"}
    add = reverse("admin:tasks_app_budget_add")
    assert "is not of this tenant" in chief.post(add, form).content.decode()
    without = chief.post(add, form | {"tenant": ""}).content.decode()
    assert ("This field is required" in without, "is not of this tenant" in without) == (True, False)
    assert chief.post(add, form | {"principal": "", "dollars": "x"}).status_code == 200
    assert chief.post(add, form | {"principal": ""}).status_code == 302
    assert Budget.objects.get(principal=None).amount == MICRO
    act = Act.objects.filter(verb="set").earliest("id")
    assert (act.reason, '"amount":"9.00"' in act.after, '"amount":"8.00"' in act.before) == ("more work", True, True)


def test_the_page_of_a_task_has_its_money(olga: Principal) -> None:
    client = Client()
    client.force_login(operator(VIEWER))
    plain, priced = task(olga), task(olga, budget=2 * MICRO, reserved=MICRO, spent=250_000)
    assert "Spent (USD)" not in client.get(reverse("admin:tasks_app_task_change", args=[plain.pk])).content.decode()
    page = client.get(reverse("admin:tasks_app_task_change", args=[priced.pk])).content.decode()
    assert all(word in page for word in ("Budget (USD)", "2.00", "Reserved (USD)", "1.00", "Spent (USD)", "0.25"))


@pytest.mark.parametrize(("action", "left"), [("reset", {"spent": 0, "reserved": 4 * MICRO}), ("remove", None)])
def test_the_admin_asks_before_it_ends_a_budget(budget: Budget, action: str, left: dict[str, int] | None) -> None:
    client, place = Client(), reverse("admin:tasks_app_budget_changelist")
    client.force_login(operator(ADMINISTRATOR))
    Budget.objects.filter(pk=budget.pk).update(spent=MICRO)
    form = {"action": action, "_selected_action": [budget.pk]}
    page = client.post(place, form).content.decode()
    assert all(words in page for words in (f"{action.capitalize()}: 1 budget?", "acme/olga", 'name="reason"'))
    assert (Budget.objects.get(pk=budget.pk).spent, Act.objects.filter(kind="budget").count()) == (MICRO, 0)
    client.post(place, form | {"post": "yes", "reason": "a trial"})
    assert Budget.objects.filter(pk=budget.pk).values("spent", "reserved").first() == left
    assert list(Act.objects.filter(kind="budget").values_list("verb", "reason")) == [(action, "a trial")]


def test_the_admin_asks_before_it_removes_a_rate_limit(olga: Principal) -> None:
    client, place = Client(), reverse("admin:tasks_app_ratelimit_changelist")
    client.force_login(operator(ADMINISTRATOR))
    row = set_limit(OPS, tenant="acme", principal="olga", per_minute=5)
    form = {"action": "remove", "_selected_action": [row.pk]}
    page = client.post(place, form).content.decode()
    assert all(words in page for words in ("Remove: 1 rate limit?", str(row), 'name="reason"'))
    assert RateLimit.objects.exists()
    client.post(place, form | {"post": "yes", "reason": "a trial"})
    assert not RateLimit.objects.exists()
    assert Act.objects.filter(kind="rate limit").latest("pk").reason == "a trial"
