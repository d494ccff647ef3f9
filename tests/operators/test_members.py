"""Errors of the operators' API name the member that is wrong, also where the act itself refuses a value."""

from typing import Any

import pytest

from tasks_app.models import Principal, Tenant
from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import operator, program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
KEY = {"principal": "olga", "tenant": "acme"}
ACCOUNT = KEY | {"issuer": "certificate", "subject": "dns:robot"}
CLIENT = KEY | {"name": "robot", "scopes": "tasks:read"}
CODE = {"grant": "authorization-code", "redirect_uris": ["https://app.example/back"]}
WORKSPACE = KEY | {"bot_token": "xoxb-1234567890-abcdefghijkl", "signing_secret": "a" * 32}


@pytest.mark.parametrize(
    ("path", "values", "member"),
    [
        ("keys/", KEY | {"days": -1}, "days"),
        ("keys/", KEY | {"days": 1e300}, "days"),
        ("keys/", KEY | {"days": True}, "days"),
        ("keys/", KEY | {"networks": "10.0.0.0/99"}, "networks"),
        ("keys/", KEY | {"language": "klingon"}, "language"),
        ("keys/", KEY | {"tenant": "a/b"}, "tenant"),
        ("keys/", {"principal": "*"}, "principal"),
        ("accounts/", ACCOUNT | {"principal": "*"}, "principal"),
        ("clients/", CLIENT | {"principal": "*"}, "principal"),
        ("keys/", {"principal": "developer", "name": "development"}, "name"),
        ("accounts/", ACCOUNT | {"subject": "robot"}, "subject"),
        ("accounts/", ACCOUNT | {"issuer": "https://other"}, "issuer"),
        ("accounts/", ACCOUNT | {"language": "klingon"}, "language"),
        ("clients/", CLIENT | {"scopes": "*"}, "scopes"),
        ("clients/", CLIENT | {"grant": "password"}, "grant"),
        ("clients/", CLIENT | {"grant": "authorization-code"}, "redirect_uris"),
        ("clients/", CLIENT | CODE | {"redirect_uris": ["http://app.example/"]}, "redirect_uris"),
        (
            "permissions/",
            {"tenant": "acme", "principal": None, "effect": "deny", "kind": "agent", "pattern": "a*b"},
            "pattern",
        ),
        ("slack-workspaces/", WORKSPACE | {"bot_token": "other"}, "bot_token"),
        ("slack-workspaces/", WORKSPACE | {"signing_secret": "-"}, "signing_secret"),
        ("users/", {"username": "VERA", "roles": []}, "username"),
        ("users/", {"username": "ve ra", "roles": []}, "username"),
        ("users/", {"username": "olaf", "roles": ["god"]}, "roles"),
        ("users/", {"username": "olaf", "roles": [], "tenants": ["nowhere"]}, "tenants"),
        ("users/", {"username": "olaf", "roles": [], "tenants": ["acme"], "all_tenants": True}, "all_tenants"),
        ("users/", {"username": "olaf", "roles": [], "agents": ["a b"]}, "agents"),
    ],
)
def test_a_wrong_value_is_an_error_of_its_member(
    path: str, values: dict[str, Any], member: str, olga: Principal, settings: Any
) -> None:
    operator(name="vera")
    robot = program(ADMINISTRATOR)
    assert robot.get(path).status_code == 200
    settings.A2A_OAUTH = True  # The paths of the API are loaded already, without those of the OAuth server.
    answer = robot.post(path, **values)
    assert answer.status_code == 400, answer.content
    (error,) = answer.json()["errors"]
    assert error["where"] == f"/{member}", error


@pytest.mark.parametrize(
    ("act", "values", "member"),
    [
        ("role", {"roles": ["god"]}, "roles"),
        ("reach", {"tenants": ["nowhere"]}, "tenants"),
        ("link", {"principal": "nobody", "scopes": "*"}, "principal"),
    ],
)
def test_a_wrong_value_of_an_act_on_a_row_is_an_error_of_its_member(
    act: str, values: dict[str, Any], member: str
) -> None:
    vera = operator(name="vera")
    answer = program(ADMINISTRATOR).post(f"users/{vera.pk}/{act}/", **values)
    assert answer.status_code == 400, answer.content
    assert [error["where"] for error in answer.json()["errors"]] == [f"/{member}"]


