"""The query parameters of the operators' lists: a value that no row can have is refused, as commands refuse it."""

from typing import Any

import pytest
from django.contrib.admin.sites import site
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a import languages
from tasks_app.api.resources import RESOURCES
from tasks_app.api.resources.exchanges import Exchanges
from tasks_app.exchanges.exchange import BARE
from tasks_app.models import Exchange, Principal, Tenant
from tasks_app.operators.roles import ADMINISTRATOR
from tasks_app.transports import handshake, links, slack
from tasks_app.transports.http import door_of
from tasks_app.zones import slack as zone_slack
from tasks_app.zones.registration import IN_PROCESS
from tests.operators.people import program
from tests.support.commands import printed
from tests.support.operators import exchange, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]

FEW = [(resource, name) for resource in RESOURCES for name in resource.parameters() if resource.choices_of(name)]


def test_parameters_with_few_values_are_those_of_states_and_kinds() -> None:
    assert {(resource.segment, name) for resource, name in FEW} == {
        ("audit", "outcome"),
        ("batches", "state"),
        ("deliveries", "state"),
        ("exchanges", "dialect"),
        ("exchanges", "door"),
        ("exchanges", "outcome"),
        ("logins", "kind"),
        ("shared-streams", "state"),
        ("slack-questions", "state"),
        ("tasks", "state"),
        ("users", "is_active"),
        ("users", "is_staff"),
        ("users", "is_superuser"),
        ("webhooks", "state"),
        ("workflows", "state"),
    }


@pytest.mark.parametrize(("resource", "name"), FEW, ids=lambda each: getattr(each, "segment", each))
def test_a_value_that_no_row_can_have_is_refused(resource: Any, name: str) -> None:
    robot, path = program(ADMINISTRATOR), f"{resource.segment}/"
    since = {"since": "2026-11-22T12:00:00Z"} if name in resource.bounded else {}
    for value in resource.choices_of(name):
        assert robot.get(path, **since, **{name: value}).status_code == 200
    answer = robot.get(path, **since, **{name: "nonsense"})
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["where"] == f"/{name}"
    assert error["what"].startswith("must be one of ")
    paths = robot.get("openapi.json").json()["paths"]
    schemas = {each["name"]: each["schema"] for each in paths[f"/api/v1/{path}"]["get"]["parameters"]}
    assert schemas[name]["enum"] == list(resource.choices_of(name))


def test_calls_can_be_chosen_by_every_door_and_every_dialect() -> None:
    """In the fixed values of both stand the names that the doors write."""
    named = {BARE, handshake.DOOR, links.DOOR, slack.DOOR, zone_slack.DOOR, IN_PROCESS}
    named |= {door_of(endpoint) for endpoint in languages.ALL.endpoints.values()}
    assert named | {"zone", "queue"} == set(Exchange.DOORS)
    dialects = {language.name for language in languages.ALL.by_name.values()}
    assert dialects | {"none", ""} == set(Exchanges.few["dialect"])


SPELLED = {"http_status": "status", "caller__name": "caller", "owner_id": "owner"}
"""The parameters of the admin that have another name in the operators' API."""
TIMES = {"created": {"since", "until"}, "day": {"since", "until"}, "expires": {"since", "until"}}
"""The parameters in place of the admin's choices of times."""


def test_lists_have_a_parameter_for_each_filter_of_the_admin() -> None:
    lists = {resource.model: resource for resource in RESOURCES}
    filtered = {model: options for model, options in site._registry.items() if options.list_filter}
    assert Exchange in filtered
    for model, options in filtered.items():
        names = [getattr(each, "parameter_name", each) for each in options.list_filter]
        wanted = set().union(*(TIMES.get(name, {SPELLED.get(name, name)}) for name in names))
        assert wanted <= set(lists[model].parameters()), model


def test_each_column_of_a_call_can_be_a_parameter(olga: Any) -> None:
    robot = program(ADMINISTRATOR)
    rest = exchange(olga, door="rest", dialect="a2a-0.3", method="GetTask", http_status=404, peer="203.0.113.7")
    exchange(None)
    since = "2020-01-01T00:00:00Z"
    values = {"door": "rest", "dialect": "a2a-0.3", "method": "GetTask", "status": "404", "caller": "olga"}
    for name, value in (values | {"peer": "203.0.113.7"}).items():
        rows = robot.get("exchanges/", since=since, **{name: value}).json()["results"]
        assert [row["id"] for row in rows] == [rest.pk], name


