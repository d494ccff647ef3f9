"""The admin as a whole: addresses, queries of a page, the list of processes."""

import re
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.test import Client, RequestFactory
from django.urls import reverse
from django.utils import timezone
from django.views.defaults import permission_denied

from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app.callers.paths import is_lean
from tasks_app.models import Principal, Process
from tasks_app.operators.roles import VIEWER
from tests.operators.people import operator
from tests.support.operators import exchange, status, task
from tests.transports.admin.pages import messages_of, page

pytestmark = pytest.mark.django_db


def test_an_unknown_id_leads_back_to_the_list(admin: Client) -> None:
    for pk in ("nobody", "%00", "<b>", "a_2Fb"):
        answer = admin.get(f"/admin/tasks_app/task/{pk}/change/", follow=True)
        assert answer.status_code == 200
        assert "There is no task" in messages_of(answer)[0]


def test_a_page_that_is_not_allowed_says_why_and_whom_to_ask(rf: RequestFactory) -> None:
    viewer = Client()
    viewer.force_login(operator(VIEWER))
    answer = viewer.get(reverse("admin:tasks_app_apikey_add"))
    assert (answer.status_code, "Your roles and your reach do not allow this" in answer.content.decode()) == (403, True)
    own = permission_denied(rf.get("/admin/"), PermissionDenied("The tenant <b> is not one of yours.")).content.decode()
    assert "<p>The tenant &lt;b&gt; is not one of yours.</p>" in own
    assert "a2a users role" in own
    assert "Each command replaces what it sets" in own


def test_pages_take_a_bounded_number_of_queries(
    admin: Client, olga: Principal, answers: dict[str, str], django_assert_max_num_queries: Any
) -> None:
    rows = [task(olga, *(StatusChanged(status=status(TaskState.WORKING)) for _ in range(20))) for _ in range(5)]
    calls = [exchange(olga, request_id="r-1", task_id=rows[0].pk) for _ in range(20)]
    for model in ("exchange", "task"):
        address = reverse(f"admin:tasks_app_{model}_changelist")
        # Two for the user, one for each filter by existing values, one for the states of the tasks.
        with django_assert_max_num_queries(9):
            admin.get(address)
        with django_assert_max_num_queries(14):  # One for each kind of id, one for the reference of a failure.
            admin.get(address, {"q": rows[0].pk})
    with django_assert_max_num_queries(6):
        page(admin, "exchange", calls[0].pk)
    with django_assert_max_num_queries(9):
        page(admin, "task", rows[0].pk)


def test_the_way_out_of_the_admin_leads_to_something_to_see(admin: Client) -> None:
    shown = admin.get(reverse("admin:index")).content.decode()
    (address,) = re.findall(r'<a href="([^"]*)">View site</a>', shown)
    response = Client().get(address, headers={"Accept": "text/html"})
    assert response.status_code == 200
    assert '<h3 id="agent-echo">' in response.content.decode()


@pytest.mark.parametrize("person", ["operator", "nobody"])
def test_the_admin_is_found_without_its_slash(admin: Client, person: str) -> None:
    response = (admin if person == "operator" else Client()).get("/admin")
    assert (response.status_code, response.headers["Location"]) == (302, "/admin/")
    assert not is_lean("/admin")


def test_the_processes_are_listed_with_their_troubles(admin: Client) -> None:
    now = timezone.now()
    Process.objects.create(
        name="host:1:abc",
        role="worker",
        version="1",
        started_at=now,
        seen_at=now,
        clock_off=172_800.5,
        troubles='["clock: <b>wrong</b>"]',
    )
    shown = admin.get(reverse("admin:tasks_app_process_changelist")).content.decode()
    assert "host:1:abc" in shown
    assert "172800.5" in shown
    assert "clock: &lt;b&gt;wrong&lt;/b&gt;" in shown
    assert admin.get(reverse("admin:tasks_app_process_add")).status_code == 403


def test_only_named_proxies_say_that_a_page_came_over_tls(settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT, settings.SECURE_PROXY_SSL_HEADER = True, ("HTTP_X_FORWARDED_PROTO", "https")
    settings.A2A_TRUST_FORWARDED = "x-forwarded"
    way = "https://testserver/admin"
    for proxies, value, target in (
        ([], "https", "/admin/"),
        (["127.0.0.1"], "https", "/admin/"),
        (["127.0.0.1"], "http,https", "/admin/"),
        (["127.0.0.1"], "https,http", way),
        (["10.0.0.1"], "https", way),
    ):
        settings.A2A_TRUSTED_PROXIES = proxies
        assert Client().get("/admin", headers={"X-Forwarded-Proto": value}).headers["Location"] == target
