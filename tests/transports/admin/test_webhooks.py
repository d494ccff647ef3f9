"""Webhooks and deliveries for operators: pages, acts, and the same as commands. Nothing secret on any of them."""

import re
from typing import Any

import orjson
import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.management.arguments import find_account
from tasks_app.models import Act, Delivery, Event, Webhook
from tasks_app.webhooks import leases
from tasks_app.webhooks.heads import STEPS_BYTES, SUPERSEDED
from tasks_app.webhooks.limits import Busy
from tasks_app.webhooks.schedule import TryResult
from tests.conftest import Person
from tests.operations.rows import chunk, status
from tests.operations.webhooks import happens, hooked
from tests.support.commands import printed, run

pytestmark = pytest.mark.django_db
SECRETS = ("canary-token", "canary-credentials", "canary-query", "canary-path")
LISTS = [reverse(f"admin:tasks_app_{model}_changelist") for model in ("webhook", "delivery")]


@pytest.fixture
def webhook(owner: Person, settings: Any) -> Webhook:
    """Return a webhook with a delivery that was refused and one that waits."""
    settings.A2A_OUTBOUND_LOOPBACK = True
    url = f"http://127.0.0.1:65001/{SECRETS[3]}?key={SECRETS[2]}"
    task_id = hooked(owner, url, token=SECRETS[0], schemes=("Bearer",), credentials=SECRETS[1])
    happens(task_id, status(TaskState.WORKING), chunk("one <script>"))
    (lease,) = leases.take("w", 1, Busy())
    leases.settle(lease, TryResult(status=404, error="The receiver answered 404."), clock.now(), clock.now(), 0.5)
    return Webhook.objects.get()


def page(client: Client, model: str, pk: str) -> str:
    response = client.get(reverse(f"admin:tasks_app_{model}_change", args=[pk]))
    assert response.status_code == 200
    return str(response.content.decode())


def acted(client: Client, model: str, action: str, *ids: str) -> None:
    """Chosen in the list, and confirmed on the page that asks back."""
    there = reverse(f"admin:tasks_app_{model}_changelist")
    chosen = {"action": action, "_selected_action": ids}
    asked = client.post(there, chosen)
    assert asked.status_code == 200
    assert all(pk in asked.content.decode() for pk in ids)
    assert client.post(there, chosen | {"post": "yes"}).status_code in {200, 302}


def test_pages_show_what_happened_and_nothing_secret(admin: Client, webhook: Webhook) -> None:
    dead, waiting = Delivery.objects.order_by("seq")
    texts = [admin.get(path).content.decode() for path in LISTS]
    texts += [page(admin, "webhook", webhook.pk), page(admin, "delivery", dead.pk)]
    texts += [page(admin, "delivery", waiting.pk), page(admin, "task", webhook.task_id)]
    for text in texts:
        assert not any(secret in text for secret in SECRETS)
        for sealed in (webhook.token, webhook.credentials, webhook.secret):
            assert sealed not in text
        assert "<script>" not in text.partition("td-page")[2]
    assert "The receiver answered 404." in texts[3]
    assert "Not tried yet" in texts[4]
    assert all(delivery.pk in texts[5] for delivery in (dead, waiting))
    assert ">http://127.0.0.1:65001/<" in texts[2]


@pytest.mark.parametrize(("state", "found"), [("dead", 1), ("waiting", 1), ("delivered", 0), ("nonsense", 0)])
def test_deliveries_are_filtered_by_state(admin: Client, webhook: Webhook, state: str, found: int) -> None:
    response = admin.get(LISTS[1], {"state": state})
    assert response.context["cl"].result_count == found


def test_both_are_found_by_their_ids_and_by_the_task(admin: Client, webhook: Webhook) -> None:
    dead = Delivery.objects.earliest("seq")
    for path, text, count in (
        (LISTS[0], webhook.pk, 1),
        (LISTS[0], webhook.task_id, 1),
        (LISTS[1], dead.pk, 1),
        (LISTS[1], webhook.task_id, 2),
        (LISTS[1], webhook.pk, 2),
        (LISTS[0], "nothing", 0),
        (LISTS[1], "nothing", 0),
    ):
        assert admin.get(path, {"q": text}).context["cl"].result_count == count


def test_operators_send_again_give_up_disable_and_enable(admin: Client, webhook: Webhook) -> None:
    dead, waiting = Delivery.objects.order_by("seq")
    acted(admin, "delivery", "send_again", dead.pk)
    dead.refresh_from_db()
    assert dead.state == "waiting"
    acted(admin, "delivery", "give_up", waiting.pk, dead.pk)
    assert set(Delivery.objects.values_list("state", flat=True)) == {"dead"}
    acted(admin, "webhook", "disable", webhook.pk)
    webhook.refresh_from_db()
    assert (webhook.state, webhook.reason) == ("disabled", "disabled by ada")
    acted(admin, "webhook", "disable", webhook.pk)  # The page shows the refusal, and nothing changes.
    acted(admin, "webhook", "enable", webhook.pk)
    webhook.refresh_from_db()
    assert webhook.state == "active"
    log = admin.get(reverse("admin:tasks_app_webhook_history", args=[webhook.pk]), follow=True).content.decode()
    assert re.findall('field-show_verb">([^<]*)<', log) == ["enable", "disable"]