def test_tasks_of_an_owner_are_listed_at_each_door(olga: Any, admin_client: Client) -> None:
    tenant = Tenant.objects.create(name="initech")
    other = Principal.objects.create(tenant=tenant, name="olga")
    mine, theirs = task(olga).pk, task(other).pk
    robot, since = program(ADMINISTRATOR), "2020-01-01T00:00:00Z"
    for name, ids in {"olga": {mine, theirs}, "acme/olga": {mine}, "umbrella/olga": set()}.items():
        assert {row["id"] for row in robot.get("tasks/", since=since, owner=name).json()["results"]} == ids
        assert {row["id"] for row in printed("tasks", "list", "--owner", name)} == ids
    page = admin_client.get(reverse("admin:tasks_app_task_changelist"), {"owner_id": other.pk})
    assert [row.pk for row in page.context["cl"].result_list] == [theirs]


def test_a_caller_may_be_given_with_its_tenant_as_the_log_names_it(olga: Any, admin_client: Client) -> None:
    tenant = Tenant.objects.create(name="initech")
    call, _ = exchange(olga), exchange(Principal.objects.create(tenant=tenant, name="olga"))
    robot, since = program(ADMINISTRATOR), "2020-01-01T00:00:00Z"
    for name, count in {"olga": 2, "acme/olga": 1, "umbrella/olga": 0}.items():
        rows = robot.get("exchanges/", since=since, caller=name).json()["results"]
        assert [row["id"] for row in rows] == [row["id"] for row in printed("exchanges", "list", "--caller", name)]
        page = admin_client.get(reverse("admin:tasks_app_exchange_changelist"), {"caller__name": name})
        assert [row["id"] for row in rows] == [row.pk for row in page.context["cl"].result_list]
        assert len(rows) == count
    assert printed("exchanges", "list", "--caller", "acme/olga")[0]["id"] == call.pk


@pytest.mark.parametrize(
    ("resource", "name"),
    [(resource, name) for resource in RESOURCES for name in resource.bounded],
    ids=lambda each: getattr(each, "segment", each),
)
def test_a_parameter_without_an_index_needs_a_time(resource: Any, name: str) -> None:
    value = (resource.choices_of(name) or ("1",))[0]
    robot, path = program(ADMINISTRATOR), f"{resource.segment}/"
    answer = robot.get(path, **{name: value})
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (400, f"/{name}")
    assert robot.get(path, since="2026-11-22T12:00:00Z", **{name: value}).status_code == 200
    parameters = robot.get("openapi.json").json()["paths"][f"/api/v1/{path}"]["get"]["parameters"]
    (described,) = (each for each in parameters if each["name"] == name)
    assert described["description"].startswith("Needs `since`")


def test_only_the_parameter_whose_value_is_wrong_is_named() -> None:
    answer = program(ADMINISTRATOR).get("exchanges/", since="2026-11-22T12:00:00Z", method="GetTask", status="none")
    assert answer.json()["errors"] == [{"where": "/status", "what": "is not a value of this column"}]


def test_users_are_listed_by_whether_they_may_log_in() -> None:
    robot = program(ADMINISTRATOR)
    User.objects.create_user("gone", is_active=False)
    assert [row["username"] for row in robot.get("users/", is_active="false").json()["results"]] == ["gone"]
    assert "gone" not in {row["username"] for row in robot.get("users/", is_active="true").json()["results"]}


