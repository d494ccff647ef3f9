"""Filters of webhooks: which events make a delivery, in a language whose webhooks choose their events."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

import config.urls  # noqa: F401  # before a test replaces the languages that it refers to
from a2a import languages
from a2a.choice import Row, by_method
from a2a.dialects import v1_0
from a2a.documents import EventDocument, TaskDocument
from a2a.events import Event, MessageAdded
from a2a.language import Language, Push
from a2a.languages import Languages
from a2a.notices import Notice, filter_of, names_of
from a2a.requests import CreatePushConfig
from a2a.states import TaskState
from a2a.types import Message, Part, PushConfig, Role, Status
from tasks_app import clock
from tasks_app.api.resources.webhooks import WebhookRow
from tasks_app.models import Delivery, DeliveryTry, Webhook
from tasks_app.webhooks import readable_body, secret_of
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.rows import chunk, status
from tests.operations.webhooks import DONE, NOTHING, OPS, WORKS, happens, hook, pump, seqs, task
from tests.support.hand import Hand
from tests.support.receiver import Receiver

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("loopback", "lanes"),
]
STATUS, MESSAGE, ARTIFACT, COMPLETED, FAILED = Notice
SAYS = status(TaskState.WORKING, "thinking")
FAILS = status(TaskState.FAILED, "no such file")


def encode(event: EventDocument, task: Callable[[], TaskDocument]) -> bytes:
    return orjson.dumps({"seq": event.seq, "notice": event.notice})


def sign(secret: str, body: bytes) -> dict[str, str]:
    return {"x-toy-signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


PUSH = Push(
    encode=encode, has=lambda kind, state: True, media="application/json", filters=True, one_for_address=True, sign=sign
)
CHOOSY = Language(
    name="choosy",
    methods={},
    column=v1_0.DIALECT.column,
    encode_error=v1_0.DIALECT.encode_error,
    encode_frame=v1_0.encode_frame,
    push=PUSH,
)


@pytest.fixture(autouse=True)
def _spoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(languages, "ALL", Languages(rows=(Row(languages=(CHOOSY,), choose=by_method),)))


def asks() -> Event:
    return status(TaskState.INPUT_REQUIRED, "Your name?")


def answers() -> Event:
    said = Message(message_id="m2", role=Role.USER, parts=(Part(text="Ada"),))
    return MessageAdded(message=said, status=Status(state=TaskState.SUBMITTED, timestamp=clock.now()))


def says_more() -> Event:
    return MessageAdded(message=Message(message_id="m3", role=Role.USER, parts=(Part(text="and quickly"),)))


def follow(person: Person, task_id: str, url: str, *chosen: Notice, **more: Any) -> PushConfig:
    """Register a webhook in the language for these notices; for all without any."""
    notices = filter_of(chosen) if chosen else None
    config = PushConfig(url=url, language=CHOOSY.name, notices=notices, **more)
    answer = ask(person, CreatePushConfig(task_id=task_id, config=config))
    assert isinstance(answer, PushConfig)
    return answer


def heard(there: Receiver, path: str) -> list[tuple[int, str]]:
    """Return number and notice of the events in the order in which they arrived at a path."""
    return [(got.json["seq"], got.json["notice"]) for got in there.at(path)]


EVENTS = (WORKS, SAYS, chunk("one", append=False), asks, says_more, answers, WORKS, chunk("two"), DONE)
"""The events of a task after its first one, as values or as functions that return them."""
EVERY = {
    2: (STATUS,),
    3: (STATUS, MESSAGE),
    4: (ARTIFACT,),
    5: (STATUS, MESSAGE),
    6: (MESSAGE,),
    7: (MESSAGE, STATUS),
    8: (STATUS,),
    9: (ARTIFACT,),
    10: (COMPLETED, STATUS),
}
"""The notices of each event, the one that says most first."""


def expected(chosen: tuple[Notice, ...]) -> list[tuple[int, str]]:
    firsts = ((seq, next((notice for notice in own if notice in chosen), None)) for seq, own in EVERY.items())
    return [(seq, notice.value) for seq, notice in firsts if notice]


CHOICES = (*((notice,) for notice in Notice), (STATUS, COMPLETED, FAILED), (STATUS, MESSAGE), (MESSAGE, ARTIFACT))
"""Some choices: as many as a task may have webhooks, but for two."""


@pytest.mark.requirement("ACP-23")
def test_a_webhook_hears_of_the_events_that_it_chose_and_of_each_once(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    for place, chosen in enumerate(CHOICES):
        follow(owner, task_id, f"{there.url}/{place}", *chosen)
    hook(owner, task_id, there.url + "/new")
    hook(owner, task_id, there.url + "/old", "0.3")
    happens(task_id, *(event() if callable(event) else event for event in EVENTS))
    pump()
    for place, chosen in enumerate(CHOICES):
        assert heard(there, f"/{place}") == expected(chosen), chosen
        rows = Delivery.objects.filter(webhook__notices=filter_of(chosen))
        assert rows.count() == len(expected(chosen)), chosen
    # Webhooks of A2A on the same task hear what they always do.
    assert [got.seq for got in there.at("/new")] == [2, 3, 4, 5, 7, 8, 9, 10]
    assert [got.seq for got in there.at("/old")] == [2, 3, 5, 7, 8, 10]


def test_an_event_that_no_filter_lets_pass_makes_no_webhook_due(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    follow(owner, task_id, there.url, ARTIFACT)
    happens(task_id, WORKS, SAYS)
    assert (Webhook.objects.get().due_at, Delivery.objects.count()) == (None, 0)
    happens(task_id, chunk("one", append=False))
    assert Webhook.objects.get().due_at == Delivery.objects.get().created_at


def test_a_webhook_without_a_filter_hears_everything_under_its_first_notice(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    follow(owner, task_id, there.url + "/all")
    happens(task_id, *(event() if callable(event) else event for event in EVENTS))
    pump()
    assert heard(there, "/all") == [(seq, own[0].value) for seq, own in EVERY.items()]


def test_a_task_that_has_ended_tells_its_end_to_those_who_chose_it(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    happens(task_id, WORKS, FAILS)
    for path, chosen in (("/end", FAILED), ("/status", STATUS), ("/said", MESSAGE), ("/good", COMPLETED)):
        follow(owner, task_id, there.url + path, chosen)
    pump()
    assert [heard(there, path) for path in ("/end", "/status", "/said", "/good")] == [
        [(3, "FAILED")],
        [(3, "STATUS_CHANGE")],
        [(3, "NEW_MESSAGE")],
        [],
    ]


def test_the_same_address_again_is_the_same_webhook_with_other_events(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    first = follow(owner, task_id, there.url + "/a", STATUS)
    others = [follow(owner, task_id, there.url + "/b", STATUS), follow(owner, task_id, there.url + "/a?x=1", STATUS)]
    again = follow(owner, task_id, there.url + "/a", ARTIFACT)
    assert (again.id, again.created_at) == (first.id, first.created_at)
    assert len({first.id, *(other.id for other in others)}) == Webhook.objects.count() == 3
    happens(task_id, WORKS, chunk("one", append=False))
    pump()
    assert heard(there, "/a") == [(3, "NEW_ARTIFACT")]


def test_deliveries_that_wait_follow_the_new_filter(owner: Person, there: Receiver, hand: Hand) -> None:
    task_id = task(owner)
    there.script = [NOTHING]
    follow(owner, task_id, there.url + "/a", STATUS, ARTIFACT)
    happens(task_id, WORKS, chunk("one", append=False))
    pump()
    follow(owner, task_id, there.url + "/a", ARTIFACT)
    hand.on(minutes=1)
    pump()
    assert heard(there, "/a") == [(2, "STATUS_CHANGE"), (3, "NEW_ARTIFACT")]
    first, second = Delivery.objects.order_by("seq")
    assert (first.state, second.state) == ("dropped", "delivered")
    assert DeliveryTry.objects.filter(delivery=first).latest("id").error == (
        "Its webhook was registered again, for other events."
    )


def test_a_delivery_written_without_regard_to_the_filter_is_not_sent(owner: Person, there: Receiver) -> None:
    """A process that ignores the filter wrote the delivery."""
    task_id = task(owner)
    follow(owner, task_id, there.url, ARTIFACT)
    Webhook.objects.update(notices=None)
    happens(task_id, WORKS, chunk("one", append=False))
    Webhook.objects.update(notices=filter_of([ARTIFACT]))
    pump()
    assert seqs(there) == [3]
    assert list(Delivery.objects.order_by("seq").values_list("state", flat=True)) == ["dropped", "delivered"]


def test_a_filter_that_a_webhook_of_a2a_has_from_before_counts_for_nothing(owner: Person, there: Receiver) -> None:
    """A process of the version before registered the name again, and left a column alone that it does not have."""
    task_id = task(owner)
    hook(owner, task_id, there.url)
    Webhook.objects.update(notices=filter_of([ARTIFACT]))
    happens(task_id, WORKS, DONE)
    pump()
    assert seqs(there) == [2, 3]


def test_operators_read_the_body_under_the_filter(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    follow(owner, task_id, there.url, STATUS)
    happens(task_id, DONE)
    assert orjson.loads(readable_body(Delivery.objects.get())) == {"seq": 2, "notice": "STATUS_CHANGE"}


@pytest.mark.requirement("ACP-23")
def test_a_language_adds_signatures_of_its_own(owner: Person, there: Receiver) -> None:
    task_id = task(owner)
    follow(owner, task_id, there.url, STATUS)
    happens(task_id, DONE)
    pump()
    (got,) = there.got
    secret = secret_of(Webhook.objects.get().pk, OPS)
    assert got.headers["x-toy-signature"] == hmac.digest(secret.encode(), got.raw, "sha256").hex()
    assert got.headers["webhook-signature"].startswith("v1,")


def test_operators_see_language_and_events_of_a_webhook(owner: Person, admin_client: Client, capsys: Any) -> None:
    follow(owner, task(owner), "http://127.0.0.1:65001/", FAILED, STATUS)
    (row,) = Webhook.objects.all()
    page = admin_client.get(reverse("admin:tasks_app_webhook_change", args=[row.pk])).content.decode()
    assert "STATUS_CHANGE, FAILED" in page
    call_command("deliveries", "webhooks")
    line = orjson.loads(capsys.readouterr().out)
    assert (line["language"], line["events"]) == ("choosy", ["STATUS_CHANGE", "FAILED"])
    shown = WebhookRow(row).data
    assert (shown["language"], shown["events"]) == ("choosy", ["STATUS_CHANGE", "FAILED"])


def test_filters_are_stored_as_they_always_were() -> None:
    assert [filter_of([notice]) for notice in Notice] == [1, 2, 4, 8, 16]
    assert names_of(None) == [notice.value for notice in Notice]
    assert names_of(filter_of([FAILED, STATUS])) == ["STATUS_CHANGE", "FAILED"]
