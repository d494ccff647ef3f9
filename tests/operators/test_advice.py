"""The advice of a refusal over the operators' API: about a role only where a role would help."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import operator, program

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ROLE = "a2a users role NAME ROLE"


def test_a_missing_permission_is_answered_with_advice_about_roles() -> None:
    answer = program(VIEWER).get("acts/")
    assert (answer.status_code, ROLE in answer.json()["advice"]) == (403, True)


def test_no_role_is_advised_where_none_would_help() -> None:
    chief, root = program(ADMINISTRATOR), User.objects.create_superuser("root", password="a long password")
    client = Client(enforce_csrf_checks=True)
    client.force_login(operator(ADMINISTRATOR))
    for answer, sentence in (
        (chief.post("tokens/", name="x"), "cannot make another"),
        (chief.post(f"users/{root.pk}/disable/"), "is a superuser"),
        (program(ADMINISTRATOR, administers=False).post("keys/", principal="olga"), "--administer"),
        (program(ADMINISTRATOR, reach=NamedReach(agents=["echo"])).post("users/", username="x", roles=[]), "no others"),
        (client.post("/api/v1/keys/", {"principal": "x"}, content_type="application/json"), "CSRF"),
    ):
        problem = answer.json()
        assert (answer.status_code, sentence in problem["detail"]) == (403, True), problem
        assert problem["advice"]
        assert ROLE not in problem["advice"], problem