def test_a_user_who_may_only_look_acts_on_nothing(client: Client, webhook: Webhook) -> None:
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(
        Permission.objects.filter(content_type__app_label="tasks_app", codename__startswith="view_")
    )
    client.force_login(user)
    for path, action, pk in (
        (LISTS[0], "disable", webhook.pk),
        (LISTS[1], "give_up", Delivery.objects.latest("seq").pk),
    ):
        assert "give_up" not in client.get(path).content.decode()
        client.post(path, {"action": action, "_selected_action": [pk], "post": "yes"})
    webhook.refresh_from_db()
    assert webhook.state == "active"
    assert Delivery.objects.latest("seq").state == "waiting"


# ----------------------------------------------------------------- commands


def deliveries(*words: str) -> list[dict[str, Any]]:
    return printed("deliveries", *words)


def test_the_command_lists_and_shows(webhook: Webhook) -> None:
    dead, waiting = sorted(deliveries("list"), key=lambda row: int(row["seq"]))
    assert [dead["state"], waiting["state"]] == ["dead", "waiting"]
    assert deliveries("list", "--state", "dead", "--task", webhook.task_id) == [dead]
    (shown,) = deliveries("show", dead["id"])
    assert orjson.loads(shown["body"])["statusUpdate"]["taskId"] == webhook.task_id
    assert [(one["attempt"], one["status"]) for one in shown["log"]] == [(1, 404)]
    (row,) = deliveries("webhooks")
    assert not any(secret in str(row) for secret in SECRETS)
    assert deliveries("webhooks", "--state", "active") == [row]
    assert deliveries("webhooks", "--host", "127.0.0.1", "--key", str(webhook.key_id)) == [row]
    assert deliveries("list", "--webhook", webhook.pk, "--state", "waiting") == [waiting]
    for wrong in (("show", "nothing"), ("list", "--limit", "0")):
        with pytest.raises(CommandError):
            deliveries(*wrong)
    for empty in (
        ("list", "--task", "nothing"),
        ("list", "--state", "dropped"),
        ("list", "--webhook", "nothing"),
        ("webhooks", "--state", "disabled"),
        ("webhooks", "--task", "nothing"),
        ("webhooks", "--host", "127.0.0.2"),
        ("webhooks", "--key", "77"),
    ):
        assert deliveries(*empty) == []


def test_a_webhook_has_one_name_in_all_that_is_printed(webhook: Webhook) -> None:
    (row,) = deliveries("webhooks")
    assert "id" not in row
    assert (row["webhook_id"], row["name"]) == (webhook.pk, webhook.name)
    lines = [*deliveries("list"), *deliveries("show", Delivery.objects.latest("seq").pk)]
    assert {line["webhook_id"] for line in lines} == {webhook.pk}
    assert not any("config_id" in line for line in lines)


@pytest.mark.parametrize("verb", ["disable", "enable", "secret"])
def test_an_id_that_is_no_webhook_is_told_which_id_is_meant(webhook: Webhook, verb: str) -> None:
    (line,), errors, _ = run("deliveries", verb, webhook.name)
    assert "1 of 1 refused" in errors
    assert line["webhook_id"] == webhook.name
    assert f"There is no webhook '{webhook.name}'" in line["refused"]
    assert "Use the webhook_id that `manage.py deliveries webhooks` prints" in line["refused"]


def test_an_id_that_is_no_delivery_is_told_where_the_ids_are(webhook: Webhook) -> None:
    (line,), errors, _ = run("deliveries", "retry", webhook.pk)
    assert "1 of 1 refused" in errors
    assert "`manage.py deliveries list` prints their ids" in line["refused"]
    with pytest.raises(CommandError, match=r"`manage\.py deliveries list` prints their ids"):
        deliveries("show", webhook.pk)


def test_a_webhook_in_another_state_says_in_which(webhook: Webhook) -> None:
    (line,), errors, _ = run("deliveries", "enable", webhook.pk)
    assert line["refused"] == "It is active, not disabled."
    assert errors


