"""Receivers for operators: the list, agreeing for one and forgetting its answer, in the admin and as commands."""

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app import clock
from tasks_app.models import Act, Receiver
from tasks_app.operators.roles import OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = pytest.mark.django_db
PROBLEM = "The receiver has not agreed to deliveries: to OPTIONS it answered 405 without WebHook-Allowed-Origin."


@pytest.fixture
def receiver(owner: Person) -> Receiver:
    site = "https://hooks.example:443"
    return Receiver.objects.create(
        owner_id=owner.caller.owner_id, site=site, asked_at=clock.now(), expires_at=clock.now(), problem=PROBLEM
    )


def test_the_list_says_who_has_not_agreed_and_why(viewer: Client, receiver: Receiver) -> None:
    assert listed(viewer, "receiver") == [receiver.pk]
    page = viewer.get(reverse("admin:tasks_app_receiver_changelist")).content.decode()
    assert all(word in page for word in ("https://hooks.example:443", "owner (home)", PROBLEM))
    assert viewer.post(reverse("admin:tasks_app_receiver_changelist"), {"action": "agree"}).status_code == 403


def test_an_operator_agrees_and_forgets_in_the_admin(admin: Client, receiver: Receiver) -> None:
    assert messages_of(act(admin, "receiver", "agree", str(receiver.pk))) == ["Agreed for: 1 receiver."]
    receiver.refresh_from_db()
    assert (receiver.agrees(clock.now()), receiver.expires_at, receiver.problem) == (True, None, "")
    again = messages_of(act(admin, "receiver", "agree", str(receiver.pk)))
    assert again == [f"{receiver.pk}: An operator has agreed for it already."]
    assert messages_of(act(admin, "receiver", "forget", str(receiver.pk))) == ["Forgotten: 1 receiver."]
    assert not Receiver.objects.exists()
    assert list(Act.objects.order_by("id").values_list("verb", "operator", "kind")) == [
        ("agree", "ada", "receiver"),
        ("forget", "ada", "receiver"),
    ]


def test_the_commands_do_the_same(receiver: Receiver) -> None:
    id = str(receiver.pk)
    (line,) = printed("a2a", "receivers", "list", "--waiting")
    assert line["problem"] == PROBLEM
    assert (line["principal"], line["tenant"], line["agreed_at"]) == ("owner", "home", None)
    assert printed("a2a", "receivers", "agree", id, "--reason", "we know them") == [{"id": id, "done": "agree"}]
    assert printed("a2a", "receivers", "list", "--waiting") == []
    failed = run("a2a", "receivers", "agree", id, "99")
    assert (failed.code, [set(line) for line in failed.lines]) == (1, [{"id", "refused"}] * 2)
    assert printed("a2a", "receivers", "forget", id) == [{"id": id, "done": "forget"}]
    assert printed("a2a", "receivers", "list") == []
    assert Act.objects.filter(reason="we know them").count() == 1


def test_the_api_does_the_same_within_the_reach_of_its_operator(receiver: Receiver) -> None:
    robot, elsewhere = program(OPERATOR), program(OPERATOR, reach=NamedReach(tenants=()))
    (row,) = robot.get("receivers/").json()["results"]
    assert (row["site"], row["principal"], row["problem"]) == (receiver.site, "owner", PROBLEM)
    assert elsewhere.get("receivers/").json()["results"] == []
    assert elsewhere.post(f"receivers/{receiver.pk}/agree/").status_code == 404
    assert program(VIEWER).post(f"receivers/{receiver.pk}/agree/").status_code == 403
    assert robot.post(f"receivers/{receiver.pk}/agree/").json()["expires_at"] is None
    assert robot.post(f"receivers/{receiver.pk}/agree/").status_code == 409
    assert robot.post(f"receivers/{receiver.pk}/forget/").json() == {"id": receiver.pk, "done": "forget"}
    assert not Receiver.objects.exists()
