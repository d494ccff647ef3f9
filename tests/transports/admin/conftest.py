"""Operators in front of the admin, and what the admin shows and calls in place of the service."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from tasks_app import operations
from tasks_app.exchanges import responses
from tasks_app.models import OperatorReach


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    return client


@pytest.fixture
def viewer() -> Client:
    """Return the client of an operator who may look at everything and act on nothing."""
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tasks_app", codename__startswith="view_")
    )
    OperatorReach.objects.create(user=user, all_tenants=True)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Put responses by exchange id in place of those that are stored or derived."""
    known: dict[str, str] = {}
    monkeypatch.setattr(responses, "response_text", lambda row: known.get(row.pk, ""))
    return known


@pytest.fixture
def canceled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Note which tasks the operation was asked to cancel, and by which operator."""
    calls: list[tuple[str, str]] = []
    monkeypatch.setattr(operations, "cancel_for_operator", lambda task_id, by: calls.append((task_id, by.name)))
    return calls