@pytest.mark.parametrize(("address", "network"), [("10.1.2.3/8", "10.0.0.0/8"), ("2001:db8::1/32", "2001:db8::/32")])
def test_an_address_with_a_prefix_is_answered_with_its_network(address: str, network: str) -> None:
    """The error of 10.1.2.3/8, which is hard to see, names the network that the address is in."""
    for text in (address, f"192.0.2.0/24 {address}"):
        (error,) = program(ADMINISTRATOR).post("keys/", **KEY, networks=text).json()["errors"]
        assert error["where"] == "/networks"
        assert f"{address!r} is not a network" in error["what"]
        assert f"within {network}" in error["what"]


def test_a_truth_value_is_no_number_of_hours() -> None:
    robot = program(ADMINISTRATOR)
    key = robot.post("keys/", **KEY).json()["id"]
    answer = robot.post(f"keys/{key}/rotate/", overlap_hours=True)
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (400, "/overlap_hours")


@pytest.mark.parametrize("value", [1, 1.5, -1, 1e300, 10**30, True])
def test_a_number_is_no_text(value: Any) -> None:
    """A number in place of a text is refused, also in a list. Otherwise a key would belong to a principal "1.5"."""
    robot, (vera, before) = program(ADMINISTRATOR), (operator(name="vera"), Principal.objects.count())
    for path, values, member in (
        ("keys/", {"principal": value}, "principal"),
        ("keys/", KEY | {"reason": value}, "reason"),
        ("budgets/", {"amount": value}, "amount"),
        ("deliveries/give-up/", {"ids": [value]}, "ids"),
        (f"users/{vera.pk}/role/", {"roles": ["viewer", value]}, "roles"),
    ):
        answer = robot.post(path, **values)
        assert (answer.status_code, answer.json()["errors"][0]["where"].split("/")[1]) == (400, member), answer.content
    assert Principal.objects.count() == before


@pytest.mark.parametrize(
    ("path", "values", "member", "sentence"),
    [
        ("keys/", KEY | {"days": "30"}, "days", "must be a number"),
        ("limits/", {"per_minute": "600"}, "per_minute", "must be a number"),
        ("limits/", {"per_minute": 600, "burst": True}, "burst", "must be a number"),
        ("users/", {"username": "olaf", "roles": [], "all_tenants": "yes"}, "all_tenants", "must be true or false"),
        ("users/", {"username": "olaf", "roles": [], "all_tenants": 1}, "all_tenants", "must be true or false"),
    ],
)
def test_a_text_is_no_number_and_neither_is_a_truth_value(
    path: str, values: dict[str, Any], member: str, sentence: str, olga: Principal
) -> None:
    answer = program(ADMINISTRATOR).post(path, **values)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["where"]) == (400, f"/{member}")
    assert error["what"].startswith(sentence)


def test_a_value_of_a_wrong_kind_is_named_together_with_the_other_errors() -> None:
    answer = program(ADMINISTRATOR).post("keys/", days="30", tenant=1)
    assert {error["where"] for error in answer.json()["errors"]} == {"/principal", "/days", "/tenant"}


def test_a_budget_is_that_of_the_tenant_default_as_a_limit_is() -> None:
    robot = program(ADMINISTRATOR)
    for path, values in (("limits/", {"per_minute": 5}), ("budgets/", {"amount": "5"})):
        Tenant.objects.get_or_create(name="default")
        answer = robot.post(path, **values)
        assert (answer.status_code, answer.json()["tenant"]) == (201, "default"), answer.content


@pytest.mark.parametrize(
    ("path", "member", "value", "sentence"),
    [
        ("budgets/", "period", "week", "must be one of total, day, month"),
        ("permissions/", "effect", "forbid", "must be one of allow, deny"),
        ("permissions/", "kind", {}, "must be one of agent, skill, phase, operation, namespace"),
        ("users/", "tenants", "acme", "must be a list, in square brackets"),
    ],
)
def test_a_member_says_which_values_it_can_have(path: str, member: str, value: Any, sentence: str) -> None:
    errors = program(ADMINISTRATOR).post(path, **{member: value}).json()["errors"]
    assert {"where": f"/{member}", "what": sentence} in errors


def test_the_description_has_the_choices_of_a_member() -> None:
    paths = program(ADMINISTRATOR).get("openapi.json").json()["paths"]
    body = paths["/api/v1/budgets/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["period"]["enum"] == ["total", "day", "month", None]
