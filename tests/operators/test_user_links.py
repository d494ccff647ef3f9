"""Links of users to principals, as the operators of each tenant see them in the acts."""

from typing import Any

import pytest

from tasks_app.models import Act, Principal, Tenant
from tasks_app.operators import users
from tasks_app.operators.roles import AUDITOR
from tasks_app.operators.users import NamedReach
from tests.operators.people import OPS, operator, program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def acts_seen_in(tenant: str) -> list[tuple[Any, ...]]:
    rows = program(AUDITOR, reach=NamedReach(tenants=[tenant])).get("acts/", kind="user link").json()["results"]
    return [(row["verb"], row["before"], row["after"]) for row in reversed(rows)]


def test_a_link_that_moves_to_another_tenant_tells_neither_about_the_other(olga: Principal) -> None:
    """A link that moves is an act in each of the two tenants, and the operators of each see their own alone."""
    Principal.objects.create(tenant=Tenant.objects.create(name="initech"), name="peter")
    vera = operator(name="vera")
    users.link_user(OPS, vera, "olga", "acme", "tasks:read")
    users.link_user(OPS, vera, "peter", "initech", "*")
    former, new = {"principal": "acme/olga", "scopes": "tasks:read"}, {"principal": "initech/peter", "scopes": "*"}
    assert acts_seen_in("acme") == [("link", {}, former), ("unlink", former, {})]
    assert acts_seen_in("initech") == [("link", {}, new)]
    assert users.describe_link_of(vera) == new


def test_a_link_that_stays_in_its_tenant_is_one_act(olga: Principal) -> None:
    Principal.objects.create(tenant=olga.tenant, name="oskar")
    vera = operator(name="vera")
    for name in ("olga", "oskar"):
        users.link_user(OPS, vera, name, "acme", "*")
    assert [act.verb for act in Act.objects.filter(kind="user link").order_by("pk")] == ["link", "link"]
    (before, after) = acts_seen_in("acme")[1][1:]
    assert (before["principal"], after["principal"]) == ("acme/olga", "acme/oskar")
