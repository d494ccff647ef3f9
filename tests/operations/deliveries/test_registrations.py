"""Registrations of webhooks: with a message, of former versions, and ten at most."""

from datetime import timedelta
from typing import Any

import pytest

from a2a.errors import InvalidParams, TaskNotFound
from a2a.languages import ALL
from a2a.requests import CancelTask, CreatePushConfig, GetPushConfig, ListPushConfigs
from tasks_app import clock
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, Event, Task, Webhook
from tasks_app.webhooks import leases
from tasks_app.webhooks.limits import Busy
from tests.conftest import Person, until
from tests.operations.asking import ask, message, send, sent
from tests.operations.rows import together
from tests.operations.webhooks import (
    config,
    hook,
    hooked,
    seqs,
    task,
)
from tests.support.receiver import Receiver
from tests.support.servers import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


@pytest.mark.parametrize("agent", ["echo", "form-generator"])
def test_a_webhook_that_comes_with_a_message_hears_of_everything(
    service: None, owner: Person, there: Receiver, agent: str
) -> None:
    made = sent(owner, "hello", agent, push_config=config(there.url))
    last = until(lambda: [got for got in there.got if "COMPLETED" in got.raw.decode()], "the end arrives")
    assert seqs(there) == list(range(1, last[0].seq + 1))
    assert there.got[0].json["task"]["id"] == made.id


def test_a_webhook_that_comes_with_the_next_message_hears_what_follows(
    service: None, owner: Person, there: Receiver
) -> None:
    first = sent(owner, "one", "asks")
    sent(owner, message("two", task_id=first.id), push_config=config(there.url, "0.3"))
    until(lambda: [got for got in there.got if b'"completed"' in got.raw], "the end arrives")
    assert there.got[0].json["status"]["state"] == "submitted"


def test_a_message_sent_again_gets_its_task_although_its_webhook_is_forbidden_now(
    service: None, owner: Person, there: Receiver, settings: Any
) -> None:
    said, webhook = message(), config(there.url)
    made = sent(owner, said, "echo", push_config=webhook)
    settings.A2A_OUTBOUND_LOOPBACK = False
    assert sent(owner, said, "echo", push_config=webhook).id == made.id
    with pytest.raises(InvalidParams):
        sent(owner, message(), "echo", push_config=webhook)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_an_old_webhook_with_a_slash_is_read_and_removed_over_json_rpc(
    lanes: None, owner: Person, version: str
) -> None:
    task_id = hooked(owner, f"http://127.0.0.1:{free_port()}/", id="a/b")
    methods = ALL.by_name[f"a2a-{version}"].methods
    name = "{}TaskPushNotificationConfig" if version == "1.0" else "tasks/pushNotificationConfig/{}"
    params = {"taskId": task_id, ("id" if version == "1.0" else "pushNotificationConfigId"): "a/b"}
    read, drop = (methods[name.format(verb if version == "0.3" else verb.title())] for verb in ("get", "delete"))
    assert b'"id":"a/b"' in read.encode(ask(owner, read.decode(params)))
    ask(owner, drop.decode(params))
    with pytest.raises(TaskNotFound):
        ask(owner, read.decode(params))


@pytest.mark.parametrize(("id", "rest"), [("nope", " with this id"), (None, "")])
def test_an_unknown_webhook_of_a_task_that_exists_is_named(
    lanes: None, owner: Person, stranger: Person, id: str | None, rest: str
) -> None:
    wish = GetPushConfig(task_id=task(owner), id=id)
    with pytest.raises(TaskNotFound) as refused:
        ask(owner, wish)
    assert refused.value.full_message == f"Task not found: the task exists, and has no webhook{rest}"
    with pytest.raises(TaskNotFound) as hidden:
        ask(stranger, wish)
    assert hidden.value.full_message == "Task not found"


def test_a_task_has_ten_webhooks_at_most(lanes: None, owner: Person) -> None:
    task_id = task(owner)
    for place in range(10):
        hook(owner, task_id, "http://127.0.0.1:65001/", id=str(place))
    hook(owner, task_id, "http://127.0.0.1:65001/again", id="3")
    with pytest.raises(InvalidParams) as told:
        ask(owner, CreatePushConfig(task_id=task_id, config=config("http://127.0.0.1:65001/", id="one more")))
    assert told.value.violations[0][0] == "id"
    first = ask(owner, ListPushConfigs(task_id=task_id, page_size=4))
    rest = ask(owner, ListPushConfigs(task_id=task_id, page_size=9, page_token=first.next_page_token))
    assert [found.id for found in (*first.configs, *rest.configs)] == [str(place) for place in range(10)]
    assert rest.next_page_token == ""
    for token in ("nonsense", first.next_page_token + "x"):
        with pytest.raises(InvalidParams):
            ask(owner, ListPushConfigs(task_id=task_id, page_size=4, page_token=token))
    with pytest.raises(InvalidParams):
        ask(owner, ListPushConfigs(task_id=task(owner), page_size=4, page_token=first.next_page_token))


def test_webhooks_that_come_with_many_messages_at_once_are_ten_at_most(service: None, owner: Person) -> None:
    made = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: Task.objects.get().state == "working", "it is worked on")

    def more(place: int) -> Any:
        said, webhook = message("more", task_id=made.id), config(f"http://127.0.0.1:65001/{place}", id=f"w{place}")
        return send(owner, said, return_immediately=True, push_config=webhook)

    results = together(16, more)
    refused = [result for result in results if isinstance(result, InvalidParams)]
    assert (len(refused), Webhook.objects.count()) == (6, 10), results
    assert Event.objects.filter(kind="message").count() == 10
    assert {error.violations[0][0] for error in refused} == {"id"}
    ask(owner, CancelTask(id=made.id))


def test_a_webhook_in_an_unspoken_language_waits_and_holds_up_no_other(lanes: None, owner: Person) -> None:
    ids = [hooked(owner, f"http://127.0.0.1:{free_port()}/", "1.0") for _ in range(2)]
    unknown = Webhook.objects.filter(task_id=ids[0])
    unknown.update(version="", language="spoken elsewhere", due_at=clock.shared() - timedelta(seconds=9))
    for task_id in ids:
        ask(owner, CancelTask(id=task_id))
    assert list(Delivery.objects.values_list("task_id", flat=True)) == [ids[1]]
    # A process that speaks the language has written a delivery.
    Delivery.objects.filter(task_id=ids[1]).update(state="waiting")
    other = Delivery.objects.get(task_id=ids[1])
    own = unknown.get()
    Delivery.objects.create(
        id=uuid7(),
        webhook=own,
        task_id=ids[0],
        seq=2,
        version="",
        language=own.language,
        state="waiting",
        created_at=other.created_at,
    )
    assert [lease.task_id for lease in leases.take("here", 5, Busy())] == [ids[1]]


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_webhook_that_the_version_before_registered_gets_its_deliveries(
    lanes: None, owner: Person, version: str
) -> None:
    """Its row names no language, as a process of the version before writes it."""
    task_id = hooked(owner, f"http://127.0.0.1:{free_port()}/", version)
    Webhook.objects.update(language=None)
    ask(owner, CancelTask(id=task_id))
    (delivery,) = Delivery.objects.filter(state="waiting")
    assert (delivery.language_name, delivery.version) == (f"a2a-{version}", version)
    Delivery.objects.update(language=None)
    assert Delivery.objects.get(pk=delivery.pk).language_name == f"a2a-{version}"
