"""Lists of the admin: numbers that are true, marks of the call and of its task, and rows found by a reference."""

import re
import shlex
from typing import Any

import pytest
from django.contrib.admin import site
from django.core.management import load_command_class
from django.db import connection
from django.test import Client
from django.urls import reverse

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.admin import filters, paging
from tasks_app.database.sql import on_postgres
from tasks_app.models import Delivery, Exchange, Principal, Task, Tenant, WrongLogins
from tasks_app.operators import lookup
from tasks_app.operators.roles import VIEWER
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operations.asking import sent
from tests.operators.people import operator
from tests.support.commands import printed, run
from tests.support.operators import exchange, task
from tests.transports.admin.pages import listed, page

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
MANY = 300
"""Tasks whose index is larger than a page."""
OLDEST = "00000000-0000-7000-8000-000000000000"


def shown(client: Client, model: str, query: str | dict[str, str] = "") -> Any:
    """Return the list behind a page, and the page as text."""
    address = reverse(f"admin:tasks_app_{model}_changelist")
    answer = client.get(address + query) if isinstance(query, str) else client.get(address, query)
    assert answer.status_code == 200
    return answer.context["cl"], " ".join(re.sub("<[^>]*>", " ", answer.content.decode()).split())


def test_a_filter_looks_for_few_rows_of_an_operator_among_the_newest_rows_alone(
    olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No index has the tenants of an operator: a search for a thousand rows where there are fewer would read all."""
    tenant, client = Tenant.objects.create(name="initech"), Client()
    client.force_login(operator(VIEWER, reach=NamedReach(tenants=["acme"])))
    others = Principal.objects.create(tenant=tenant, name="pia")
    task(olga, id=OLDEST)
    for _ in range(2):
        task(others)
    for number, offered in ((3, True), (2, False)):
        monkeypatch.setattr(filters, "SEARCHED", number)
        found, _ = shown(client, "task")
        (owners,) = (each for each in found.filter_specs if each.title == "owner")
        assert bool(owners.lookup_choices) is offered


# ------------------------------------------------------------------ numbers


def test_a_filter_on_an_index_finds_and_counts_all_however_old(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 2)
    monkeypatch.setattr(paging, "MOST", 2)
    rare = exchange(olga, id=OLDEST, outcome="stream")
    for _ in range(3):
        exchange(olga, outcome="error")
    for _ in range(4):
        exchange(olga)
    found, text = shown(admin, "exchange", {"outcome": "stream"})
    assert [row.pk for row in found.result_list] == [rare.pk]
    assert "1 exchange" in text
    found, text = shown(admin, "exchange", {"outcome": "error"})
    assert (found.total, len(found.result_list)) == (paging.Total(3, exact=True), 2)
    assert "3 exchanges" in text
    assert "at least" not in text


@pytest.mark.parametrize(
    ("model", "column", "value", "others"),
    [
        (Exchange, "outcome", "error", "result"),
        (Task, "state", "failed", "completed"),
        (Delivery, "state", "dead", "delivered"),
    ],
)
def test_the_index_serves_the_filter(model: Any, column: str, value: str, others: str, olga: Principal) -> None:
    if model is Task:  # An index of all tasks must be larger than that of the few, or their costs are equal.
        for _ in range(MANY):
            task(olga, state=others)
    rows = model.objects.exclude(**{column: others}).filter(**{column: value}).order_by("-id").values_list("id")[:50]
    with connection.cursor() as cursor:
        if on_postgres():  # of an empty table it reads the whole rather than an index
            cursor.execute("set local enable_seqscan = off")
            cursor.execute("set local enable_bitmapscan = off")
    assert f"{model._meta.model_name}_{column}" in rows.explain()


def test_a_filter_without_an_index_says_how_far_back_it_looked(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 2)
    rare = exchange(olga, id=OLDEST, method="Rare")
    rows = sorted(exchange(olga).pk for _ in range(3))
    found, text = shown(admin, "exchange", {"method": "Rare"})
    assert list(found.result_list) == []
    assert (found.floor, found.total) == (rows[1], paging.Total(0, exact=False))
    assert re.search(r"at least 0 exchanges · searched back to \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC", text)
    assert "Search further back" in text
    found, text = shown(admin, "exchange", found.older)
    assert [row.pk for row in found.result_list] == [rare.pk]
    assert found.newer == "?method=Rare"


def test_an_indexed_filter_makes_the_window_of_the_others_reach_further(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 2)
    rare = exchange(olga, id=OLDEST, outcome="error", method="Rare")
    exchange(olga, outcome="error")
    for _ in range(3):
        exchange(olga)
    assert listed(admin, "exchange", outcome="error", method="Rare") == [rare.pk]


def test_a_long_list_says_at_least_and_goes_on_older_and_newer(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST", 3)
    rows = sorted((exchange(olga).pk for _ in range(8)), reverse=True)
    first, text = shown(admin, "exchange")
    assert "at least 3 exchanges" in text
    assert (first.older, first.newer) == (f"?id__lt={rows[2]}", "")
    second, _ = shown(admin, "exchange", first.older)
    assert [row.pk for row in second.result_list] == rows[3:6]
    third, text = shown(admin, "exchange", second.older)
    assert [row.pk for row in third.result_list] == rows[6:]
    assert third.older == ""
    assert "2 exchanges" in text
    back, _ = shown(admin, "exchange", third.newer)
    assert [row.pk for row in back.result_list] == rows[3:6]
    newest, _ = shown(admin, "exchange", back.newer)
    assert [row.pk for row in newest.result_list] == rows[:3]
    assert back.newer == "?"


def test_a_window_with_more_rows_than_a_list_pages_through_is_read_to_its_end(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "MOST", 3)
    monkeypatch.setattr(paging, "WINDOW", 6)
    rows = sorted((exchange(olga).pk for _ in range(8)), reverse=True)
    seen, query = [], "?method=SendMessage"
    for _ in range(4):
        found, text = shown(admin, "exchange", query)
        assert ("searched back to" in text) == (found.floor is not None and not found.is_capped)
        seen += [row.pk for row in found.result_list]
        query = found.older
        if not query:
            break
    assert seen == rows


def test_the_box_says_at_least_where_it_does_not_look_at_all(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site._registry[Exchange], "max_found", 2)
    monkeypatch.setattr(lookup.find_exchanges, "__defaults__", (None, 2))
    for _ in range(3):
        exchange(olga, rpc_id="1")
    exchange(olga, rpc_id="2")
    assert "at least 2 exchanges" in shown(admin, "exchange", {"q": "1"})[1]
    assert "at least" not in shown(admin, "exchange", {"q": "2"})[1]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"outcome": "xyz"}, "outcome=xyz is not a possible value. Choose one of result, error"),
        ({"http_status": "999"}, "http_status=999 is not a possible value. Choose one of 200"),
        ({"created": "ever"}, "created=ever is not a possible value. Choose one of hour, day, week."),
        ({"p": "9999"}, "There is no page 9999: the last page is 1. Page 1 is shown instead."),
        ({"p": "0"}, "There is no page 0: the last page is 1. Page 1 is shown instead."),
    ],
)
def test_a_query_that_cannot_be_meant_is_named(
    admin: Client, olga: Principal, query: dict[str, str], sentence: str
) -> None:
    exchange(olga)
    found, text = shown(admin, "exchange", query)
    assert sentence in text
    assert len(found.result_list) == ("p" in query)


def test_all_rows_of_a_filter_are_offered_only_if_their_number_is_known(
    admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(51):
        task(olga)
    assert "Select all 51 tasks" in shown(admin, "task")[1]
    monkeypatch.setattr(paging, "MOST", 50)
    text = shown(admin, "task")[1]
    assert "at least 50 tasks" in text
    assert "Select all" not in text


# ---------------------------------------------------------------- two marks


def test_the_outcome_of_a_call_and_the_state_of_its_task_are_two_marks(admin: Client, olga: Principal) -> None:
    failed = task(olga)
    Task.objects.filter(pk=failed.pk).update(state="failed")
    call = exchange(olga, task_id=failed.pk)
    gone, lone = exchange(olga, task_id=OLDEST), exchange(olga)
    marks = admin.get(reverse("admin:tasks_app_exchange_changelist")).content.decode()
    assert '<span class="td-mark td-result">result</span>' in marks
    assert f'/task/{failed.pk}/change/"><span class="td-mark td-failed">failed</span></a>' in marks
    assert '"><span class="td-mark td-gone">no such task</span></td>' in marks, "it leads nowhere, so it is no link"
    assert "Call: Answered · Task now: failed" in " ".join(
        re.sub("<[^>]*>", "", page(admin, "exchange", call.pk)).split()
    )
    assert "Task now" not in page(admin, "exchange", lone.pk)
    assert 'Task now: <span class="td-mark td-gone">no such task</span></p>' in page(admin, "exchange", gone.pk)
    states = {line["id"]: line["task_state"] for line in printed("exchanges", "list")}
    assert states == {call.pk: "failed", gone.pk: None, lone.pk: None}


# ---------------------------------------------------------------- reference


def test_the_reference_that_a_caller_was_told_finds_the_failure(
    admin: Client, owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    failed = sent(owner, "now", "quick-raises")
    assert failed.status.state == TaskState.FAILED
    assert failed.status.message
    sentence = failed.status.message.text
    reference = sentence.rpartition(" ")[2]
    call = exchange(Principal.objects.get(pk=owner.caller.owner_id), task_id=failed.id)
    exchange(None, task_id=OLDEST)
    for given in (reference, f" {reference}. ", f'"{reference}"', f"Reference: {reference}"):
        assert listed(admin, "task", q=given) == [failed.id]
        assert listed(admin, "exchange", q=given) == [call.pk]
    assert [line["id"] for line in printed("tasks", "list", "--reference", reference)] == [failed.id]
    assert [line["id"] for line in printed("tasks", "show", reference)] == [failed.id]
    assert [line["id"] for line in printed("exchanges", reference)] == [call.pk]
    assert listed(admin, "task", q="nothing") == []


# ----------------------------------------------------------------- commands


def test_a_look_up_that_prints_less_than_it_found_says_so(olga: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "CANDIDATES", 2)
    rows = [exchange(olga, rpc_id="1").pk for _ in range(3)]
    tasks = [task(olga, context_id="chat").pk for _ in range(3)]
    for words, ids in ((("exchanges", "1"), rows), (("tasks", "show", "chat"), tasks)):
        lines, said, code = run(*words)
        assert ([line["id"] for line in lines], code) == (sorted(ids, reverse=True)[:2], 3)
        assert said == "There are more than 2: --limit N prints up to 10,000."
        lines, said, code = run(*words, "--limit", "2")
        assert (len(lines), code, "more than 2" in said) == (2, 0, True)
        lines, said, code = run(*words, "--limit", "3")
        assert ([line["id"] for line in lines], said, code) == (sorted(ids, reverse=True), "", 0)
    lines, said, code = run("exchanges", "list", "--limit", "2")
    assert (len(lines), code, "more than 2" in said) == (2, 0, True)


def test_a_list_of_wrong_logins_says_when_it_is_cut() -> None:
    now = clock.now()
    for number in range(3):
        WrongLogins.objects.create(kind="address", value=f"192.0.2.{number}", began_at=now, last_at=now)
    lines, said, code = run("a2a", "logins", "list", "--limit", "2")
    assert (len(lines), code, "more than 2" in said) == (2, 0, True)
    lines, said, code = run("a2a", "logins", "list", "--limit", "3")
    assert (len(lines), code, said) == (3, 0, "")


@pytest.mark.parametrize(("command", "count"), [("exchanges", 3), ("tasks", 4), ("deliveries", 3)])
def test_the_help_of_a_command_has_examples_that_can_be_parsed(command: str, count: int) -> None:
    parser = load_command_class("tasks_app", command).create_parser("manage.py", command)
    examples = re.findall(rf"^  manage\.py {command} (.*?)(?:  | \||$)", parser.format_help(), re.MULTILINE)
    assert len(examples) == count
    for example in examples:
        assert parser.parse_args(shlex.split(example))