@pytest.mark.parametrize("value", ["", "none"])
@pytest.mark.parametrize("column", ["outcome", "dialect"])
def test_calls_without_an_outcome_or_a_dialect_are_found_as_none(column: str, value: str, olga: Any) -> None:
    """The operators' API takes the name that the command has for an empty column, and an empty value as well."""
    call, robot = exchange(olga), program(ADMINISTRATOR)
    exchange(olga)
    Exchange.objects.filter(pk=call.pk).update(**{column: ""})
    (row,) = robot.get("exchanges/", since="2020-01-01T00:00:00Z", **{column: value}).json()["results"]
    assert row["id"] == call.pk
    assert [line["id"] for line in printed("exchanges", "list", f"--{column}", "none")] == [call.pk]
    wrong = robot.get("exchanges/", since="2020-01-01T00:00:00Z", **{column: "empty"})
    assert wrong.json()["errors"][0]["what"].endswith(", none")


def test_an_address_that_no_count_can_have_is_refused_at_each_door() -> None:
    robot = program(ADMINISTRATOR)
    for address in ("203.0.113.7", "2001:db8::1", "2001:db8::/64", "others", "unknown"):
        assert robot.get("refusals/", address=address).status_code == 200, address
    for address in ("", "x", "203.0.113.777"):
        answer = robot.get("refusals/", address=address)
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["where"]) == (400, "/address")
        assert "is no IP address" in error["what"]


def test_a_window_that_ends_before_it_begins_is_refused() -> None:
    robot, noon, later = program(ADMINISTRATOR), "2026-11-22T12:00:00Z", "2026-11-22T12:00:01Z"
    assert robot.get("tasks/", since=noon, until=later).status_code == 200
    for since in (noon, later):
        answer = robot.get("tasks/", since=since, until=noon)
        assert answer.status_code == 400
        assert answer.json()["errors"] == [{"where": "/since", "what": "must be earlier than until"}]


@pytest.mark.parametrize("value", ["9" * 30, "-1", "x" * 3_000, "\u202e", "1e5", "%"])
@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.segment)
def test_any_value_of_a_parameter_has_an_answer(resource: Any, value: str) -> None:
    robot = program(ADMINISTRATOR)
    for name in resource.parameters():
        bounds = {"since": "2026-11-22T12:00:00Z"} if name in resource.bounded else {}
        answer = robot.get(f"{resource.segment}/", **bounds | {name: value})
        assert answer.status_code in {200, 400}, (name, answer.content)
        if answer.status_code == 200:
            assert answer.json()["results"] == [], name


@pytest.mark.parametrize("noun", ["keys", "accounts", "clients", "budgets", "limits", "permissions"])
def test_commands_list_what_belongs_to_a_principal_or_a_tenant(noun: str, settings: Any) -> None:
    settings.A2A_OAUTH = True
    for tenant, name in (("acme", "olga"), ("acme", "tom"), ("initech", "olga")):
        make_one_of_each(tenant, name)
    for words, most in (
        (("--tenant", "acme"), 2),
        (("--tenant", "acme", "--principal", "tom"), 1),
        (("--tenant", "x"), 0),
    ):
        rows = printed("a2a", noun, "list", *words)
        assert len(rows) == most, words
        assert {row["tenant"] for row in rows} <= {"acme"}
    assert {(row["tenant"], row["principal"]) for row in printed("a2a", noun, "list", "--principal", "olga")} == {
        ("acme", "olga"),
        ("initech", "olga"),
    }


def make_one_of_each(tenant: str, name: str) -> None:
    """Make a key, an account, a client, a budget, a limit and a permission of a new principal."""
    of, holder = ("--tenant", tenant), ("--principal", name, "--tenant", tenant)
    printed("a2a", "keys", "create", name, *of)
    printed("a2a", "accounts", "add", "certificate", f"dns:{name}.{tenant}", *holder)
    printed("a2a", "clients", "add", name, "--scopes", "tasks:read", *holder)
    printed("a2a", "budgets", "set", "5", *holder)
    printed("a2a", "limits", "set", "60", *holder)
    printed("a2a", "permissions", "allow", name, "agent", "*", *of)


@pytest.mark.parametrize("query", ["zzz=1", "state__exact=x", "<b>=1"])
def test_a_filter_that_a_list_of_the_admin_does_not_have_is_named(admin_client: Client, query: str) -> None:
    page = admin_client.get(f"/admin/tasks_app/task/?{query}")
    assert (page.status_code, page["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert page.text.startswith(f"Filtering by {query.split('=')[0]} not allowed: open the list without parameters.")
