"""Relays to servers of the official SDK, over each binding in each version that they speak."""

from collections.abc import Iterator
from typing import Any

import pytest

from a2a.agents import registry
from a2a.requests import CancelTask, GetTask
from tasks_app.models import Event, RelayedTask
from tasks_app.process import services
from tasks_app.relays import remotes
from tasks_app.relays.options import RelayOptions
from tasks_app.relays.registration import agent_of
from tests.clients.environments import reference_servers
from tests.conftest import Person, until
from tests.operations.asking import ask, message, sent, shown, text_of
from tests.support.servers import free_port

pytestmark = [pytest.mark.clients, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]

SPOKEN = [
    ("1.3.0", "1.0", "JSONRPC"),
    ("1.3.0", "1.0", "HTTP+JSON"),
    ("1.3.0", "0.3", "JSONRPC"),
    ("0.3.26", "0.3", "JSONRPC"),
    ("0.3.26", "0.3", "HTTP+JSON"),
]
DOUBLES = "0.3.26"
"""It writes each event into its task once for each subscriber that there ever was."""
NUMBERS = 20
COUNTED = "".join(f"{number} " for number in range(NUMBERS))


@pytest.fixture(scope="module")
def urls(pytestconfig: pytest.Config) -> Iterator[dict[str, str]]:
    """Give the address of a server of each SDK."""
    assert pytestconfig.cache
    ports = {sdk: free_port() for sdk in ("1.3.0", "0.3.26")}
    places = {sdk: (port, f"http://127.0.0.1:{port}") for sdk, port in ports.items()}
    with reference_servers(pytestconfig.cache.mkdir("clients"), places):
        yield {sdk: url for sdk, (_, url) in places.items()}


@pytest.fixture(params=SPOKEN, ids="-".join)
def far(request: pytest.FixtureRequest, urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a relay to such a server, and return the version of its SDK."""
    sdk, version, binding = request.param
    monkeypatch.setattr(remotes, "VERSIONS", (version,))
    monkeypatch.setattr(remotes, "BINDINGS", (binding,))
    registry.add(agent_of(RelayOptions(name="far", url=urls[sdk]), {}))
    yield sdk
    registry._agents.pop("far")


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True


def test_a_text_passes_through_in_pieces_that_come_once(owner: Person, far: str) -> None:
    assert text_of(sent(owner, "hello there", "far")) == "hello there"
    task = sent(owner, f"count {NUMBERS}", "far")
    assert (task.status.state, text_of(task)) == ("completed", COUNTED)


def test_a_question_and_its_answer_are_one_remote_task(owner: Person, far: str) -> None:
    asked = sent(owner, "ask", "far")
    assert asked.status.message
    assert (asked.status.state, asked.status.message.text) == ("input_required", "Which one?")
    remote_id = RelayedTask.objects.get().remote_id
    answered = sent(owner, message("fine", task_id=asked.id))
    assert (answered.status.state, text_of(answered)) == ("completed", "fine")
    assert RelayedTask.objects.get().remote_id == remote_id


def test_a_cancellation_ends_the_remote_task(owner: Person, far: str) -> None:
    task = sent(owner, "wait", "far", return_immediately=True)
    until(lambda: RelayedTask.objects.filter(is_open=True), "the remote task is stored")
    ask(owner, CancelTask(id=task.id))
    until(lambda: not RelayedTask.objects.get().is_open, "the remote task is canceled")


def test_a_relay_that_is_restarted_follows_the_same_remote_task(owner: Person, far: str) -> None:
    task = sent(owner, f"count {NUMBERS}", "far", return_immediately=True)
    until(lambda: Event.objects.filter(kind="artifactUpdate").count() > 3, "some chunks are here")
    remote_id = RelayedTask.objects.get().remote_id
    services.stop()
    services.start()
    until(lambda: shown(ask(owner, GetTask(id=task.id))).status.state == "completed", "the task ends")
    ended = shown(ask(owner, GetTask(id=task.id)))
    assert text_of(ended) == COUNTED or far == DOUBLES
    assert RelayedTask.objects.get().remote_id == remote_id