def test_the_command_does_every_act(webhook: Webhook) -> None:
    dead, waiting = Delivery.objects.order_by("seq").values_list("pk", flat=True)
    assert deliveries("retry", dead) == [{"id": dead, "done": "retry"}]
    assert deliveries("give-up", dead, waiting) == [{"id": pk, "done": "give-up"} for pk in (dead, waiting)]
    with pytest.raises(CommandError, match="1 of 1 refused"):
        deliveries("give-up", dead)
    assert deliveries("disable", webhook.pk, "--operator", "ops") == [{"webhook_id": webhook.pk, "done": "disable"}]
    assert deliveries("enable", webhook.pk) == [{"webhook_id": webhook.pk, "done": "enable"}]
    (shown,) = deliveries("secret", webhook.pk)
    assert shown["secret"].startswith("whsec_")
    with pytest.raises(CommandError):
        deliveries("secret", "nothing")


def log_of(pk: str) -> list[tuple[str, ...]]:
    """Return what is written down about a row, oldest first."""
    return list(Act.objects.filter(object_id=pk).order_by("pk").values_list("operator", "door", "verb"))


def test_acts_are_written_down_with_who_did_them_from_what_to_what_and_why(admin: Client, webhook: Webhook) -> None:
    dead, waiting = Delivery.objects.order_by("seq").values_list("pk", flat=True)
    deliveries("retry", dead, "--operator", "ada", "--reason", "the receiver is back")
    deliveries("give-up", dead, waiting, "--operator", "otto")
    deliveries("disable", webhook.pk, "--operator", "otto")
    deliveries("enable", webhook.pk, "--operator", "otto")
    assert log_of(dead) == [("ada", "command", "send again"), ("otto", "command", "give up")]
    assert log_of(waiting) == [("otto", "command", "give up")]
    first = Act.objects.order_by("pk")[0]
    assert (first.kind, first.before, first.after) == ("delivery", '{"state":"dead"}', '{"state":"waiting"}')
    assert first.reason == "the receiver is back"
    (shown,) = deliveries("secret", webhook.pk, "--operator", "otto")
    verbs = ("disable", "enable", "show secret")
    assert log_of(webhook.pk) == [("otto", "command", verb) for verb in verbs]
    assert shown["secret"] not in str(list(Act.objects.values()))
    acted(admin, "webhook", "disable", webhook.pk)
    assert log_of(webhook.pk)[-1] == ("ada", "admin", "disable")


def test_an_operator_need_not_be_a_user(webhook: Webhook) -> None:
    deliveries("disable", webhook.pk)
    assert log_of(webhook.pk) == [(find_account(), "command", "disable")]
    assert not User.objects.exists()


def test_an_act_that_is_refused_is_not_written_down(webhook: Webhook) -> None:
    dead = Delivery.objects.earliest("seq").pk
    for words in (
        ("give-up", dead),
        ("retry", "nothing"),
        ("enable", webhook.pk),
        ("disable", "nothing"),
        ("secret", "nothing"),
    ):
        with pytest.raises(CommandError, match="1 of 1 refused"):
            deliveries(*words)
    with pytest.raises(CommandError, match="argument --operator: must have 1 to 64 printable characters"):
        deliveries("retry", dead, "--operator", "")
    assert not Act.objects.exists()


def test_the_body_of_a_delivery_is_shown_as_it_is_sent_and_why_one_was_left_out(
    admin: Client, owner: Person, settings: Any
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    task_id = hooked(owner, "http://127.0.0.1:65001/", "0.3")
    happens(task_id, status(TaskState.WORKING, "first"), status(TaskState.COMPLETED, "second"))
    Webhook.objects.update(sent_bytes=STEPS_BYTES + 1)
    leases.take("w", 1, Busy())
    left_out, end = Delivery.objects.order_by("seq")
    assert (left_out.state, left_out.body, end.body) == ("superseded", None, None)
    for row, words in ((left_out, ("first", SUPERSEDED, "Superseded")), (end, ("first", "second"))):
        shown = page(admin, "delivery", row.pk)
        assert all(word in shown for word in words), shown
        (line,) = deliveries("show", row.pk)
        body = orjson.loads(line["body"])
        assert (body["kind"], body["id"]) == ("task", task_id)
    assert "second" not in page(admin, "delivery", left_out.pk)
    # The task was deleted meanwhile.
    Event.objects.all().delete()
    assert page(admin, "delivery", end.pk)


def test_webhooks_are_found_by_the_host_of_their_address(admin: Client, webhook: Webhook) -> None:
    assert admin.get(LISTS[0], {"q": "127.0.0.1"}).context["cl"].result_count == 1
    assert admin.get(LISTS[0], {"q": "127.0.0.2"}).context["cl"].result_count == 0


def test_revoking_a_key_in_the_admin_ends_its_webhooks(admin: Client, webhook: Webhook) -> None:
    acted(admin, "apikey", "revoke", str(webhook.key_id))
    webhook.refresh_from_db()
    assert (webhook.state, webhook.reason) == ("disabled", "the key that registered it was revoked")
    assert not Delivery.objects.filter(state="waiting").exists()
    assert orjson.loads(Act.objects.get(verb="revoke").after)["webhooks"] == 1
