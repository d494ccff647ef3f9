"""The last operator who can give roles keeps that right, unless a superuser or a command takes it away."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act
from tasks_app.operators.audit import ADMIN, Operator
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.operators.users import NamedReach, UserRefused, roles_of, set_active
from tests.operators.people import Program, operator, program
from tests.support.commands import printed
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
SENTENCE = "no operator could give roles any more"
BODIES: dict[str, dict[str, Any]] = {"role": {"roles": [VIEWER]}, "disable": {}, "reach": {"tenants": []}}


def ask(robot: Program, verb: str) -> Any:
    return robot.post(f"users/{robot.user.pk}/{verb}/", **BODIES[verb])


def save(client: Client, user: User, **values: str) -> Any:
    form = {"username": user.username, "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_staff": "on"}
    form |= {"operatorreach-TOTAL_FORMS": "0", "operatorreach-INITIAL_FORMS": "0"}
    form |= {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    place = reverse("admin:auth_user_change", args=[user.pk])
    return client.post(place, form | values | form_digest(client, place), follow=True)


@pytest.mark.parametrize("verb", BODIES)
def test_the_last_one_does_not_lose_the_right_over_the_api(verb: str) -> None:
    robot = program(ADMINISTRATOR)
    operator(ADMINISTRATOR, reach=NamedReach(all_tenants=True, agents=["echo"]))  # sees no operators
    acts = Act.objects.count()
    answer = ask(robot, verb)
    assert (answer.status_code, SENTENCE in answer.json()["detail"]) == (409, True)
    assert Act.objects.count() == acts
    assert (roles_of(robot.user), robot.get("users/").status_code) == ([ADMINISTRATOR], 200)
    operator(ADMINISTRATOR)
    assert ask(robot, verb).status_code != 409


@pytest.mark.parametrize("verb", BODIES)
def test_a_superuser_is_another_one(verb: str) -> None:
    User.objects.create_superuser("ada")
    assert ask(program(ADMINISTRATOR), verb).status_code != 409


def test_a_superuser_and_a_command_may_do_it() -> None:
    ada, tom = User.objects.create_superuser("ada"), operator(ADMINISTRATOR, name="tom")
    printed("a2a", "users", "disable", "tom")
    assert set_active(Operator("ada", ADMIN), ada, False)
    printed("a2a", "users", "enable", "tom")
    with pytest.raises(UserRefused, match=SENTENCE):
        set_active(Operator("tom", ADMIN), tom, False)
    printed("a2a", "users", "role", "tom", "--none")
    assert roles_of(tom) == []


def test_the_forms_of_the_admin_refuse_it_too(client: Client) -> None:
    tom, group = operator(ADMINISTRATOR, name="tom"), Group.objects.get(name=ADMINISTRATOR)
    client.force_login(tom)
    for values in ({"groups": str(group.pk)}, {"is_active": "on"}):
        (message,) = save(client, tom, **values).context["messages"]
        assert SENTENCE in str(message)
        tom.refresh_from_db()
        assert (tom.is_active, roles_of(tom)) == (True, [ADMINISTRATOR])
    place = reverse("admin:auth_group_change", args=[group.pk])
    answer = client.post(place, {"name": ADMINISTRATOR} | form_digest(client, place), follow=True)
    (message,) = answer.context["messages"]
    assert SENTENCE in str(message)
    assert group.permissions.exists()
    operator(ADMINISTRATOR)
    save(client, tom, is_active="on")
    assert roles_of(tom) == []
