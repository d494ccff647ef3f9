"""Actions on one row of the admin that ask for values: links and passwords of users, and Slack and its users."""

import re
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, OperatorReach, Principal, SlackUser, SlackWorkspace, Tenant, UserLink
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import operator, program
from tests.slack.conftest import add_workspace
from tests.support.commands import printed
from tests.support.slack_api import SECRET, TEAM, TOKEN, Slack, slack
from tests.transports.admin.pages import messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
USERS, WORKSPACES = "auth_user", "tasks_app_slackworkspace"
LINK = {"principal": "olga", "tenant": "acme", "scopes": "tasks:read"}
MAPPING = {"user": "U0456EFGH", "principal": "olga", "tenant": "acme"}
WORKSPACE = {
    "bot_token": TOKEN,
    "principal": "slack",
    "tenant": "acme",
    "scopes": "tasks:read",
    "signing_secret": SECRET,
    "reason": "a test",
}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def here() -> Client:
    """Return the browser of an administrator of one tenant."""
    return browser(operator(ADMINISTRATOR, reach=NamedReach(tenants=["acme"])))


def do(client: Client, page: str, action: str, *ids: Any, **values: str) -> Any:
    form = {"action": action, "_selected_action": ids, "post": "yes", "reason": "a test"} | values
    return client.post(reverse(f"admin:{page}_changelist"), form, follow=True)


def acts() -> list[tuple[str, str, str]]:
    """Return the acts of the admin."""
    return list(Act.objects.filter(door="admin").order_by("id").values_list("verb", "door", "reason"))


def test_a_user_is_linked_to_a_principal_and_unlinked(admin: Client, olga: Principal) -> None:
    vera = operator(VIEWER, name="vera")
    asked = admin.post(reverse("admin:auth_user_changelist"), {"action": "link", "_selected_action": vera.pk})
    assert 'name="scopes"' in asked.content.decode()
    assert messages_of(do(admin, USERS, "link", vera.pk, **LINK)) == ["Link: vera."]
    link = UserLink.objects.get(user=vera)
    assert (link.principal, link.scopes) == (olga, "tasks:read")
    assert messages_of(do(admin, USERS, "unlink", vera.pk)) == ["Unlink: vera."]
    assert messages_of(do(admin, USERS, "unlink", vera.pk)) == ["The user vera is not linked to a principal."]
    assert acts() == [("link", "admin", "a test"), ("unlink", "admin", "a test")]


def test_each_door_shows_the_link_of_a_user(admin: Client, olga: Principal) -> None:
    vera, robot = User.objects.create_user("vera"), program(ADMINISTRATOR)
    page = reverse("admin:auth_user_change", args=[vera.pk])
    assert "acme/olga with" not in admin.get(page).content.decode()
    assert robot.get(f"users/{vera.pk}/").json()["link"] is None
    do(admin, USERS, "link", vera.pk, **LINK)
    link = {"principal": "acme/olga", "scopes": LINK["scopes"]}
    assert f"acme/olga with {LINK['scopes']}" in admin.get(page).content.decode()
    (row,) = robot.get("users/", username="vera").json()["results"]
    assert row["link"] == link
    assert [line["link"] for line in printed("a2a", "users", "list", "--name", "vera")] == [link]
    assert printed("a2a", "users", "list", "--name", "") == []


def test_values_that_are_wrong_link_no_user(admin: Client, olga: Principal) -> None:
    vera, boris = operator(VIEWER, name="vera"), operator(VIEWER, name="boris")
    assert "errorlist" in do(admin, USERS, "link", vera.pk, **LINK | {"scopes": ""}).content.decode()
    (sentence,) = messages_of(do(admin, USERS, "link", vera.pk, **LINK | {"principal": "ghost"}))
    assert "There is no principal ghost" in sentence
    assert messages_of(do(admin, USERS, "link", vera.pk, boris.pk, **LINK)) == ["Select one user for this action."]
    assert not UserLink.objects.exists()


def test_a_password_is_made_and_shown_once(admin: Client) -> None:
    vera = operator(VIEWER, name="vera")
    page = do(admin, USERS, "password", vera.pk)
    assert "no-store" in page.headers["Cache-Control"]
    (password,) = re.findall(r"<pre[^>]*>([\w-]{20})</pre>", page.content.decode())
    vera.refresh_from_db()
    assert vera.check_password(password)
    assert acts() == [("password", "admin", "a test")]
    assert password not in str(list(Act.objects.values()))


def test_the_act_of_a_new_link_has_the_former_one(admin: Client, olga: Principal) -> None:
    vera = User.objects.create_user("vera")
    Principal.objects.create(tenant=olga.tenant, name="otto")
    do(admin, USERS, "link", vera.pk, **LINK)
    do(admin, USERS, "link", vera.pk, principal="otto", tenant="acme", scopes="*")
    do(admin, USERS, "unlink", vera.pk)
    links = [("acme/olga", LINK["scopes"]), ("acme/otto", "*")]
    former, present = [{"principal": name, "scopes": scopes} for name, scopes in links]
    rows = Act.objects.order_by("pk").values_list("before", "after")
    changes = [(orjson.loads(before), orjson.loads(after)) for before, after in rows]
    assert changes == [({}, former), (former, present), (present, {})]


