"""A reach that names agents and no tenant is refused at each door: forgotten words take no tenant away."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, OperatorReach
from tasks_app.operators.reach import reach_of
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tests.operators.people import operator, program
from tests.support.commands import printed, run
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
SENTENCE = "Agents without a tenant show an operator nothing: name their tenants too, or give all tenants."


def test_a_command_with_agents_alone_is_refused() -> None:
    vera, acts = operator(VIEWER, name="vera"), Act.objects.count()
    for verb, name in (("reach", "vera"), ("make", "zed")):
        failed = run("a2a", "users", verb, name, "--agent", "story")
        assert (failed.code, failed.errors) == (1, SENTENCE)
    assert (reach_of(vera).is_whole, Act.objects.count()) == (True, acts)
    assert not User.objects.filter(username="zed").exists()
    assert "Give tenants" in run("a2a", "users", "reach", "vera").errors


@pytest.mark.parametrize(
    ("body", "where", "sentence"),
    [
        ({"agents": ["story"]}, "/agents", SENTENCE),
        ({"agents": ["story"], "tenants": []}, "/agents", SENTENCE),
        ({"agents": ["story"], "all_tenants": False}, "/agents", SENTENCE),
        ({"all_tenants": False}, "", "Give tenants, or all_tenants as true; an empty list of tenants takes all away."),
        ({"agents": []}, "", "Give tenants, or all_tenants as true; an empty list of tenants takes all away."),
    ],
)
def test_a_body_without_tenants_is_refused(body: dict[str, Any], where: str, sentence: str) -> None:
    vera = operator(VIEWER, name="vera")
    answer = program(ADMINISTRATOR).post(f"users/{vera.pk}/reach/", **body)
    assert (answer.status_code, answer.json()["errors"]) == (400, [{"where": where, "what": sentence}])
    assert reach_of(vera).is_whole


def test_an_operator_is_not_made_with_agents_alone() -> None:
    answer = program(ADMINISTRATOR).post("users/", username="zed", roles=[VIEWER], agents=["story"])
    assert (answer.status_code, answer.json()["errors"]) == (400, [{"where": "/agents", "what": SENTENCE}])
    assert not User.objects.filter(username="zed").exists()


def save(client: Client, user: User, **reach: str) -> str:
    """Save the form of an account, which stays active only with a new reach. Return the page that it leads to."""
    form = {"username": user.username, "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    form |= {"reach-TOTAL_FORMS": "1", "reach-INITIAL_FORMS": "1", "reach-0-user": str(user.pk)}
    form |= {f"reach-0-{name}": value for name, value in reach.items()}
    place = reverse("admin:auth_user_change", args=[user.pk])
    return client.post(place, form | form_digest(client, place), follow=True).content.decode()


def test_the_admin_refuses_agents_alone_and_disables_an_account_that_has_them(admin_client: Client) -> None:
    vera = operator(VIEWER, name="vera")
    assert SENTENCE in save(admin_client, vera, agents="story")
    assert User.objects.get(username="vera").is_active
    OperatorReach.objects.filter(user=vera).update(all_tenants=False, agents="story")
    assert SENTENCE not in save(admin_client, vera, agents="story")
    assert not User.objects.get(username="vera").is_active


def test_a_tenant_that_does_not_exist_is_the_only_fault(admin_client: Client) -> None:
    vera = operator(VIEWER, name="vera")
    page = save(admin_client, vera, agents="story", tenants="99999")
    assert ("99999 is not one of the available choices" in page, SENTENCE in page) == (True, False)


def test_the_admin_removes_a_reach(admin_client: Client) -> None:
    vera = operator(VIEWER, name="vera")
    save(admin_client, vera, all_tenants="on", DELETE="on")
    assert not OperatorReach.objects.filter(user=vera).exists()
    act = Act.objects.get(name="vera", verb="change")
    assert [json.loads(values)["all_tenants"] for values in (act.before, act.after)] == [True, None]


def test_an_agent_that_is_named_twice_is_stored_once(admin_client: Client) -> None:
    vera = operator(VIEWER, name="vera")
    words = ("--all-tenants", *("--agent", "story") * 2, "--agent", "echo")
    assert [line["agents"] for line in printed("a2a", "users", "reach", "vera", *words)] == [["story", "echo"]]
    save(admin_client, vera, agents="echo echo", all_tenants="on")
    assert OperatorReach.objects.get(user=vera).agents == "echo"
