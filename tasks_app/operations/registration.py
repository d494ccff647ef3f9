"""The registration of a webhook, alone or with a message: checks of its address and of the number of
the task's webhooks, and its row."""

import secrets
from base64 import b64encode
from datetime import UTC, datetime
from uuid import uuid4

from a2a.dialects.webhook_fields import SIGNING_SCHEME
from a2a.errors import InvalidParams
from a2a.languages import push_of
from a2a.types import PushConfig
from tasks_app.callers.access import Caller
from tasks_app.database.rows import WebhookRow
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import MAX_WEBHOOKS
from tasks_app.ids import uuid7
from tasks_app.models import Webhook
from tasks_app.models.states import WebhookState
from tasks_app.operations.operation import Await
from tasks_app.outbound import policy
from tasks_app.sealing import seal, site_of


async def check_address(config: PushConfig) -> None:
    """Check that the address may be called. Raises InvalidParams.

    An address that is unknown or on the inner network is accepted here, and refused at each delivery: a caller who
    registers name after name must not find out which of them lead to machines inside.
    """
    try:
        await Await(lambda: policy.check(config.url))
    except (policy.Unknown, policy.Inside):
        return
    except policy.Blocked as error:
        raise InvalidParams((config.path, str(error))) from None


async def check_room(config: PushConfig, row: WebhookRow, caller: Caller) -> None:
    """Check that the task has room for another webhook. Raises InvalidParams."""
    others = Webhook.objects.filter(task_id=row.task_id).exclude(state=WebhookState.REMOVED).exclude(name=row.name)
    if (await DoSlowly(others.count, caller.owner_id)) >= MAX_WEBHOOKS:
        raise InvalidParams(too_many(config))


def too_many(config: PushConfig) -> tuple[str, str]:
    """Return the field and the sentence of the error for one webhook too many."""
    field = config.path if config.path != "url" and not config.path.endswith(".url") else f"{config.path[:-3]}id"
    return field, f"would be one webhook too many: a task has {MAX_WEBHOOKS} at most; replace or delete one"


def webhook_row(config: PushConfig, task_id: str, now: datetime, caller: Caller) -> WebhookRow:
    """Return the row of a webhook.

    A webhook without an id gets the task's id in languages whose clients expect it, and a new one in the others
    (docs/protocol.md#webhook-methods).
    """
    signs = bool(config.schemes) and config.schemes[0].lower() == SIGNING_SCHEME
    secret = config.credentials if signs and config.credentials else new_secret()
    push, version = push_of(config.language)
    issued_at = caller.issued_at
    default_id = task_id if push.default_id else str(uuid4())
    return WebhookRow(
        id=uuid7(),
        task_id=task_id,
        name=config.id or default_id,
        version=version,
        language=config.language,
        notices=config.notices if push.filters else None,
        url=site_of(config.url),
        address=seal(config.url),
        key_id=caller.key_id,
        caller_credential=caller.credential or None,
        evidence_at=now if issued_at is None else datetime.fromtimestamp(issued_at, UTC),
        host=policy.target(config.url).host[:255],
        schemes=" ".join(config.schemes),
        token=_seal_text(config.token),
        secret=seal(secret),
        due_at=None,
        credentials="" if signs else _seal_text(config.credentials),
        created_at=now,
        updated_at=now,
    )


def new_secret() -> str:
    """Make a secret in the form of Standard Webhooks."""
    return "whsec_" + b64encode(secrets.token_bytes(32)).decode()


def _seal_text(text: str | None) -> str:
    return seal(text) if text else ""
