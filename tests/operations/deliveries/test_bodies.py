"""Bodies of deliveries: every event as of itself, in the words of the version that was asked for."""

import pytest
from standardwebhooks import Webhook as Verifier

from a2a.requests import DeletePushConfig
from a2a.types import Part
from tasks_app.database.bridge import bridge
from tasks_app.models import Webhook
from tasks_app.webhooks import secret_of
from tests.conftest import Person, until
from tests.operations.asking import ask, message, sent
from tests.operations.rows import addition, chunk
from tests.operations.webhooks import (
    DONE,
    OPS,
    WORKS,
    config,
    happens,
    hook,
    hooked,
    pump,
    seqs,
    states,
    task,
)
from tests.support.receiver import Receiver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]


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


def test_events_before_a_registration_or_after_a_removal_are_not_delivered(
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
    Verifier(secret_of(Webhook.objects.get().pk, OPS)).verify(there.got[0].raw, dict(there.got[0].headers))
