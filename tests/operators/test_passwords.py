"""Passwords that are changed by forms of the admin: the tokens of the operator end, and the change is an act."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tests.operators.people import program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
OLD, NEW = "correct horse battery staple", "another horse battery staple"


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def test_tokens_end_when_operators_change_their_password() -> None:
    robot = program(VIEWER)
    robot.user.set_password(OLD)
    robot.user.save()
    form = {"old_password": OLD, "new_password1": NEW, "new_password2": NEW}
    client = browser(robot.user)
    place = reverse("admin:password_change")
    assert client.post(place, form | {"old_password": "wrong"}).status_code == 200
    assert robot.get("tasks/").status_code == 200
    assert client.post(place, form).status_code == 302
    assert robot.get("tasks/").status_code == 401
    act = Act.objects.latest("id")
    assert (act.operator, act.verb, act.object_id) == (robot.user.username, "password", str(robot.user.pk))
    assert act.after == '{"tokens":1}'


@pytest.mark.parametrize("page", ["password_change", "change"])
def test_tokens_end_when_a_form_gives_a_password_or_ends_an_account(page: str) -> None:
    robot, chief = program(VIEWER), program(ADMINISTRATOR).user
    forms: dict[str, dict[str, Any]] = {
        "password_change": {"password1": NEW, "password2": NEW, "usable_password": "true"},
        "change": {
            "username": robot.user.username,
            "is_staff": "on",
            "date_joined_0": "2026-01-01",
            "date_joined_1": "00:00:00",
            "reach-TOTAL_FORMS": "0",
            "reach-INITIAL_FORMS": "0",
        },
    }
    place = reverse(f"admin:auth_user_{page}", args=[robot.user.pk])
    assert browser(chief).post(place, forms[page]).status_code == 302
    User.objects.filter(pk=robot.user.pk).update(is_active=True)
    assert robot.get("tasks/").status_code == 401
    assert '"tokens":1' in Act.objects.filter(verb="change").latest("id").after
