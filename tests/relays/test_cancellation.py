"""Remote tasks whose tasks here have ended without a worker that could cancel them."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from a2a.requests import CancelTask
from tasks_app.models import Relay, RelayedTask
from tasks_app.operators.roles import VIEWER
from tasks_app.relays import cancellation, cards, remotes
from tasks_app.relays.credentials import StoredCredentials
from tasks_app.upkeep.relays import relay_routine
from tests.conftest import Person, Server
from tests.operations.asking import ask, sent
from tests.operators.people import operator, program
from tests.relays.conftest import AddRelay
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


@pytest.fixture
def question(owner: Person, to_agent: AddRelay, server: Server, settings: Any) -> str:
    """Give a task that waits for an answer, and has been canceled meanwhile."""
    name = to_agent("asks")
    settings.A2A_RELAYS = {name: {"url": f"{server.url}/agents/asks/"}}
    task = sent(owner, "red", name)
    relay_routine.run_round()
    assert RelayedTask.objects.get().is_open, "the task goes on"
    ask(owner, CancelTask(id=task.id))
    return task.id


def state_there(server: Server, task_id: str) -> str:
    remote_id = RelayedTask.objects.get(pk=task_id).remote_id
    ((state,),) = server.rows(f"select state from tasks_app_task where id = '{remote_id}'")  # noqa: S608
    return str(state)


def test_a_canceled_question_is_canceled_there(question: str, server: Server) -> None:
    assert state_there(server, question) == "input_required"
    relay_routine.run_round()
    assert state_there(server, question) == "canceled"
    assert not RelayedTask.objects.get().is_open


def test_an_operator_finds_the_remote_task(question: str, client: Client) -> None:
    row = RelayedTask.objects.get()
    (task,) = printed("tasks", "show", question)
    assert task["relayed"] == {"relay": row.relay, "remote_id": row.remote_id, "is_open": True}
    assert program(VIEWER).get(f"tasks/{question}/").json()["relayed"] == task["relayed"]
    client.force_login(operator(VIEWER))
    page = client.get(reverse("admin:tasks_app_task_change", args=[question])).content.decode()
    assert f"{row.relay}: task {row.remote_id}, which may go on" in page


def test_a_server_that_is_away_is_asked_again_until_a_day_is_over(
    question: str, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = False
    relay_routine.run_round()
    assert RelayedTask.objects.get().is_open
    monkeypatch.setattr(cancellation, "GIVE_UP", timedelta(0))
    relay_routine.run_round()
    assert not RelayedTask.objects.get().is_open
    assert state_there(server, question) == "input_required"


def test_a_server_that_refuses_the_credentials_is_asked_again_with_others(question: str, server: Server) -> None:
    row = Relay.objects.get()
    right, wrong = row.credentials, StoredCredentials(kind="bearer", secret="tdk_of-nobody").sealed()
    Relay.objects.update(credentials=wrong)
    relay_routine.run_round()
    assert RelayedTask.objects.get().is_open
    Relay.objects.update(credentials=right)
    relay_routine.run_round()
    assert state_there(server, question) == "canceled"
    assert not RelayedTask.objects.get().is_open


def test_a_remote_task_that_had_ended_is_not_said_to_be_canceled(
    question: str, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", cancellation.log.name)
    relay_routine.run_round()
    RelayedTask.objects.update(is_open=True)
    relay_routine.run_round()
    outcomes = [record.getMessage().rpartition(" ")[2] for record in caplog.records if "remote task" in record.message]
    assert outcomes == ["canceled", "ended"]
    assert not RelayedTask.objects.get().is_open


def test_the_remote_tasks_of_a_relay_that_is_gone_are_left_alone(question: str, server: Server, settings: Any) -> None:
    settings.A2A_RELAYS = {}
    relay_routine.run_round()
    assert not RelayedTask.objects.get().is_open
    assert state_there(server, question) == "input_required"


def test_a_server_that_is_away_delays_no_other(
    question: str, owner: Person, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellation, "BATCH", 1)
    (name,) = settings.A2A_RELAYS
    later = sent(owner, "red", name)
    ask(owner, CancelTask(id=later.id))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        settings.A2A_RELAYS |= {"away": {"url": f"http://127.0.0.1:{nobody.getsockname()[1]}"}}
        RelayedTask.objects.filter(pk=question).update(relay="away")
        relay_routine.run_round()
    assert state_there(server, later.id) == "canceled"
    assert RelayedTask.objects.get(pk=question).is_open


def test_a_server_that_never_answers_takes_no_connection_of_another(
    question: str, owner: Person, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remotes, "SPARE", 0)
    monkeypatch.setattr(cancellation, "SECONDS", 5.0)
    monkeypatch.setattr(cards, "claim_due", list)
    settings.A2A_ASYNC_SLOTS = 1
    (name,) = settings.A2A_RELAYS
    later = sent(owner, "red", name)
    ask(owner, CancelTask(id=later.id))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.A2A_RELAYS |= {"away": {"url": f"http://127.0.0.1:{silent.getsockname()[1]}"}}
        RelayedTask.objects.filter(pk=question).update(relay="away")
        relay_routine.run_round()
    assert state_there(server, later.id) == "canceled"


def test_cancellations_that_fail_take_turns_with_later_ones(
    question: str, owner: Person, server: Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellation, "BATCH", 1)
    (name,) = settings.A2A_RELAYS
    tasks = [question, *(sent(owner, "red", name).id for _ in range(2))]
    for task_id in tasks[1:]:
        ask(owner, CancelTask(id=task_id))
    rounds = [[row.pk for row in cancellation.find_open()] for _ in range(4)]
    assert sorted(pk for (pk,) in rounds[:3]) == sorted(tasks)
    assert rounds[3] == rounds[0]


@pytest.fixture
def end_of_process() -> Iterator[None]:
    """Tell the routine to end, as at the end of the process."""
    relay_routine.stopping.set()
    yield
    relay_routine.stopping.clear()


def test_a_server_that_never_answers_does_not_delay_the_end(
    question: str, settings: Any, end_of_process: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "SECONDS", 5.0)
    monkeypatch.setattr(cancellation, "SECONDS", 5.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.A2A_RELAYS = {"silent": {"url": f"http://127.0.0.1:{silent.getsockname()[1]}"}}
        RelayedTask.objects.update(relay="silent")
        relay_routine.run_round()
    assert Relay.objects.get(name="silent").problem == "", "the call was given up, and did not fail"
