"""The cost of what operators read: no more queries for more rows, at any door, and no connection for a wrong token."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.api.resources.acts import Acts
from tasks_app.models import Act
from tasks_app.operators import tokens, users
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import EVERYWHERE, OPS, Program, operator, program
from tests.operators.tenants import Furniture
from tests.support.commands import printed
from tests.support.lanes import hanging_reads
from tests.transports.admin.pages import registered

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def queries_of(read: Callable[[], Any]) -> int:
    """Return the number of queries that a list takes."""
    with CaptureQueriesContext(connection) as captured:
        read()
    return len(captured)


@pytest.mark.parametrize("reach", [NamedReach(tenants=["acme"]), EVERYWHERE], ids=["limited", "whole"])
def test_the_database_filters_and_pages_each_list(reach: NamedReach) -> None:
    mine, _ = Furniture("acme", "mine7"), Furniture("abroad", "other7")
    robot, row = program(ADMINISTRATOR, reach=reach), mine.rows[Act]
    queries = {resource: {} for resource in RESOURCES} | {Acts: {"verb": row.verb, "kind": row.kind}}
    for resource, query in queries.items():
        with CaptureQueriesContext(connection) as captured:
            assert robot.get(f"{resource.segment}/", limit=7, **query).status_code == 200
        statements = [each["sql"] for each in captured if f'FROM "{resource.model._meta.db_table}"' in each["sql"]]
        if resource.model in mine.rows:
            assert [sql for sql in statements if sql.endswith("LIMIT 8")], resource
            assert [sql for sql in statements if "LIMIT" not in sql and "operatorreach" not in sql] == [], resource


def lists_of_users(robot: Program, client: Client) -> list[int]:
    """Return the queries of the list of operators over the API, by the command, and of the page of the admin."""
    page = reverse("admin:auth_user_changelist")
    return [
        queries_of(read)
        for read in (partial(robot.get, "users/"), partial(printed, "a2a", "users", "list"), partial(client.get, page))
    ]


@pytest.mark.usefixtures("hand")  # A visit and the use of a token are stored again after a minute.
def test_more_operators_take_no_more_queries(olga: Any, admin_client: Client) -> None:
    robot = program(ADMINISTRATOR)
    lists_of_users(robot, admin_client)  # The first use of a token is stored.
    before = lists_of_users(robot, admin_client)
    for roles in ([], [VIEWER], [VIEWER, OPERATOR]):
        users.link_user(OPS, operator(*roles, reach=NamedReach(tenants=["acme"])), "olga", "acme", "*")
    assert lists_of_users(robot, admin_client) == before
    (row, *_) = robot.get("users/").json()["results"]
    assert (row["roles"], row["tenants"], row["link"]) == (
        [OPERATOR, VIEWER],
        ["acme"],
        {"principal": "acme/olga", "scopes": "*"},
    )
    assert printed("a2a", "users", "list")[0] | {"last_login": None} == row


@pytest.mark.usefixtures("hand")
def test_more_rows_of_any_table_take_no_more_queries(admin_client: Client) -> None:
    """Each tenant has a row of every table. The first list of a process reads what later ones have in memory."""
    robot, counts = program(ADMINISTRATOR), {}
    pages = [reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in registered()]
    lists = {resource.segment: partial(robot.get, f"{resource.segment}/") for resource in RESOURCES}
    lists |= {page: partial(admin_client.get, page) for page in pages}
    for number in range(3):
        Furniture(f"tenant-{number}", f"mark-{number}")
        for read in lists.values():
            read()
        counts[number] = {name: queries_of(read) for name, read in lists.items()}
    assert counts[2] == counts[1]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("lanes")
def test_a_wrong_token_is_not_worth_a_connection_of_the_page() -> None:
    client = Client(headers={"Authorization": f"Bearer {tokens.PREFIX}guess"})
    assert queries_of(lambda: client.get("/api/v1/tasks/")) == 0
    right = program(VIEWER)
    assert queries_of(lambda: right.get("tasks/")) > 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("lanes")
def test_tokens_are_found_while_the_reads_of_callers_hang() -> None:
    with hanging_reads():
        assert program(VIEWER).get("tasks/").status_code == 200
