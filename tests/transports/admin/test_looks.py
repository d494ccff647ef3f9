"""Looks of the admin: times in one style and first, one dash for nothing, each fact once and in words."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin as site
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.admin.readonly import LogTable
from tasks_app.admin.task_page import describe_priority
from tasks_app.models import ApiKey, Delivery, Principal, Process, Task, Webhook
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import Person
from tests.operations.rows import chunk
from tests.operations.rows import status as becomes
from tests.operations.webhooks import happens, hooked
from tests.support.operators import exchange, status, task
from tests.transports.admin.pages import page

pytestmark = pytest.mark.django_db
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?")
DAY = re.compile(r'<a href="[^"]*day=\d{4}-\d\d-\d\d">\d{4}-\d\d-\d\d</a>')
"""A choice of the filter by day, which has no time."""


@pytest.fixture
def webhook(owner: Person, settings: Any) -> Webhook:
    """Return a webhook with a delivery that is tried again later, and two behind it."""
    settings.A2A_OUTBOUND_LOOPBACK = True
    happens(hooked(owner, "http://127.0.0.1:65001/x"), becomes(TaskState.WORKING), chunk("one"), chunk("two"))
    (lease,) = leases.take("w", 1, Busy())
    leases.settle(lease, TryResult(status=503, error="It answered 503."), clock.now(), clock.now(), 0.5)
    return Webhook.objects.get()


def facts_of(text: str) -> dict[str, str]:
    found = re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", text, re.DOTALL)
    return {label: re.sub("<[^>]*>", "", value) for label, value in found}


def every_list() -> list[str]:
    models = [model._meta for model in site.site._registry]
    return [reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist") for meta in models]


@pytest.mark.usefixtures("webhook")
def test_times_are_written_in_one_style_and_nothing_is_one_dash(admin: Client, olga: Principal) -> None:
    now = clock.now()
    exchange(olga, duration_us=None, rpc_id=None)
    key = ApiKey.objects.create(principal=olga, name="k", prefix="tdk_", digest="d", expires_at=now + timedelta(days=1))
    Process.objects.create(name="p", role="web", version="1", started_at=now, seen_at=now)
    person = User.objects.get()
    addresses = [*every_list(), reverse("admin:auth_user_change", args=[person.pk])]
    addresses += [reverse(f"admin:tasks_app_{row._meta.model_name}_change", args=[row.pk]) for row in (key, olga)]
    for address in addresses:
        text = admin.get(address).content.decode()
        assert not re.search(r"\b[ap]\.m\.|\b(Nov|Dec|Jan)\. \d", text), address
        assert not re.search(r'<td class="field-[^"]*">(-|)</td>', text), address
        text = DAY.sub("", text)
        years = text.count(f"{now:%Y}-{now:%m}-")
        assert years <= len(TIME.findall(text)) + len(re.findall(r'value="\d{4}-\d\d-\d\d"', text)), address


def test_the_time_of_a_list_is_its_first_column(admin: Client) -> None:
    ours = {model: pages for model, pages in site.site._registry.items() if model._meta.app_label == "tasks_app"}
    first = {model._meta.model_name: pages.list_display[0] for model, pages in ours.items()}
    # These are short lists of what operators have set, and its name comes first.
    short = {"tenant", "principal", "budget", "ratelimit", "relay"}
    times = {
        "show_time",
        "show_created_at",
        "show_seen_at",
        "show_last_at",
        "show_minute",
        "show_asked_at",
        "show_hour",
    }
    assert {name for name, column in first.items() if column not in times} <= short
    assert not any(isinstance(pages, LogTable) for model, pages in ours.items() if model._meta.model_name in short)


def test_a_webhook_shows_its_deliveries_by_event_with_receiver_and_next_try(admin: Client, webhook: Webhook) -> None:
    text = page(admin, "webhook", webhook.pk)
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in re.findall("<tr>(.*?)</tr>", text, re.DOTALL)]
    cells = [[re.sub("<[^>]*>", "", cell) for cell in row] for row in rows if row]
    assert [row[0] for row in cells] == ["4", "3", "2"]
    assert {row[3] for row in cells} == {"127.0.0.1"}
    assert [row[6] for row in cells][:2] == ["after event 2"] * 2
    assert TIME.fullmatch(cells[2][6])
    listed = admin.get(reverse("admin:tasks_app_delivery_changelist")).content.decode()
    assert listed.count("after event 2") == 2
    head = Delivery.objects.get(seq=2)
    facts = facts_of(page(admin, "delivery", head.pk))
    assert facts["Receiver"].startswith("http://127.0.0.1:65001")
    assert TIME.fullmatch(facts["Next try (UTC)"])
    assert "State" not in facts


def test_the_page_that_asks_back_names_receivers_and_counts(admin: Client, webhook: Webhook) -> None:
    there = reverse("admin:tasks_app_delivery_changelist")
    chosen = {"action": "send_again", "_selected_action": list(Delivery.objects.values_list("pk", flat=True))}
    text = admin.post(there, chosen).content.decode()
    assert "127.0.0.1: 2 deliveries of 1 webhooks, waiting" in text
    assert "127.0.0.1: 1 delivery of 1 webhooks, waiting: It answered 503." in text
    assert 'class="td-go"' in text
    text = admin.post(there, chosen | {"action": "give_up"}).content.decode()
    assert 'class="td-stop"' in text


def test_a_task_says_whether_it_is_tried_again(admin: Client, olga: Principal) -> None:
    waits, ended = task(olga, max_attempts=3, attempt=1), task(olga, StatusChanged(status=status(TaskState.FAILED)))
    Task.objects.filter(pk=ended.pk).update(max_attempts=3, attempt=1)
    assert facts_of(page(admin, "task", waits.pk))["Attempts"] == "1 of at most 3"
    attempts = facts_of(page(admin, "task", ended.pk))["Attempts"]
    assert attempts == "1 of at most 3; the task has ended, so there will be no more"


@pytest.mark.parametrize(
    ("number", "text"),
    [(5, "5"), (-1000, "-1000"), (6005, "6005 (URGENT to its caller)"), (-3999, "-3999 (LOW to its caller)")],
)
def test_the_page_names_the_priority_that_a_caller_chose(number: int, text: str) -> None:
    assert describe_priority(number) == text


def test_a_call_shows_only_what_it_has(admin: Client, olga: Principal) -> None:
    plain, stream = exchange(olga), exchange(olga, outcome="stream", frames=0)
    assert "Frames" not in facts_of(page(admin, "exchange", plain.pk))
    assert facts_of(page(admin, "exchange", stream.pk))["Frames"] == "0"
    refused = exchange(None, outcome="refused", code=-38009, http_status=401)
    text = page(admin, "exchange", refused.pk)
    assert facts_of(text)["Code"] == "-38009 UNAUTHENTICATED"
    assert "without a valid key are not stored, on purpose" in text
    assert "historylink" not in text
    assert "historylink" in page(admin, "task", task(olga).pk)


def test_an_address_with_nothing_has_the_frame_of_the_admin(admin: Client) -> None:
    answer = admin.get("/admin/nothing/<b>here</b>/")
    text = answer.content.decode()
    assert answer.status_code == 404
    assert 'id="site-name"' in text
    assert "nothing/&lt;b&gt;here&lt;/b&gt;" in text
    stranger = Client().get("/admin/nothing/")
    assert (stranger.status_code, stranger["Location"]) == (302, "/admin/login/?next=/admin/nothing/")
