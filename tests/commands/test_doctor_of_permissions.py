"""The doctor compares permissions with the rules that the checks of calls read."""

from typing import Any

import pytest

from tasks_app.callers.rules import Rule, encode_rules
from tasks_app.models import Permission, Principal, Tenant
from tasks_app.operators.permissions import set_permission
from tests.commands.doctoring import doctor
from tests.conftest import Person
from tests.operators.people import OPS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def found() -> list[dict[str, Any]]:
    return [finding for finding in doctor("--tasks", "0")[0] if finding["kind"] == "permission"]


@pytest.fixture
def principal(owner: Person, open_lanes: None) -> Principal:
    """A principal that may use one agent, of a tenant that may not use another."""
    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    set_permission(principal, "agent", "report-*", allows=True, by=OPS)
    set_permission(principal.tenant, "agent", "payments", allows=False, by=OPS)
    return principal


def test_permissions_that_are_well_have_no_finding(principal: Principal, colleague: Person) -> None:
    assert not found()


@pytest.mark.parametrize("noun", ["principal", "tenant"])
def test_rules_that_are_not_the_permissions_are_found(principal: Principal, noun: str) -> None:
    row: Principal | Tenant = principal if noun == "principal" else principal.tenant
    rows = type(row)._default_manager.filter(pk=row.pk)
    rows.update(rules=encode_rules([Rule(True, "agent", "*")]))
    (finding,) = found()
    assert finding["subject"] == str(row.pk)
    assert finding["problem"] == (
        f"The rules of {noun} {row} differ from its permissions in 2. The rules count, and operators see the "
        "permissions."
    )
    rows.update(rules=None)
    assert "differ from its permissions in 1." in found()[0]["problem"]
    set_permission(row, "skill", "any", allows=True, by=OPS)
    assert not found(), "the remedy works"


def test_rules_without_a_permission_and_those_that_cannot_be_read_are_found(principal: Principal) -> None:
    Permission.objects.filter(principal=principal).delete()
    Tenant.objects.filter(pk=principal.tenant_id).update(rules="[[1]]")
    of_tenant, of_principal = found()
    assert f"The rules of tenant {principal.tenant} cannot be read: " in of_tenant["problem"]
    assert f"The rules of principal {principal} differ from its permissions in 1." in of_principal["problem"]
