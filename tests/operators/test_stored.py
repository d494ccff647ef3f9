"""The stored bytes of owners for operators: by command, in the admin and as JSON."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app.models import MemoryUse, Principal, Task, Tenant
from tasks_app.operators.roles import VIEWER
from tests.operators.people import operator, program
from tests.support.commands import printed
from tests.support.operators import task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
KINDS = dict.fromkeys(("files", "replies", "shared_streams", "batches", "workflows", "calls"), 0)


@pytest.fixture
def full_owner(olga: Principal, settings: Any) -> Principal:
    """Return a principal at the quota of 1,000 bytes, beside one that is not."""
    settings.A2A_OWNER_STORED_BYTES = 1_000
    row = Principal.objects.create(tenant=Tenant.objects.create(name="small"), name="max")
    for owner, size in ((olga, 400), (row, 900)):
        Task.objects.filter(pk=task(owner).pk).update(size=size)
        MemoryUse.objects.create(owner=owner, entries=1, size=100)
    return row


def test_the_command_lists_owners_with_the_most_first(full_owner: Principal) -> None:
    total, *lines = printed("a2a", "stored")
    assert total == {"owner": None, "bytes": 1_500, "full": 1, "most": 1_000}
    first = {"tenant": "small", "owner": "max", "bytes": 1_000, "is_full": True, "tasks": 900, "memory": 100, **KINDS}
    second = {"tenant": "acme", "owner": "olga", "bytes": 500, "is_full": False, "tasks": 400, "memory": 100, **KINDS}
    assert lines == [first, second]
    assert printed("a2a", "stored", "--full") == [total, first]
    assert printed("a2a", "stored", "--limit", "1") == [total, first]


def test_the_command_marks_nobody_without_a_quota(full_owner: Principal, settings: Any) -> None:
    settings.A2A_OWNER_STORED_BYTES = 0
    total, *lines = printed("a2a", "stored")
    assert (total["full"], total["most"], [line["is_full"] for line in lines]) == (0, 0, [False, False])


def test_the_api_and_the_admin_show_what_a_principal_has(
    full_owner: Principal, olga: Principal, client: Client, settings: Any
) -> None:
    answer = program(VIEWER).get(f"principals/{olga.pk}/").json()
    amounts = {"most": 1_000, "bytes": 500, "is_full": False, "tasks": 400, "memory": 100, **KINDS}
    assert (answer["name"], answer["stored"]) == ("olga", amounts)
    client.force_login(operator(VIEWER))
    address = reverse("admin:tasks_app_principal_change", args=[full_owner.pk])
    assert "1,000 of 1,000: 900 in tasks, 100 in memory" in client.get(address).content.decode()
    settings.A2A_OWNER_STORED_BYTES = 0
    assert "1,000 of any number" in client.get(address).content.decode()
