"""Refusals of acts: a sentence at each door, and over the operators' API advice about a role only if one would help."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app.models import Principal
from tasks_app.operators.refusals import sentence_of
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import operator, program
from tests.support.commands import run

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ROLE = "a2a users role NAME ROLE"
ACCOUNT = {"issuer": "certificate", "subject": "robot", "principal": "olga"}
PERMISSION = {"tenant": "nowhere", "principal": None, "effect": "deny", "kind": "agent", "pattern": "x"}


def test_a_missing_permission_is_answered_with_advice_about_roles() -> None:
    answer = program(VIEWER).get("acts/")
    assert (answer.status_code, ROLE in answer.json()["advice"]) == (403, True)
    assert "replaces all roles, so name the former ones too" in answer.json()["advice"]


def test_no_role_is_advised_where_none_would_help() -> None:
    chief, root = program(ADMINISTRATOR), User.objects.create_superuser("root", password="a long password")
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator(ADMINISTRATOR))
    for answer, sentence in (
        (chief.post("tokens/", name="x"), "cannot make another"),
        (chief.post(f"users/{root.pk}/disable/"), "is a superuser"),
        (program(ADMINISTRATOR, administers=False).post("keys/", principal="olga"), "--administer"),
        (
            program(ADMINISTRATOR, reach=NamedReach(all_tenants=True, agents=["echo"])).post(
                "users/", username="x", roles=[]
            ),
            "no others",
        ),
        (client.post("/api/v1/keys/", {"principal": "x"}, content_type="application/json"), "CSRF"),
    ):
        problem = answer.json()
        assert (answer.status_code, sentence in problem["detail"]) == (403, True), problem
        assert problem["advice"]
        assert ROLE not in problem["advice"], problem


def test_no_tenant_is_advised_where_only_a_reach_of_all_would_help(olga: Principal) -> None:
    one = program(ADMINISTRATOR, reach=NamedReach(tenants=[olga.tenant.name]))
    account = {"issuer": "certificate", "subject": "dns:robot.example.com", "principal": "olga"}
    problem = one.post("accounts/", tenant=olga.tenant.name, **account).json()
    assert (problem["status"], "who sees every tenant" in problem["detail"]) == (403, True)
    assert "--tenant" not in problem["advice"], problem


def test_an_operator_of_some_agents_is_not_told_that_the_tenant_is_another(olga: Principal) -> None:
    some = program(ADMINISTRATOR, reach=NamedReach(tenants=[olga.tenant.name], agents=["echo"]))
    for tenant, words in ((olga.tenant.name, "who sees every agent."), ("abroad", "abroad is not one of yours.")):
        problem = some.post("keys/", principal="olga", tenant=tenant).json()
        assert (problem["status"], words in problem["detail"]) == (403, True), problem


@pytest.mark.parametrize(
    ("words", "path", "values"),
    [
        ("keys create olga --language klingon", "keys/", {"principal": "olga", "language": "klingon"}),
        ("accounts add certificate robot --principal olga", "accounts/", ACCOUNT),
        ("limits set 1 --tenant nowhere", "limits/", {"tenant": "nowhere", "per_minute": 1}),
        ("limits set 0 --burst 9 --tenant acme", "limits/", {"tenant": "acme", "per_minute": 0, "burst": 9}),
        ("budgets set 1 --tenant nowhere", "budgets/", {"tenant": "nowhere", "amount": "1"}),
        ("permissions deny * agent x --tenant nowhere", "permissions/", PERMISSION),
    ],
)
def test_each_refusal_is_a_sentence(words: str, path: str, values: dict[str, Any], olga: Principal) -> None:
    failed, answer = run("a2a", *words.split()), program(ADMINISTRATOR).post(path, **values)
    assert (failed.code, answer.status_code) == (1, 400), (failed, answer.content)
    for sentence in (failed.errors, answer.json()["errors"][0]["what"]):
        assert (sentence[0].isupper(), sentence[-1]) == (True, "."), sentence


def test_a_member_keeps_its_name_in_a_sentence() -> None:
    assert sentence_of(ValueError("per_minute must be 0")) == "per_minute must be 0."
    assert sentence_of(ValueError("the key has ended.")) == "The key has ended."


@pytest.mark.parametrize("body", ["{", "NaN", '{"a": "\\ud800"}', b"\xff"])
def test_a_body_that_is_no_json_is_advised_about_json(body: str | bytes) -> None:
    """Where no member can be named, the advice does not speak of members."""
    headers = program(ADMINISTRATOR).headers
    answer = Client().generic("POST", "/api/v1/keys/", body, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.json()["advice"]) == (400, "Send one JSON object in UTF-8.")
    assert "errors" not in answer.json()


def test_advice_about_media_types_fits_what_was_wrong() -> None:
    headers = program(ADMINISTRATOR).headers
    packed = Client().post("/api/v1/keys/", {}, "application/json", headers=headers | {"Content-Encoding": "gzip"})
    assert "without a `Content-Encoding`" in packed.json()["advice"]
    page = Client().get("/api/v1/keys/", headers=headers | {"Accept": "text/html"})
    assert (page.status_code, "`Accept`" in page.json()["advice"]) == (406, True)
