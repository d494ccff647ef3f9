"""Deliveries: every event, in order, at least once, whatever the receiver does."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from standardwebhooks import Webhook

from a2a.errors import InvalidParams, TaskNotFound
from a2a.languages import ALL
from a2a.requests import CancelTask, CreatePushConfig, DeletePushConfig, ListPushConfigs
from a2a.types import Part
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, DeliveryTry, Event, PushConfig, Task
from tasks_app.webhooks import leases, readable_body, secret_of
from tasks_app.webhooks.limits import Busy
from tests.conftest import Person, until
from tests.operations.asking import ask, message, send, sent
from tests.operations.rows import addition, chunk, together
from tests.operations.webhooks import (
    DONE,
    NOTHING,
    OPS,
    WORKS,
    Hand,
    config,
    happens,
    hook,
    hooked,
    pump,
    seqs,
    states,
    task,
)
from tests.support.receiver import Receiver, Reply
from tests.support.servers import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


# ------------------------------------------------------------------- bodies


def test_each_version_is_told_in_its_own_words_and_a_body_stays_as_it_was(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = hooked(owner, f"{there.url}/new", id="new")
    hook(owner, task_id, f"{there.url}/old", "0.3", id="old")
    happens(task_id, WORKS, chunk("one", append=False), chunk("two"), DONE)
    pump()
    new, old = there.at("/new"), there.at("/old")
    assert [list(got.json) for got in new] == [
        ["statusUpdate"],
        ["artifactUpdate"],
        ["artifactUpdate"],
        ["statusUpdate"],
    ]
    assert [got.seq for got in new] == [2, 3, 4, 5]
    assert [(got.seq, got.json["kind"], got.json["status"]["state"]) for got in old] == [
        (2, "task", "working"),
        (5, "task", "completed"),
    ]
    # The task as of the event: when it began to work there was no artifact yet.
    assert "artifacts" not in old[0].json
    assert [part["text"] for part in old[1].json["artifacts"][0]["parts"]] == ["onetwo"]
    assert {got.headers["a2a-version"] for got in new} == {"1.0"}
    assert {got.headers["a2a-version"] for got in old} == {"0.3"}


def test_events_written_together_are_delivered_each_as_of_itself(lanes: None, owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url, "0.3")
    assert bridge.do(addition(task_id, WORKS, chunk("one", append=False), DONE))
    pump()
    assert [(got.seq, got.json["status"]["state"], len(got.json.get("artifacts", ()))) for got in there.got] == [
        (2, "working", 0),
        (4, "completed", 1),
    ]


def test_events_before_a_registration_are_not_delivered_and_those_after_a_removal_neither(
    lanes: None, owner: Person, there: Receiver
) -> None:
    task_id = task(owner)
    happens(task_id, WORKS)
    hook(owner, task_id, there.url, id="a")
    happens(task_id, chunk("one"))
    pump()
    ask(owner, DeletePushConfig(task_id=task_id, id="a"))
    happens(task_id, chunk("two"), DONE)
    pump()
    assert seqs(there) == [3]
    assert states() == [(3, "delivered", 1)]


# --------------------------------------------------------- what a receiver does


def test_a_receiver_that_is_down_for_hours_gets_everything_in_order(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.default = NOTHING
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"), chunk("two"), DONE)
    for _ in range(60):
        pump()
        hand.on(minutes=6)
    tried = len(there.got)
    # Head of the line: nothing overtakes the first one, and it is not asked all the time.
    assert set(seqs(there)) == {2}
    assert 5 < tried < 15
    assert len({got.headers["webhook-id"] for got in there.got}) == 1
    assert len({got.headers["webhook-timestamp"] for got in there.got}) == tried
    there.default = Reply(200)
    hand.on(hours=6)  # The longest gap after so many tries, with its fifth, is under five.
    pump()
    assert seqs(there)[tried:] == [2, 3, 4, 5]
    assert states() == [(2, "delivered", tried + 1), (3, "delivered", 1), (4, "delivered", 1), (5, "delivered", 1)]
    assert DeliveryTry.objects.filter(status=503).count() == tried


def test_a_receiver_that_is_not_there_is_tried_again(lanes: None, owner: Person, hand: Hand) -> None:
    task_id = hooked(owner, f"http://127.0.0.1:{free_port()}/")
    happens(task_id, WORKS)
    pump()
    (delivery,) = Delivery.objects.all()
    assert (delivery.state, delivery.attempt, delivery.status) == ("waiting", 1, None)
    assert "connection failed" in delivery.error


def test_after_three_days_it_is_dead_and_kept_and_the_next_one_goes_on(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    there.default = NOTHING
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS)
    hand.on(hours=71)
    happens(task_id, chunk("late"))
    pump()
    hand.on(hours=10)
    pump()
    assert states() == [(2, "dead", 2), (3, "waiting", 1)]
    there.default = Reply()
    hand.on(hours=9)
    pump()
    assert states() == [(2, "dead", 2), (3, "delivered", 2)]
    assert "statusUpdate" in readable_body(Delivery.objects.get(seq=2))


@pytest.mark.parametrize("code", [301, 400, 404])
def test_a_refusal_is_final_for_that_delivery_alone(lanes: None, owner: Person, there: Receiver, code: int) -> None:
    there.script = [Reply(code, {"Location": there.url})]
    task_id = hooked(owner, there.url)
    happens(task_id, WORKS, chunk("one"))
    pump()
    assert states() == [(2, "dead", 1), (3, "delivered", 1)]
    assert str(code) in Delivery.objects.get(seq=2).error


def test_gone_disables_the_webhook_until_it_is_registered_again(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(410)]
    task_id = hooked(owner, there.url, id="a")
    happens(task_id, WORKS, chunk("one"))
    pump()
    happens(task_id, chunk("two"))
    pump()
    assert (seqs(there), states()) == ([2], [(2, "dead", 1), (3, "dead", 0)])
    (row,) = PushConfig.objects.all()
    assert (row.state, row.due_at, "410" in row.reason) == ("disabled", None, True)
    hook(owner, task_id, there.url, id="a")
    happens(task_id, chunk("three"))
    pump()
    assert seqs(there) == [2, 5]
    assert PushConfig.objects.count() == 1


def test_a_receiver_that_asks_for_time_gets_it(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
    there.script = [Reply(429, {"Retry-After": "600"})]
    happens(hooked(owner, there.url), WORKS)
    pump()
    hand.on(seconds=599)
    pump()
    assert len(there.got) == 1
    hand.on(seconds=1)
    pump()
    assert states() == [(2, "delivered", 2)]


def test_what_a_receiver_writes_back_is_not_kept(lanes: None, owner: Person, there: Receiver) -> None:
    there.script = [Reply(500, {"X-Secret": "canary"}, body=b"canary" * 100_000)]
    happens(hooked(owner, there.url), WORKS)
    pump()
    kept = [str(value) for row in (*Delivery.objects.values(), *DeliveryTry.objects.values()) for value in row.values()]
    assert "canary" not in "".join(kept)
    assert states() == [(2, "waiting", 1)]


def test_an_answer_that_never_comes_is_given_up(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.webhooks.posting.TRY_SECONDS", 0.2)
    there.default = Reply(until=threading.Event())
    happens(hooked(owner, there.url), WORKS)
    pump()
    assert states() == [(2, "waiting", 1)]
    assert "No answer within 0.2 s" in Delivery.objects.get().error


# ------------------------------------------------------------- with a message


@pytest.mark.parametrize("agent", ["echo", "form-generator"])
def test_a_webhook_that_comes_with_a_message_hears_of_everything(
    service: None, owner: Person, there: Receiver, agent: str
) -> None:
    made = sent(owner, "hello", agent, push_config=config(there.url))
    last = until(lambda: [got for got in there.got if "COMPLETED" in got.raw.decode()], "the end arrives")
    assert seqs(there) == list(range(1, last[0].seq + 1))
    assert there.got[0].json["task"]["id"] == made.id


def test_a_run_that_is_written_at_once_is_told_step_by_step(service: None, owner: Person, there: Receiver) -> None:
    made = sent(owner, "hello", "form-generator", push_config=config(there.url, "0.3"))
    until(lambda: there.got and there.got[-1].json["status"]["state"] == "completed", "the end arrives")
    last = there.got[-1].json
    assert [got.json["status"]["state"] for got in there.got] == ["submitted", "working", "working", "completed"]
    assert ["artifacts" in got.json for got in there.got] == [False, False, False, True]
    assert {(got.json["id"], got.json["contextId"]) for got in there.got} == {(made.id, made.context_id)}
    assert last["artifacts"][0]["parts"][0]["text"] == made.artifacts[0].parts[0].text


def test_a_large_file_is_told_as_a_link(service: None, owner: Person, there: Receiver) -> None:
    said = message(parts=(Part(raw=b"x" * 50_000, filename="x.txt"),))
    sent(owner, said, "echo", push_config=config(there.url))
    there.wait(1)
    text = there.got[0].raw.decode()
    assert "taskdesk-file:" not in text
    assert "/files/" in text
    Webhook(secret_of(PushConfig.objects.get().pk, OPS)).verify(there.got[0].raw, dict(there.got[0].headers))


def test_a_webhook_that_comes_with_the_next_message_hears_what_follows(
    service: None, owner: Person, there: Receiver
) -> None:
    first = sent(owner, "one", "asks")
    sent(owner, message("two", task_id=first.id), push_config=config(there.url, "0.3"))
    until(lambda: [got for got in there.got if b'"completed"' in got.raw], "the end arrives")
    assert there.got[0].json["status"]["state"] == "submitted"


def test_the_same_message_again_gets_its_task_although_its_webhook_may_not_be_called_any_more(
    service: None, owner: Person, there: Receiver, settings: Any
) -> None:
    said, webhook = message(), config(there.url)
    made = sent(owner, said, "echo", push_config=webhook)
    settings.A2A_OUTBOUND_LOOPBACK = False
    assert sent(owner, said, "echo", push_config=webhook).id == made.id
    with pytest.raises(InvalidParams):
        sent(owner, message(), "echo", push_config=webhook)


@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_a_webhook_of_former_times_with_a_slash_is_read_and_removed_over_json_rpc(
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
    assert (len(refused), PushConfig.objects.count()) == (6, 10), results
    assert Event.objects.filter(kind="message").count() == 10
    assert {error.violations[0][0] for error in refused} == {"id"}
    ask(owner, CancelTask(id=made.id))


def test_a_webhook_of_a_language_that_this_process_does_not_speak_waits_and_holds_up_no_other(
    lanes: None, owner: Person
) -> None:
    ids = [hooked(owner, f"http://127.0.0.1:{free_port()}/", "1.0") for _ in range(2)]
    unknown = PushConfig.objects.filter(task_id=ids[0])
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
        config=own,
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
    PushConfig.objects.update(language=None)
    ask(owner, CancelTask(id=task_id))
    (delivery,) = Delivery.objects.filter(state="waiting")
    assert (delivery.language_name, delivery.version) == (f"a2a-{version}", version)
    Delivery.objects.update(language=None)
    assert Delivery.objects.get(pk=delivery.pk).language_name == f"a2a-{version}"
