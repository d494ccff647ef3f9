"""Selections of actions: ids that no row can have do nothing and are named, in every table."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.callers import access
from tasks_app.models import Act, ApiKey
from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import operator
from tests.transports.admin.pages import act, messages_of, registered

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ACTIONS = [(model, getattr(each, "__name__", each)) for model, page in registered().items() for each in page.actions]
IMPOSSIBLE = ("a\0b", "x" * 3_000, "9" * 30)
"""Ids that no table has. A number of 30 digits is too large for ids that are numbers, and most others are words."""


def select(client: Client, model: Any, action: str, *ids: Any, **more: str) -> Any:
    place = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
    return client.post(place, {"action": action, "_selected_action": ids} | more, follow=True)


def resets() -> list[tuple[str, str]]:
    return list(Act.objects.filter(verb="reset second factor").values_list("object_id", "reason"))


@pytest.mark.parametrize(("model", "action"), ACTIONS, ids=lambda each: getattr(each, "__name__", each))
@pytest.mark.parametrize("more", [{"index": "0"}, {"post": "yes"}], ids=["asked", "confirmed"])
def test_an_impossible_id_is_no_fault_in_any_table(
    admin: Client, model: Any, action: str, more: dict[str, str]
) -> None:
    for id in ("abc", "", *IMPOSSIBLE):
        answer = select(admin, model, action, id, **more)
        assert answer.status_code == 200, id[:10]
    assert not Act.objects.exists()


def test_an_impossible_id_is_named_and_the_others_are_acted_on(admin: Client) -> None:
    access.new_key("olga", tenant="acme")
    row = ApiKey.objects.get()
    said = messages_of(act(admin, "apikey", "revoke", "a\0b", str(row.pk), "abc"))
    assert said == ["There is no API key a\\u0000b.", "There is no API key abc.", "Revoked 1 API key."]


def test_resetting_a_second_factor_asks_back(admin: Client) -> None:
    vera, boris = operator(ADMINISTRATOR, name="vera"), operator(ADMINISTRATOR, name="boris")
    asked = select(admin, User, "reset_second_factor", vera.pk, boris.pk, index="0", select_across="1")
    assert "Reset second factor: 3 users?" in asked.content.decode()
    assert resets() == []
    done = select(admin, User, "reset_second_factor", vera.pk, post="yes", reason="a lost phone")
    assert messages_of(done) == ["Reset second factor: 1 user."]
    assert resets() == [(str(vera.pk), "a lost phone")]


def test_an_administrator_resets_no_superuser(client: Client) -> None:
    client.force_login(operator(ADMINISTRATOR, name="vera"))
    ada = User.objects.create_superuser("ada")
    answer = select(client, User, "reset_second_factor", ada.pk, post="yes")
    assert messages_of(answer) == ["Reset second factor: 0 users, 1 was not changed."]
    assert [message.level_tag for message in answer.context["messages"]] == ["warning"], "nothing was done"
    assert resets() == []