@pytest.mark.parametrize(("action", "values"), [("password", {}), ("link", LINK), ("unlink", {})])
def test_an_administrator_does_nothing_to_a_superuser(action: str, values: dict[str, str], olga: Principal) -> None:
    ada, vera = User.objects.create_superuser("ada", password="x"), operator(VIEWER, name="vera")
    client = browser(operator(ADMINISTRATOR))
    assert messages_of(do(client, USERS, action, ada.pk, **values)) == ["Only a superuser changes a superuser."]
    do(here(), USERS, action, vera.pk, **values)
    assert do(browser(vera), USERS, action, ada.pk, **values).status_code == 403
    assert acts() == []


def test_a_link_leads_to_tenants_of_the_reach_alone(olga: Principal) -> None:
    vera, client = operator(VIEWER, name="vera"), operator(ADMINISTRATOR)
    OperatorReach.objects.filter(user=client).update(all_tenants=False)
    do(browser(client), USERS, "link", vera.pk, **LINK)
    assert not UserLink.objects.exists()


@pytest.fixture
def there(settings: Any) -> Any:
    settings.A2A_OUTBOUND_LOOPBACK = True
    with slack() as server:
        settings.A2A_SLACK_API = server.url
        yield server


def test_a_workspace_is_added_by_a_form_that_shows_no_secret(there: Slack, olga: Principal) -> None:
    place = reverse("admin:tasks_app_slackworkspace_add")
    client = here()
    assert client.post(place, WORKSPACE).status_code == 302
    row = SlackWorkspace.objects.get()
    assert (row.team_id, row.principal.name, row.scopes) == (TEAM, "slack", "tasks:read")
    assert acts() == [("make", "admin", "a test")]
    wrong = client.post(place, WORKSPACE | {"bot_token": "xoxp-1"}).content.decode()
    assert "errorlist" in wrong
    assert SECRET not in wrong
    assert browser(operator(VIEWER)).post(place, WORKSPACE).status_code == 403


def test_a_workspace_is_added_to_tenants_of_the_reach_alone(there: Slack, olga: Principal) -> None:
    Tenant.objects.create(name="elsewhere")
    answer = here().post(reverse("admin:tasks_app_slackworkspace_add"), WORKSPACE | {"tenant": "elsewhere"})
    assert "The tenant elsewhere is not one of yours." in answer.content.decode()
    assert not SlackWorkspace.objects.exists()


def test_a_user_of_slack_gets_a_caller_and_loses_it(olga: Principal) -> None:
    workspace, client = add_workspace(tenant="acme"), here()
    (refusal,) = messages_of(do(client, WORKSPACES, "map_user", workspace.pk, **MAPPING | {"tenant": "elsewhere"}))
    assert refusal == "The tenant elsewhere is not one of yours."
    assert do(browser(operator(VIEWER)), WORKSPACES, "map_user", workspace.pk, **MAPPING).status_code == 403
    do(client, WORKSPACES, "map_user", workspace.pk, **MAPPING)
    assert SlackUser.objects.get().principal == olga
    do(client, WORKSPACES, "unmap_user", workspace.pk, user="U0456EFGH")
    again = do(client, WORKSPACES, "unmap_user", workspace.pk, user="U0456EFGH")
    assert messages_of(again) == ["This user has no caller of their own."]
    assert acts() == [("map", "admin", "a test"), ("unmap", "admin", "a test")]


def test_a_workspace_of_another_tenant_gets_no_user(olga: Principal) -> None:
    do(here(), WORKSPACES, "map_user", add_workspace(tenant="elsewhere").pk, **MAPPING)
    assert not SlackUser.objects.exists()


def test_the_tenant_of_a_users_caller_has_acts_of_its_own_about_the_user(olga: Principal) -> None:
    workspace, everywhere = add_workspace(tenant="acme"), browser(operator(ADMINISTRATOR))
    for verb in ("map_user", "unmap_user", "map_user"):
        values = {"user": MAPPING["user"]} if verb == "unmap_user" else MAPPING | {"tenant": "elsewhere"}
        do(everywhere, WORKSPACES, verb, workspace.pk, **values)
    do(everywhere, WORKSPACES, "map_user", workspace.pk, **MAPPING)
    rows = Act.objects.filter(kind="Slack user").order_by("pk").values_list("verb", "tenant__name")
    assert list(rows) == [("map", "elsewhere"), ("unmap", "elsewhere")] * 2


def test_operators_of_a_workspace_see_no_user_with_a_caller_of_another_tenant(olga: Principal) -> None:
    workspace, everywhere = add_workspace(tenant="acme"), browser(operator(ADMINISTRATOR))
    for values in (MAPPING, MAPPING | {"user": "U0FOREIGN", "principal": "secret-person", "tenant": "elsewhere"}):
        do(everywhere, WORKSPACES, "map_user", workspace.pk, **values)
    page = reverse("admin:tasks_app_slackworkspace_change", args=[workspace.pk])
    assert "U0FOREIGN as secret-person" in everywhere.get(page).content.decode()
    robot = program(ADMINISTRATOR, reach=NamedReach(tenants=["acme"]))
    seen = [
        here().get(page).content.decode(),
        *(
            robot.get(path).content.decode()
            for path in (f"slack-workspaces/{workspace.pk}/", "slack-workspaces/", "acts/")
        ),
    ]
    assert "U0456EFGH as olga" in seen[0]
    assert not [text for text in seen if "secret-person" in text or "elsewhere" in text]
    foreign = f"slack-workspaces/{workspace.pk}"
    assert robot.post(f"{foreign}/map-user/", **MAPPING | {"user": "U0FOREIGN"}).status_code == 400
    assert robot.post(f"{foreign}/unmap-user/", user="U0FOREIGN").status_code == 409
    assert SlackUser.objects.filter(principal__name="secret-person").exists()
