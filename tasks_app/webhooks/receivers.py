"""The receivers of webhooks: the answers to handshakes, and the acts of operators, who may agree for a receiver."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from django.conf import settings
from django.db import transaction

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.hints import DueRows, hints
from tasks_app.models import Receiver, Webhook
from tasks_app.models.states import WebhookState
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused


def find(owner_id: int, site: str) -> Receiver | None:
    """Return the receiver of an owner's webhooks at a site."""
    return Receiver.objects.filter(owner_id=owner_id, site=site).first()


def record_answer(owner_id: int, site: str, problem: str) -> None:
    """Record the answer to a handshake: agreement, or a problem.

    An operator may have agreed for the receiver meanwhile. That stays.
    """
    now = clock.shared()
    age = timedelta(hours=settings.A2A_DELIVERY_HOURS) if problem else timedelta(days=settings.A2A_HANDSHAKE_DAYS)
    answer = {
        "asked_at": now,
        "agreed_at": None if problem else now,
        "expires_at": now + age,
        "problem": problem[:255],
    }
    with transaction.atomic():
        receiver, is_new = Receiver.objects.get_or_create(owner_id=owner_id, site=site, defaults=answer)
        if not is_new:
            Receiver.objects.filter(pk=receiver.pk).exclude(agreed_at__isnull=False, expires_at=None).update(**answer)


def agree(receiver_id: str, by: Operator) -> None:
    """Agree for a receiver, without an end, and make its deliveries due. Raises ActRefused."""
    bridge.do(Do(partial(_act, _agree, receiver_id, by)))
    hints.due(DueRows.DELIVERIES)


def forget(receiver_id: str, by: Operator) -> None:
    """Forget the answer of a receiver, so that it is asked before the next delivery. Raises ActRefused."""
    bridge.do(Do(partial(_act, _forget, receiver_id, by)))


def _act(act: Callable[[Receiver, Operator], None], receiver_id: str, by: Operator) -> None:
    with transaction.atomic():
        rows = Receiver.objects.select_for_update(no_key=True, nowait=True)
        receiver = rows.filter(pk=receiver_id).first() if receiver_id.isascii() and receiver_id.isdigit() else None
        if receiver is None:
            raise ActRefused(
                f"There is no receiver {receiver_id[:64]!r}, or its answer was forgotten: "
                "`manage.py a2a receivers list` prints all ids."
            )
        act(receiver, by)


def _agree(receiver: Receiver, by: Operator) -> None:
    if receiver.agreed_at is not None and receiver.expires_at is None:
        raise ActRefused("An operator has agreed for it already.")
    now = clock.shared()
    before = {"agreed_at": receiver.agreed_at, "expires_at": receiver.expires_at}
    receiver.agreed_at = receiver.asked_at = now
    receiver.expires_at, receiver.problem = None, ""
    receiver.save(update_fields=["agreed_at", "asked_at", "expires_at", "problem"])
    record_acts(by, "agree", Change(receiver, before, {"agreed_at": now, "expires_at": None}))
    _make_due(receiver, now)


def _forget(receiver: Receiver, by: Operator) -> None:
    before = {"agreed_at": receiver.agreed_at, "expires_at": receiver.expires_at}
    record_acts(by, "forget", Change(receiver, before))
    receiver.delete()


def _make_due(receiver: Receiver, now: datetime) -> None:
    """Make the webhooks that lead to the receiver due. A webhook that another transaction has locked keeps its time."""
    host = receiver.site.partition("://")[2].rpartition(":")[0]
    waiting = Webhook.objects.filter(host=host[:255], state=WebhookState.ACTIVE, lease_until=None, due_at__gt=now)
    mine = waiting.filter(task__owner_id=receiver.owner_id)
    ids = list(mine.select_for_update(of=("self",), skip_locked=True, no_key=True).values_list("pk", flat=True))
    Webhook.objects.filter(pk__in=ids).update(due_at=now)
