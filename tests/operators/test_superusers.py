"""Superusers see everything: a reach does not limit one, and is not set for one."""

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client

from tasks_app.models import Act, OperatorReach
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.mark.parametrize("words", [("--tenant", "acme"), ("--all-tenants",), ("--agent", "echo"), ("--none",)])
def test_a_reach_of_a_superuser_is_refused(words: tuple[str, ...], olga: object) -> None:
    """A reach of a superuser is refused by command and over the API: it would be shown, and would limit nothing."""
    ada = User.objects.create_superuser("ada")
    with pytest.raises(CommandError, match="ada is a superuser, who sees every tenant and agent"):
        printed("a2a", "users", "reach", "ada", *words)
    client = Client()
    client.force_login(ada)
    answer = client.post(f"/api/v1/users/{ada.pk}/reach/", {"tenants": ["acme"]}, content_type="application/json")
    assert (answer.status_code, "is a superuser" in answer.json()["detail"]) == (409, True), answer.content
    assert not OperatorReach.objects.exists()
    assert not Act.objects.filter(verb="reach").exists()
